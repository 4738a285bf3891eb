# SPDX-License-Identifier: Apache-2.0
"""One benchmark of each newer kind, from its source's rows on a web server to the headline: a judge's strict questions
by axis, points by criteria, turns, tables in JSON, minimal pairs, marks of ties.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.benchmarks.web import Web, serving
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

RAW = Path(__file__).parents[2] / "benchmarks" / "raw"
OWN = """
from msgspec.structs import replace
from newskills.base.benchmark import Source
from newskills.benchmarks import get_benchmark

BENCHMARK = get_benchmark({name!r})
BENCHMARK = replace(BENCHMARK, items={{}}, sources=(Source(split=BENCHMARK.split, url={url!r}, format={form!r}),))
"""


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for name in ("NEWSKILLS_MIRROR", "HF_TOKEN", "HF_ENDPOINT", "NEWSKILLS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        yield server


def prepared(folder: Path, web: Web, file: str, name: str = "") -> str:
    """Prepares the benchmark that `file` is named after (or `name`) from the web server."""
    path = RAW / file
    web.files[f"/{file}"] = path.read_bytes()
    name = name or path.stem
    (folder / "own.py").write_text(OWN.format(name=name, url=web.url(f"/{file}"), form=path.suffix[1:]))
    done = ns("ns prepare_data ./own.py --data_dir data", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [request for request, _ in web.asked] == [f"/{file}"]
    return name


def evaluated(folder: Path, url: str, *options: str) -> dict[str, float]:
    line = f"ns eval --server_type=vllm --model=fake --server_address={url} --benchmarks=./own.py --data_dir=data"
    done = ns(f"{line} --output_dir=out", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = json.loads((folder / "out/metrics.json").read_text())
    return dict(next(iter(metrics.values()))["pass@1"])


def judged_by(url: str) -> list[str]:
    return f"--judge_server_type=vllm --judge_model=judge --judge_server_address={url}".split()


def test_axes_have_the_same_weight(tmp_path: Path, web: Web, fake_server: FakeServerFactory) -> None:
    prepared(tmp_path, web, "multichallenge.jsonl")
    model = fake_server(Script(answer=Answer(text="Carrot cake without nuts.")))
    verdicts = {"free of nuts": "It is.\nYES", "91 is prime": "It says so.\n**YES**"}
    judge = fake_server(Script(answer=Answer(kind="table", table=verdicts, template="%s")))
    numbers = evaluated(tmp_path, model.url, *judged_by(judge.url))
    assert numbers["macro_accuracy"] == 50.0, "the second question has to be answered with no"
    records = rows_of(tmp_path / "out/eval-results/multichallenge/output.jsonl")
    assert [record["verdict"] for record in records] == ["yes", "yes"]
    asked = [record.body["messages"][-1]["content"] for record in model.records]
    assert sorted(asked) == ["Suggest a cake.", "Sure?"]


def test_points_by_criteria(tmp_path: Path, web: Web, fake_server: FakeServerFactory) -> None:
    prepared(tmp_path, web, "healthbench.jsonl")
    model = fake_server(Script(answer=Answer(text="Since when? Take 500 mg. Call 112.")))
    verdicts = {"Asks since when.": "Yes", "Names a dose": "Yes", "call for help": "No"}
    judge = fake_server(Script(answer=Answer(kind="table", table=verdicts, template="Reasons.\nJudgement: %s")))
    numbers = evaluated(tmp_path, model.url, *judged_by(judge.url))
    assert numbers["score"] == pytest.approx(100 * ((5 - 4) / 5 + 0) / 2)
    assert numbers["axis_context_awareness"] == 100.0
    assert len(judge.records) == 3, "one question for each criterion"


def test_a_table_in_json(tmp_path: Path, web: Web, fake_server: FakeServerFactory) -> None:
    prepared(tmp_path, web, "zebralogic.jsonl")
    right = {"House 1": {"Name": "Ann", "Pet": "cat"}, "House 2": {"Name": "Bo", "Pet": "dog"}}
    wrong = {"House 1": {"Drink": "milk"}, "House 2": {"Drink": "milk"}}
    table = {"Ann has the cat in the first": right, "the milk is in the first": wrong}
    replies = {key: json.dumps({"reasoning": "…", "solution": value}) for key, value in table.items()}
    model = fake_server(Script(answer=Answer(kind="table", table=replies, template="%s")))
    numbers = evaluated(tmp_path, model.url)
    assert (numbers["puzzle_accuracy"], numbers["cell_accuracy"]) == (50.0, pytest.approx(100 * 5 / 6))


def test_minimal_pairs(tmp_path: Path, web: Web, fake_server: FakeServerFactory) -> None:
    prepared(tmp_path, web, "blimp.jsonl")
    server = fake_server(Script(likely={" bark": -1.0, " barks": -2.0}))
    assert evaluated(tmp_path, server.url)["acc"] == 100.0


def test_marks_of_ties(tmp_path: Path, web: Web, fake_server: FakeServerFactory) -> None:
    kinds = ("tied", ["red", "blue"], ["brown"]), ("ref", ["mauve"], ["loud"])
    rows = [
        {"id": f"{kind}:3", "prompt": "A colour?", "chosen": chosen, "rejected": rejected, "num_correct": len(chosen),
         "num_incorrect": 1, "total_completions": 3, "models": ["m"], "subset": "Ties", "additional_metadata": None}
        for kind, chosen, rejected in kinds
    ]  # fmt: skip
    web.files["/ties.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    own = OWN.format(name="rewardbench2.ties", url=web.url("/ties.jsonl"), form="jsonl")
    (tmp_path / "own.py").write_text(own)
    done = ns("ns prepare_data ./own.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    marks = {"red": "9", "blue": "8", "brown": "3", "mauve": "9", "loud": "9"}
    answers = {f"Answer:\n{name}": mark for name, mark in marks.items()}
    model = fake_server(Script(answer=Answer(kind="table", table=answers, template="Good.\nRating: %s")))
    numbers = evaluated(tmp_path, model.url)
    assert numbers["ties_score"] == pytest.approx(
        100 * (0.3 * 1 + 0.3 * 0 + 0.2 * 1 + 0.2 * 0 + 0.01 * -0.7615942)
    )
