# SPDX-License-Identifier: Apache-2.0
"""Temporaries of killed processes go, those of living ones stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from newskills.base import replacing
from newskills.base.replacing import remove_abandoned, replacing_file

WRITER = """
import sys, time
from pathlib import Path
from newskills.base.replacing import replacing_file
with replacing_file(Path(sys.argv[1])) as file:
    file.write(b"new")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def writer(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def _as_a_new_process() -> None:
    replacing._left_in.cache_clear()


@pytest.mark.parametrize("by", ["the next writer", "a start"])
def test_what_a_killed_process_left_is_removed_and_a_living_one_is_not_disturbed(tmp_path: Path, by: str) -> None:
    path = tmp_path / "state.json"
    dead, alive = writer(path), writer(path)
    dead.kill()
    dead.communicate()
    assert names(tmp_path) == sorted([f".state.json.{dead.pid}.tmp", f".state.json.{alive.pid}.tmp"])
    (tmp_path / ".other.json.77.tmp").touch()
    if by == "a start":
        remove_abandoned(tmp_path, {"state.json"})
    else:
        with replacing_file(path) as file:
            file.write(b"mine")
        assert path.read_bytes() == b"mine"
    assert f".state.json.{dead.pid}.tmp" not in names(tmp_path)
    alive.communicate("\n")
    assert alive.returncode == 0
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == [".other.json.77.tmp", "state.json"]


def test_a_file_that_was_taken_for_abandoned_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    lock, taken = replacing.fcntl.flock, []  # type: ignore[attr-defined, var-annotated]

    def too_late(file: object, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.glob(".*.tmp"))
            taken[0].unlink()
        lock(file, how)

    monkeypatch.setattr(replacing.fcntl, "flock", too_late)  # type: ignore[attr-defined]
    with replacing_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["state.json"]


def test_a_missing_folder_has_nothing_left(tmp_path: Path) -> None:
    remove_abandoned(tmp_path / "none", {"a"})
