# SPDX-License-Identifier: Apache-2.0
"""What is dear to make: made once for all workers of a run of pytest, and removed with the last that uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
"""Names this run of pytest; the same in all its workers."""


@contextlib.contextmanager
def shared_folder(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None], remove: Callable[[], None]
) -> Iterator[Path]:
    """A folder that `make` has filled, in this process or in another worker; nobody changes it.

    `remove` is called where nobody uses it any more, for what lies elsewhere. Raises what `make` raises.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"shared-{name}"
    with _users(folder) as users:
        if users.count == 0:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
        users.count += 1
    try:
        yield folder
    finally:
        with _users(folder) as users:
            users.count -= 1
            if users.count == 0:
                remove()


class _Count:
    def __init__(self, count: int) -> None:
        self.count = count


@contextlib.contextmanager
def _users(folder: Path) -> Iterator[_Count]:
    """How many workers use the folder; others wait meanwhile."""
    with folder.with_suffix(".users").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        users = _Count(int(file.read() or "0"))
        yield users
        file.truncate(0)
        file.write(str(users.count))
