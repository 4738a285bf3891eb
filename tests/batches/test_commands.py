# SPDX-License-Identifier: Apache-2.0
"""What users type: an evaluation whose model and judge are both asked in batches, and how they are doing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.batches.openai_double import OpenAIProvider
from tests.batches.providers import Fate, Row, serving
from tests.batches.support import KEYS, hurry, records_of
from tests.commands.judged import BENCHMARK
from tests.run.support import records

import newskills
from newskills.cli import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hurry(monkeypatch)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.py").write_text(BENCHMARK)
    newskills.prepare_data(benchmarks=["./sums.py"], data_dir="data")
    return tmp_path


def line(provider: OpenAIProvider, judges: str = "gpt-judge") -> Any:
    """Options of an evaluation by two models at `provider`, both in batches."""
    return {
        "data_dir": "data",
        "output_dir": "out",
        "model": "gpt-4.1-mini",
        "server_type": "openai",
        "server_address": provider.url,
        "batch_api": True,
        "judge_model": judges,
        "judge_server_type": "openai",
        "judge_server_address": provider.url,
        "judge_batch_api": True,
    }


@pytest.mark.parametrize("judges", ["gpt-judge", "gpt-judge,gpt-second"])
def test_model_and_judges_in_batches(here: Path, judges: str) -> None:
    with serving(OpenAIProvider()) as provider:

        def answer(body: Row) -> tuple[int, Any]:
            words = "Reasoning: …\nJudgement: Yes" if body["model"] in judges else "it is so"
            return 200, provider.reply(words, body)

        provider.answer = answer
        done = newskills.evaluate(benchmarks="./sums.py:2", **line(provider, judges))
    assert sorted((batch.rows[0][1]["model"], len(batch.rows)) for batch in provider.batches) == [
        ("gpt-4.1-mini", 20),
        *((name, 20) for name in judges.split(",")),
    ]
    assert "judged-sums" in done.scores
    verdicts = records(here / "out/eval-results/judged-sums/output-rs1.jsonl")
    assert [row["judge_correct"] for row in verdicts] == [True] * 10
    assert [record.answered for record in records_of(here / "out")] == [20]
    judged = [record.answered for record in records_of(here / "out/eval-logs/judge")]
    assert judged == [20] * len(judges.split(","))


def test_status_of_batches(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the provider says now, of batches that nobody waits for; and where it cannot be asked."""
    with serving(OpenAIProvider()) as provider:
        provider.usual = Fate(looks=10**6)
        process = os.fork()
        if process == 0:
            try:
                newskills.evaluate(benchmarks="./sums.py", **line(provider))
            finally:
                os._exit(0)
        end = time.monotonic() + 20
        while not provider.batches or not provider.batches[0].looks:
            assert time.monotonic() < end
            time.sleep(0.01)
        os.kill(process, 9)
        os.waitpid(process, 0)
        assert main(["status", "out"]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0].split() == ["batch", "model", "requests", "done", "state", "seen", "submitted", "as"]
        assert shown[1].split()[1:5] == ["gpt-4.1-mini", "10", "0", "in_progress"]
        assert shown[1].endswith("0 s ago  batch_0")
        provider.usual.looks = 0
        assert main(["status", "out", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["state"], row["handle"], row["rows"]) == ("completed", "batch_0", 10)
        assert "sk-1234567" not in json.dumps(row)
    assert main(["status", "out"]) == 0
    said = capsys.readouterr()
    assert "Cannot connect" in said.err
    assert "batch_0" in said.out
