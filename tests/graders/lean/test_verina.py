# SPDX-License-Identifier: Apache-2.0
"""Programs and specifications in Lean judged by tests. A script that speaks as Lean does stands in for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from newskills.base.protocols import Execution, ExecutionResult, Kit
from newskills.base.records import Row, Score
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.graders import make_grader
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox

LEAN = r"""#!/bin/sh
for file in "$@"; do :; done
exec awk '
/^#print "/ { gsub(/^#print "|"$/, ""); print; next }
/^import Absent/ { print "main.lean:1:0: error: unknown module prefix Absent"; exit 1 }
/BROKEN/ { print "main.lean:9:2: error: BROKEN is unknown" }
/ENDLESS/ { system("sleep 60") }
/WRONG/ { wrong = 1 }
/ODD/ { odd = 1 }
/UNPROVED/ { unproved = 1 }
/UNTRUE/ { untrue = 1 }
/^#guard/ && wrong { print "main.lean:9:2: error: Expression\n  decide x\ndid not evaluate to `true`"; wrong = 0; next }
/^#guard/ && odd { print "main.lean:9:2: error: failed to synthesize Decidable"; next }
/^example : ¬/ { if (!untrue) print "main.lean:9:2: error: no"; next }
/^example : / { if (untrue || unproved) print "main.lean:9:2: error: no"; next }
' "$file"
"""
TASK: Row = {
    "header": "import Mathlib",
    "signature": {
        "name": "half",
        "parameters": [{"param_name": "a", "param_type": "Int"}, {"param_name": "s", "param_type": "String"}],
        "return_type": "Bool",
    },
    "tests": [{"input": {"a": 2, "s": 'x"'}, "expected": True, "unexpected": [False]}],
    "reject_inputs": [{"input": {"a": -1, "s": ""}}],
}
CODE_TASK: Row = {**TASK, "given": "@[reducible, simp]\ndef half_precond (a : Int) (s : String) : Prop :=\n  True"}
SPEC_TASK: Row = {**TASK, "given": ""}
FUNCTION = "def half (a : Int) (s : String) (h_precond : half_precond a s) : Bool :=\n  a %% 2 == 0 -- %s\n"
CONDITIONS = (
    "def ok (a : Int) := a ≥ 0\n@[reducible]\ndef half_precond (a : Int) (s : String) : Prop :=\n  ok a\n\n"
    "@[simp]\ndef half_postcond (a : Int) (s : String) (result : Bool) (h_precond : half_precond a s) : Prop :=\n"
    "  result = (a %% 2 == %s)\n"
)


def block(code: str) -> str:
    return f"Like this:\n```lean4\n{code}\n```"


class Kept:
    """A sandbox that only keeps what it is given."""

    def __init__(self) -> None:
        self.code: list[str] = []

    async def execute(self, execution: Execution) -> ExecutionResult:
        self.code.append(execution.code)
        return ExecutionResult(status="completed")

    async def delete_session(self, session_id: str) -> None: ...

    async def close(self) -> None: ...


def grade(folder: Path, kind: str, record: Row, answer: str, **config: Any) -> Score:
    lean = folder / "lean"
    lean.write_text(LEAN)
    lean.chmod(0o755)
    for above in (folder, *folder.parents[:2]):
        above.chmod(0o755)

    async def graded() -> Score:
        sandbox = LocalSandbox(SandboxConfig(preload=(), lean=str(lean)), os.environ)
        try:
            grader: Any = make_grader(kind, config)
            score: Score = await grader.grade({**record, "generation": answer}, Kit(sandbox=sandbox))
            return score
        finally:
            await sandbox.close()

    return asyncio.run(graded())


def own(word: str) -> str:
    """The function, with `word` in its body."""
    return FUNCTION.replace("== 0 -- %s", f"== {word}").replace("%%", "%")


@pytest.mark.parametrize(
    ("answer", "record", "outcome", "status"),
    [
        (block(own("0")), {}, "correct", "completed"),
        (block(f"{CODE_TASK['given']}\n\n{own('0')}"), {}, "correct", "completed"),
        (block(own("WRONG")), {}, "wrong", "completed"),
        (block(own("ODD")), {}, "wrong", "completed"),
        (block(own("BROKEN")), {}, "wrong", "error: BROKEN is unknown"),
        (block(own("ENDLESS")), {}, "wrong", "timeout"),
        (block(own("sorry")), {}, "wrong", "forbidden"),
        (
            block(f'instance : Inhabited Nat := ⟨0⟩\nmacro "x" : term => `(1)\n{own("0")}'),
            {},
            "wrong",
            "forbidden",
        ),
        (block("def other := 1"), {}, "no_answer", "no_proof"),
        ("I cannot.", {}, "no_answer", "no_proof"),
        (block(own("0")), {"header": "import Absent"}, "unscored", "failed"),
    ],
)
def test_programs(tmp_path: Path, answer: str, record: Row, outcome: str, status: str) -> None:
    score = grade(tmp_path, "verina-code", {**CODE_TASK, **record}, answer, timeout=4)
    assert (score.outcome, score.fields["proof_status"]) == (outcome, status), score


@pytest.mark.parametrize(
    ("word", "outcome", "checks"),
    [
        ("0", "correct", [True] * 4),
        ("WRONG", "wrong", [False, True, True, True]),
        ("ODD", "correct", [True] * 4),
        ("ODD + UNTRUE", "wrong", [False] * 4),
        ("ODD + UNPROVED", "unscored", [None] * 4),
    ],
)
def test_specifications(tmp_path: Path, word: str, outcome: str, checks: list[bool | None]) -> None:
    """What cannot be decided is proved or disproved, or the answer is not scored."""
    score = grade(tmp_path, "verina-spec", SPEC_TASK, block(CONDITIONS % word))
    assert (score.outcome, score.fields.get("spec_checks")) == (outcome, checks), score


def test_answers_without_both_conditions(tmp_path: Path) -> None:
    first = CONDITIONS.partition("@[simp]")[0]
    for answer in (block(first), "Nothing.", ""):
        assert grade(tmp_path, "verina-spec", SPEC_TASK, answer).outcome == "no_answer"
    assert (
        grade(tmp_path, "verina-spec", SPEC_TASK, block(CONDITIONS % "sorry")).fields["proof_status"]
        == "forbidden"
    )


def _program(kind: str, record: Row, answer: str) -> list[str]:
    kept = Kept()
    grader: Any = make_grader(kind, {})
    asyncio.run(grader.grade({**record, "generation": answer}, Kit(sandbox=kept)))
    return kept.code


def test_values_stand_before_the_answer() -> None:
    """There, no instance of the answer's own can change what a literal means."""
    (text,) = _program("verina-code", CODE_TASK, block(f"instance : BEq Int := ⟨fun _ _ => true⟩\n{own('0')}"))
    places = [
        text.index(part) for part in (': String := "x\\""', ":given", "instance : BEq", ":answer", "#guard decide")
    ]
    assert places == sorted(places)
    assert "(a : Int) (s : String) (h_precond : half_precond a s) : Bool := a % 2 == 0" in " ".join(text.split())


@pytest.mark.mirror
@pytest.mark.parametrize("kind", ["verina-code", "verina-spec"])
def test_every_reference_solution_is_read(mirror: Path, tmp_path: Path, kind: str) -> None:
    """Its heads are put in place, nothing of it is forbidden, and each test becomes a check."""
    options = FetchOptions(mirror=str(mirror), offline=True)
    (done,) = prepare(get_benchmark(kind), data_dir=tmp_path, options=options).splits
    rows = list(read_rows(done.path))
    assert len(rows) == 189
    grader: Any = make_grader(kind, {})
    for row in rows:
        (text,) = _program(kind, row, grader.gold_reply(row))
        unexpected = sum(len(test["unexpected"]) for test in row["tests"])
        checks = 2 * len(row["tests"]) + unexpected + len(row["reject_inputs"])
        assert text.count("#guard") == (len(row["tests"]) if kind == "verina-code" else checks), row["id"]
        assert "!benchmark" not in text
