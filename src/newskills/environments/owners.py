# SPDX-License-Identifier: Apache-2.0
"""Names of containers that tell which process they belong to, so that those of a killed run are recognised."""

from __future__ import annotations

import itertools
import os
import re
import socket
from pathlib import Path

PREFIX = "newskills-env"
LABEL = "newskills.environment"
_NAME = re.compile(rf"{PREFIX}\.(?P<host>[a-z0-9-]+)\.(?P<pid>\d+)\.(?P<start>\d+)\.\d+(?:\.[\w.-]+)?\Z", re.ASCII)
_numbers = itertools.count(1)


def new_name() -> str:
    """Make a name, `newskills-env.<host>.<pid>.<start of that process>.<number>`."""
    return f"{PREFIX}.{_host_name()}.{os.getpid()}.{_start_ticks(os.getpid())}.{next(_numbers)}"


def is_left_over(name: str) -> bool:
    """Return whether the container belongs to a process of this machine that is gone; stores of images may be
    shared by machines."""
    match = _NAME.fullmatch(name)
    if match is None or match["host"] != _host_name():
        return False
    return _start_ticks(int(match["pid"])) != int(match["start"])


def _host_name() -> str:
    return re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-") or "host"


def _start_ticks(pid: int) -> int:
    """Return when the process began, in clock ticks since the machine did; 0 for one that does not exist."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    if words[0] == "Z":
        return 0
    return int(words[19])
