# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of a newcomer, each one short file, from raw data to the table: options by name, likelihoods, short
answers, verdicts of a judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

DECIDED = """
from newskills.base.benchmark import Benchmark, Source
from newskills.benchmarks.text import choices

def row(raw, index):
    question = f"{raw['context']}\\n\\n{raw['question']}"
    return {"id": raw["pubid"], **choices(question, ("yes", "no", "maybe")), "expected_answer": raw["decision"]}

BENCHMARK = Benchmark(
    name="yes-no-maybe", category="reasoning", title="Decisions", row=row,
    sources=(Source(url="https://example.org/decisions.csv", format="csv"),),
    prompt="eval/aai/mcq-10choices", grader="multichoice", metric="multichoice",
)
"""
ENDINGS = """
from newskills.base.benchmark import Benchmark, Source

def row(raw, index):
    return {
        "context": raw["start"],
        "continuations": [f" {ending}" for ending in raw["endings"]],
        "expected_answer": int(raw["label"]),
    }

BENCHMARK = Benchmark(
    name="endings", category="reasoning", title="Endings", row=row,
    sources=(Source(url="https://example.org/endings.jsonl"),),
    prompt="generic/continuation", solver="loglikelihood", grader="loglikelihood", metric="loglikelihood",
)
"""
SHORT = """
from newskills.base.benchmark import Benchmark, Source

def row(raw, index):
    return {"question": raw["q"], "expected_answer": raw["a"][0], "accepted_answers": raw["a"][1:]}

BENCHMARK = Benchmark(
    name="short", category="factuality", title="Short answers", sources=(Source(url="https://example.org/short.jsonl"),),
    row=row, prompt="generic/short-answer", grader="short_answer", metric="short_answer",
)
"""
JUDGED = """
from newskills.base.benchmark import Benchmark, Judge, Source

def row(raw, index):
    return {"question": raw["q"], "expected_answer": raw["a"][0]}

BENCHMARK = Benchmark(
    name="judged", category="factuality", title="Facts", sources=(Source(url="https://example.org/short.jsonl"),),
    row=row, prompt="generic/default", grader="", metric="simpleqa",
    judge=Judge(prompt="judge/simpleqa", grader="verdict"),
)
"""
FACTS = [
    {"q": "Who built the mill?", "a": ["Ann Brandt", "A. Brandt"]},
    {"q": "Where is the mill?", "a": ["Olm"]},
    {"q": "When was it built?", "a": ["1820"]},
    {"q": "Who paints it?", "a": ["Bob"]},
]


def prepared(folder: Path, code: str, file: str, content: str) -> None:
    (folder / "own.py").write_text(code)
    raw = folder / "mirror" / "example.org" / file
    raw.parent.mkdir(parents=True)
    raw.write_text(content)
    done = ns("ns prepare_data ./own.py --data_dir data --mirror mirror --offline", cwd=folder)
    assert done.returncode == 0, done.stderr


def evaluated(folder: Path, url: str, *options: str) -> dict[str, float]:
    line = f"ns eval --server_type=vllm --model=fake --server_address={url} --benchmarks=./own.py --data_dir=data"
    done = ns(f"{line} --output_dir=out", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads((folder / "out/metrics.json").read_text()).values()
    return found["pass@1"]


def test_yes_no_maybe(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    content = "pubid,context,question,decision\n1,It rains.,Wet?,yes\n2,Fog.,Sun?,no\n3,Clouds.,Rain?,maybe\n"
    prepared(tmp_path, DECIDED, "decisions.csv", content)
    table = {"Wet?": "Answer: Yes", "Sun?": "Answer: B", "Rain?": "**Answer: no**"}
    numbers = evaluated(tmp_path, fake_server(Script(answer=Answer(kind="table", table=table, template="%s"))).url)
    assert numbers["symbolic_correct"] == pytest.approx(200 / 3)
    records = rows_of(tmp_path / "out/eval-results/yes-no-maybe/output.jsonl")
    assert [record["predicted_answer"] for record in records] == ["A", "B", "B"]


def test_likelihoods(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    rows = [
        {"start": "The cat sat on the", "endings": ["mat", "moon"], "label": 0},
        {"start": "He drank a cup of", "endings": ["sand", "tea"], "label": 1},
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    prepared(tmp_path, ENDINGS, "endings.jsonl", content)
    server = fake_server(Script(likely={" mat": -1.0, " moon": -2.0, " sand": -0.5, " tea": -3.0}))
    numbers = evaluated(tmp_path, server.url)
    assert numbers["acc"] == 50.0
    assert len(server.records) == 1 + 4, "the server is asked once what it can do"
    server.script = Script(echo="ignored")
    line = f"ns eval --server_type=vllm --model=fake --server_address={server.url} --benchmarks=./own.py"
    failed = ns(f"{line} --data_dir=data --output_dir=other", cwd=tmp_path)
    assert failed.returncode != 0
    assert "returns no log-probabilities of the prompt" in failed.stderr
    assert not (tmp_path / "other/metrics.json").exists()


def test_short_answers(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    prepared(tmp_path, SHORT, "short.jsonl", "".join(json.dumps(row) + "\n" for row in FACTS))
    table = {"built the": "Answer: a. brandt", "Where": "Answer: in Olm", "When": "Answer: 1821", "paints": "Bob"}
    numbers = evaluated(tmp_path, fake_server(Script(answer=Answer(kind="table", table=table, template="%s"))).url)
    assert numbers["em"] == 50.0
    assert numbers["f1"] == pytest.approx(100 * (1 + 2 / 3 + 0 + 1) / 4)


def test_verdicts_of_a_judge(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    prepared(tmp_path, JUDGED, "short.jsonl", "".join(json.dumps(row) + "\n" for row in FACTS))
    verdicts = {"built the": "A", "Where": "INCORRECT", "When": "C: not attempted", "paints": "CORRECT"}
    judge = fake_server(Script(answer=Answer(kind="table", table=verdicts, template="%s")))
    model = fake_server(Script(answer=Answer(text="Something.")))
    judging = f"--judge_server_type=vllm --judge_model=judge --judge_server_address={judge.url}"
    numbers = evaluated(tmp_path, model.url, *judging.split())
    assert (numbers["correct"], numbers["incorrect"], numbers["not_attempted"]) == (50.0, 25.0, 25.0)
    assert numbers["accuracy_given_attempted"] == pytest.approx(200 / 3)
    assert numbers["f1"] == pytest.approx(100 * 2 * 2 / (4 + 3))


def test_likelihoods_are_refused_where_the_row_has_none(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    file = write(tmp_path / "rows.jsonl", [{"context": "The cat sat on the", "continuations": []}])
    done = ns(
        f"ns generate --server_type=vllm --model=fake --server_address={fake_server(Script()).url} --output_dir=out "
        f"--input_file={file} ++prompt_config=generic/continuation ++solver=loglikelihood",
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "'continuations' must be a list of texts" in done.stderr
