# SPDX-License-Identifier: Apache-2.0
"""Several processes take chunks from one queue: each row once, whoever is slow, suspended, killed or late."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import FakeServerFactory
from tests.run.support import changed, make_unit, names, records, run, write_input
from tests.run.test_kill import start
from tests.run.toy import NAME
from tests.server import Answer, Latency, Script

from newskills.base.errors import DataError, StorageError
from newskills.base.records import Inference
from newskills.run.engine.work_queue import execute_shared
from newskills.run.planning.queue import ChunkQueue, queue_of
from newskills.run.planning.spec import RunSpec, Unit, load_spec

ROWS, CHUNKS, SEEDS = 1200, 12, 2
RANDOM = Script(answer=Answer(kind="random", modulus=10**9), latency=Latency(fixed=0.004, jitter=0.01))
SLOW = Script(answer=RANDOM.answer, latency=Latency(fixed=0.05, jitter=0.05))


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


@pytest.mark.nightly
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


@pytest.mark.nightly
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
@pytest.mark.parametrize(("jobs", "kills"), [(4, 6), pytest.param(8, 50, marks=pytest.mark.nightly)])
def test_kills_of_jobs_that_share_a_queue(
    jobs: int, kills: int, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(SLOW, process=True)
    right = expected(tmp_path, server.base_url)
    write_input(tmp_path, ROWS)
    shared = units(tmp_path, server.base_url, CHUNKS)
    folders = [job(tmp_path, number, shared) for number in range(jobs)]
    moments, killed = random.Random(5), 0
    running = [start(folder) for folder in folders]
    while killed < kills:
        time.sleep(moments.uniform(0.05, 0.9))
        if all(unit.merged.exists() for unit in shared):  # begin anew, so that all kills hit work
            for process in running:
                ended(process)
            check(tmp_path, shared, right)
            shutil.rmtree(tmp_path / "out")
            running = [start(folder) for folder in folders]
            continue
        number = moments.randrange(jobs)
        if running[number].poll() is None:
            running[number].kill()
            killed += 1
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


def test_chunks_that_another_run_has_finished_are_not_joined(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    """Found before the first request; and where it is not, since it was made meanwhile, before anything is joined."""
    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 40)
    others = [unit for unit in units(tmp_path, server.base_url, 4) if unit.seed == 0]
    mine = [changed(unit, inference=Inference(random_seed=0, temperature=0.2)) for unit in others]
    run(others[2])
    asked = len(server.records)
    with pytest.raises(DataError, match=r"inference.temperature \(0.7 → 0.2\)"):
        execute_shared(RunSpec(units=tuple(mine), output_dir="", shared=True), environ={})
    assert len(server.records) == asked
    run(*mine[:2])
    last = run(mine[3])
    assert last.exit_code != 0
    assert "output-rs0_chunk_2.jsonl has inference.temperature 0.7, others have 0.2" in last.message
    assert others[2].paths.output.exists()
    write_input(tmp_path, 44)
    with pytest.raises(DataError, match="content of the input file"):
        execute_shared(RunSpec(units=tuple(others), output_dir="", shared=True), environ={})


def test_clocks_that_jump_and_listings_that_lag(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of day is not asked, and what a folder seems to hold decides nothing: locks and markers do."""
    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 60)
    jumps = random.Random(3)
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() + jumps.choice([-(10**7), 0, 10**7]))
    shared = [unit for unit in units(tmp_path, server.base_url, 6) if unit.seed == 0]
    listings: list[set[str]] = []

    def lagging(folder: Path) -> set[str]:
        listings.append(set(os.listdir(folder)) if folder.exists() else set())
        return listings[max(0, len(listings) - 3)]

    monkeypatch.setattr("newskills.run.engine.work_queue._folder_names", lagging)
    monkeypatch.setattr("newskills.run.engine.work_queue.POLL", 0.01)
    run(*shared[:2])
    result = execute_shared(RunSpec(units=tuple(shared), output_dir="", shared=True), environ={})
    assert result.exit_code == 0
    assert [row["generation"] for row in records(shared[0].merged)] == [f"What is {i} + 1?" for i in range(60)]
    assert len(server.records) == 60
    assert all(unit.seconds >= 0 for unit in result.units)


