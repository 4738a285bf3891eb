# SPDX-License-Identifier: Apache-2.0
"""Criteria with points in files: asked one by one and at once, counted, shown, and refused where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, Script
from tests.server.answers import Body

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import ready_rows
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.solve.judges.several import criterion_parts
from newskills.view.faces import face_of

CRITERIA = """criteria:
  - {criterion: Names a dose., points: 5, name: dose, tags: [axis:accuracy]}
  - {criterion: Says to see a doctor., points: 3}
  - {criterion: Invents a study., points: -4, name: invention}
"""
VERDICTS = {"Names a dose": "Yes", "see a doctor": "No", "Invents a study": "Yes", "Is short": "Yes"}


def written(folder: Path, more: str = "", rows: list[Row] | None = None) -> Path:
    rows = rows or [{"question": "Headache?"}, {"question": "Cough?"}]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "rubric.yaml").write_text(CRITERIA)
    path = folder / "care.yaml"
    path.write_text(f"data: rows.jsonl\n{more or 'rubric: ./rubric.yaml'}\n")
    return path


def verdict(body: Body) -> str:
    """Judge the criteria that a prompt holds, as it asks for them."""
    prompt = body["messages"][-1]["content"]
    if "Criteria:" not in prompt:
        return next(f"So.\nJudgement: {word}" for text, word in VERDICTS.items() if text in prompt)
    asked = prompt.partition("Criteria:")[2].partition("Write one line")[0].strip().split("\n\n")
    return "\n".join(f"**{line.partition(':')[0]}**: So. Judgement: {_word(line)}" for line in asked)


def _word(line: str) -> str:
    return next(word for text, word in VERDICTS.items() if text in line)


def evaluated(folder: Path, model: FakeServer, judge: FakeServer) -> tuple[Row, list[Row], str]:
    """Return figures, records and table of `ns eval --benchmarks=./care.yaml`."""
    done = ns(
        f"ns eval --benchmarks=./care.yaml --server_type=vllm --server_address={model.url} --model=fake "
        f"--output_dir=out --judge_server_type=vllm --judge_server_address={judge.url} --judge_model=fake "
        "--accept_lost=100",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    results = folder / "out" / "eval-results" / "care"
    metrics = json.loads((results / "metrics.json").read_text())
    records = [json.loads(line) for line in (results / "output.jsonl").read_text().splitlines()]
    return metrics["care"]["pass@1"], records, done.stdout


@pytest.mark.parametrize("at_once", [False, True])
def test_a_rubric_of_all_rows(tmp_path: Path, fake_server: FakeServerFactory, at_once: bool) -> None:
    written(tmp_path, f"rubric: ./rubric.yaml\njudge: {{at_once: {str(at_once).lower()}}}")
    judge = fake_server(Script(), answer=verdict)
    numbers, records, _ = evaluated(tmp_path, fake_server(Script(answer=Answer(text="Take 500 mg."))), judge)
    assert len([record for record in judge.records if record.method == "POST"]) == (2 if at_once else 6)
    assert numbers["score"] == pytest.approx(100 * (5 - 4) / 8)
    assert (numbers["met_dose"], numbers["met_criterion_2"], numbers["met_invention"]) == (100.0, 0.0, 100.0)
    assert numbers["axis_accuracy"] == 100.0
    assert {"score_interval", "met_dose_interval"} <= set(numbers)
    assert [record["rubric_met"] for record in records] == [[True, False, True]] * 2
    (table,) = [face for face in face_of(records[0]) if face.get("title") == "Criteria"]
    assert [(item["passed"], item["note"]) for item in table["items"]] == [
        (True, "met, 5.0 points"),
        (False, "not met, 3.0 points"),
        (False, "met, -4.0 points"),
    ]


def test_criteria_of_rows_and_of_the_file(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    own = [{"criterion": "Is short.", "points": 2}]
    rows: list[Row] = [
        {"question": "Headache?", "rubrics": own},
        {"question": "Cough?", "rubrics": json.dumps(own)},
        {"question": "Fever?", "rubrics": ""},
    ]
    written(tmp_path, "rubric: ./rubric.yaml\ncolumns: {rubrics: rubrics}", rows)
    numbers, records, _ = evaluated(tmp_path, fake_server(Script()), fake_server(Script(), answer=verdict))
    assert [record["rubric_score"] for record in records] == [0.3, 0.3, 0.125]
    assert numbers["score"] == pytest.approx(100 * (0.3 + 0.3 + 0.125) / 3)


def test_a_verdict_that_cannot_be_read_is_unscored(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    written(tmp_path, "rubric: ./rubric.yaml\njudge: {at_once: true}")

    def judged(body: Body) -> str:
        whole = verdict(body)
        return whole.replace("**Criterion 3**", "**Criterion 2**") if "Cough" in str(body) else whole

    numbers, records, _ = evaluated(tmp_path, fake_server(Script()), fake_server(Script(), answer=judged))
    assert [record["outcome"] for record in records] == ["wrong", "unscored"]
    assert numbers["score"] == pytest.approx(100 / 8)
    assert records[1]["rubric_met"] == [True, None, None]


def test_parts_of_a_reply() -> None:
    reply = "<think>Criterion 1: hm</think>\nCriterion 1: See criterion 2.\n- Criterion 2: No.\nCriterion 2: Yes"
    assert criterion_parts(reply) == {1: "Criterion 1: See criterion 2."}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("rubric: ./other.yaml", "line 2, column 9: "),
        ("rubric: ./other.jsonl", "other.jsonl"),
        ("rubric: [{criterion: a, points: many}]", "points: expected a number, got 'many'"),
        ("rubric: [{criterion: a, point: 1}]", "point"),
        ("kind: rubric", "there are no criteria"),
        ("rubric: ./rubric.yaml\nkind: judged", "kind judged takes no rubric"),
        ("kind: judged\njudge: {at_once: true}", "line 3, column 18: only kind: rubric has criteria"),
        ("rubric: ./rows.jsonl", "criterion 1"),
        ("rubric: [{criterion: a, points: 1, name: x}, {criterion: b, points: 1, name: x}]", "have the name 'x'"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(tmp_path: Path, more: str, words: str) -> None:
    path = written(tmp_path, more)
    with pytest.raises(ConfigError) as error:
        get_benchmark(str(path))
    assert words in f"{error.value.message} {error.value.hint}"


def test_a_file_of_lines_and_a_rubric_without_points_to_win(tmp_path: Path) -> None:
    lines = [{"criterion": "Is short.", "points": 1}, {"criterion": "Is rude.", "points": -1}]
    (tmp_path / "rubric.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    benchmark: Any = get_benchmark(str(written(tmp_path, "rubric: rubric.jsonl")))
    assert isinstance(benchmark, DescribedBenchmark)
    (first, _) = read_rows(ready_rows(benchmark, "", tmp_path / "data"))
    assert [rubric["name"] for rubric in first["rubrics"]] == ["criterion_1", "criterion_2"]
    assert first["conversation"] == "user: Headache?"
    lost: Any = get_benchmark(str(written(tmp_path, "rubric: [{criterion: Is rude., points: -1}]")))
    with pytest.raises(Exception, match="no criterion has positive points"):
        ready_rows(lost, "", tmp_path / "lost")
