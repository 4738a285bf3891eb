# SPDX-License-Identifier: Apache-2.0
"""What an evaluation will cost, told by a few answers: `ns eval --plan_cost`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.judged import BENCHMARK
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

import newskills
from newskills.base.store import read_rows
from newskills.cli import main

PRICES = [
    "++server.price_per_million_input_tokens=1000",
    "++server.price_per_million_output_tokens=4000",
    "++server.price_per_million_cached_tokens=0",
]


def line(address: str, *more: str) -> list[str]:
    return [
        *("eval", "--benchmarks=./questions.csv:3", "--model=gpt-4.1-mini", "--server_type=openai"),
        *(f"--server_address={address}", "--output_dir=out", *more),
    ]


def cells(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The row of the only benchmark."""
    out = capsys.readouterr().out.splitlines()
    assert out[0].split("  ")[0] == "benchmark"
    return out[1].split()


def test_tokens_time_and_money_of_what_is_left(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"What is {100 + number} + 1?,{101 + number}\n" for number in range(50))
    (tmp_path / "questions.csv").write_text(f"question,answer\n{rows}")
    server = fake_server(Script(answer=Answer(text="so")))
    assert main(line(server.url, *PRICES, "--plan_cost")) == 0
    name, answers, *_ = first = cells(capsys)
    assert (name, answers, len(server.records)) == ("questions", "130", 20)
    assert main(line(server.url, *PRICES, "--plan_cost", "--batch_api")) == 0
    assert cells(capsys) == first  # nothing is asked, and batches have their own column
    assert len(server.records) == 20
    usual, batched, cached = (float(cell) for cell in first[-3:])
    assert batched == pytest.approx(usual / 2, abs=0.01)
    assert main(line(server.url, *PRICES)) == 0
    assert len(server.records) == 150  # the probe counts
    capsys.readouterr()
    files = sorted((tmp_path / "out/eval-results").rglob("output-rs?.jsonl"))
    records = [record for file in files for record in read_rows(file)]
    written_tokens = sum(record["num_generated_tokens"] for record in records)
    read_tokens = sum(record["num_input_tokens"] for record in records)
    assert usual == pytest.approx(130 / 150 * (read_tokens * 1000 + written_tokens * 4000) / 1e6, rel=0.02)
    assert usual - cached > 0.3 * read_tokens * 130 / 150 * 1000 / 1e6  # most of a prompt is the same in all
    assert main(line(server.url, *PRICES, "--plan_cost")) == 0
    assert cells(capsys)[1] == "0"


def test_no_prices_and_no_probe(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.csv").write_text("question,answer\n" + "What is 1 + 1?,2\nWhat is 1 + 2?,3\n")
    server = fake_server(Script(answer=Answer(text="so")))
    assert main(line(server.url, "--plan_cost")) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[-3:] == ["—", "—", "—"]
    assert "The prices are unknown" in out
    (tmp_path / "sums.py").write_text(BENCHMARK)
    newskills.prepare_data(benchmarks=["./sums.py"], data_dir="data")
    judged = ["--data_dir=data", "--judge_model=j", "--judge_server_type=openai"]
    words = [word.replace("./questions.csv:3", "./sums.py") for word in line(server.url, "--plan_cost", *judged)]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567")
    assert main(words) == 2
    assert "a probe does not judge" in capsys.readouterr().err
