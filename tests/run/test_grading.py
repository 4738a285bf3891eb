# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import changed, make_unit, names, records, run, write_input
from tests.run.toy import NAME
from tests.server import Answer, Fault, Script

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.records import Failure, Row, Score
from newskills.run.engine.grader_pool import as_score, verdict_fields

RIGHT = Answer(kind="table", table={f"is {i} +": str(i + 1) for i in range(5)}, text="no idea")


def test_records_are_graded_while_generating(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=RIGHT))
    write_input(tmp_path, 8)
    result = run(make_unit(tmp_path, server.base_url, eval_type="math"))
    found = records(tmp_path / "out" / "output.jsonl")
    assert [r["outcome"] for r in found] == ["correct"] * 5 + ["no_answer"] * 3
    assert [r["predicted_answer"] for r in found] == ["1", "2", "3", "4", "5", None, None, None]
    assert "outcome_cause" not in found[0]
    assert found[7]["outcome_cause"] == "model"
    assert found[0]["grader"].startswith("math@")
    assert (result.ledger.correct, result.ledger.no_answer, result.ledger.causes) == (5, 3, {"model": 3})
    assert names(tmp_path / "out") == ["output.jsonl", "output.jsonl.done", "output.jsonl.run.json"]


def test_an_answer_that_was_cut_off_is_blamed_on_truncation(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=Answer(text=r"let me think a bit \boxed{1}")))
    write_input(tmp_path, 2)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME, inference={"tokens_to_generate": 3})
    result = run(unit)
    assert result.ledger.causes == {"truncation": 2}


def test_thinking_that_never_ends_is_blamed_on_truncation(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text=r"<think> it may be \boxed{1} or")))
    write_input(tmp_path, 2)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME, parse_reasoning=True))
    found = records(tmp_path / "out" / "output.jsonl")[0]
    assert (found["generation"], found["_generation_finished_thinking"]) == ("", False)
    assert (found["outcome"], found["outcome_cause"]) == ("no_answer", "truncation")
    assert result.ledger.no_answer == 2


def test_a_grader_that_fails_makes_samples_unscored(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="1")))
    write_input(tmp_path, 3)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME, eval_config={"broken": "2"}))
    found = records(tmp_path / "out" / "output.jsonl")
    assert [r["outcome"] for r in found] == ["correct", "unscored", "wrong"]
    assert found[1]["outcome_cause"] == "grader"
    assert (result.exit_code, result.ledger.unscored, result.ledger.lost) == (0, 1, 1)


def test_a_finished_file_is_graded_again_without_generation(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=Answer(text="the answer is 7")))
    write_input(tmp_path, 8)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME)
    run(unit)
    asked = len(server.records)
    relaxed = changed(unit, eval_config={"always": True})
    before = records(unit.merged)
    result = run(relaxed)
    after = records(unit.merged)
    assert len(server.records) == asked
    assert (result.exit_code, result.units[0].generated) == (0, 0)
    assert [r["generation"] for r in after] == [r["generation"] for r in before]
    assert [r["outcome"] for r in before] == ["wrong"] * 6 + ["correct", "wrong"]
    assert all(r["outcome"] == "correct" and "outcome_cause" not in r for r in after)
    assert names(tmp_path / "out") == ["output.jsonl", "output.jsonl.done", "output.jsonl.run.json"]


def test_merged_chunks_are_not_graded_again_and_the_run_says_what_to_type(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=Answer(text="the answer is 7")))
    write_input(tmp_path, 4)
    units = [make_unit(tmp_path, server.base_url, eval_type=NAME, num_chunks=2, chunk_id=k) for k in range(2)]
    run(*units)
    before = units[0].merged.read_bytes()
    result = run(*(changed(unit, eval_config={"always": True}) for unit in units))
    for found in result.units:
        assert found.note.startswith('graded by toy@1 {}, but this run asks for toy@1 {"always":true}')
        assert f"ns grade --grader={NAME} --input_files={units[0].merged} --output_file=FILE" in found.note
    assert units[0].merged.read_bytes() == before
    assert [found.note for found in run(*(changed(unit, eval_type=None) for unit in units)).units] == ["", ""]


def test_a_file_without_its_marker_is_only_graded(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=RIGHT))
    write_input(tmp_path, 8)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME)
    run(unit)
    before = unit.merged.read_bytes()
    unit.paths.done.unlink()
    assert run(unit).exit_code == 0
    assert len(server.records) == 8
    assert unit.merged.read_bytes() == before
    assert unit.paths.done.exists()


def test_another_grader_under_a_resume_grades_all_rows_with_it(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(
        Script(answer=Answer(text="7"), faults=(Fault(kind="status", status=400, marker="is 7 +"),))
    )
    write_input(tmp_path, 8)
    unit = make_unit(tmp_path, server.base_url, eval_type=NAME)
    assert run(unit).exit_code == 1
    server.script = Script(answer=Answer(text="7"))
    result = run(changed(unit, eval_config={"always": True}))
    assert (result.exit_code, result.ledger.correct, len(server.records)) == (0, 8, 9)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"eval_type": "maths"}, UnknownNameError),
        ({"eval_type": "math", "eval_config": {"take_module": 3}}, ConfigError),
    ],
)
def test_graders_are_checked_before_any_request(
    tmp_path: Path, fake_server: FakeServerFactory, settings: Row, error: type[Exception]
) -> None:
    server = fake_server(Script())
    write_input(tmp_path, 2)
    with pytest.raises(error):
        run(make_unit(tmp_path, server.base_url, **settings))
    assert server.records == []


def test_more_records_than_the_window_are_all_graded(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newskills.run.engine.grader_pool.MAX_WAITING_SAMPLES", 3)
    server = fake_server(Script(answer=RIGHT))
    write_input(tmp_path, 200)
    result = run(make_unit(tmp_path, server.base_url, eval_type=NAME))
    assert (result.ledger.total, result.ledger.correct) == (200, 5)


def test_a_pool_failure_is_never_a_verdict() -> None:
    late = as_score(Failure(kind="Timeout", cause="timeout", message="too long"), "g@1")
    assert (late.outcome, late.cause) == ("unscored", "timeout")
    broken = as_score(Failure(kind="Crash", cause="harness", message="died"), "g@1")
    assert verdict_fields({}, broken) == {
        "predicted_answer": None,
        "symbolic_correct": None,
        "outcome": "unscored",
        "outcome_cause": "grader",
        "grader": "g@1",
        "why": "died",
    }


def test_a_wrong_answer_that_was_cut_off_is_told_apart() -> None:
    score = Score(outcome="wrong", fields={"predicted_answer": "3"}, grader="g@1", cause="model")
    assert verdict_fields({"finish_reason": "length"}, score)["outcome_cause"] == "truncation"
    assert verdict_fields({"finish_reason": "stop"}, score)["outcome_cause"] == "model"
    right = Score(outcome="correct", fields={"predicted_answer": "3"}, grader="g@1")
    assert "outcome_cause" not in verdict_fields({"finish_reason": "length"}, right)
