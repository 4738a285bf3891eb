# SPDX-License-Identifier: Apache-2.0
"""Folders of hostile code are looked through and removed, however deep, long or closed they are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.sandbox.children import need_root
from tests.sandbox.driver import as_ordinary

from newskills_sandbox.inside import folders

CLOSED = """
top = tempfile.mkdtemp()
for name in ("a", "b"):
    os.makedirs(f"{top}/{name}/c")
    open(f"{top}/{name}/c/file", "w").write("x" * 9)


def close():
    for name in ("a", "b"):
        for path in (f"{top}/{name}/c", f"{top}/{name}"):
            os.chmod(path, 0)


close()
print([each.st_size for each in below(top)].count(9))
close()
remove(top)
print(os.path.exists(top))
"""
"""After the text of the module."""


def nested(top: Path, name: str, depth: int) -> None:
    """`depth` folders in one another, and a file of 7 bytes in the last."""
    place = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=place)
        inner = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place)
    os.write(file, b"x" * 7)
    os.close(file)
    os.close(place)


@pytest.mark.parametrize(("name", "depth"), [("d", 3000), ("n" * 250, 40)])
def test_depth_neither_hides_files_nor_keeps_them(tmp_path: Path, name: str, depth: int) -> None:
    top = tmp_path / "top"
    top.mkdir()
    nested(top, name, depth)
    sizes = [each.st_size for each in folders.below(str(top))]
    assert (len(sizes), sizes.count(7)) == (depth + 1, 1)
    folders.clear(str(top))
    assert list(top.iterdir()) == []
    nested(top, name, depth)
    folders.remove(str(top))
    assert not top.exists()


def test_links_are_removed_and_not_what_they_lead_to(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    (top / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("x")
    (top / "link").symlink_to(outside)
    (top / "a/link").symlink_to(outside)
    (top / "a/file").symlink_to(outside / "kept")
    os.mkfifo(top / "a/fifo")
    assert len(list(folders.below(str(top)))) == 5
    folders.remove(str(top))
    assert not top.exists()
    assert (outside / "kept").read_text() == "x"
    folders.remove(str(top))


@pytest.mark.parametrize("ordinary", [False, True])
def test_closed_folders_are_opened(ordinary_python: str, ordinary: bool) -> None:
    if ordinary:
        need_root()
    done = subprocess.run(
        [ordinary_python, "-I", "-c", Path(folders.__file__).read_text() + CLOSED],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **as_ordinary(ordinary),
    )
    assert done.stdout.split() == ["2", "False"], done.stderr
