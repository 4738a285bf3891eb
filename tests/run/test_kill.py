# SPDX-License-Identifier: Apache-2.0
"""What remains after a process died: nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.night import NIGHTLY
from tests.run.support import make_unit, names, records, run, write_input
from tests.run.toy import NAME
from tests.server import Answer, Latency, Script

from newskills.run.planning.spec import RunSpec, Unit

KILLS = int(os.environ.get("NEWSKILLS_TEST_KILLS", "50" if NIGHTLY else "8"))
RANDOM = Script(answer=Answer(kind="random", modulus=10**9), latency=Latency(fixed=0.004, jitter=0.01))


def spec(folder: Path, base_url: str, *, graded: bool = True, **settings: object) -> RunSpec:
    """Two seeds over one input, graded, without timing fields."""
    units = tuple(
        make_unit(
            folder,
            base_url,
            seed=seed,
            output_file=str(folder / "out" / f"output-rs{seed}.jsonl"),
            inference={"random_seed": seed, "temperature": 0.7},
            add_generation_stats=False,
            eval_type=NAME if graded else None,
            **settings,
        )
        for seed in range(2)
    )
    found = RunSpec(units=units, output_dir=str(folder))
    found.save(folder)
    return found


def start(folder: Path, patch: str = "") -> subprocess.Popen[str]:
    """`python -m newskills.run FOLDER` in a process of its own, after `patch`."""
    code = f"import sys; from newskills.run.__main__ import main\n{patch}\nsys.exit(main({[str(folder)]!r}))"
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)


def finish(folder: Path) -> None:
    process = start(folder)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said


def outputs(units: tuple[Unit, ...]) -> list[bytes]:
    return [unit.merged.read_bytes() for unit in units]


@pytest.mark.slow
def test_kill_at_random_moments(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(RANDOM, process=True)
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    for folder in (calm, wild):
        folder.mkdir()
        write_input(folder, 3000)
    undisturbed = spec(calm, server.base_url)
    finish(calm)
    disturbed = spec(wild, server.base_url)
    moments = random.Random(7)
    kills = 0
    while kills < KILLS:
        process = start(wild)
        time.sleep(moments.uniform(0.1, 1.4))
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            kills += 1
        else:  # it was done before the kill: begin anew, so that all kills hit work
            assert process.returncode == 0
            assert outputs(disturbed.units) == outputs(undisturbed.units)
            shutil.rmtree(wild / "out")
    finish(wild)
    for unit in disturbed.units:
        assert len({record["id"] for record in records(unit.merged)}) == 3000
    assert outputs(disturbed.units) == outputs(undisturbed.units)
    assert not [name for name in names(wild / "out") if name.endswith(("-async", "-grades", "-failed"))]


COUNTED = """
import mmap, newskills.run.engine.execute, newskills.run.records.log, newskills.run.engine.unit
newskills.run.records.log.QUICK_WRITE_SECONDS = 60.0
counter = mmap.mmap(os.open({path!r}, os.O_RDWR), 8)
answered = newskills.run.engine.unit.UnitRun.book_answer
def count(*arguments):
    answered(*arguments)
    counter[:8] = (int.from_bytes(counter[:8], "little") + 1).to_bytes(8, "little")
