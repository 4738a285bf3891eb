# SPDX-License-Identifier: Apache-2.0
"""Finding, stopping, measuring and ending the processes below a supervisor, whatever they do to avoid it."""

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from socket import socket

PAGE = os.sysconf("SC_PAGE_SIZE")
ROUNDS = 200
STOP_PATIENCE = 0.5
MEASURE = 0.05
USUAL_DESCRIPTORS = 256
SOCKET_BUFFER = 212_992  # net.core.wmem_default


def in_namespace(keep: int = 0) -> list[int]:
    """List all processes of this pid name space but its first and `keep`, zombies left out."""
    own_pids = (str(os.getpid()), str(keep))
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and name not in own_pids and _is_alive(int(name))
    ]


def below(skip: Collection[int] = ()) -> list[int]:
    """List all descendants of this process, zombies left out; `skip`: children whose descendants stay out, too."""
    descendants: list[int] = []
    heads = [pid for pid in _child_pids(os.getpid()) if pid not in skip]
    while heads:
        pid = heads.pop()
        if _is_alive(pid):
            descendants.append(pid)
        heads += _child_pids(pid)
    return descendants


def _child_pids(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    except OSError:  # it has ended
        pass
    return children


def _stat_fields(pid: int | str) -> list[bytes]:
    """Read the fields of /proc/PID/stat, or PID/task/THREAD, from the state on; empty for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read().rpartition(b") ")[2].split()
    except OSError:
        return []


def _is_alive(pid: int) -> bool:
    fields = _stat_fields(pid)
    return bool(fields) and fields[0] not in b"ZX"


def running(pids: Collection[int]) -> list[int]:
    """Return those of `pids` that use a processor, wait for one, or for a disk, with any of their threads."""
    return [
        pid for pid in pids if (fields := _stat_fields(pid)) and (fields[0] in b"RD" or _thread_runs(pid, fields))
    ]


def _thread_runs(pid: int, fields: list[bytes]) -> bool:
    if int(fields[17]) == 1 or fields[0] in b"TZ":
        return False
    with contextlib.suppress(OSError):  # it has ended
        names = os.listdir(f"/proc/{pid}/task")
        return any((status := _stat_fields(f"{pid}/task/{name}")) and status[0] in b"RD" for name in names)
    return False


def send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):  # it has ended
        os.kill(pid, number)


def undisturbed(pid: int) -> bool:
    """Return whether child `pid`, which a wait has found stopped, has not gone on since, not even for a moment."""
    try:
        return os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED) == (0, 0)
    except ChildProcessError:  # it has even ended
        return False


def stop(listing: Callable[[], list[int]]) -> list[int]:
    """Send SIGSTOP to everything that `listing` finds; those that were not stopped before."""
    seen: set[int] = set()
    stopped: list[int] = []
    for _ in range(ROUNDS):
        new_pids = [pid for pid in listing() if pid not in seen]
        if not new_pids:
            break
        seen.update(new_pids)
        running = [pid for pid in new_pids if _stat_fields(pid)[:1] != [b"T"]]
        for pid in running:
            send(pid, signal.SIGSTOP)
        stopped += running
    return stopped


def end(listing: Callable[[], list[int]], on_end: Callable[[int, int], None] | None = None) -> bool:
    """Send SIGKILL to everything that `listing` finds, until nothing is left; False: it breeds too fast.

    All are stopped before any is killed: what is stopped cannot fork a successor. `on_end`: see `reap`.
    """
    for turn in range(ROUNDS):
        pids = listing()
        if not pids:
            return True
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                send(pid, number)
        if turn:
            time.sleep(0.0005 * min(turn, 20))
        reap(on_end)
    return False


def reap(on_end: Callable[[int, int], None] | None = None) -> None:
    """Collect all children that have ended; `on_end` gets (pid, status)."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if on_end is not None:
            on_end(pid, status)


def memory(pids: Collection[int], enough: int, shares: dict[int, int]) -> int:
    """Count the bytes in use by `pids`. Shared pages are told apart only where the plain sum is above `enough`.

    `shares`: what was told apart at earlier calls, for the next one. A process that forks is long in answering, and a
    crowd of them keeps nobody here: what cannot be measured within `MEASURE` counts as it did before.
    """
    plain = sum(_resident_bytes(pid) for pid in pids)
    if plain <= enough:
        shares.clear()
        return plain
    for gone in shares.keys() - set(pids):
        del shares[gone]
    until = time.monotonic() + MEASURE
    for pid in (*(set(pids) - shares.keys()), *shares):  # those never measured, then by age
        shares.pop(pid, None)
        shares[pid] = _proportional_bytes(pid)
        if time.monotonic() > until:
            break
    return sum(shares.values())


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _proportional_bytes(pid: int) -> int:
    """Count a process's memory: pages shared by n processes count a n-th; a process that hides them counts in full."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            for line in file.read().splitlines():
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _resident_bytes(pid)


def threads(pids: Collection[int]) -> int:
    """Count the threads of all `pids` together, the first of each process included."""
    counts = (_stat_fields(pid)[17:18] for pid in pids)
    return sum(int(count[0]) for count in counts if count)


def of_user(user: int) -> int:
    """Count the threads of all processes of `user` that can be seen here."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/status", "rb", buffering=0) as file:
                fields = dict(line.partition(b":\t")[::2] for line in file.read().splitlines())
                if int(fields[b"Uid"].split()[0]) == user:
                    count += int(fields[b"Threads"])
    return count


def socket_memory(pids: Collection[int]) -> int:
    """Count the bytes that the kernel may hold in buffers of sockets and pipes, which no process's memory shows.

    Counts open descriptors, beyond what programs usually have, as if each were a full socket (Linux >= 6.2; 0 before).
    """
    count = -USUAL_DESCRIPTORS
    for pid in pids:
        with contextlib.suppress(OSError):
            count += os.stat(f"/proc/{pid}/fd").st_size
    return max(0, count) * SOCKET_BUFFER


def virtual_size() -> int:
    """Return the bytes of address space of this process."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read().split()[0]) * PAGE


def drain(wake: socket) -> None:
    """Read what waits in a non-blocking wake-up socket."""
    try:
        while len(wake.recv(4096)) == 4096:
            pass
    except BlockingIOError:
        pass
