# SPDX-License-Identifier: Apache-2.0
"""Judges that are asked twice about a row: games with swapped orders, and turns of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.judged import line
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

FILE = """
from newskills.base.benchmark import Benchmark, Judge
from newskills.benchmarks.chat_judge.arena_hard import arena_judge

def rows(split):
    for n, category in enumerate(("hard_prompt", "creative_writing", "hard_prompt")):
        yield {"id": f"a{n}", "question": f"Ask {n}?", "baseline_answer": f"baseline {n}", "category": category}

def talks(split):
    yield {"id": "t0", "question": "One?", "turns": ["One?", "Two?"], "turn_references": ["eins", "zwei"]}

BENCHMARKS = (ARENA, TALKS) = (
    Benchmark(
        name="games", category="own", title="x", generate_rows=rows, prompt="generic/default", grader="",
        metric="arena", judge=arena_judge(creative=True),
    ),
    Benchmark(
        name="talks", category="own", title="x", generate_rows=talks, prompt="generic/default", grader="",
        metric="mt-bench", solver="turns", judge=Judge(prompt="judge/mt-bench", kind="turns", grader="rating"),
    ),
)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sets.py").write_text(FILE)
    for name in ("ARENA", "TALKS"):
        done = ns(f"ns prepare_data ./sets.py::{name} --data_dir data", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    return tmp_path


def test_games_are_played_in_both_orders(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(
        Script(answer=Answer(kind="table", template="%s", table={f"Ask {n}": f"own {n}" for n in range(3)}))
    )
    verdicts = {
        "A>\nown 0": "[[A>>B]]",
        "A>\nbaseline 0": "[[B>A]]",
        "A>\nown 1": "[[A=B]]",
        "A>\nbaseline 1": "[[A>B]]",
        "A>\nown 2": "nobody wins",
        "A>\nbaseline 2": "[[C>D]]",
    }
    judge = fake_server(Script(answer=Answer(kind="table", template="%s", table=verdicts)))
    done = ns(line(model.url, judge.url, "--accept_lost=50", benchmarks="./sets.py::ARENA"), cwd=here)
    assert done.returncode == 0, done.stderr
    rows = rows_of(here / "out/eval-results/games/output.jsonl")
    assert [row["arena_games"] for row in rows] == [["A>>B", "A>B"], ["A=B", "A<B"], [None, None]]
    assert [row["outcome"] for row in rows] == ["correct", "wrong", "unscored"]
    assert rows[0]["judgement-gen-base"] == "[[A>>B]]"
    assert rows[0]["judgement"] == "[gen-base]\n[[A>>B]]\n\n[base-gen]\n[[B>A]]"
    asked = [str(record.body) for record in judge.records]
    assert len(asked) == 6
    assert sum("<text of A>" in text for text in asked) == 2, "the creative row has a prompt of its own"
    found = json.loads((here / "out/metrics.json").read_text())["games"]["pass@1"]
    assert found["score"] == pytest.approx(100 * (3 + 1 + 0.5) / (3 + 1 + 1 + 1))
    assert found["invalid_scores"] == 2
    assert found["95_CI"][0] <= 0 <= found["95_CI"][1]
    assert found["category_creative_writing"]["score"] == 25


def test_turns_follow_each_other(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(
        Script(answer=Answer(kind="table", template="%s", table={"Two?": "second", "One?": "first"}))
    )
    judge = fake_server(
        Script(answer=Answer(kind="table", template="%s", table={"eins": "Good. [[8]]", "zwei": "Bad. [[3]]"}))
    )
    done = ns(line(model.url, judge.url, benchmarks="./sets.py::TALKS"), cwd=here)
    assert done.returncode == 0, done.stderr
    (row,) = rows_of(here / "out/eval-results/talks/output.jsonl")
    assert len(row["turn_answers"]) == 2
    assert row["generation"] == row["turn_answers"][1]
    said = [(one["role"], one["content"]) for one in model.records[1].body["messages"]]
    assert said == [("user", "One?"), ("assistant", "first"), ("user", "Two?")]
    assert row["ratings"] == {"turn-1": 8.0, "turn-2": 3.0}
    found = json.loads((here / "out/metrics.json").read_text())["talks"]["pass@1"]
    assert (found["rating"], found["turn_1"], found["turn_2"]) == pytest.approx((5.5, 8.0, 3.0))


def test_a_model_is_evaluated_as_a_judge(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    done = ns("ns prepare_data answer-judge --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = fake_server(Script(answer=Answer(text="They agree.\nJudgement: Yes")))
    words = f"--server_type=vllm --model=fake --server_address={model.url} --output_dir=out --data_dir=data"
    done = ns(f"ns eval --benchmarks=answer-judge {words}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out/metrics.json").read_text())["answer-judge"]["pass@1"]
    assert (found["correct_judgements"], found["false_positives"], found["recall"]) == (50, 50, 100)
    assert "judge_model" not in rows_of(tmp_path / "out/eval-results/answer-judge/output.jsonl")[0]
