# SPDX-License-Identifier: Apache-2.0
"""Memory and process limits by control groups, where this user may make them. Never required.

Watching processes from outside sees memory too late; a control group cannot be overrun. Both interfaces: version 1
(separate `memory` and `pids` trees) and version 2 (one tree with both controllers delegated).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_CONTROLLERS = ("memory", "pids")
_PREFIX = "newskills-"
_PROBE_BYTES = 64 << 20
_PROBE_PROCESSES = 16
_DYING = 1.0  # seconds a group may stay busy after its last process was killed


class ControlGroup:
    """One session's group: `folders` holds one folder, or in version 1 one per controller."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        places = (folder / name for folder in folders for name in ("memory.events", "memory.oom_control"))
        self._events = [str(place) for place in places if place.exists()]

    def enter_fds(self) -> list[int]:
        """Open descriptors for writing and closed on exec: a process that writes b"0" to each is in the group.

        The right to do so goes with the descriptor (Linux >= 5.16), so a process that has dropped its own may still
        enter. What it allocated before stays charged to the group it came from. Raises OSError.
        """
        opened: list[int] = []
        try:
            for folder in self._folders:
                opened.append(os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
        except OSError:
            for fd in opened:
                os.close(fd)
            raise
        return opened

    def oom_kills(self) -> int:
        """Count how many processes of the group the kernel has killed for want of memory."""
        for place in self._events:
            with contextlib.suppress(OSError):
                for line in _read_kernel_file(place).splitlines():
                    key, _, value = line.partition(b" ")
                    if key == b"oom_kill":
                        return int(value)
        return 0

    def remove(self) -> bool:
        """Remove the group once its processes are gone, waiting up to a second for those that are dying.

        True when it is gone; call again later if not.
        """
        end = time.monotonic() + _DYING
        gone = [_remove_folder(folder, end) for folder in self._folders]
        return all(gone)


def _read_kernel_file(place: str) -> bytes:
    """Read a small file of the kernel. It is read after every cell, so without a file object. Raises OSError."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _remove_folder(folder: Path, end: float) -> bool:
    pause = 0.001
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() + pause > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        else:
            return True


class Cgroups:
    """The place where groups can be made; `version` is 1 or 2."""

    def __init__(self, version: int, folders: tuple[Path, ...]) -> None:
        self.version = version
        self._folders = folders

    @classmethod
    def find(cls) -> Cgroups | None:
        """Return the first place where a group with both limits can be made, entered and removed; None if there is
        none."""
        for version, folders in _candidate_places():
            groups = cls(version, folders)
            with contextlib.suppress(OSError):
                groups._try_group()
                groups._remove_leftovers()
                return groups
        return None

    def create(self, name: str, memory_bytes: int, processes: int) -> ControlGroup:
        """Make a group called `name`, which begins with `own_prefix()`.

        `memory_bytes`: memory, files in tmpfs and kernel buffers together, and no swap; `processes` counts threads too.
        Raises OSError, also where `name` is taken; then nothing is left behind.
        """
        made: list[Path] = []
        try:
            for folder in self._folders:
                (folder / name).mkdir()
                made.append(folder / name)
            for folder in made:
                _write_limits(folder, memory_bytes, processes)
        except OSError:
            ControlGroup(tuple(made)).remove()
            raise
        return ControlGroup(tuple(made))

    def _try_group(self) -> None:
        """Make a group, move a process into it, and remove it."""
        group = self.create(f"{own_prefix()}probe-{id(self):x}", _PROBE_BYTES, _PROBE_PROCESSES)
        try:
            fds = group.enter_fds()
            try:
                _move_a_process(fds)
            finally:
                for fd in fds:
                    os.close(fd)
        finally:
            group.remove()

    def _remove_leftovers(self) -> None:
        """Remove what processes that were killed have left; a group that is in use cannot be removed."""
        for folder in self._folders:
            for each in folder.glob(f"{_PREFIX}[0-9]*-*"):
                owner = each.name.removeprefix(_PREFIX).partition("-")[0]
                if not Path("/proc", owner).exists():
                    with contextlib.suppress(OSError):
                        each.rmdir()


def own_prefix() -> str:
    """Return how the names of this process's groups begin, so that later ones can tell whether it is still there."""
    return f"{_PREFIX}{os.getpid()}-"


def _move_a_process(fds: list[int]) -> None:
    with subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE) as process:
        try:
            for fd in fds:
                os.write(fd, str(process.pid).encode())
        finally:
            process.kill()


def _write_limits(folder: Path, memory_bytes: int, processes: int) -> None:
    """Write those limits that `folder` has files for; version 1 wants the limit with swap after the one without."""
    for name, value in (
        ("memory.limit_in_bytes", memory_bytes),
        ("memory.memsw.limit_in_bytes", memory_bytes),
        ("memory.max", memory_bytes),
        ("memory.swap.max", 0),
        ("pids.max", processes),
    ):
        if (folder / name).exists():
            (folder / name).write_text(str(value))


def _candidate_places() -> Iterator[tuple[int, tuple[Path, ...]]]:
    """Yield version and folders to try, below our own groups, so that the limits we are under hold for sessions as
    well.
    """
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    unified: Path | None = None
    by_controller: dict[str, Path] = {}
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, target = before.split()[3:5]
        kind, _, options = after.split()[:3]
        for _, controllers, path in groups:
            if kind == "cgroup2" and not controllers:
                unified = _mounted_path(target, root, path)
            elif kind == "cgroup" and controllers and set(controllers.split(",")) <= set(options.split(",")):
                by_controller |= dict.fromkeys(controllers.split(","), _mounted_path(target, root, path))
    if unified is not None:
        yield from ((2, (folder,)) for folder in _delegated_groups(unified))
    if all(name in by_controller for name in _CONTROLLERS):
        yield 1, tuple(dict.fromkeys(by_controller[name] for name in _CONTROLLERS))


def _mounted_path(target: str, root: str, path: str) -> Path:
    """Return where the group `path` is seen when the tree from `root` on is mounted on `target`."""
    inner = os.path.relpath(path, root)
    if inner.startswith(".."):
        return Path(target)
    return Path(target, inner)


def _delegated_groups(own: Path) -> Iterator[Path]:
    """Yield groups of version 2 with both controllers switched on for their children.

    A group with processes has none (but for the root), so the parent is the usual place; unless our own group has
    a limit, which sessions beside it would escape.
    """
    for folder in (own, own.parent):
        with contextlib.suppress(OSError):
            if set(_CONTROLLERS) <= set((folder / "cgroup.subtree_control").read_text().split()):
                yield folder
            limits = [own / "memory.max", own / "pids.max"]
            if any(each.exists() and each.read_text().strip() != "max" for each in limits):
                return
