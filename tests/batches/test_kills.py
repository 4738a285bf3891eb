# SPDX-License-Identifier: Apache-2.0
"""A run that is killed at any call to a provider, before or after it was done: nothing is lost or submitted twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.batches.providers import Fate, Provider, serving
from tests.batches.support import PROVIDERS, hurry, records_of, run_units, unit_at
from tests.night import NIGHTLY, by_day
from tests.run.support import records, write_input

ROWS = 6
SUBMISSION = {
    "openai": "POST /v1/batches",
    "azureopenai": "POST /openai/batches",
    "anthropic": "POST /v1/messages/batches",
    "gemini": "POST /v1beta/models/gemini-2.5-flash:batchGenerateContent",
}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def killed(folder: Path, provider: Provider, kind: str, at: int, moment: str, **settings: Any) -> bool:
    """Whether a process of its own was killed in the call number `at`; it is done where there was no such call."""
    process = os.fork()
    if process == 0:  # the child: nothing of pytest must run in it after this
        try:
            code = run_units(unit_at(folder, provider, kind, **settings))[0].exit_code
        except BaseException:
            code = 99
        finally:
            os._exit(code)
    calls = 0

    def meddle(now: str, call: str) -> None:
        nonlocal calls
        calls += now == "before"
        if (calls, now) == (at, moment):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            provider.meddle = lambda now, call: None

    provider.meddle = meddle
    try:
        _, status = os.waitpid(process, 0)
    except ChildProcessError:
        return True
    assert status in (0, signal.SIGKILL), status
    return bool(status)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_any_call(tmp_path: Path, kind: str, moment: str) -> None:
    """By day only at the call that submits."""
    at = 1 if NIGHTLY else call_that_submits(tmp_path / "calm", kind)
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        write_input(folder, ROWS)
        with serving(PROVIDERS[kind][0]()) as provider:
            provider.usual = Fate(looks=2)
            if not killed(folder, provider, kind, at, moment):
                assert at > 5
                break
            result, said = run_units(unit_at(folder, provider, kind))
        assert result.exit_code == 0, said
        assert sorted(provider.asked) == sorted(f"What is {number} + 1?" for number in range(ROWS)), said
        path = folder / "out" / "output.jsonl"
        assert [row["generation"] for row in records(path)] == [str(number + 1) for number in range(ROWS)]
        assert [record.answered for record in records_of(folder)] == [ROWS]
        if not NIGHTLY:
            break
        at += 1


def call_that_submits(folder: Path, kind: str) -> int:
    """The number of the call, from 1, that makes a batch."""
    folder.mkdir()
    write_input(folder, ROWS)
    with serving(PROVIDERS[kind][0]()) as provider:
        run_units(unit_at(folder, provider, kind))
        return 1 + provider.calls.index(SUBMISSION[kind])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_another_batch_of_that_time_and_size_is_not_taken_for_ours(tmp_path: Path, moment: str) -> None:
    """Anthropic has no names for batches: one of another program looks alike, until its results are read. Ours is found
    behind it, where it was submitted."""
    write_input(tmp_path, ROWS)
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "What is 9 + 9?"}]}
    theirs = [(f"theirs{number}", body) for number in range(ROWS)]
    with serving(PROVIDERS["anthropic"][0]()) as provider:
        assert killed(tmp_path, provider, "anthropic", 1, moment)
        provider.begin("msgbatch_", "", theirs).created = records_of(tmp_path)[0].written
        result, said = run_units(unit_at(tmp_path, provider, "anthropic"))
    assert result.exit_code == 0, said
    path = tmp_path / "out" / "output.jsonl"
    assert [row["generation"] for row in records(path)] == [str(number + 1) for number in range(ROWS)]
    assert len(provider.batches) == 2, said
    (record,) = records_of(tmp_path)
    assert (len(record.strangers), record.answered, record.unknown) == (1, ROWS, ROWS)
    assert "is a batch of somebody else" in said


def test_a_signal_leaves_the_batch_where_it_is(tmp_path: Path) -> None:
    """The first Ctrl-C ends the run at once; the next one collects."""
    write_input(tmp_path, ROWS)
    with serving(PROVIDERS["openai"][0]()) as provider:
        provider.usual = Fate(looks=5)
        looks = 0

        def meddle(now: str, call: str) -> None:
            nonlocal looks
            looks += (now, call) == ("after", "GET /v1/batches/batch_0")
            if looks == 2 and now == "after":
                os.kill(os.getpid(), signal.SIGINT)

        provider.meddle = meddle
        unit = unit_at(tmp_path, provider)
        result, said = run_units(unit)
        assert result.exit_code == 128 + signal.SIGINT
        assert "left with the provider: 1 batch (in_progress, 0/6 done). The same command collects" in said
        provider.usual.looks = 0
        result, said = run_units(unit)
    assert result.exit_code == 0, said
    assert len(provider.batches) == 1


@pytest.mark.parametrize("at", by_day(range(6, 12), [8]))
def test_a_kill_in_the_second_turn_repeats_neither(tmp_path: Path, at: int) -> None:
    """A solver of two requests is two batches; what has come of the first is read again, not asked."""
    write_input(tmp_path, ROWS)
    two = {"solver": "tests.batches.twice::Twice"}
    with serving(PROVIDERS["openai"][0]()) as provider:
        assert killed(tmp_path, provider, "openai", at, "after", **two) is (at < 11)
        result, said = run_units(unit_at(tmp_path, provider, "openai", **two))
    assert result.exit_code == 0, said
    path = tmp_path / "out" / "output.jsonl"
    assert [row["generation"] for row in records(path)] == [str(number + 2) for number in range(ROWS)]
    assert [len(batch.rows) for batch in provider.batches] == [ROWS, ROWS], said
