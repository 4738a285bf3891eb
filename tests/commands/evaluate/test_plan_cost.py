# SPDX-License-Identifier: Apache-2.0
"""What an evaluation will cost, told by a few answers: `ns eval --plan_cost`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.commands.judged import BENCHMARK, judging
from tests.commands.running import rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Script

import newskills
from newskills.base.records import Usage
from newskills.cli import main
from newskills.pipelines.evaluation.plan_cost import ExpectedTotal, expected_total

PRICES = [
    "++server.price_per_million_input_tokens=1000",
    "++server.price_per_million_output_tokens=4000",
    "++server.price_per_million_cached_tokens=0",
]
ECHO = Script(answer=Answer(kind="echo"))
"""Replies as long as the question, so that they differ."""


def line(address: str, *more: str) -> list[str]:
    return [
        *("eval", "--benchmarks=./questions.csv:3", "--model=gpt-4.1-mini", "--server_type=openai"),
        *(f"--server_address={address}", "--output_dir=out", *more),
    ]


def write_questions(folder: Path, count: int) -> None:
    rows = "".join(f"What is{' really' * (n % 7)} {100 + n} + 1?,{101 + n}\n" for n in range(count))
    (folder / "questions.csv").write_text(f"question,answer\n{rows}")


def estimates(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main([*words, "--plan_cost", "--json"]) == 0
    return list(json.loads(capsys.readouterr().out))


def test_tokens_time_and_money_of_what_is_left(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path, 50)
    server = fake_server(ECHO)
    words = line(server.url, *PRICES)
    (first,) = estimates(words, capsys)
    assert [first[name] for name in ("benchmark", "problems", "seeds", "answers")] == ["questions", 50, 3, 130]
    assert len(server.records) == 20
    assert estimates([*words, "--batch_api"], capsys) == [first]  # nothing is asked, batches have their own column
    assert len(server.records) == 20
    usual, batched, cached = (first[name] for name in ("money", "batch_money", "cached_money"))
    assert {bound: 2 * batched[bound] for bound in batched} == pytest.approx(usual)
    assert main([*words, "--plan_cost"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["prompts", "cached"]
    assert row.split()[:4] == ["questions", "50", "3", "130"]
    assert f"{usual['value']:.2f} ± {usual['high'] - usual['value']:.2g}" in row
    before = rows_of(tmp_path / "out/eval-results/questions/output-rs0.jsonl")
    assert main(words) == 0
    assert len(server.records) == 150  # the probe counts
    after = [
        record
        for seed in range(3)
        for record in rows_of(tmp_path / f"out/eval-results/questions/output-rs{seed}.jsonl")
    ]

    def rest(field: str) -> float:
        return sum(record[field] for record in after) - sum(record[field] for record in before)

    read, written = rest("num_input_tokens"), rest("num_generated_tokens")
    amounts = {"input_tokens": read, "output_tokens": written, "money": (read * 1000 + written * 4000) / 1e6}
    for name, true_amount in amounts.items():
        total = first[name]
        assert total["low"] < true_amount < total["high"], name
        assert total["high"] - total["low"] < 0.6 * total["value"]
    assert usual["value"] - cached["value"] > 0.3 * read * 1000 / 1e6  # most of a prompt is the same in all
    assert main([*words, "--plan_cost", "++inference.temperature=0.1"]) == 2
    assert "inference.temperature (0.7 → 0.1)" in capsys.readouterr().err
    (done,) = estimates(words, capsys)
    assert (done["answers"], done["money"]["value"]) == (0, 0)


@pytest.mark.parametrize("grader", ["math", ""])
def test_judges_have_their_own_probes_which_count(
    grader: str,
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.py").write_text(
        BENCHMARK.replace("range(10)", "range(40)").replace('grader="math"', f'grader="{grader}"')
    )
    newskills.prepare_data(benchmarks=["./sums.py"], data_dir="data")
    lost = Fault(kind="status", status=400, marker="Add 3")  # its answers, and there is nothing to judge
    model, judge = fake_server(Script(answer=Answer(kind="echo"), faults=(lost,))), fake_server(judging())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567")
    words = [
        *(
            word.replace("./questions.csv:3", "./sums.py:2")
            for word in line(model.url, *PRICES, "--data_dir=data")
        ),
        *("--judge_model=j", "--judge_server_type=openai", f"--judge_server_address={judge.url}"),
        f"--extra_judge_args={PRICES[0]} {PRICES[1]}",
        *("--accept_lost=50", "++server.enable_soft_fail=true"),
    ]
    answers, judgements, total = estimates(words, capsys)
    assert [part["answers"] for part in (answers, judgements, total)] == [60, 60, 120]
    assert (len(model.records), len(judge.records)) == (20, 16)
    assert not list((tmp_path / "out/eval-results").rglob("output*.jsonl"))  # no results of 20 answers
    assert not list((tmp_path / "out").rglob("*.done"))
    assert total["cached_money"]["value"] < total["money"]["value"]
    assert judgements["cached_money"] is None  # its price is unknown, so it counts in full
    assert total["money"]["value"] == pytest.approx(answers["money"]["value"] + judgements["money"]["value"])
    assert estimates(words, capsys) == [answers, judgements, total]
    assert (len(model.records), len(judge.records)) == (20, 16)
    assert main(words) == 0
    assert (len(model.records), len(judge.records)) == (80, 58)
    records = [
        record
        for seed in range(2)
        for record in rows_of(tmp_path / f"out/eval-results/judged-sums/output-rs{seed}.jsonl")
    ]
    read = [record["judge_num_input_tokens"] for record in records if "judge_num_input_tokens" in record]
    assert judgements["input_tokens"]["value"] == pytest.approx(60 * sum(read) / 58, rel=0.05)
    assert [part["answers"] for part in estimates(words, capsys)] == [0, 0, 0]


def test_intervals_hold_the_total_in_95_percent_of_cases() -> None:
    draw = random.Random(7)
    held = 0
    for _ in range(1000):
        tokens = [draw.gauss(300, 80) for _ in range(60)]
        usages = {str(n): [Usage(output_tokens=round(value))] for n, value in enumerate(tokens[:20])}
        total = expected_total(usages, lambda used: used.output_tokens, left=40, of_one=40)
        assert total is not None
        held += (total.low or 0) < sum(tokens[20:]) < (total.high or 0)
    assert 930 < held < 970
    alone = expected_total({"0": [Usage(output_tokens=7)]}, lambda used: used.output_tokens, left=10, of_one=10)
    assert alone == ExpectedTotal(value=70, low=None, high=None)


def test_few_problems_no_prices_and_wrong_options(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path, 2)
    server = fake_server(ECHO)
    assert main(line(server.url, "--plan_cost")) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].split()[:4] == ["questions", "2", "3", "4"]
    assert shown.out.splitlines()[0].split()[-3:] == ["written", "time", "cost"]
    assert shown.out.splitlines()[1].split()[-1] == "—"
    assert "Some prices are unknown: give ++server.price_per_million_input_tokens" in shown.out
    assert "until" not in shown.err
    assert len(server.records) == 2
    assert main(line(server.url, "--json")) == 2
    assert "--json is for --plan_cost" in capsys.readouterr().err
    for option in ("--dry_run", "--rerun_done"):
        assert main(line(server.url, "--plan_cost", option)) == 2
        assert "Leave out --dry_run and --rerun_done." in capsys.readouterr().err
    assert len(server.records) == 2
    words = [word.replace("=out", "=parts") for word in line(server.url, "--plan_cost", "--num_chunks=2")]
    assert main(words) == 2
    assert "cut into chunks" in capsys.readouterr().err


def test_an_endpoint_that_fails(
    tmp_path: Path,
    fake_server: FakeServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path, 30)
    server = fake_server(Script(faults=(Fault(kind="status", status=400, message="no such model"),)))
    assert main(line(server.url, "--plan_cost")) != 0
    shown = capsys.readouterr()
    assert (shown.out, "no such model" in shown.err) == ("", True)
    write_questions(tmp_path, 5)  # fewer than it takes to stop a run
    words = [word.replace("=out", "=soft") for word in line(server.url, "++server.enable_soft_fail=true")]
    assert main([*words, "--plan_cost"]) == 2
    assert "got a reply, so there is nothing to plan from" in capsys.readouterr().err