def test_a_folder_without_locks_is_refused(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS without a lock manager: nothing is asked, for two jobs could ask the same."""

    def no_locks(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 40)
    monkeypatch.setattr("fcntl.flock", no_locks)
    spec = RunSpec(units=tuple(units(tmp_path, server.base_url, 4)), output_dir="", shared=True)
    with pytest.raises(StorageError, match=r"out has no file locks .*another folder"):
        execute_shared(spec, environ={})
    assert not server.records


def test_names_that_this_machine_remembers_wrongly_are_waited_for(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine has just finished the chunk that this one takes: nothing of it is asked again."""
    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 40)
    shared = [unit for unit in units(tmp_path, server.base_url, 4) if unit.seed == 0]
    run(shared[0])
    done, seen, pauses = shared[0].paths.done, Path.exists, list[float]()

    def remembered(path: Path) -> bool:
        return seen(path) and (len(pauses) > 2 or path != done)

    monkeypatch.setattr("pathlib.Path.exists", remembered)
    monkeypatch.setattr("os.path.lexists", lambda path: remembered(Path(path)))
    monkeypatch.setattr("newskills.run.records.paths.time.sleep", pauses.append)
    result = run(shared[0])
    assert (result.units[0].status, len(pauses), len(server.records)) == ("done", 3, 10)


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("bindfs") is None, reason="no bindfs here: apt-get install bindfs")
def test_jobs_on_two_mounts_that_remember_names(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """As on two nodes of a network file system: which names there are, and are not, is asked once in half a minute."""
    server = fake_server(SLOW, process=True)
    right = expected(tmp_path, server.base_url)
    shared_folder = tmp_path / "shared"
    shared_folder.mkdir()
    write_input(shared_folder, ROWS)
    options = "entry_timeout=30,negative_timeout=30,attr_timeout=0"
    mounts = [tmp_path / "left", tmp_path / "right"]
    with contextlib.ExitStack() as stack:
        folders: list[Path] = []
        for mount in mounts:
            mount.mkdir()
            words = ["bindfs", "--enable-lock-forwarding", "--multithreaded", "-o", options]
            subprocess.run([*words, str(shared_folder), str(mount)], check=True)
            stack.callback(subprocess.run, ["fusermount", "-u", "-z", str(mount)], check=False)
            there = units(mount, server.base_url, CHUNKS)
            folders += [job(mount, number, there) for number in range(len(folders), len(folders) + 2)]
        running = [start(folder) for folder in folders]
        moments = random.Random(7)
        for _ in range(12):
            time.sleep(moments.uniform(0.05, 0.9))
            number = moments.randrange(len(folders))
            running[number].kill()
            running[number].communicate()
            running[number] = start(folders[number])
        for process in running:
            ended(process)
    check(shared_folder, units(shared_folder, server.base_url, CHUNKS), right)


def test_what_another_version_wrote_is_worked_on(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    """Fields that this version does not know, in states and run.json; and a run.json that names each chunk."""
    server = fake_server(Script(answer=Answer(kind="echo")))
    write_input(tmp_path, 40)
    shared = [unit for unit in units(tmp_path, server.base_url, 4) if unit.seed == 0]
    run(shared[0])
    state = shared[0].paths.state
    state.write_text(json.dumps(json.loads(state.read_text()) | {"of_tomorrow": [1]}))
    folder = job(tmp_path, 0, shared)
    written = json.loads((folder / "run.json").read_text())
    del written["chunks"], written["first"]
    (folder / "run.json").write_text(json.dumps(written | {"of_tomorrow": {}}))
    few, chunks = queue_of(shared)
    RunSpec(units=few, chunks=chunks, first=2, output_dir="", shared=True).save(tmp_path / "compact")
    for process in [start(folder), start(tmp_path / "compact")]:
        ended(process)
    assert [row["generation"] for row in records(shared[0].merged)] == [f"What is {i} + 1?" for i in range(40)]
    assert len(server.records) == 40


@given(chunks=st.integers(1, 60), lacking=st.sets(st.integers(0, 59)), seeds=st.integers(1, 3))
def test_a_queue_in_a_few_lines_has_the_same_units(chunks: int, lacking: set[int], seeds: int) -> None:
    every = [
        make_unit(
            Path("/x"), "", seed=seed, output_file=f"/x/output-rs{seed}.jsonl", num_chunks=chunks, chunk_id=chunk
        )
        for seed in range(seeds)
        for chunk in range(chunks)
        if chunk not in lacking
    ]
    few, ranges = queue_of(every)
    queue = ChunkQueue(RunSpec(units=few, chunks=ranges, output_dir="", first=len(every) // 2))
    assert [queue[place] for place in range(len(queue))] == every
    assert [queue.paths(place) for place in range(len(queue))] == [unit.paths for unit in every]
    assert [place for places in queue.files() for place in places] == list(range(len(every)))
    assert len(queue.files()) == len({unit.merged for unit in every})
    assert sorted(queue.turn()) == list(range(len(every)))
