# SPDX-License-Identifier: Apache-2.0
"""Names of the files of a run, which users' scripts rely on, and how another machine's files are waited for."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.run.support import names

from newskills.run.records.paths import PATIENCE_SECONDS, OutputPaths, chunk_path, done_path, output_name


def test_every_file_beside_an_output_has_its_name() -> None:
    paths = OutputPaths(Path("a/output-rs3.jsonl"))
    beside = {
        "done": ".done",
        "log": "-async",
        "index": "-index",
        "grades": "-grades",
        "grades_index": "-grades-index",
        "failed": "-failed",
        "replies": "-replies",
        "damaged": "-damaged",
        "state": ".run.json",
    }
    assert {name: getattr(paths, name) for name in beside} == {
        name: Path(f"a/output-rs3.jsonl{suffix}") for name, suffix in beside.items()
    }
    assert paths.lock == Path("a/.output-rs3.jsonl.lock")
    assert paths.replaced == (paths.output, paths.log, paths.state)


def test_paths_of_the_same_output_are_the_same_and_stay_so() -> None:
    paths = OutputPaths(Path("a/output.jsonl"))
    assert len({paths, OutputPaths(Path("a/output.jsonl")), OutputPaths(Path("b/output.jsonl"))}) == 2
    with pytest.raises(AttributeError):
        paths.output = Path("b/output.jsonl")  # type: ignore[misc]


def test_names_of_outputs_and_their_chunks() -> None:
    assert [output_name(), output_name(0), output_name(chunk=0), output_name(0, 0)] == [
        "output.jsonl",
        "output-rs0.jsonl",
        "output_chunk_0.jsonl",
        "output-rs0_chunk_0.jsonl",
    ]
    assert chunk_path(Path("a/output-rs0.jsonl"), 0) == Path("a/output-rs0_chunk_0.jsonl")
    assert done_path(Path("a/output.jsonl")) == Path("a/output.jsonl.done")


def every_file(folder: Path) -> OutputPaths:
    paths = OutputPaths(folder / "output.jsonl")
    kinds = ("done", "log", "index", "grades", "grades_index", "failed", "replies", "damaged", "state")
    for path in (paths.output, *(getattr(paths, kind) for kind in kinds)):
        path.touch()
    return paths


def test_only_unfinished_work_needs_its_logs(tmp_path: Path) -> None:
    paths = every_file(tmp_path)
    paths.remove_grades()
    assert not {"output.jsonl-grades", "output.jsonl-grades-index"} & set(names(tmp_path))
    assert len(names(tmp_path)) == 8
    paths.remove_logs()
    kept = ["output.jsonl", "output.jsonl-damaged", "output.jsonl.done", "output.jsonl.run.json"]
    assert names(tmp_path) == kept
    paths.remove_logs()
    assert names(tmp_path) == kept


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.naps: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


KINDS = ("done", "output", "log", "state", "index", "grades", "grades_index", "failed", "replies")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("remembered", ["a file that is gone", "that there is no file"])
def test_what_a_network_file_system_remembers_wrongly_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, remembered: str
) -> None:
    """Each half second for two minutes, about each of the files; nothing is left in the folder."""
    paths = every_file(tmp_path)
    stale = getattr(paths, kind)
    gone = remembered == "a file that is gone"
    if gone:
        stale.unlink()
    before = sorted(os.listdir(tmp_path))
    exists = os.path.lexists
    clock = Clock(monkeypatch)
    until = clock.now + 1.2

    def lexists(path: Path) -> bool:
        return gone if path == stale and clock.now < until else exists(path)

    monkeypatch.setattr(os.path, "lexists", lexists)
    paths.see_anew()
    assert clock.naps == [0.5, 0.5, 0.5]
    until = float("inf")
    begun = clock.now
    paths.see_anew()
    assert clock.now - begun == PATIENCE_SECONDS == 120.0
    assert sorted(os.listdir(tmp_path)) == before


def test_what_the_listing_confirms_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    OutputPaths(tmp_path / "output.jsonl").see_anew()
    every_file(tmp_path).see_anew()
    assert clock.naps == []


def test_looking_changes_the_folder_so_that_its_names_are_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of NFS forgets what it remembers of a folder in which it has made and removed a file."""
    os.utime(tmp_path, (1, 1))
    OutputPaths(tmp_path / "output.jsonl").see_anew()
    assert tmp_path.stat().st_mtime > 1
