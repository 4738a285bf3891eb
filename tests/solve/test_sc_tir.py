# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from tests.server import Script
from tests.solve.tir import SAMPLE, TEXT, Broken, solve

from newskills.base.errors import ConfigError, SandboxError
from newskills.base.records import Row
from newskills.prompts.renderer import load_prompt
from newskills.solve import make_solver
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts
from newskills.solve.selection.sc_tir import CUT, ScTirSolver

CODE = "Try.\n```python\n6 * 7\n```\n```output\n"


def solver(**config: Any) -> ScTirSolver:
    chat = ChatSolver(load_prompt({"user": "{q}"}), ChatSolverOptions(inference=TEXT))
    made = make_solver("sc_tir", SolverParts(chat=chat), {"candidates": 1, "headers": [], **config})
    assert isinstance(made, ScTirSolver)
    return made


class Scripted:
    """Answers by seed: the texts of a candidate, one after the other (the last one again)."""

    def __init__(self, *candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        self.asked: dict[int, int] = {}

    def __call__(self, body: Row) -> str:
        seed = body["seed"]
        turn = self.asked[seed] = self.asked.get(seed, -1) + 1
        texts = self.candidates[seed % len(self.candidates)]
        return texts[min(turn, len(texts) - 1)]


def test_candidates_with_executed_code_vote() -> None:
    answer = Scripted(
        (CODE, r"So \boxed{42}."),
        (CODE, r"So \boxed{1042.4}."),
        (CODE, r"So \boxed{7}."),
        (r"Surely \boxed{7}.",),
        ("```python\n1\n```\n so the answer is 7.",),
        (CODE, r"So \boxed{-3}."),
        (CODE, "I do not know."),
        (CODE, r"So \boxed{x}."),
    )
    fields, bodies = solve(solver(candidates=8), answer)
    assert fields["predicted_answer"] == "42"
    assert fields["votes"] == {"42": 2, "7": 1}
    assert fields["generation"] == "Try.\n```python\n6 * 7\n```\n```output\n42\n```\nSo \\boxed{42}."
    found = fields["candidates"]
    assert [(one["status"], one["answer"]) for one in found] == [
        ("answered", "42"),
        ("answered", "42"),
        ("answered", "7"),
        *[("pruned", None)] * 5,
    ]
    assert [one["why"] for one in found[3:]] == [
        "no code",
        "an answer though no code was run",
        "not a number",
        "neither an answer nor an output block",
        "not a number",
    ]
    assert fields["num_code_executions"] == 6
    assert fields["code_rounds_executed"] == 1
    assert fields["num_generated_tokens"] == sum(one["num_generated_tokens"] for one in found)
    assert {body["seed"] for body in bodies} == set(range(8))
    assert all((body["temperature"], body["max_tokens"]) == (0.8, 2048) for body in bodies)
    assert all(body["stop"] == ["```output\n"] for body in bodies)


def test_nobody_with_an_answer_is_zero() -> None:
    fields, _ = solve(solver(candidates=2), Scripted(("No idea.",)))
    assert (fields["predicted_answer"], fields["votes"], fields["generation"]) == ("0", {}, "")
    assert "finish_reason" not in fields


def test_rounds_come_to_an_end() -> None:
    fields, bodies = solve(solver(rounds=3), Scripted((CODE,)))
    assert len(bodies) == 3
    assert fields["candidates"][0] | {"num_generated_tokens": 0} == {
        "status": "unfinished",
        "why": "no answer within the rounds",
        "answer": None,
        "rounds": 3,
        "num_code_executions": 2,
        "num_generated_tokens": 0,
    }


def test_a_candidate_without_code_can_begin_anew_with_another_seed() -> None:
    seeds: list[int] = []

    def answer(body: Row) -> str:
        seeds.append(body["seed"])
        if len(seeds) == 1:
            return "Hm."
        return r"\boxed{42}" if "output" in body["prompt"] else CODE

    fields, _ = solve(solver(restart_without_code=True), answer)
    assert fields["predicted_answer"] == "42"
    assert fields["generation"].startswith("Try.")
    assert len(set(seeds)) == 2


def test_each_block_runs_in_a_fresh_process_and_its_output_is_cut() -> None:
    long = "```python\na = 1\nprint('z' * 300)\n```\n```output\n"
    lost = "```python\nprint(a)\n```\n```output\n"
    fields, _ = solve(solver(), Scripted((long, lost, r"\boxed{1}")))
    first, second = fields["generation"].split("```output\n")[1:]
    assert first.startswith("z" * 200 + CUT)
    assert "NameError" in second


def test_a_server_that_names_no_stop_phrase_will_do() -> None:
    fields, _ = solve(solver(), Scripted((CODE, r"\boxed{42}")), Script(stop_key="unknown"))
    assert fields["predicted_answer"] == "42"


def test_other_answers_vote_by_what_they_mean() -> None:
    answer = Scripted((CODE, r"\boxed{7}"), (CODE, r"\boxed{\frac12}"), (CODE, r"\boxed{0.5}"))
    fields, _ = solve(solver(candidates=3, integers=False), answer)
    assert fields["predicted_answer"] == r"\frac12"
    assert list(fields["votes"].values()) == [2, 1]


def test_a_failing_sandbox_ends_the_sample() -> None:
    with pytest.raises(SandboxError):
        solve(solver(candidates=4), Scripted((CODE,)), sandbox=Failing())


class Failing(Broken):
    async def execute(self, execution: Any) -> Any:
        assert execution.session_id is None
        raise SandboxError("The sandbox is gone.")


def test_settings_are_checked_and_part_of_the_key() -> None:
    assert solver(rounds=2).request(SAMPLE).key() != solver(rounds=3).request(SAMPLE).key()
    with pytest.raises(ConfigError, match="did you mean 'candidates'"):
        solver(candidate=3)
