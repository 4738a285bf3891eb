# SPDX-License-Identifier: Apache-2.0
"""Which files, ports and processes code may reach where name spaces are refused: Landlock (linux/landlock.h).

What each version of the interface can deny: 1 files, 2 moves between folders (denied altogether before),
3 truncation, 4 TCP, 5 device ioctls, 6 abstract unix sockets and signals to outsiders, 9 unix sockets by path.
UDP and, before 9, unix sockets are left to the system call filter.
"""

from __future__ import annotations

import os
import stat
import struct

from newskills_sandbox.inside import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NR_CREATE_RULESET, _NR_ADD_RULE, _NR_RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV, _RESOLVE_UNIX = 1 << 14, 1 << 15, 1 << 16
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX
_TCP = 0b11  # bind, connect
_SCOPED_SINCE = 6
_SCOPES = 0b11  # abstract unix sockets, signals


def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 where it is not built in, switched off or filtered."""
    try:
        return linux.syscall(_NR_CREATE_RULESET, 0, 0, _VERSION)
    except OSError:
        return 0


def too_weak(version: int, user: int) -> str:
    """Tell why this version does not keep the processes of `user` apart, empty where it does: as root, each session is
    given a user of its own, who may signal nobody else in any case."""
    if version < _SCOPED_SINCE and user != 0:
        return (
            f"Landlock {version} of this kernel lets code signal your other processes; it takes {_SCOPED_SINCE} "
            "(Linux 6.12), or root"
        )
    return ""


def _file_rights(version: int) -> int:
    rights = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEV), (9, _RESOLVE_UNIX)):
        if version >= since:
            rights |= right
    return rights


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # what is not there, or not ours to reach, needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _OF_FILES
        linux.syscall(_NR_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)


def restrict_process(
    *, read: Sequence[str], write: Sequence[str], network: bool, listed: Sequence[str] = ()
) -> None:
    """Refuse this process, and all it starts, everything that this kernel's Landlock can deny, except: to read and run
    what lies in `read`, anything in `write` (folders or files; missing ones are skipped), the names of what lies in
    `listed`, and TCP with `network`.

    Call it before the system call filter, and give up capabilities too: CAP_PERFMON reads the memory map and
    environment of other processes past Landlock. Raises OSError, also where there is no Landlock.
    """
    version = landlock_version()
    handled = _file_rights(version)
    tcp_rights = 0 if network or version < 4 else _TCP
    scopes = _SCOPES if version >= _SCOPED_SINCE else 0
    denied = struct.pack("=QQQ", handled, tcp_rights, scopes)
    ruleset = linux.syscall(_NR_CREATE_RULESET, denied, len(denied), 0)
    try:
        for path in read:
            _allow_path(ruleset, path, handled & _READ)
        for path in listed:
            _allow_path(ruleset, path, handled & _READ_DIR)
        for path in write:
            _allow_path(ruleset, path, handled)
        linux.no_new_privileges()
        linux.syscall(_NR_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
