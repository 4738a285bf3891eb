# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.server import Fault, Script
from tests.solve.choosing import SAMPLE, SOLUTIONS, Model, choose, parts, solve, solver

from newskills.base.errors import ConfigError, DataError, ModelError
from newskills.base.records import Inference, Row, Sample
from newskills.prompts.code_tags import code_tags
from newskills.solve.chat import ChatSolverOptions
from newskills.solve.code.execution import CodeExecutionSolver, CodeOptions
from newskills.solve.selection.config import ParallelThinking
from newskills.solve.selection.parallel_thinking import parallel_thinking
from newskills.solve.selection.selecting import SelectingSolver

RIGHT, WRONG, OTHER = r"Since so, \boxed{42}.", r"I guess \boxed{41}.", r"Perhaps \boxed{7}."


def refused(**when: int) -> Fault:
    return Fault(kind="status", status=400, message="no", **when)


def thinking(mode: str = "genselect", options: ChatSolverOptions | None = None, **config: Any) -> SelectingSolver:
    return parallel_thinking(parts(options), ParallelThinking(mode=mode, **config))


def test_the_chosen_solution_is_the_answer() -> None:
    model = Model([WRONG, WRONG, RIGHT, WRONG], choose("42"))
    fields, bodies = solve(thinking(window_size=4), model)
    assert fields["generation"] == RIGHT
    assert fields["genselect_successful"] is True
    assert fields["genselect_comparison"].startswith("Judgment: ")
    assert sorted(fields["solution_list"]) == sorted(model.solutions)
    assert fields["num_lost_solutions"] == 0
    solved, compared = fields["total_solution_generated_tokens"], fields["genselect_num_generated_tokens"]
    assert solved > compared > 0
    assert fields["num_generated_tokens"] == solved + compared
    assert fields["generation_time"] >= 0
    assert [body["seed"] for body in bodies[:4]] == [0, 1, 2, 3]
    *drawn, comparison = bodies
    assert all((body["temperature"], body["max_tokens"]) == (0.7, 100) for body in drawn)
    assert (comparison["temperature"], comparison["max_tokens"]) == (0.6, 100)
    assert SAMPLE.row["problem"] in comparison["messages"][-1]["content"]


def test_neighbouring_seeds_share_no_solution() -> None:
    options = ChatSolverOptions(inference=Inference(temperature=1.0, random_seed=3))
    _, bodies = solve(thinking(options=options, window_size=2), Model([RIGHT, WRONG], choose("42")))
    assert [body["seed"] for body in bodies] == [6, 7, 3]


def test_an_unreadable_choice_is_drawn_by_lot_the_same_each_time() -> None:
    texts = [rf"\boxed{{{n}}}" for n in range(8)]
    found = [solve(thinking(), Model(texts, lambda shown: "Judgment: 8"))[0] for _ in range(2)]
    assert found[0]["generation"] == found[1]["generation"]
    assert found[0]["generation"] in texts
    assert not found[0]["genselect_successful"]
    options = ChatSolverOptions(inference=Inference(temperature=0.7, random_seed=1))
    drawn = {solve(thinking(options=options), Model(texts))[0]["generation"]}
    drawn |= {
        solve(thinking(), Model(texts), sample=Sample(id=str(n), row=SAMPLE.row))[0]["generation"]
        for n in range(6)
    }
    assert len(drawn) > 1


def test_empty_unfinished_and_long_solutions_are_not_compared() -> None:
    model = Model(["", "<think>never ends", "x" * 50, f"<think>{OTHER}</think> {RIGHT}", WRONG], choose("42"))
    fields, _ = solve(thinking(window_size=5, solution_length_cap=40), model)
    assert sorted(fields["solution_list"]) == sorted([RIGHT, WRONG])
    assert fields["generation"] == f"<think>{OTHER}</think> {RIGHT}"
    (shown,) = model.comparisons
    assert "7" not in shown


def test_one_solution_left_needs_no_comparison() -> None:
    model = Model(["", RIGHT])
    fields, bodies = solve(thinking(window_size=2), model)
    assert (fields["generation"], fields["genselect_successful"], fields["genselect_comparison"]) == (
        RIGHT,
        True,
        "",
    )
    assert (len(bodies), fields["genselect_num_generated_tokens"]) == (2, 0)


