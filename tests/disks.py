# SPDX-License-Identifier: Apache-2.0
"""Disks that are really full: small file systems in memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """`folder`, with a disk of its own of `size` (`256k`, `4m`). Skips the test where mounting is refused."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or _mount("-t", "tmpfs", "-o", f"size={size}", "none", str(folder)):
        pytest.skip("this machine does not let us mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def enlarge(folder: Path, size: str) -> None:
    """Space is made on the disk of `folder`."""
    assert _mount("-o", f"remount,size={size}", str(folder)) == 0


def fill(folder: Path, *, leave: int = 0) -> None:
    """Takes all space of the disk of `folder` but `leave` bytes."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    if leave:
        os.truncate(filler, max(0, filler.stat().st_size - leave))


def _mount(*words: str) -> int:
    return subprocess.run(["mount", *words], stderr=subprocess.DEVNULL).returncode
