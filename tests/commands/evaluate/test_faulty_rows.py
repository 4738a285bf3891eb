# SPDX-License-Identifier: Apache-2.0
"""Rows with null, an object for an answer, a missing field or NaN: faults of data, never of the model that answers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.commands.rewarding import rewards
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

from newskills.aimo.training.rl_math import MathRewardFunction
from newskills.base.errors import GraderError, TrainingError
from newskills.base.records import Score
from newskills.run.rewarding.reward import RewardConfig, RewardItem, reward_of_verdict
from newskills.train.loops.samples import Judged

ROWS: list[dict[str, object]] = [
    {"id": n, "problem": f"What is {n} + {n}?", "expected_answer": str(2 * n)} for n in range(4)
]
ANSWERS = {str(row["problem"]): str(row["expected_answer"]) for row in ROWS}
TABLE = Script(answer=Answer(kind="table", table=ANSWERS))
NAN = """
from newskills.base.records import Score
def strange(record):
    figure = float(record["figure"])
    if record.get("in_fields"):
        return Score(outcome="correct", fields={"symbolic_correct": figure}, grader="strange@1")
    return Score(outcome="correct", fields={"symbolic_correct": True}, grader="strange@1", value=figure)
"""


def line(server: FakeServer | FakeServerProcess, *options: str) -> str:
    start = f"ns generate --server_type=vllm --model=fake --server_address={server.base_url} --output_dir=out"
    return " ".join([start, "--input_file=in.jsonl ++prompt_config=generic/math ++eval_type=math", *options])


@pytest.mark.parametrize("place", [0, 2])
def test_null_in_a_prompt_is_refused_with_file_and_line(
    tmp_path: Path, fake_server: FakeServerFactory, place: int
) -> None:
    server = fake_server(TABLE)
    write(tmp_path / "in.jsonl", [{**row, "problem": None} if at == place else row for at, row in enumerate(ROWS)])
    done = ns(line(server), cwd=tmp_path)
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert f"in.jsonl, line {place + 1}: Record {place} has null as 'problem'" in said
    assert "None" not in json.dumps([record.body for record in server.records])


def test_a_prompt_may_say_what_it_shows_for_null(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    (tmp_path / "own.yaml").write_text("user: '{problem} Hint: {hint}'\nempty: (no hint)\n")
    write(tmp_path / "in.jsonl", [{"problem": "a", "hint": None}, {"problem": "b", "hint": "c"}])
    done = ns(line(server).replace("generic/math ++eval_type=math", "./own.yaml"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = sorted(record.body["messages"][-1]["content"] for record in server.records)
    assert asked == ["a Hint: (no hint)", "b Hint: c"]


def test_null_in_a_conversation_is_refused(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    write(tmp_path / "in.jsonl", [{"messages": [{"role": "user", "content": None}]}])
    options = line(server).replace("++prompt_config=generic/math", "++prompt_format=openai")
    done = ns(options, cwd=tmp_path)
    assert done.returncode == 2
    assert "in.jsonl, line 1: message 1: `content` is null" in " ".join(done.stderr.split())


@pytest.mark.parametrize("gold", [{"a": 7}, [{"a": 7}]])
def test_an_object_as_right_answer_is_a_fault_of_the_data(
    tmp_path: Path, fake_server: FakeServerFactory, gold: object
) -> None:
    server = fake_server(TABLE)
    write(tmp_path / "in.jsonl", [{**ROWS[0], "expected_answer": gold}, *ROWS[1:]])
    ns(line(server), cwd=tmp_path)
    first, *others = rows_of(tmp_path / "out/output.jsonl")
    assert (first["outcome"], first["outcome_cause"]) == ("unscored", "data")
    assert first["symbolic_correct"] is None
    assert "`expected_answer` is an object" in first["why"]
    assert [row["outcome"] for row in others] == ["correct"] * 3


@pytest.mark.parametrize(
    "grader", ["math", "multichoice", "exact", "short_answer", "literal", "option_set", "gaia", "hotpotqa", "if"]
)
def test_rows_without_an_answer_are_refused_with_file_and_line(tmp_path: Path, grader: str) -> None:
    answered = [{**row, "generation": f"\\boxed{{{row['expected_answer']}}}"} for row in ROWS]
    write(tmp_path / "in.jsonl", [*answered[:2], ROWS[2], *answered[3:]])
    done = ns(f"ns grade --grader={grader} --input_files in.jsonl --output_file=graded.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "in.jsonl, line 3 has no `generation`" in " ".join(done.stderr.split())
    assert not (tmp_path / "graded.jsonl").exists()


def test_an_empty_answer_and_a_lost_one_are_graded_as_ever(tmp_path: Path) -> None:
    empty = [{**ROWS[0], "generation": ""}, {**ROWS[1], "generation": None}, {**ROWS[2], "predicted_answer": None}]
    lost = {**ROWS[3], "outcome": "unscored", "outcome_cause": "provider", "error": "timeout"}
    write(tmp_path / "in.jsonl", [*empty, lost])
    done = ns("ns grade --grader=math --input_files in.jsonl --output_file=graded.jsonl", cwd=tmp_path)
    graded = rows_of(tmp_path / "graded.jsonl")
    assert [row["outcome"] for row in graded[:3]] == ["no_answer"] * 3, done.stderr
    assert graded[3]["outcome"] == "unscored"


def test_runs_that_nobody_has_graded_are_not_compared(tmp_path: Path) -> None:
    for run in "ab":
        write(tmp_path / run / "eval-results/gsm8k/output.jsonl", [{**row, "generation": "x"} for row in ROWS])
    for command in ("compare", "why"):
        done = ns(f"ns {command} a b", cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        assert "no record in" in done.stderr
        assert "has a verdict" in " ".join(done.stderr.split())


def test_a_field_of_the_users_own_is_what_a_grader_is_told(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{"reply": "a", "expected_answer": "a"}])
    told = ns("ns grade --grader=exact --input_files in.jsonl ++answer_key=reply", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    wrong = ns("ns grade --grader=exact --input_files in.jsonl ++answer_key=replies", cwd=tmp_path)
    assert "line 1 has no `replies`" in " ".join(wrong.stderr.split())


@pytest.mark.parametrize("figure", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("in_fields", [False, True])
def test_a_figure_that_is_none_is_refused(tmp_path: Path, figure: str, in_fields: bool) -> None:
    (tmp_path / "own.py").write_text(NAN)
    write(tmp_path / "in.jsonl", [{"generation": "x", "figure": figure, "in_fields": in_fields}])
    done = ns("ns grade --grader=own.py::strange --input_files in.jsonl --output_file=graded.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    (graded,) = rows_of(tmp_path / "graded.jsonl")
    assert (graded["outcome"], graded["outcome_cause"]) == ("unscored", "grader")
    assert f"{figure}" in graded["why"]


@pytest.mark.parametrize("figure", ["nan", "inf"])
@pytest.mark.parametrize("setting", [["++reward.value=true"], []])
def test_no_reward_is_made_of_a_figure_that_is_none(tmp_path: Path, figure: str, setting: list[str]) -> None:
    """NaN became null on its way, and null was worth what a correct answer is."""
    (tmp_path / "own.py").write_text(NAN)
    items = [{"generation": "x", "figure": figure}, {"generation": "x", "figure": "0.5"}]
    with rewards(tmp_path, "--grader=own.py::strange", "++reward.correct=3", *setting) as server:
        status, answer, _ = server.call("/v1/rewards", {"items": items})
    assert status == 200
    assert answer["rewards"] == [None, 0.5 if setting else 3.0]
    assert "not a finite number" in answer["items"][0]["why"]


def test_a_graders_figure_in_this_process_is_no_reward_either() -> None:
    score = Score(outcome="correct", fields={}, grader="g@1", value=0.5)
    score.value = math.nan
    judged = reward_of_verdict(score, RewardItem(record={"generation": ""}), RewardConfig(value=True))
    assert (judged.reward, judged.outcome) == (None, "unscored")
    with pytest.raises(ValueError, match="not a finite number"):
        Score(outcome="correct", fields={}, grader="g@1", value=math.inf)
    with pytest.raises(TrainingError, match="not a finite number"):
        Judged(math.nan, correct=True)


def test_a_verifier_of_ones_own_that_gives_nan_pays_nothing() -> None:
    function = MathRewardFunction(lambda text, truth: math.nan)  # type: ignore[return-value]
    with pytest.raises(GraderError, match="nan"):
        function(["p"], ["c"], answer=["a"])
