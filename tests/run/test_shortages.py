# SPDX-License-Identifier: Apache-2.0
"""Machines that give too little: no files, no memory, no processes. Nothing of it ever becomes a verdict."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.night import by_day
from tests.run.support import changed, make_unit, records, run, write_input
from tests.server import Answer, FakeServer, FakeServerProcess, Latency, Script

GRADER = """
import os
from newskills.base.records import Score

if os.environ.get("NEWSKILLS_TEST_BROKEN") not in (None, str(os.getpid())):
    os._exit(3)  # in the process that forks workers: no memory for it, say


class Right:
    name, version = "right", "1"

    def grade(self, record):
        return Score(outcome="correct", fields={}, grader="right@1")
"""
GROUPS = Path("/sys/fs/cgroup/pids")


def generate(
    folder: Path, server: FakeServer | FakeServerProcess, before: str, output: str
) -> subprocess.CompletedProcess[str]:
    """`ns generate`, in a shell that runs `before` first."""
    line = (
        f"exec {sys.executable} -m newskills generate --server_type=vllm --model=fake"
        f" --server_address={server.base_url} --input_file=input.jsonl --output_dir={output}"
        " ++prompt_config=generic/math ++eval_type=math"
    )
    return subprocess.run(
        ["bash", "-c", f"{before}\n{line}"], cwd=folder, capture_output=True, text=True, timeout=600
    )


def test_without_workers_rows_stay_open_and_are_graded_later_without_the_model(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.01)))
    write_input(tmp_path, 60)
    (tmp_path / "grader.py").write_text(GRADER)
    unit = make_unit(tmp_path, server.base_url, eval_type=f"{tmp_path}/grader.py::Right")
    monkeypatch.setenv("NEWSKILLS_TEST_BROKEN", str(os.getpid()))
    result = run(unit)
    assert result.exit_code == 1
    assert "Worker processes cannot start" in result.message
    assert result.units[0].status != "done"
    assert not unit.paths.output.exists()
    assert not unit.paths.grades.exists() or not unit.paths.grades.stat().st_size
    asked = {record.prompt for record in server.records}
    monkeypatch.delenv("NEWSKILLS_TEST_BROKEN")
    again = run(unit)
    assert (again.exit_code, again.units[0].status) == (0, "done")
    assert {row["outcome"] for row in records(unit.paths.output)} == {"correct"}
    prompts = [record.prompt for record in server.records]
    assert len(prompts) - len(asked) <= 60 - again.units[0].kept
    assert len(set(prompts)) == 60


def test_rows_that_are_answered_are_graded_where_no_server_is(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 4)
    (tmp_path / "grader.py").write_text(GRADER)
    grader = f"{tmp_path}/grader.py::Right"
    unit = make_unit(tmp_path, server.base_url, eval_type=grader, max_concurrent_requests=1)
    monkeypatch.setenv("NEWSKILLS_TEST_BROKEN", str(os.getpid()))
    for _ in range(10):
        if run(unit).units[0].kept == 4:
            break
    monkeypatch.delenv("NEWSKILLS_TEST_BROKEN")
    server.stop()
    assert run(changed(unit)).units[0].status == "done"


@pytest.mark.slow
def test_the_window_follows_the_files_that_may_be_opened(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.01)))
    write_input(tmp_path, 300)
    narrow = generate(tmp_path, server, "ulimit -n 64", "narrow")
    assert narrow.returncode == 0, narrow.stderr
    assert "Traceback" not in narrow.stderr
    assert "requests are in flight at most, not 512" in narrow.stderr
    assert len(records(tmp_path / "narrow" / "output.jsonl")) == 300
    none = generate(tmp_path, server, "ulimit -n 24", "none")
    assert none.returncode == 2
    assert "more files" in none.stderr
    assert "ulimit -n 1024" in none.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [400_000, 60_000, 30_000])
def test_little_address_space_is_enough_or_said(
    tmp_path: Path, fake_server: FakeServerFactory, kilobytes: int
) -> None:
    server = fake_server(Script(answer=Answer(text="\\boxed{4}")))
    write_input(tmp_path, 40)
    done = generate(tmp_path, server, f"ulimit -v {kilobytes}", "out")
    if kilobytes > 100_000:
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in (tmp_path / "out" / "output.jsonl").read_text().splitlines()]
        assert {row["outcome"] for row in rows} == {"correct", "wrong"}
        return
    assert done.returncode != 0
    if kilobytes > 50_000:  # below, Python itself may not get as far as to speak
        assert "(ulimit -v)" in done.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of processes."""
    folder = GROUPS / f"newskills-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    while processes := (folder / "cgroup.procs").read_text().split():
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        time.sleep(0.01)
    folder.rmdir()


@pytest.mark.slow
@pytest.mark.skipif(not os.access(GROUPS, os.W_OK), reason="no control group of processes may be made here")
@pytest.mark.parametrize("most", by_day([4, 6, 8, 10], {6, 8}))
def test_no_process_for_a_grader(tmp_path: Path, fake_server: FakeServerFactory, group: Path, most: int) -> None:
    (group / "pids.max").write_text(str(most))
    server = fake_server(Script(answer=Answer(text="\\boxed{4}")))
    write_input(tmp_path, 100)
    little = generate(tmp_path, server, f"echo $$ > {group}/cgroup.procs", "out")
    assert "Traceback" not in little.stderr
    if little.returncode:
        assert "Worker processes cannot start" in little.stderr or "no more memory, processes" in little.stderr
        assert f"{most} (pids.max of the control group)" in little.stderr
        assert not (tmp_path / "out" / "output.jsonl").exists()
        assert generate(tmp_path, server, "", "out").returncode == 0
    assert {row["outcome"] for row in records(tmp_path / "out" / "output.jsonl")} <= {"correct", "wrong"}
