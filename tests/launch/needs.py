# SPDX-License-Identifier: Apache-2.0
"""What tests need and a machine may lack: they are skipped with a message, and fail where CI says that it is here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import NoReturn

import pytest


def lacking(kind: str, why: str) -> NoReturn:
    """Skips the test, or fails it where NEWSKILLS_TEST_<kind> is set (CONTAINERS, GPU, SLURM, SSH)."""
    if os.environ.get(f"NEWSKILLS_TEST_{kind}"):
        pytest.fail(f"NEWSKILLS_TEST_{kind} is set, but: {why}")
    pytest.skip(why)


def require_programs(kind: str, names: Iterable[str], remedy: str) -> None:
    for name in names:
        if not shutil.which(name) and not shutil.which(name, path="/usr/sbin:/sbin"):
            lacking(kind, f"no {name} here: {remedy}")


def require_ssh() -> None:
    require_programs("SSH", ("sshd", "ssh", "rsync"), "apt install openssh-server openssh-client rsync")