def test_no_solution_at_all_is_no_answer_of_the_model() -> None:
    fields, bodies = solve(thinking(window_size=2), Model([""]))
    assert (fields["generation"], fields["genselect_successful"], fields["solution_list"]) == ("", False, [])
    assert len(bodies) == 2


def test_a_lost_solution_is_left_out() -> None:
    fields, bodies = solve(
        thinking(window_size=4), Model([RIGHT], choose("42")), Script(faults=(refused(first=1),))
    )
    assert (fields["num_lost_solutions"], len(fields["solution_list"]), fields["generation"]) == (1, 3, RIGHT)
    assert len(bodies) == 5


def test_solutions_that_are_all_lost_and_a_lost_comparison_leave_the_sample_unscored() -> None:
    with pytest.raises(ModelError):
        solve(thinking(window_size=2), Model([RIGHT]), Script(faults=(refused(first=2),)))
    with pytest.raises(ModelError):
        solve(thinking(window_size=2), Model([RIGHT]), Script(faults=(refused(after=2),)))


def test_a_solution_written_out_of_all() -> None:
    said = r"Both err. <NEW_SOLUTION>Better: \boxed{42}</NEW_SOLUTION>"
    fields, _ = solve(thinking("gensynthesis", window_size=2), Model([WRONG, OTHER], lambda shown: said))
    assert fields["generation"] == r"Better: \boxed{42}"
    assert fields["gensynthesis_comparison"] == said
    assert fields["gensynthesis_successful"] is True
    assert fields["num_generated_tokens"] == (
        fields["total_solution_generated_tokens"] + fields["gensynthesis_num_generated_tokens"]
    )


def test_a_written_solution_without_tags_is_drawn_by_lot() -> None:
    fields, _ = solve(thinking("gensynthesis", window_size=2), Model([WRONG, OTHER]))
    assert fields["generation"] in (WRONG, OTHER)
    assert fields["gensynthesis_successful"] is False


def test_the_choice_can_be_looked_for_behind_reasoning() -> None:
    said = "Judgment: 0 or Judgment: 1? </think> None. "
    fields, _ = solve(thinking(window_size=2, parse_reasoning=True), Model([WRONG, RIGHT], lambda shown: said))
    assert (fields["genselect_successful"], fields["genselect_comparison"]) == (False, "None.")


def test_the_text_endpoint_compares_as_well() -> None:
    options = ChatSolverOptions(inference=Inference(temperature=0.7, endpoint_type="text", tokens_to_generate=50))
    fields, _ = solve(thinking(options=options, window_size=3), Model([WRONG, RIGHT, OTHER], choose("42")))
    assert fields["generation"] == RIGHT


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ConfigError, match="Unknown prompt"):
        solver("genselect", prompt_config="generic/genselekt")
    with pytest.raises(DataError, match="expected_answer"):
        solver("genselect", prompt_config="judge/math").request(SAMPLE)


def test_settings_are_part_of_the_key() -> None:
    keys = {thinking(**more).request(SAMPLE).key() for more in ({}, {"window_size": 4}, {"temperature": 0.5})}
    assert len(keys) == 3


# --- offline ----------------------------------------------------------------------------------------------------


