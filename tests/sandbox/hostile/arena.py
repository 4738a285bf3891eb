# SPDX-License-Identifier: Apache-2.0
"""Hostile code against a real server: what came back, what the host looks like afterwards, who still works."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import textwrap
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sandbox.hostile.canaries import Canaries
from tests.sandbox.serving import Answer, Server

GONE_WITHIN = 30.0
AT_ONCE = 30.0
"""Generous, because the machine is shared: a server that hangs is the thing to find."""
NEIGHBOURS = re.compile(r"/var/lib/containers/|/run/containers/|/run/netns/|.*/pytest-of-[^/]+/")
"""Where other programs mount meanwhile: podman, and tests of full disks. What this suite guards lies elsewhere."""

STATUSES = ("completed", "error", "failed", "timeout", "crashed", "out_of_memory")

PRELUDE = """
import ctypes, errno, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = platform.machine() == 'x86_64'
def call(x86, arm, *arguments):
    number = x86 if X86 else arm
    if number is None:
        raise OSError(errno.ENOSYS, 'not on this machine')
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def attempt(what, action):
    try:
        result = action()
    except Exception as error:
        print('refused', what, type(error).__name__, str(error)[:60])
        return None
    print('ESCAPED', what, repr(result)[:300])
    return result
"""
"""Helpers of the hostile code: `attempt` says ESCAPED where something worked that must not."""


@dataclass(frozen=True)
class Case:
    """One piece of hostile code, and what must come back.

    status  those allowed
    says    texts that must be in the output (proof that the code got as far as it should)
    after   ipython: kept = the session's state is there, lost = it is not, either = whichever is said is true,
            full = as either, or the next cell is ended for what the session keeps at its limit,
            broken = the code spoilt its own interpreter, so nothing is asked of the session
    slow    waits for a deadline: runs beside others
    """

    name: str
    code: str
    language: str = "ipython"
    status: tuple[str, ...] = ("completed",)
    says: tuple[str, ...] = ("CONTAINED",)
    after: str = "kept"
    slow: bool = False
    timeout: float = 10.0
    std_input: str = ""
    limit: int = 100_000
    check: Callable[[Answer], None] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}>"


def case(name: str, code: str, **settings: Any) -> Case:
    """Code with the helpers in front of it."""
    return Case(name, PRELUDE + textwrap.dedent(code), **settings)


def bare(name: str, code: str, **settings: Any) -> Case:
    """Code as it is."""
    return Case(name, textwrap.dedent(code), **settings)


def shell(name: str, code: str, **settings: Any) -> Case:
    return Case(name, textwrap.dedent(code), language="shell", **settings)


@dataclass(frozen=True)
class Outcome:
    """`following` and `kept`: the next cell of the same session and the text that proves its state."""

    answer: Answer
    following: Answer | None
    kept: str


class Arena:
    """A server, what it must not touch, and a bystander whose session must keep its state."""

    def __init__(self, server: Server, canaries: Canaries) -> None:
        self.server = server
        self.canaries = canaries
        self.client = server.client
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="hostile")
        self._running: dict[str, Future[Outcome]] = {}
        self._numbers = itertools.count()
        self._mounts = host_mounts()
        level = self.client.send("GET", "/health").body["isolation_level"]
        # `kill -9 -1` and fork bombs would end this machine's own processes on a weaker level.
        assert level == "a", f"this suite is for level a; the server has {level}"
        self._new_bystander()

    def _new_bystander(self) -> None:
        self.bystander = "bystander-" + secrets.token_hex(4)
        self._counted = 0
        answer = self.client.execute("hx_count = 0", self.bystander)
        assert (answer.code, answer.status) == (200, "completed"), answer.text

    def prefetch(self, cases: Iterable[Case]) -> None:
        """Starts the slow ones, so that their deadlines pass side by side."""
        for one in cases:
            self._running[one.name] = self._pool.submit(self._play, one)

    def judge(self, one: Case) -> Answer:
        """Runs it, or takes what was prefetched, and asks everything that must hold."""
        waiting = self._running.pop(one.name, None)
        outcome = waiting.result(300) if waiting else self._play(one)
        answer = outcome.answer
        self._judge_answer(one, answer)
        if outcome.following is not None:
            self._judge_following(one, outcome.following, outcome.kept)
        self.still_serves()
        self.host_unhurt(marker(one))
        return answer

    def _play(self, one: Case) -> Outcome:
        fields = {
            "language": one.language,
            "timeout": one.timeout,
            "std_input": one.std_input,
            "max_output_characters": one.limit,
        }
        code = self.fill(one.code.replace("@MARK@", marker(one)))
        if one.language != "ipython":
            return Outcome(self.client.execute(code, **fields), None, "")
        session = f"hostile-{next(self._numbers)}"
        kept = "kept" + secrets.token_hex(8)
        prepared = self.client.execute(f"hx_kept = {kept!r}", session)
        assert (prepared.status, prepared.new) == ("completed", True), prepared.text
        answer = self.client.execute(code, session, **fields)
        following = self.client.execute("print('next', hx_kept)", session, timeout=10)
        gone = self.client.delete(session)
        assert gone.code == 200, gone.text
        return Outcome(answer, following, kept)

    def fill(self, code: str) -> str:
        places = {"PORT": str(self.server.port), "SERVERPID": str(self.server.pid), **self.canaries.places()}
        return re.sub(r"@([A-Z0-9]+)@", lambda found: places[found[1]], code)

    def _judge_answer(self, one: Case, answer: Answer) -> None:
        assert answer.code == 200, answer.text[:2000]
        assert answer.status in one.status, answer.text[:3000]
        self.no_secret(answer)
        assert "ESCAPED" not in answer.said, answer.said[:3000]
        for text in one.says:
            assert text in answer.said, answer.text[:3000]
        for stream in (answer.stdout, answer.stderr):
            assert len(stream) <= one.limit + 100
        if answer.status == "timeout":
            assert "Execution timed out after" in answer.said, answer.text[-1000:]
        if one.check is not None:
            one.check(answer)

    def no_secret(self, answer: Answer) -> None:
        assert self.canaries.file_secret not in answer.text
        assert self.canaries.environment_secret not in answer.text

    def _judge_following(self, one: Case, following: Answer, kept: str) -> None:
        assert following.code == 200, following.text[:2000]
        assert following.status in STATUSES
        self.no_secret(following)
        if one.after == "broken" or (one.after == "full" and following.status == "out_of_memory"):
            return
        if following.new:
            assert one.after in ("lost", "either", "full"), f"state was lost: {following.text[:1000]}"
            assert following.status == "error", following.text[:1000]
            assert "NameError" in following.stdout
            assert kept not in following.stdout
        else:
            assert one.after in ("kept", "either", "full"), f"state was kept: {following.text[:1000]}"
            assert (following.status, following.stdout) == ("completed", f"next {kept}\n"), following.text[:2000]

    def still_serves(self) -> None:
        """A new session answers at once, and the bystander has lost nothing."""
        session = "fresh-" + secrets.token_hex(4)
        fresh = self.client.execute("print(6 * 7)", session)
        assert (fresh.status, fresh.stdout, fresh.new) == ("completed", "42\n", True), fresh.text[:2000]
        assert fresh.seconds < AT_ONCE
        assert self.client.delete(session).code == 200
        with self._lock:
            counted = self.client.execute("hx_count += 1\nprint(hx_count)", self.bystander)
            self._counted += 1
            seen = (counted.status, counted.new, counted.stdout)
            if seen != ("completed", False, f"{self._counted}\n"):
                self.client.delete(self.bystander)
                self._new_bystander()  # one lost state fails one test
                raise AssertionError(f"the bystander's state: {counted.text[:2000]}")

    def host_unhurt(self, mark: str) -> None:
        assert self.server.alive(), self.server.said()[-3000:]
        self.canaries.unhurt()
        wait_until(lambda: host_mounts() == self._mounts, "the mounts of the host changed")
        wait_until(lambda: not marked_processes(mark), f"a process called {mark} is left: {mark_text(mark)}")
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/", "/run"):
            if os.path.isdir(folder):
                assert mark not in os.listdir(folder)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def host_mounts() -> list[str]:
    """The lines of mountinfo that no neighbour writes; the fifth field is where something is mounted."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if not NEIGHBOURS.match(line.split()[4])]


def marker(one: Case) -> str:
    """A process name (≤ 15 bytes) that only this case uses."""
    return "hx" + format(sum(ord(letter) * 131**place for place, letter in enumerate(one.name)) % 16**10, "010x")


def wait_until(true: Callable[[], bool], otherwise: str, within: float = GONE_WITHIN) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def marked_processes(mark: str) -> list[int]:
    """Processes of the host whose name or arguments show that a case started them."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                name = Path("/proc", entry, "comm").read_text()
                words = Path("/proc", entry, "cmdline").read_text("utf-8", "replace").split("\0")
            except OSError:
                continue
            if name.strip() == mark or mark in words[:2]:
                found.append(int(entry))
    return found


def mark_text(mark: str) -> str:
    return ", ".join(str(pid) for pid in marked_processes(mark))


def parents() -> dict[int, int]:
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text("utf-8", "replace")
            except OSError:
                continue
            found[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return found


def tree(root: int) -> list[int]:
    """`root` and all its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(children.get(pid, []))
    return found


def memory(pids: Iterable[int]) -> int:
    """Bytes that these processes hold, shared pages divided (PSS); only root may ask of processes of others."""
    total = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time that these processes have used."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
