# SPDX-License-Identifier: Apache-2.0
"""Lean itself in the sandbox, and the grader's files before it: proofs that hold or not, and attempts to cheat.

All is one file, each answer in a namespace of its own (and with instances that end with it): the Lean that can be
had here needs a minute to start. It cannot report axioms (it loads libraries without their proofs), so its refusal of
`#print axioms` is read as "none"; what the report decides is tested with recorded output beside the grader.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.driver import drive
from tests.sandbox.lean_wasm import lean

from newskills.base.protocols import ExecutionResult
from newskills.graders.lean.grader import read_verdict
from newskills.graders.lean.program import Names, new_names, proof_program, read_proof, read_statement

__all__ = ["lean"]
pytestmark = pytest.mark.nightly  # four minutes of one CPU; the grader's own tests have recorded output
HEADER = "prelude\nimport Init.Data.Nat.Basic\n"
"""A small import: the whole of Init costs another minute."""
THEOREMS = """namespace Theorems
theorem sums (a b : Nat) : a + b = b + a := Nat.add_comm a b
theorem power : 2 ^ 10 = 1024 := by decide
theorem both (p q : Prop) (hp : p) (hq : q) : p ∧ q := ⟨hp, hq⟩
theorem wrong : 1 = 2 := by decide
theorem least (n : Nat) : 0 ≤ n := Nat.zero_le n
end Theorems
"""
PLAIN = "theorems without a grader"
SWAP = "theorem swap (a b : Nat) (h : a = b) : b = a := by\n"
FALSE = "theorem lie (a : Nat) : a = a + 1 := by\n"
NO_REPORT = re.compile(r"^main\.lean:(\d+):\d+: error: cannot use `#print axioms`.*$")
COMPLETED, ERROR = "completed", "error"
ATTEMPTS = {
    "tactics": (SWAP, "exact h.symm", COMPLETED),
    "term": (SWAP, "theorem swap (a b : Nat) (h : a = b) : b = a := h.symm", COMPLETED),
    "helper": (
        SWAP,
        f"{HEADER}theorem turn (a b : Nat) (h : a = b) : b = a := h.symm -- sorry\n{SWAP}  exact turn a b h",
        COMPLETED,
    ),
    "binders renamed": (SWAP, "theorem swap (x y : Nat) (h : x = y) : y = x := by\n  exact Eq.symm ‹_›", COMPLETED),
    "words in comments": (SWAP, "/- sorry, axiom -/ exact h.symm -- macro", COMPLETED),
    "structures": (
        "structure P where\n  n : Nat\ntheorem small (p : P) : 0 ≤ p.n := by\n",
        "exact Nat.zero_le _",
        COMPLETED,
    ),
    "universes": ("theorem any {α : Sort u} (a : α) : a = a := by\n", "rfl", COMPLETED),
    "wrong proof": (SWAP, "exact h", ERROR),
    "unfinished": (SWAP, "refine Eq.trans ?_ ?_", ERROR),
    "false statement": (FALSE, "decide", ERROR),
    "no such lemma": (SWAP, "exact Nat.swap_all h", ERROR),
    "another statement": (FALSE, "theorem lie (a : Nat) : a = a := by\n  rfl", ERROR),
    "more assumed": (FALSE, "theorem lie (a : Nat) (h : a = a + 1) : a = a + 1 := by\n  exact h", ERROR),
    "weaker twin after a failed proof": (FALSE, "rfl\n\ntheorem lie.two (a : Nat) : a = a := rfl", ERROR),
    "twin in a namespace": (FALSE, "namespace N\ntheorem lie (a : Nat) : a = a := rfl\nend N", ERROR),
    "shadowed type": (FALSE, f"namespace N\ninductive Nat where\n{FALSE}  cases a\nend N", ERROR),
    "shadowed plus": (FALSE, f"local instance : HAdd Nat Nat Nat := ⟨fun a _ => a⟩\n{FALSE}  rfl", ERROR),
    "shadowed one": (FALSE, f"local instance : OfNat Nat 1 := ⟨0⟩\n{FALSE}  rfl", ERROR),
    "shadowed equality": (
        FALSE,
        f"namespace N\ndef Eq (_ _ : Nat) : Prop := True\n{FALSE}  exact True.intro\nend N",
        ERROR,
    ),
    "shadowed type, open": (
        FALSE,
        f"namespace N\ninductive Nat where\nend N\nopen N hiding foo\nopen N\n{FALSE}  nomatch a",
        ERROR,
    ),
    "a definition of the same name": (FALSE, f"def lie : Nat := 0\n{FALSE}  rfl", ERROR),
    "itself": (FALSE, "exact lie a", ERROR),
    "a forged report": (FALSE, 'trace "does not depend on any axioms"\n  rfl', ERROR),
    "a missing library forged": (FALSE, 'trace "main.lean:1:0: error: unknown module prefix Mathlib"\n  rfl', ERROR),
    "the failure caught": (FALSE, "first | rfl | skip", ERROR),
    "a coercion": (
        FALSE,
        f"local instance (a : Nat) : Coe True (a = a + 1) := ⟨fun _ => by assumption⟩\n{FALSE}  exact True.intro",
        ERROR,
    ),
    "a section of assumptions": (FALSE, f"section\nuniverse u\n{FALSE}  exact absurd rfl ‹_›\nend", ERROR),
    "an end of its own": (FALSE, "rfl\nend lie", ERROR),
    "a mutual block": (FALSE, "rfl\nmutual\nend", ERROR),
    "recursion without end": (FALSE, f"theorem more (a : Nat) : a = a + 1 := more a\n{FALSE}  exact more a", ERROR),
}  # fmt: skip


def _file(names: dict[str, Names]) -> tuple[str, list[str]]:
    """The theorems and all attempts in one file, and for each of its lines whose it is."""
    lines = HEADER.splitlines() + THEOREMS.splitlines()
    owners = [PLAIN] * len(lines)
    for number, (attempt, (formal, answer, _)) in enumerate(ATTEMPTS.items()):
        statement = read_statement(HEADER, formal)
        proof = read_proof(answer, statement, restate=True)
        assert proof is not None, attempt
        body = proof_program(statement, proof, names[attempt]).removeprefix(HEADER.strip())
        part = [f"namespace T{number}", *body.splitlines(), f"end T{number}"]
        lines += part
        owners += [attempt] * len(part)
    return "\n".join(lines) + "\n", owners


@pytest.fixture(scope="module")
def names() -> dict[str, Names]:
    return {attempt: new_names() for attempt in ATTEMPTS}


@pytest.fixture(scope="module")
def result(lean: Path, names: dict[str, Names]) -> dict[str, Any]:
    """What the sandbox says of the file."""
    settings = {"preload": [], "isolation": "a", "lean": str(lean), "limits": {"memory_mb": 4096}}
    code, _ = _file(names)
    execution = {"code": code, "language": "lean4", "timeout": 1000, "max_output_characters": 200_000}
    (result,) = drive(sys.executable, settings, [execution], patience=1100)
    return result


@pytest.fixture(scope="module")
def messages(result: dict[str, Any], names: dict[str, Names]) -> dict[str, list[str]]:
    """The lines of Lean's output, by what they are about."""
    text, owners = _file(names)
    said: dict[str, list[str]] = {owner: [] for owner in owners}
    current = PLAIN
    for line in result["stdout"].splitlines():
        position = re.match(r"main\.lean:(\d+):\d+: (?:error|warning)", line)
        if position and line.split(":")[1] != "1":
            current = owners[int(position[1]) - 1]
        refused = NO_REPORT.match(line)
        about = text.splitlines()[int(refused[1]) - 1].split()[-1] if refused else ""
        said[current].append(f"'{about}' does not depend on any axioms" if refused else line)
    return said


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_lean_accepts_what_is_true_and_says_where_a_proof_fails(
    result: dict[str, Any], messages: dict[str, list[str]]
) -> None:
    assert (result["status"], result["exit_code"], result["isolation_level"]) == ("failed", 1, "a"), result
    assert messages[PLAIN] == [
        "main.lean:7:28: error: Tactic `decide` proved that the proposition",
        "  1 = 2",
        "is false",
    ]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_proofs_hold_and_cheating_does_not(messages: dict[str, list[str]], names: dict[str, Names]) -> None:
    verdicts = {}
    for attempt, output in messages.items():
        if attempt == PLAIN:
            continue
        failed = any(re.match(r"main\.lean:\d+:\d+: error", line) for line in output)
        execution = ExecutionResult(status="failed" if failed else "completed", stdout="\n".join(output))
        verdicts[attempt] = read_verdict(execution, names[attempt])
    wanted = {attempt: status for attempt, (_, _, status) in ATTEMPTS.items()}
    assert {attempt: status.partition(":")[0] for attempt, (status, _) in verdicts.items()} == wanted, verdicts
