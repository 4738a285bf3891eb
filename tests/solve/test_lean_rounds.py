# SPDX-License-Identifier: Apache-2.0
"""Proofs and statements in rounds. A shell script that speaks as Lean does stands in for it in the sandbox."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.server import FakeServer
from tests.solve.tir import Turns, with_kit

from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit
from newskills.base.records import Inference, Row, Sample, Score
from newskills.graders import make_grader
from newskills.metrics import make_metric
from newskills.prompts.renderer import load_prompt
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox
from newskills.solve import make_solver
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts

LEAN = """#!/bin/sh
for file in "$@"; do :; done
grep -q 'import Absent' "$file" && { echo "main.lean:1:0: error: unknown module prefix 'Absent'"; exit 1; }
sed -n "s/^#print axioms \\(.*\\)/'\\1' does not depend on any axioms/p" "$file" > said
head -1 said
grep -qw bad "$file" && { echo "main.lean:9:2: error: bad is unknown"; failed=1; }
tail -n +2 said
exit ${failed:-0}
"""
THEOREM: Row = {
    "id": "t",
    "header": "import Mathlib\n\n",
    "informal_prefix": "",
    "formal_statement": "theorem t (a : Nat) : a = a := by\n",
}
PROBLEM: Row = {"id": "p", "problem": "Show that equality is reflexive."}
STATEMENT = "theorem t (a : Nat) : a = a := by sorry"


def block(code: str) -> str:
    return f"I think so.\n```lean4\n{code}\n```"


def lean(folder: Path) -> LocalSandbox:
    program = folder / "lean"
    program.write_text(LEAN)
    program.chmod(0o755)
    for above in (folder, *folder.parents[:2]):
        above.chmod(0o755)
    return LocalSandbox(SandboxConfig(preload=(), lean=str(program)), os.environ)


def solve(folder: Path, name: str, row: Row, replies: list[str], **config: Any) -> tuple[Row, list[str]]:
    """(fields, the last message of each request); the model says `replies`, one after the other."""
    prompt = {"prover": "lean4/goedel-prover-v2", "autoformalize": "lean4/autoformalization"}[name]
    chat = ChatSolver(load_prompt(prompt), ChatSolverOptions(inference=Inference(tokens_to_generate=5000)))
    solver = make_solver(name, SolverParts(chat=chat), config)
    sample = Sample(id=str(row["id"]), row=row)
    turns = Turns(*replies)
    with FakeServer(None, answer=turns) as server:
        attempt = with_kit(server, lambda kit: solver.solve(sample, solver.request(sample), kit), lean(folder))
        assert turns.asked == len(replies)
        return attempt.fields, [record.body["messages"][-1]["content"] for record in server.records]


def test_a_refused_proof_is_mended(tmp_path: Path) -> None:
    fields, asked = solve(tmp_path, "prover", THEOREM, [block("exact bad"), "No.", block("rfl")])
    assert fields["generation"] == block("rfl")
    assert fields["num_refinements"] == 2
    assert [attempt["proof_status"] for attempt in fields["proof_attempts"]] == [
        "error: bad is unknown",
        "no_proof",
        "completed",
    ]
    assert "bad is unknown" in asked[1]
    assert "exact bad" in asked[1]
    assert "(no Lean code was found)" in asked[2]


@pytest.mark.parametrize(
    ("row", "replies", "config", "statuses"),
    [
        (THEOREM, [block("rfl")], {}, ["completed"]),
        (THEOREM, [block("bad")], {"refinements": 0}, ["error: bad is unknown"]),
        (THEOREM, [block("sorry")] * 3, {}, ["has_sorry"] * 3),
        ({**THEOREM, "header": "import Absent\n"}, [block("rfl")], {}, ["failed"]),
    ],
)
def test_when_rounds_end(tmp_path: Path, row: Row, replies: list[str], config: Row, statuses: list[str]) -> None:
    """An instrument that fails is no reason for another round."""
    fields, _ = solve(tmp_path, "prover", row, replies, **config)
    assert [attempt["proof_status"] for attempt in fields["proof_attempts"]] == statuses


def test_a_statement_in_rounds(tmp_path: Path) -> None:
    replies = [
        "I cannot.",
        block("theorem t (a : bad) : a = a := by sorry"),
        block(STATEMENT.replace("a = a", "True")),
        "Something is true.",
        "Too weak.\nJudgement: No",
        block(STATEMENT),
        "Every number equals itself.",
        "The same.\nJudgement: Yes",
    ]
    fields, asked = solve(tmp_path, "autoformalize", PROBLEM, replies, judge=True)
    assert fields["formal_statement"] == "theorem t (a : Nat) : a = a := by\n"
    assert (fields["statement_status"], fields["num_refinements"]) == ("completed", 3)
    assert fields["header"].startswith("import Mathlib")
    assert fields["back_translation"] == "Every number equals itself."
    assert [attempt["statement_status"] for attempt in fields["statement_attempts"]] == [
        "no_statement",
        "error",
        "inconsistent",
        "completed",
    ]
    parts = (
        "import Mathlib",
        "no statement to be read",
        "bad is unknown",
        "True",
        "Something is true.",
        "Too weak.",
    )
    assert [part in text for part, text in zip(parts, asked, strict=False)] == [True] * len(parts)


@pytest.mark.parametrize(
    ("row", "replies", "config", "status", "taken"),
    [
        (PROBLEM, [block(STATEMENT)], {}, "completed", True),
        (PROBLEM, [block(STATEMENT), "It is.", "Perhaps."], {"judge": True}, "unjudged", True),
        (PROBLEM, ["No."] * 3, {"refinements": 2}, "no_statement", False),
        (PROBLEM, [block(f"axiom a : False\n{STATEMENT}")], {"refinements": 0}, "forbidden", False),
        ({**PROBLEM, "header": "import Absent"}, [block(STATEMENT)], {}, "failed", False),
    ],
)
def test_how_statements_end(
    tmp_path: Path, row: Row, replies: list[str], config: Row, status: str, taken: bool
) -> None:
    fields, _ = solve(tmp_path, "autoformalize", row, replies, **config)
    assert (fields["statement_status"], fields["formal_statement"] is not None) == (status, taken)


def test_a_judge_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no model 'other'; the choices are main"):
        solve(tmp_path, "autoformalize", PROBLEM, [block(STATEMENT)], judge=True, judge_role="other")


def test_rounds_are_a_conversation() -> None:
    chat = ChatSolver(
        load_prompt("lean4/goedel-prover-v2"),
        ChatSolverOptions(inference=Inference(endpoint_type="text", tokens_to_generate=5)),
    )
    solver = make_solver("prover", SolverParts(chat=chat), {})
    with pytest.raises(ConfigError, match="endpoint_type=chat"):
        solver.request(Sample(id="t", row=THEOREM))


@pytest.mark.parametrize(
    ("answer", "record", "outcome", "status"),
    [
        (block(STATEMENT), {}, "correct", "completed"),
        (block(f"import Other\n\ndef n := 1\n{STATEMENT}"), {}, "correct", "completed"),
        (block("theorem t (a : bad) : a = a := by sorry"), {}, "wrong", "error: bad is unknown"),
        (block("theorem t : 1 = 1 := rfl"), {}, "wrong", "no_statement"),
        (block(f"axiom a : False\n{STATEMENT}"), {}, "wrong", "forbidden"),
        (block(STATEMENT), {"header": "import Absent"}, "unscored", "failed"),
        ("I cannot.", {}, "no_answer", "no_statement"),
    ],
)
def test_statements_are_graded(tmp_path: Path, answer: str, record: Row, outcome: str, status: str) -> None:
    async def graded() -> Score:
        sandbox = lean(tmp_path)
        try:
            grader: Any = make_grader("lean4-statement", {})
            return await grader.grade({**record, "generation": answer}, Kit(sandbox=sandbox))
        finally:
            await sandbox.close()

    score = asyncio.run(graded())
    assert (score.outcome, score.fields["proof_status"]) == (outcome, status), score.why
    metric = make_metric("lean4-statement")
    metric.update([{"id": "p", **score.fields, "outcome": score.outcome}])
    expected = {"correct": 100.0, "unscored": None}.get(outcome, 0.0)
    assert metric.metrics()["pass@1"].get("lean4_correct") == expected