def stored(folder: Path, **files: list[Row]) -> Path:
    for name, rows in files.items():
        (folder / f"output-{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def row(text: str, **more: Any) -> Row:
    return {**SAMPLE.row, "id": "7", "generation": text, "num_generated_tokens": 10, **more}


def test_stored_solutions_are_found_by_their_prompt(tmp_path: Path) -> None:
    other = {"problem": "Another?", "id": "8", "generation": OTHER}
    folder = stored(
        tmp_path,
        rs10=[row(RIGHT, finish_reason="stop", symbolic_correct=True)],
        rs2=[other, row(WRONG)],
        rs3=[row("", error="timeout")],
    )
    model = Model(["never asked"], choose("42"))
    fields, bodies = solve(thinking(generation_dir=str(folder)), model)
    assert (fields["generation"], fields["finish_reason"]) == (RIGHT, "stop")
    assert sorted(fields["solution_list"]) == sorted([WRONG, RIGHT])
    assert fields["total_solution_generated_tokens"] == 20
    assert "symbolic_correct" not in fields
    assert len(bodies) == 1
    fields, bodies = solve(thinking(generation_dir=str(folder), num_initial_solutions=1), model)
    assert (fields["generation"], bodies) == (WRONG, [])


def test_another_field_may_be_shown(tmp_path: Path) -> None:
    folder = stored(
        tmp_path, rs0=[row(RIGHT, summary="Short: forty-two.")], rs1=[row(WRONG, summary="Short: no.")]
    )
    fields, _ = solve(
        thinking(generation_dir=str(folder), solution_key="summary"), Model([""], choose("forty-two"))
    )
    assert fields["generation"] == RIGHT
    assert sorted(fields["solution_list"]) == ["Short: forty-two.", "Short: no."]


def test_seeds_shuffle_what_is_stored(tmp_path: Path) -> None:
    folder = stored(tmp_path, **{f"rs{n}": [row(rf"\boxed{{{n}}}")] for n in range(12)})
    shown = []
    for seed in range(3):
        options = ChatSolverOptions(inference=Inference(random_seed=seed))
        fields, _ = solve(
            thinking(options=options, generation_dir=str(folder), window_size=4, num_initial_solutions=9),
            model := Model([""]),
        )
        assert len(fields["solution_list"]) == 9
        shown.append(model.comparisons[0])
    assert len(set(shown)) == 3
    assert all(text.count("Solution ") == 4 for text in shown)


def test_a_row_without_stored_solutions_is_unscored(tmp_path: Path) -> None:
    folder = stored(tmp_path, rs0=[{"problem": "Another?", "generation": OTHER}])
    with pytest.raises(DataError, match="Record 7: no solution in"):
        solve(thinking(generation_dir=str(folder)), Model([RIGHT]))


def test_a_folder_without_stored_solutions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no output-rs"):
        thinking(generation_dir=str(tmp_path))


# --- draws ------------------------------------------------------------------------------------------------------


def test_draws_vote() -> None:
    texts = [RIGHT, WRONG, OTHER, r"\boxed{42.0}"]
    said = iter([choose("42}"), choose("41"), choose("42.0"), lambda shown: "?", lambda shown: "?"])
    model = Model(texts, lambda shown: next(said)(shown))
    fields, bodies = solve(solver("genselect", samples=4, window_size=4, repeats=5), model)
    assert fields["generation"] in (RIGHT, r"\boxed{42.0}")
    assert sorted(fields["votes"].values()) == [1, 2]
    assert (fields["num_invalid_selections"], fields["genselect_successful"]) == (2, True)
    assert len(bodies) == 4 + 5
    assert {body["seed"] for body in bodies[4:]} == set(range(5))


def test_a_draw_compares_some_of_all() -> None:
    texts = [rf"\boxed{{{n}}}" for n in range(10, 22)]
    model = Model(texts)
    solve(solver("genselect", samples=12, window_size=4, repeats=3), model)
    assert [shown.count("Solution ") for shown in model.comparisons] == [4, 4, 4]
    assert len(set(model.comparisons)) == 3


def test_a_tournament_compares_all_winners_with_winners() -> None:
    texts = [rf"\boxed{{{n}}}" for n in range(10, 31)] + [RIGHT]
    model = Model(texts, lambda shown: choose("42")(shown) if "42" in shown else "Judgment: 0")
    fields, _ = solve(solver("genselect", samples=22, window_size=4, repeats=1, groups="tournament"), model)
    assert fields["generation"] == RIGHT
    sizes = sorted(shown.count("Solution ") for shown in model.comparisons)
    assert sizes == [2, 3, 3, 3, 3, 4, 4, 4, 4]  # 22 → 6 groups → 2 groups of 3 → the last two


# --- other solvers of single answers ----------------------------------------------------------------------------


def test_solutions_may_run_code() -> None:
    code = "```python\n6 * 7\n```\n"
    chat = parts(
        ChatSolverOptions(inference=Inference(temperature=0.7, endpoint_type="text", tokens_to_generate=200))
    )
    base = CodeExecutionSolver(chat.chat, CodeOptions(tags=code_tags("qwen")))

    def answer(body: Row) -> str:
        if SOLUTIONS in body["prompt"]:
            return choose("42\n")(body["prompt"].partition(SOLUTIONS)[2])
        if body["seed"] or "output" in body["prompt"]:
            return WRONG if body["seed"] else RIGHT
        return code

    design = ParallelThinking(mode="genselect", window_size=2)
    chosen = parallel_thinking(structs.replace(chat, base=base), design)
    fields, bodies = solve(chosen, answer)
    assert fields["generation"] == f"{code}```output\n42\n```\n{RIGHT}"
    assert (fields["code_rounds_executed"], len(bodies)) == (1, 4)
