# SPDX-License-Identifier: Apache-2.0
"""Several processes take chunks from one queue: each row once, whoever is slow, suspended, killed or late."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, names, records, run, write_input
from tests.run.test_kill import start
from tests.run.toy import NAME
from tests.server import Answer, Latency, Script

from newskills.run.planning.spec import RunSpec, Unit, load_spec

ROWS, CHUNKS, SEEDS = 1200, 12, 2
RANDOM = Script(answer=Answer(kind="random", modulus=10**9), latency=Latency(fixed=0.004, jitter=0.01))
SLOW = Script(answer=RANDOM.answer, latency=Latency(fixed=0.05, jitter=0.05))
JOBS, KILLS = (int(number) for number in os.environ.get("NEWSKILLS_TEST_QUEUE_KILLS", "4:12").split(":"))
"""Jobs, and kills of them. With 8:50 it takes minutes."""


def units(folder: Path, base_url: str, chunks: int | None, **settings: object) -> list[Unit]:
    return [
        make_unit(
            folder,
            base_url,
            seed=seed,
            output_file=str(folder / "out" / f"output-rs{seed}.jsonl"),
            inference={"random_seed": seed, "temperature": 0.7},
            add_generation_stats=False,
            eval_type=NAME,
            **settings,
            **({} if chunks is None else {"num_chunks": chunks, "chunk_id": chunk}),
        )
        for seed in range(SEEDS)
        for chunk in range(chunks or 1)
    ]


def job(folder: Path, number: int, shared: Sequence[Unit]) -> Path:
    """The folder of a job that shares `shared`, and begins in the middle of them."""
    first = len(shared) * number // 8
    place = folder / f"job-{number}"
    RunSpec(units=(*shared[first:], *shared[:first]), output_dir="", shared=True).save(place)
    return place


def expected(folder: Path, base_url: str) -> list[bytes]:
    """What one process writes that nobody disturbs."""
    calm = folder / "calm"
    calm.mkdir()
    write_input(calm, ROWS)
    whole = units(calm, base_url, None)
    assert run(*whole).exit_code == 0
    return [unit.merged.read_bytes() for unit in whole]


def ended(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said


def check(folder: Path, shared: Sequence[Unit], right: list[bytes]) -> None:
    merged = list(dict.fromkeys(unit.merged for unit in shared))
    assert [path.read_bytes() for path in merged] == right
    assert not [name for name in names(folder / "out") if name.endswith(("-async", "-grades", "-failed"))]


def test_a_slow_job_holds_up_only_its_chunk(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(RANDOM)
    right = expected(tmp_path, server.base_url)
    asked = len(server.records)
    write_input(tmp_path, ROWS)
    shared = units(tmp_path, server.base_url, CHUNKS)
    slow = units(tmp_path, server.base_url, CHUNKS, max_concurrent_requests=1)
    jobs = [job(tmp_path, 0, slow), *(job(tmp_path, number, shared) for number in (1, 2))]
    for process in [start(folder) for folder in jobs]:
        ended(process)
    check(tmp_path, shared, right)
    assert len(server.records) - asked == ROWS * SEEDS


def test_where_all_is_taken_one_job_stays_to_take_over_and_the_others_end(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(RANDOM, process=True)
    right = expected(tmp_path, server.base_url)
    write_input(tmp_path, ROWS)
    shared = units(tmp_path, server.base_url, CHUNKS)
    first = start(job(tmp_path, 0, shared))
    while not list((tmp_path / "out").glob("*-async")):
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)
    others = [start(job(tmp_path, number, shared)) for number in (2, 4, 6)]
    while sum(process.poll() == 0 for process in others) < 2:
        assert not [process.returncode for process in others if process.poll()]
        time.sleep(0.05)
    (waiting,) = [process for process in others if process.poll() is None]
    first.kill()
    first.communicate()
    ended(waiting)
    for process in others:
        process.communicate()
    check(tmp_path, shared, right)


@pytest.mark.slow
def test_kills_of_jobs_that_share_a_queue(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(SLOW, process=True)
    right = expected(tmp_path, server.base_url)
    write_input(tmp_path, ROWS)
    shared = units(tmp_path, server.base_url, CHUNKS)
    folders = [job(tmp_path, number, shared) for number in range(JOBS)]
    moments, kills = random.Random(5), 0
    running = [start(folder) for folder in folders]
    while kills < KILLS:
        time.sleep(moments.uniform(0.05, 0.9))
        if all(unit.merged.exists() for unit in shared):  # begin anew, so that all kills hit work
            for process in running:
                ended(process)
            check(tmp_path, shared, right)
            shutil.rmtree(tmp_path / "out")
            running = [start(folder) for folder in folders]
            continue
        number = moments.randrange(JOBS)
        if running[number].poll() is None:
            running[number].kill()
            kills += 1
        running[number].communicate()
        running[number] = start(folders[number])
    for process in running:
        ended(process)
    check(tmp_path, shared, right)


def test_one_job_that_is_alone_does_all(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 30)
    shared = units(tmp_path, server.base_url, 4)
    folder = job(tmp_path, 0, shared)
    assert load_spec(folder).shared
    ended(start(folder))
    assert len(server.records) == 30 * SEEDS
    ended(start(folder))
    assert len(server.records) == 30 * SEEDS
    assert len(records(tmp_path / "out" / "output-rs1.jsonl")) == 30
