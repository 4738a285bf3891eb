# SPDX-License-Identifier: Apache-2.0
"""Lean proofs without Lean: what is read of an answer, what is never run, what Lean's words mean.

Programs that speak as Lean does stand in for it in the sandbox; `tests/sandbox/test_lean_proofs.py` has Lean itself.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.protocols import ExecutionResult, Kit
from newskills.base.records import Row, Score
from newskills.graders import make_grader
from newskills.graders.lean.grader import LeanProofConfig, LeanProofGrader, read_verdict
from newskills.graders.lean.program import new_names, proof_program, read_proof, read_statement
from newskills.graders.lean.source import forbidden_reason, lean_tokens, without_comments
from newskills.metrics import make_metric
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox

HEADER = "import Mathlib\n\nopen Real Nat\n\n"
FORMAL = "theorem swap (a b : Nat) (h : a = b) : b = a := by\n"
STATEMENT = read_statement(HEADER, FORMAL)
RECORD: Row = {"header": HEADER, "formal_statement": FORMAL}
HEAD = "theorem swap (a b : Nat) (h : a = b) : b = a"
CHEATS = {
    "sorry": "sorry",
    "admit": "admit",
    "sorryAx": "exact sorryAx _ false",
    "sorry in a helper": f"theorem t : False := sorry\n{FORMAL}  exact t.elim",
    "sorry in a string": 'exact (s!"{(sorry : Nat)}").elim',
    "axiom": f"axiom cheat : False\n{FORMAL}  exact cheat.elim",
    "private axiom": f"private axiom cheat : False\n{FORMAL}  exact cheat.elim",
    "unsafe": f"unsafe def t : False := t\n{FORMAL}  exact h.symm",
    "implemented_by": f"@[implemented_by t] def u : Nat := 0\n{FORMAL}  exact h.symm",
    "extern": f'@[extern "t"] def u : Nat := 0\n{FORMAL}  exact h.symm',
    "csimp": f"@[csimp] theorem u : a = b := t\n{FORMAL}  exact h.symm",
    "attribute afterwards": f"attribute [local command_elab Lean.Parser.Command.print] t\n{FORMAL}  exact h.symm",
    "macro": f'macro "trivial_fact" : tactic => `(tactic| skip)\n{FORMAL}  trivial_fact',
    "macro_rules": f"macro_rules | `(type_of% $t) => `(True)\n{FORMAL}  exact h.symm",
    "elab": f'elab "done" : command => pure ()\n{FORMAL}  exact h.symm',
    "syntax": f'syntax "x" : term\n{FORMAL}  exact h.symm',
    "notation": f'local notation "b = a" => True\n{FORMAL}  trivial',
    "infix": f'local infix:50 " = " => fun _ _ => True\n{FORMAL}  trivial',
    "hidden behind a letter": f'αmacro "x" : term => `(1)\n{FORMAL}  exact h.symm',
    "hidden behind a bracket": f'(x).macro "x" : term => `(1)\n{FORMAL}  exact h.symm',
    "hidden behind a number": f'1macro "x" : term => `(1)\n{FORMAL}  exact h.symm',
    "hidden in a comment's end": f'/- /- -/ -/ macro "x" : term => `(1)\n{FORMAL}  exact h.symm',
    "eval": 'exact h.symm\n\n#eval IO.println "does not depend on any axioms"',
    "eval with a sign": "exact h.symm\n#eval! 1",
    "run_cmd": "exact h.symm\nrun_cmd Lean.logInfo m!\"fine\"",
    "run_tac": "run_tac Lean.Elab.Tactic.done",
    "by_elab": "exact (by_elab Lean.Meta.mkSorry _ true)",
    "initialize": "exact h.symm\ninitialize IO.Process.exit 0",
    "include_str": 'exact h.symm\ndef all := include_str "main.lean"',
    "kernel off": f"set_option debug.skipKernelTC true in\n{FORMAL}  exact h.symm",
    "names printed otherwise": f"set_option pp.oneline true in\n{FORMAL}  exact h.symm",
    "messages hidden": f"#guard_msgs (drop error) in\n{FORMAL}  exact h",
    "end of the file": "exact h.symm\n#exit",
    "assumptions": f"variable (no : False)\ninclude no\n{FORMAL}  exact no.elim",
    "more libraries": f"{FORMAL}  exact h.symm import Own",
    "settings that read files": (
        "def s : Simp.Config := match (IO.FS.readFile \"main.lean\") () with | _ => {}\n"
        f"{FORMAL}  simp (config := s) [h]"
    ),
    "settings of an unsafe program": (
        f"theorem add : True := by aesop\nunsafe def s : Simp.Config := s\n{FORMAL}  simp (config := s) [h]"
    ),
    "names opened": f"open Lean Elab in\n{FORMAL}  exact h.symm",
    "a type without its name": f"def t : type_of% @Aesop.x := t\n{FORMAL}  exact h.symm",
    "an extension of a tactic": f"@[norm_num _ = _] def e := 1\n{FORMAL}  exact h.symm",
    "simproc": f"simproc cheat (_ = _) := fun _ => return .done\n{FORMAL}  simp",
}  # fmt: skip


class NeverRun:
    """A sandbox that must not be asked."""

    async def execute(self, execution: object) -> ExecutionResult:
        raise AssertionError("the answer was run")

    async def delete_session(self, session_id: str) -> None: ...

    async def close(self) -> None: ...


def _grade(generation: str, kit: Kit, record: Row = RECORD, config: LeanProofConfig = LeanProofConfig()) -> Score:  # noqa: B008 - frozen
    return asyncio.run(LeanProofGrader(config).grade({**record, "generation": generation}, kit))


def _block(code: str) -> str:
    return f"I am sure.\n\n```lean4\n{code}\n```"


@pytest.mark.parametrize("name", CHEATS)
def test_what_could_sidestep_the_check_is_not_run(name: str) -> None:
    score = _grade(_block(CHEATS[name]), Kit(sandbox=NeverRun()))
    assert score.outcome == "wrong", score
    assert score.fields["proof_status"] == ("has_sorry" if "sorry" in name or name == "admit" else "forbidden")


@pytest.mark.parametrize(
    "code",
    [
        "-- sorry, this is a macro\nexact h.symm",
        "/- axiom /- nested -/ unsafe -/ exact h.symm",
        "simp [List.prefix_append, Foo.syntax, h'.symm]",
        "aesop (add unsafe foo, safe bar)",
        "exact #[1, 2].size_pos\nexact Finset.card_pos.mpr #s",
        f"open Nat in\nset_option maxHeartbeats 400000 in\n@[local simp, to_additive (attr := simp)]\n{FORMAL}  simp",
        f"instance : Inhabited Nat := ⟨0⟩\nattribute [-simp] foo\n{FORMAL}  simp",
        "decide\n\n#print axioms swap\n#check swap",
        """exact congrArg (fun c => c) (show 'a' = '"' from rfl)""",
    ],
)
def test_honest_words_are_no_tricks(code: str) -> None:
    assert forbidden_reason(without_comments(code)) == ""


@pytest.mark.parametrize(
    ("answer", "before", "body"),
    [
        ("exact h.symm", "", ":= by\n  exact h.symm"),
        ("by exact h.symm", "", ":= by exact h.symm"),
        (":= h.symm", "", ":= h.symm"),
        (f"{HEAD} := h.symm", "", ":= h.symm"),
        (f"{HEADER}{FORMAL}  exact h.symm", "", ":= by\n  exact h.symm"),
        (f"import Mathlib\n\nlemma t : P := p\n\n{FORMAL}  exact h.symm", "lemma t : P := p", ":= by\n  exact h.symm"),
        ("theorem swap (x y : Nat) (h : x = y := by rfl) :\n  y = x := h.symm", "", ":= h.symm"),
        ("theorem other (x : Nat) : x = x := rfl", "", ":= rfl"),
        (f"/-- words -/\nprivate theorem swap {HEAD[13:]} := h.symm", "", ":= h.symm"),
    ],
)  # fmt: skip
def test_the_proof_is_found_and_the_statement_restated(answer: str, before: str, body: str) -> None:
    proof = read_proof(answer, STATEMENT, restate=True)
    assert proof is not None
    assert (proof.before, proof.body, proof.statement) == (before, body, HEAD)


def test_statements_of_records() -> None:
    made = read_statement("", "def n := 1\n\n/-- sorry -/\nnoncomputable def f (x : α) : { y // y = x } :=\n")
    assert (made.preamble, made.keyword, made.name) == ("def n := 1\n\n \nnoncomputable", "def", "f")
    assert not made.tactics
    assert read_statement("", "lemma l : True := by sorry").keyword == "lemma"
    for broken in ("", "theorem t : True", "abbrev a : Nat := sorry\ntheorem t : a = 1 := by\n", "1 := by"):
        with pytest.raises(ValueError, match="it "):
            read_statement("", broken)


def test_the_file_asks_in_the_order_that_keeps_answers_out() -> None:
    proof = read_proof("exact h.symm", STATEMENT, restate=True)
    assert proof is not None
    names = new_names()
    assert new_names() != names
    lines = proof_program(STATEMENT, proof, names).splitlines()
    marks = [f"theorem {names.asked}", f"#print axioms {names.mark}", HEAD, f"theorem {names.final}"]
    places = [next(at for at, line in enumerate(lines) if line.startswith(mark)) for mark in marks]
    assert places == sorted(places)
    assert lines[places[-1]].endswith(f": type_of% @{names.asked} := @swap")


def _said(*parts: str, status: str = "completed") -> tuple[str, str]:
    names = new_names()
    text = "\n".join(parts).replace("MARK", names.mark).replace("FINAL", names.final)
    return read_verdict(ExecutionResult(status=status, stdout=text), names)


MARKED = "/tmp/x/main.lean:5:8: warning: declaration uses 'sorry'\n'MARK' does not depend on any axioms"
PLAIN = "'FINAL' does not depend on any axioms"


@pytest.mark.parametrize(
    ("parts", "run", "status"),
    [
        ((MARKED, PLAIN), "completed", "completed"),
        ((MARKED, "'A.FINAL' depends on axioms: [propext,\n Classical.choice]"), "completed", "completed"),
        ((MARKED, "'FINAL' depends on axioms: [choice, propext]"), "completed", "completed"),
        ((MARKED, "'FINAL' depends on axioms: [propext, sorryAx]"), "completed", "has_sorry"),
        ((MARKED, "'FINAL' depends on axioms: [Lean.ofReduceBool]"), "completed", "axioms"),
        ((MARKED, "'FINAL' depends on axioms: [swap._native.native_decide.ax_1]"), "completed", "axioms"),
        ((MARKED, "'swap' does not depend on any axioms", "no goals"), "completed", "error"),
        ((MARKED, PLAIN, PLAIN), "completed", "error"),
        ((MARKED, "main.lean:9:0: error: unsolved goals\n⊢ False", PLAIN), "failed", "error"),
        ((MARKED, "main.lean:1:0: error: unknown module prefix 'Mathlib'", PLAIN), "failed", "error"),
        ((MARKED, PLAIN), "failed", "error"),
        (("main.lean:1:0: error: unknown module prefix 'Mathlib'",), "failed", "failed"),
        (("main.lean:4:2: error: unknown identifier 'foo'", MARKED, PLAIN), "failed", "failed"),
        (("", "INTERNAL PANIC"), "failed", "failed"),
        ((MARKED,), "timeout", "timeout"),
        ((MARKED, PLAIN), "crashed", "error"),
        ((MARKED, PLAIN), "out_of_memory", "error"),
        ((), "timeout", "failed"),
        ((), "out_of_memory", "failed"),
    ],
)  # fmt: skip
def test_what_lean_says(parts: tuple[str, ...], run: str, status: str) -> None:
    found, why = _said(*parts, status=run)
    assert found.partition(":")[0] == status
    assert why


def test_a_missing_library_is_named() -> None:
    _, why = _said("main.lean:1:0: error: unknown module prefix 'Mathlib'\n\nNo directory", status="failed")
    assert "a library is missing" in why
    assert "++sandbox.lean" in why


def _play(folder: Path, script: str) -> LocalSandbox:
    """A sandbox whose Lean is a shell script; `$file` is what it was given."""
    lean = folder / "lean"
    lean.write_text(f'#!/bin/sh\nfor file in "$@"; do :; done\n{script}\n')
    lean.chmod(0o755)
    for above in (folder, *folder.parents[:2]):
        above.chmod(0o755)
    return LocalSandbox(SandboxConfig(preload=(), lean=str(lean)), os.environ)


REPORTS = 'sed -n "s/^#print axioms \\(.*\\)/\'\\1\' does not depend on any axioms/p" "$file"'


@pytest.mark.parametrize(
    ("script", "outcome", "status"),
    [
        (REPORTS, "correct", "completed"),
        (f"{REPORTS}; echo 'main.lean:9:2: error: type mismatch'; exit 1", "wrong", "error: type mismatch"),
        ("echo \"main.lean:1:0: error: unknown module prefix 'Mathlib'\"; exit 1", "unscored", "failed"),
        (f"{REPORTS}; sleep 30", "wrong", "timeout"),
        ("sleep 30", "unscored", "failed"),
        ("echo no goals", "unscored", "failed"),
    ],
)
def test_through_the_sandbox(tmp_path: Path, script: str, outcome: str, status: str) -> None:
    async def graded() -> Score:
        sandbox = _play(tmp_path, script)
        await sandbox.start()
        try:
            record = {**RECORD, "generation": _block("exact h.symm")}
            return await LeanProofGrader(LeanProofConfig(timeout=4)).grade(record, Kit(sandbox=sandbox))
        finally:
            await sandbox.close()

    score = asyncio.run(graded())
    assert (score.outcome, score.fields["proof_status"]) == (outcome, status), score
    assert score.fields["predicted_proof"] == f"{HEAD} := by\n  exact h.symm\n"


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        ("  have k := h\n  exact k.symm\n```", "    have k := h\n    exact k.symm"),
        ("  subst h\n  rfl", "    subst h\n    rfl"),
        ("subst h\nrfl\n```\n\nThis turns the equation round.", "  subst h\n  rfl"),
        ("<think>Turn it round.</think>\n  subst h\n  rfl\n```", "    subst h\n    rfl"),
        ("cases h with\n| refl => rfl\n```", "  cases h with\n  | refl => rfl"),
        ("  constructor\n  · simp\n    done\n```", "    constructor\n    · simp\n      done"),
    ],
)
def test_a_reply_goes_on_in_the_block_that_its_prompt_has_begun(tmp_path: Path, reply: str, body: str) -> None:
    """As the official prompt of proofs asks: the statement is given in an open block, the proof comes right away."""

    async def graded() -> Score:
        sandbox = _play(tmp_path, REPORTS)
        await sandbox.start()
        try:
            return await LeanProofGrader().grade({**RECORD, "generation": reply}, Kit(sandbox=sandbox))
        finally:
            await sandbox.close()

    score = asyncio.run(graded())
    assert score.outcome == "correct", score
    assert score.fields["predicted_proof"] == f"{HEAD} := by\n{body}\n"


@pytest.mark.parametrize("text", ["", "I cannot prove this.", "<think> still", "```lean4\n```", "```lean4\nexact"])
def test_no_proof_is_no_answer(text: str) -> None:
    score = _grade(text, Kit(sandbox=NeverRun()))
    assert (score.outcome, score.fields["proof_status"]) == ("no_answer", "no_proof")


def test_a_record_without_a_statement_is_unscored() -> None:
    score = _grade(_block("rfl"), Kit(sandbox=NeverRun()), {"formal_statement": "1 + 1"})
    assert (score.outcome, score.cause) == ("unscored", "data")


def test_settings() -> None:
    assert make_grader("lean4-proof", {"timeout": 60, "num_parallel_requests": 4}).name == "lean4-proof"
    two = _block("sorry") + "\n" + _block("rfl")
    assert "`sorry`" in _grade(two, Kit(sandbox=NeverRun()), config=LeanProofConfig(extract_code_mode="first")).why
    turned = f"{_block('rfl')}\n**FINAL ANSWER**\n{_block('sorry')}"
    assert "`sorry`" in _grade(turned, Kit(sandbox=NeverRun())).why


@given(st.text(alphabet="-/ \n\"'\\abc«»s!r#", max_size=60))
def test_comments_are_taken_out_once_and_for_all(text: str) -> None:
    kept = without_comments(text)
    assert len(kept) <= len(text) + text.count("--") + text.count("/-")
    assert kept.count("\n") == text.count("\n")


@pytest.mark.parametrize("piece", ['"', '\\"', "/-", "-/", "(", "«", "'", "/--", "@[", '"\\'])
def test_hostile_text_costs_little(piece: str) -> None:
    began = time.process_time()
    text = without_comments(piece * 20_000)
    forbidden_reason(text)
    read_proof(text, STATEMENT, restate=True)
    assert time.process_time() - began < 5
    assert lean_tokens("") == []


def test_metrics() -> None:
    metric = make_metric("lean4-proof")
    for status, outcome in (
        ("completed", "correct"),
        ("error: no", "wrong"),
        ("timeout", "wrong"),
        ("failed", "unscored"),
    ):
        metric.update([{"id": status, "proof_status": status, "outcome": outcome, "predicted_proof": "p"}])  # fmt: skip
    found = metric.metrics()["pass@1"]
    assert (round(found["lean4_correct"], 2), found["timeout_error"], found["num_entries"]) == (33.33, 25.0, 4)


def test_metrics_of_patches() -> None:
    metric = make_metric("swe-bench")
    reports = [
        {"resolved": True, "patch_exists": True, "patch_successfully_applied": True},
        {"resolved": False, "patch_exists": True, "patch_successfully_applied": False},
        {"resolved": False, "patch_exists": False, "patch_successfully_applied": False},
        None,
    ]
    for number, report in enumerate(reports):
        metric.update([{"id": number, "swe-bench-metrics": report}])
    found = metric.metrics()["pass@1"]
    shares = [round(found[name], 1) for name in ("issues_resolved", "no_patch", "patch_cant_apply")]
    assert shares == [33.3, 33.3, 33.3]
