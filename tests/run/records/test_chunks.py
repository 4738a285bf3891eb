# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, names, records, run, write_input
from tests.server import Answer, Script

from newskills.base.errors import DataError, LockedError
from newskills.run.engine.execute import check_unit, preview_request
from newskills.run.planning.spec import RunSpec
from newskills.run.records.chunks import merge_chunks, merge_if_complete
from newskills.run.records.paths import chunk_path, done_path, output_name

ECHO = Script(answer=Answer(kind="echo"))


def test_names() -> None:
    assert output_name() == "output.jsonl"
    assert output_name(3) == "output-rs3.jsonl"
    assert output_name(3, 1) == "output-rs3_chunk_1.jsonl"
    assert chunk_path(Path("a/output-rs0.jsonl"), 2) == Path("a/output-rs0_chunk_2.jsonl")


def test_the_last_chunk_merges(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 10)
    chunks = [make_unit(tmp_path, server.base_url, num_chunks=3, chunk_id=k) for k in range(3)]
    first = run(chunks[2], chunks[0])
    assert not any(unit.merged for unit in first.units)
    assert [len(records(unit.paths.output)) for unit in (chunks[0], chunks[2])] == [4, 3]
    assert run(chunks[1]).units[0].merged
    assert [r["generation"] for r in records(tmp_path / "out" / "output.jsonl")] == [
        f"What is {i} + 1?" for i in range(10)
    ]
    assert [name for name in names(tmp_path / "out") if not name.endswith(".run.json")] == [
        "output.jsonl",
        "output.jsonl.done",
        *(f"output_chunk_{k}.jsonl.done" for k in range(3)),
    ]
    again = run(*chunks)
    assert (again.exit_code, len(server.records)) == (0, 10)


def test_more_chunks_than_rows(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 2)
    run(*(make_unit(tmp_path, server.base_url, num_chunks=4, chunk_id=k) for k in range(4)))
    assert len(records(tmp_path / "out" / "output.jsonl")) == 2


def test_an_empty_chunk_is_a_chunk(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 1)
    empty, full = (make_unit(tmp_path, server.base_url, num_chunks=2, chunk_id=k) for k in (1, 0))
    check_unit(empty, environ={})
    assert preview_request(empty, environ={}).messages == preview_request(full, environ={}).messages
    assert run(empty).exit_code == 0
    assert empty.paths.output.read_bytes() == b""
    assert empty.paths.done.exists()
    assert run(full).units[0].merged
    assert len(records(full.merged)) == 1
    (tmp_path / "input.jsonl").write_text("")
    with pytest.raises(DataError, match="is empty"):
        check_unit(empty, environ={})


def test_processes_that_finish_together_merge_once(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 12)
    running = []
    for k in range(4):
        folder = tmp_path / f"job{k}"
        unit = make_unit(tmp_path, server.base_url, num_chunks=4, chunk_id=k)
        RunSpec(units=(unit,), output_dir=str(tmp_path / "out")).save(folder)
        running.append(subprocess.Popen([sys.executable, "-m", "newskills.run", str(folder)]))
    assert [process.wait(300) for process in running] == [0, 0, 0, 0]
    found = records(tmp_path / "out" / "output.jsonl")
    assert [r["problem"] for r in found] == [f"What is {i} + 1?" for i in range(12)]


def test_nothing_is_deleted_when_the_count_is_wrong(tmp_path: Path) -> None:
    chunks = [tmp_path / f"c{k}" for k in range(2)]
    for chunk in chunks:
        chunk.write_text('{"a":1}\n')
    with pytest.raises(DataError, match="have 2 rows, expected 3"):
        merge_chunks(tmp_path / "all", chunks, expected=3)
    assert all(chunk.exists() for chunk in chunks)
    chunks[1].write_text('{"a":1}\n{"a"')
    with pytest.raises(DataError, match="is incomplete"):
        merge_chunks(tmp_path / "all", chunks)
    assert not (tmp_path / "all").exists()
    with pytest.raises(DataError, match="There is no file"):
        merge_chunks(tmp_path / "all", [tmp_path / "none"])


