# SPDX-License-Identifier: Apache-2.0
"""Batches that a program on this machine answers, which outlives the run that started it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.batches import offline_double
from tests.batches.support import hurry, records_of, run_units
from tests.run.support import make_unit, records, write_input

from newskills.base.errors import ConfigError
from newskills.models.serving.spec import ServeSpec
from newskills.models.serving.vllm import batch_words
from newskills.pipelines.evaluation.options import parse_words
from newskills.pipelines.models import choose_model
from newskills.run.planning.spec import Unit

ROWS = 10
RIGHT = [str(number + 1) for number in range(ROWS)]
PROGRAM = shlex.join([sys.executable, str(offline_double.__file__), "run-batch"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hurry(monkeypatch)
    write_input(tmp_path, ROWS)
    (tmp_path / "batches").mkdir()
    return tmp_path


def unit_here(folder: Path, model: str = "m", command: str = PROGRAM, **server: Any) -> Unit:
    server = {"server_type": "vllm", "model": model, "batch_api": True, "batch_command": command, **server}
    return make_unit(folder, "http://127.0.0.1:1", server=server)


def starts(folder: Path) -> list[int]:
    path = folder / "batches" / "STARTS"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_file_of_requests_is_answered_here(place: Path) -> None:
    (place / "batches" / "REFUSE").touch()
    unit = unit_here(place, enable_soft_fail=True)
    result, said = run_units(unit)
    assert result.exit_code == 0, said
    rows = records(unit.merged)
    assert [row["generation"] for row in rows] == [*RIGHT[:5], "", *RIGHT[6:]]
    assert "too long a prompt" in rows[5]["detailed_error"]
    assert len(starts(place)) == 1


def test_a_killed_run_leaves_the_program_at_work(place: Path) -> None:
    """The next run waits for it, and starts no other."""
    (place / "batches" / "WAIT").touch()
    run = os.fork()
    if run == 0:
        try:
            run_units(unit_here(place))
        finally:
            os._exit(0)
    until(lambda: list((place / "batches").glob("*.out")) and starts(place))
    os.kill(run, signal.SIGKILL)
    os.waitpid(run, 0)
    os.kill(starts(place)[0], 0)  # it is there
    run = os.fork()
    if run == 0:
        try:
            os._exit(run_units(unit_here(place))[0].exit_code)
        finally:
            os._exit(99)
    time.sleep(0.5)
    (place / "batches" / "WAIT").unlink()
    assert os.waitpid(run, 0)[1] == 0
    assert [row["generation"] for row in records(place / "out" / "output.jsonl")] == RIGHT
    assert len(starts(place)) == 1


def test_a_killed_program_keeps_what_it_has_answered(place: Path) -> None:
    """The rest is asked of another one."""
    (place / "batches" / "WAIT").touch()
    run = os.fork()
    if run == 0:
        try:
            os._exit(run_units(unit_here(place))[0].exit_code)
        finally:
            os._exit(99)
    outs = (place / "batches").glob
    until(lambda: [file for file in outs("*.out") if file.read_bytes().count(b"\n") == 7])
    (place / "batches" / "WAIT").unlink()
    (place / "batches" / "WAIT").touch()
    os.kill(starts(place)[0], signal.SIGKILL)
    (place / "batches" / "WAIT").unlink()
    assert os.waitpid(run, 0)[1] == 0
    assert [row["generation"] for row in records(place / "out" / "output.jsonl")] == RIGHT
    first, second = records_of(place)
    assert (first.rows, first.answered + first.unanswered, second.answered) == (10, 10, second.rows)
    assert first.unanswered == second.rows <= 3


def test_a_program_that_fails_says_why(place: Path) -> None:
    result, said = run_units(unit_here(place, model="broken"))
    assert result.exit_code == 1
    assert "No available memory for the cache blocks." in result.message, said


def test_a_program_that_is_not_there(place: Path) -> None:
    result, _ = run_units(unit_here(place, command="no-such-program run-batch"))
    assert result.exit_code == 2 or result.exit_code == 1
    assert "no-such-program cannot be started here" in result.message
    result, said = run_units(unit_here(place))  # once it is installed
    assert result.exit_code == 0, said


def test_the_command_of_vllm() -> None:
    spec = ServeSpec(model="m", server_type="vllm", num_gpus=4, extra_args=["--max-model-len", "4096"])
    assert batch_words(spec)[1:] == [
        *("run-batch", "--trust-remote-code", "--tensor-parallel-size", "4", "--max-model-len", "4096")
    ]
    words = ["--benchmarks=gsm8k", "--model=m", "--server_type=vllm", "--server_gpus=2", "--batch_api"]
    choice = choose_model(parse_words(words).options, {})
    assert choice.host is None  # no server is started
    assert choice.layer.values["server.batch_command"].endswith(
        "run-batch --trust-remote-code --tensor-parallel-size 2"
    )
    with pytest.raises(ConfigError, match="without a server"):
        choose_model(parse_words([*words[:-2], "--server_address=http://a", "--batch_api"]).options, {})