newskills.run.engine.unit.UnitRun.book_answer = count
"""


@pytest.mark.slow
def test_a_kill_costs_few_finished_replies(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """All requests of a full window are answered at the same moment, again and again."""
    server = fake_server(Script(answer=Answer(kind="echo")), process=True)
    write_input(tmp_path, 100_000)
    found = spec(tmp_path, server.base_url, graded=False, max_concurrent_requests=512)
    (tmp_path / "counter").write_bytes(bytes(8))
    moments = random.Random(11)
    before = 0
    for _ in range(6):
        process = start(tmp_path, "import os\n" + COUNTED.format(path=str(tmp_path / "counter")))
        while counted(tmp_path) == before:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(moments.uniform(0.05, 0.5))
        process.kill()
        process.communicate()
        # Whole lines: a kill may cut the last one, which the next run takes off.
        saved = sum(unit.paths.log.read_bytes().count(b"\n") for unit in found.units if unit.paths.log.exists())
        before, after = saved, counted(tmp_path)
        assert 0 <= after - saved <= 64
        (tmp_path / "counter").write_bytes(saved.to_bytes(8, "little"))


def counted(folder: Path) -> int:
    return int.from_bytes((folder / "counter").read_bytes(), "little")


@pytest.mark.parametrize(
    "where",
    [
        "newskills.run.engine.unit.UnitRun._grade_rest",
        "newskills.run.engine.unit.UnitRun._write_final",
        "newskills.run.engine.unit.UnitRun._save_state",
        "newskills.run.engine.unit.mark_done",
        "newskills.run.records.paths.OutputPaths.remove_logs",
        "newskills.run.engine.unit.merge_if_complete",
        "newskills.run.records.chunks.atomic_write",
        "newskills.run.records.chunks.done_path",
    ],
)
def test_kill_while_finishing(tmp_path: Path, fake_server: FakeServerFactory, where: str) -> None:
    server = fake_server(RANDOM, process=True)
    write_input(tmp_path, 9)
    spec(tmp_path, server.base_url, num_chunks=1, chunk_id=0)
    owner, _, name = where.rpartition(".")
    module, _, kind = owner.rpartition(".") if owner.rpartition(".")[2][0].isupper() else (owner, "", "")
    target = f"sys.modules[{module!r}]" + (f".{kind}" if kind else "")
    patch = f"import os, newskills.run.engine.execute\nsetattr({target}, {name!r}, lambda *a, **k: os._exit(9))"
    process = start(tmp_path, patch)
    process.communicate(timeout=300)
    assert process.returncode == 9
    asked = len(server.records)
    finish(tmp_path)
    assert len(server.records) - asked <= 9  # the second seed may not have been through
    for seed in range(2):
        found = records(tmp_path / "out" / f"output-rs{seed}.jsonl")
        assert [r["problem"] for r in found] == [f"What is {i} + 1?" for i in range(9)]
        assert all(r["outcome"] in ("correct", "wrong") for r in found)
    assert sorted(n for n in names(tmp_path / "out") if not n.endswith("run.json")) == [
        "output-rs0.jsonl",
        "output-rs0.jsonl.done",
        "output-rs0_chunk_0.jsonl.done",
        "output-rs1.jsonl",
        "output-rs1.jsonl.done",
        "output-rs1_chunk_0.jsonl.done",
    ]


WITHOUT_UVLOOP = "sys.modules['uvloop'] = None"


@pytest.mark.parametrize(("number", "patch"), [(signal.SIGINT, WITHOUT_UVLOOP), (signal.SIGTERM, "")])
def test_one_signal_finishes_what_is_in_flight(
    tmp_path: Path, fake_server: FakeServerFactory, number: signal.Signals, patch: str
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo"), latency=Latency(fixed=0.3)), process=True)
    write_input(tmp_path, 400)
    found = spec(tmp_path, server.base_url, graded=False)
    process = start(tmp_path, patch)
    while len(server.records) < 12:
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert "may finish" in said
    assert "Run the same command to resume from here" in said
    sent = len(server.records)
    assert len(records(found.units[0].paths.log)) == sent
    assert sent < 100
    server.script = Script(answer=Answer(kind="echo"))
    finish(tmp_path)
    assert len(server.records) == 800


def test_two_signals_stop_at_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(latency=Latency(fixed=20)), process=True)
    write_input(tmp_path, 20)
    spec(tmp_path, server.base_url, graded=False)
    process = start(tmp_path)
    while len(server.records) < 8:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130


def test_grading_that_is_left_can_be_put_off(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """Two signals while the last records are graded: no request is repeated later."""
    server = fake_server(Script(answer=Answer(text="1")), process=True)
    write_input(tmp_path, 5)
    found = spec(tmp_path, server.base_url)
    slow = "async def forever(self, grading): sys.stderr.write('grading\\n'); await asyncio.sleep(600)"
    patch = f"import asyncio\nfrom newskills.run.engine.unit import UnitRun\n{slow}\nUnitRun._grade_rest = forever"
    process = start(tmp_path, patch)
    assert process.stderr is not None
    waiting = len(found.units)  # a unit that has not come so far may have a reply still to take
    while waiting:
        waiting -= "grading" in process.stderr.readline()
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    process.communicate(timeout=300)
    assert process.returncode == 130
    finish(tmp_path)
    assert len(server.records) == 10
    assert all(len(records(unit.merged)) == 5 for unit in found.units)


def test_a_full_disk_stops_the_run_and_it_can_go_on(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """The limit of file size stands in for the disk: writes fail in the same place."""
    server = fake_server(Script(answer=Answer(text="x" * 500)), process=True)
    write_input(tmp_path, 600)
    found = spec(tmp_path, server.base_url, graded=False)
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    process = start(tmp_path, limit + "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "cannot write" in said
    assert "Traceback" not in said
    kept = len(records(found.units[0].paths.log))
    assert kept > 0
    result = run(*found.units)
    assert (result.exit_code, result.units[0].kept) == (0, kept)
    assert len(records(found.units[0].merged)) == 600


@pytest.mark.nightly
@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="x" * 200)), process=True)
    write_input(tmp_path, 16_000, padding="p" * 8000)
    unit = make_unit(tmp_path, server.base_url, max_concurrent_requests=128)
    RunSpec(units=(unit,), output_dir=str(tmp_path / "out")).save(tmp_path)
    report = "atexit.register(lambda: sys.stderr.write(open('/proc/self/status').read()))"
    process = start(tmp_path, f"import atexit; {report}")
    _, said = process.communicate(timeout=250)
    assert process.returncode == 0, said
    megabytes = int(said.split("VmHWM:")[1].split()[0]) / 1024
    assert megabytes < 150, f"{megabytes:.0f} MB for an input of 130 MB"