def test_a_merge_waits_for_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading
    import time

    from newskills.base.store import hold_lock
    from newskills.run.records.paths import OutputPaths

    merged = tmp_path / "output.jsonl"
    chunk_path(merged, 0).write_text("{}\n")
    done_path(chunk_path(merged, 0)).touch()
    results: list[bool] = []
    with hold_lock(OutputPaths(merged).lock, "x"):
        thread = threading.Thread(target=lambda: results.append(merge_if_complete(merged, 1, 1)))
        thread.start()
        time.sleep(0.2)
        assert not merged.exists()
    thread.join(60)
    assert results == [True]


def test_changed_chunking_is_refused(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 10)
    run(make_unit(tmp_path, server.base_url, num_chunks=3, chunk_id=0))
    with pytest.raises(DataError, match=r"num_chunks \(3 → 2\)"):
        run(make_unit(tmp_path, server.base_url, num_chunks=2, chunk_id=0))


def test_locks_are_per_file(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ECHO)
    write_input(tmp_path, 4)
    unit = make_unit(tmp_path, server.base_url)
    with pytest.raises(LockedError):
        run(unit, unit)


TOGETHER = """
import os, sys, time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from newskills.run.records.chunks import merge_if_complete
from newskills.run.records.paths import chunk_path, done_path
merged, chunk, start = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
renames = []
sys.addaudithook(lambda event, args: event == "os.rename" and renames.append(str(args[1]) == str(merged)))
output = chunk_path(merged, chunk)
output.write_text(f'{{"chunk": {chunk}}}\\n')
start.with_name(f"ready-{chunk}").touch()
while not start.exists():
    time.sleep(0.001)
done_path(output).touch()
print(merge_if_complete(merged, 12, 12), sum(renames))
"""


def test_twelve_chunks_that_finish_at_the_same_moment_are_merged_exactly_once(tmp_path: Path) -> None:
    merged, start = tmp_path / "output.jsonl", tmp_path / "start"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, str(merged), str(chunk), str(start)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for chunk in range(12)
    ]
    while len(list(tmp_path.glob("ready-*"))) < 12:
        assert all(process.poll() is None for process in running)
        time.sleep(0.01)
    start.touch()
    said = [process.communicate(timeout=300)[0].split() for process in running]
    assert sum(int(merges) for _, merges in said) == 1
    assert "True" in {complete for complete, _ in said}
    assert [row["chunk"] for row in records(merged)] == list(range(12))
    assert not list(tmp_path.glob("*_chunk_*.jsonl"))


ORDERS: dict[str, Callable[[int], list[int]]] = {
    "ascending": lambda chunks: list(range(chunks)),
    "descending": lambda chunks: list(range(chunks))[::-1],
    "by jobs": lambda chunks: [job * 8 + turn for turn in range(8) for job in range(chunks // 8)],
    "shuffled": lambda chunks: random.Random(1).sample(range(chunks), chunks),
}


@pytest.mark.parametrize("order", ORDERS)
def test_what_the_finish_of_a_chunk_costs_hardly_grows_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Counted in questions to the file system about chunks: the logarithm of their number for each."""
    questions = [0]
    stat = os.stat

    def counting(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        questions[0] += "_chunk_" in str(path)
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", counting)
    for chunks in (32, 256):
        merged = tmp_path / str(chunks) / "output.jsonl"
        merged.parent.mkdir()
        questions[0] = 0
        for place, k in enumerate(ORDERS[order](chunks), 1):
            chunk = chunk_path(merged, k)
            chunk.write_text(f'{{"chunk":{k}}}\n')
            done_path(chunk).touch()
            assert merge_if_complete(merged, chunks, chunks, first=k) == (place == chunks)
        assert questions[0] <= 6 * chunks * math.log(chunks)
        assert [row["chunk"] for row in records(merged)] == list(range(chunks))
        questions[0] = 0
        assert all(merge_if_complete(merged, chunks, chunks, first=k) for k in range(chunks))
        assert questions[0] == chunks


def test_chunks_that_a_kill_left_behind_their_merged_file_are_deleted(tmp_path: Path) -> None:
    merged = tmp_path / "output.jsonl"
    for path in (merged, *(chunk_path(merged, k) for k in (3, 4, 5))):
        path.write_text("{}\n")
    done_path(merged).touch()
    assert merge_if_complete(merged, 6, 6)
    assert names(tmp_path) == ["output.jsonl", "output.jsonl.done"]
