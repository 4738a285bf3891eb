# SPDX-License-Identifier: Apache-2.0
"""Runs tests and an answer as two programs of one language, which know of each other by two pipes only.

The verdict is how the tests' program ends. Nothing of it can be seen or changed by the answer's: it is built after it,
has asked its first question before the other begins, its files are gone by then, and the kernel lets nobody look into
a process whose program may be run, but not read (execve(2), PR_SET_DUMPABLE).
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from newskills.graders.code.inside.driver import build, environment, kind_of, limit, run, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

REQUESTS, REPLIES = 3, 4
ANSWER_GONE = 70
"""Exit code of tests whose answer does not reply any more."""
_PARKED = 64
_PT_INTERP = 3
_TAIL = 2000
_LONGEST_PAUSE = 0.02


def run_pair(task: dict[str, Any]) -> dict[str, Any]:
    """Build an answer and its tests, and run them side by side.

    Returns `missing`, `build` (of the answer), `unfit` (the build of the tests), or `tests`: how they ended.

    `answer`: how the answer ended, where it did before its tests; how a call did that was stopped or crashed.
    """
    place = tempfile.mkdtemp()
    answer, tests = os.path.join(place, "answer"), os.path.join(place, "tests")
    failed = build(task["answer"], answer, task)
    unfit = build(task["tests"], tests, task)
    if "build" in unfit:
        return {"unfit": unfit["build"]}
    if failed or unfit:
        return failed or unfit
    return _Pair(task, answer, tests).run()


class _Child:
    """A process with its output streams in files and its `pipes` under the numbers that it knows them by."""

    def __init__(self, argv: list[str], folder: str, task: dict[str, Any], pipes: dict[int, int]) -> None:
        self._task = task
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        self._err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._start = time.monotonic()
        self.report: dict[str, Any] | None = None
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            close_fds=False,  # all of ours but the pipes close on exec
            start_new_session=True,
            preexec_fn=lambda: self._prepare_child(pipes),  # noqa: PLW1509 - there are no threads
        )

    def _prepare_child(self, pipes: dict[int, int]) -> None:
        limit(self._task["cpu"], self._task["output"])
        for place, descriptor in enumerate(pipes.values(), _PARKED):
            os.dup2(descriptor, place)
        for place, number in enumerate(pipes, _PARKED):
            os.dup2(place, number)

    def ended(self, late: bool = False) -> bool:
        """Return whether the process has ended; then `report` tells how. `late`: it is killed."""
        if self.report is None:
            if late:
                self.kill()
            wait_flags = 0 if late else os.WNOHANG
            pid, status, usage = os.wait4(self._process.pid, wait_flags)
            if pid:
                self._note_end(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, late)
        return self.report is not None

    def _note_end(self, code: int, spent: float, late: bool) -> None:
        self._process.returncode = code
        self.report = {
            "kind": kind_of(code, late, spent, self._task["cpu"]),
            "code": code,
            "cpu": round(spent, 3),
            "wall": round(time.monotonic() - self._start, 3),
            "out": text_of(self._out, self._task["output"])[-_TAIL:],
            "err": text_of(self._err, self._task["output"])[-_TAIL:],
        }

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)


class _Pair:
    def __init__(self, task: dict[str, Any], answer: str, tests: str) -> None:
        self._task, self._answer, self._tests = task, answer, tests
        self._deadline = time.monotonic() + task["wall"]
        self._called: dict[str, Any] | None = None

    def run(self) -> dict[str, Any]:
        requests_out, requests_in = os.pipe()
        replies_out, replies_in = os.pipe()
        argv = hidden_command(self._task["tests"]["run"], self._tests)
        numbers = (1, 0) if self._task["stdio"] else (REQUESTS, REPLIES)
        judge = _Child(argv, self._tests, self._task, dict(zip(numbers, (requests_in, replies_out), strict=True)))
        os.close(requests_in)
        os.close(replies_out)
        candidate = None
        if self._awaits_question(judge, requests_out):
            shutil.rmtree(self._tests, ignore_errors=True)
            if self._task["each"]:
                self._serve_calls(requests_out, replies_in)
            else:
                numbers = (0, 1) if self._task["stdio"] else (REQUESTS, REPLIES)
                pipes = dict(zip(numbers, (requests_out, replies_in), strict=True))
                candidate = _Child(self._task["answer"]["run"], self._answer, self._task, pipes)
        os.close(requests_out)
        os.close(replies_in)
        pause = 0.001
        while not judge.ended(late=time.monotonic() > self._deadline):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if candidate is not None:
            # An answer that has ended before is to blame; one that ends because the tests have is not.
            if judge.report is not None and judge.report["code"] == ANSWER_GONE and candidate.ended():
                self._called = candidate.report
            candidate.kill()
        judge.kill()
        return {"tests": judge.report, "answer": self._called}

    def _awaits_question(self, judge: _Child, requests: int) -> bool:
        """Wait until the tests ask their first question; false where they end before, or are late."""
        while not select.select([requests], [], [], 0.01)[0]:
            if judge.ended(late=time.monotonic() > self._deadline):
                return False
        return not judge.ended()

    def _serve_calls(self, requests: int, replies: int) -> None:
        """Run the answer's program anew for each question: its arguments, which NULs end, after their number.

        The reply is what it printed and its exit code.
        """
        task, left = self._task, b""
        while select.select([requests], [], [], max(0.0, self._deadline - time.monotonic()))[0]:
            piece = os.read(requests, 1 << 16)
            if not piece:
                return
            left += piece
            words = left.split(b"\0")
            if len(words) < 2 or len(words) < int(words[0]) + 2:
                continue
            count = int(words[0])
            argv = [*task["answer"]["run"], *(os.fsdecode(word) for word in words[1 : count + 1])]
            left = b"\0".join(words[count + 1 :])
            report = self._run_answer(argv)
            code = report["code"] if report["kind"] == "ended" else 128 + signal.SIGKILL
            with contextlib.suppress(BrokenPipeError):
                reply = memoryview(report["out"].replace("\0", "").encode() + f"\0{code}\0".encode())
                while reply:
                    reply = reply[os.write(replies, reply) :]

    def _run_answer(self, argv: list[str]) -> dict[str, Any]:
        wall = max(0.01, self._deadline - time.monotonic())
        report = run(argv, self._answer, b"", dict(self._task, wall=wall))
        self._task["cpu"] = max(0.01, self._task["cpu"] - report["cpu"])
        if report["kind"] != "ended":
            self._called = report
        return report


def hidden_command(argv: list[str], folder: str) -> list[str]:
    """Return the command by way of a file that may be run, but not read: the program itself, or a copy of its
    loader."""
    program = shutil.which(argv[0], path=f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    real = os.path.realpath(os.path.join(folder, program or argv[0]))
    if real.startswith(os.path.realpath(folder) + os.sep):
        os.chmod(real, 0o111)  # noqa: S103 - that nobody can read it is the point
        return argv
    loader = _program_loader(real)
    if not loader:
        return argv
    copy = os.path.join(folder, "loader")
    shutil.copyfile(loader, copy)
    os.chmod(copy, 0o111)  # noqa: S103 - that nobody can read it is the point
    return [copy, real, *argv[1:]]


def _program_loader(program: str) -> str:
    """Return what the kernel starts in place of a 64-bit program (elf(5), PT_INTERP); empty where there is none."""
    with open(program, "rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return ""
        start, size, count = (struct.unpack_from("=Q", head, 32)[0], *struct.unpack_from("=HH", head, 54))
        file.seek(start)
        table = file.read(size * count)
        for at in range(0, len(table), size):
            kind, offset, length = (
                struct.unpack_from("=I", table, at)[0],
                struct.unpack_from("=Q", table, at + 8)[0],
                struct.unpack_from("=Q", table, at + 32)[0],
            )
            if kind == _PT_INTERP:
                file.seek(offset)
                return os.fsdecode(file.read(length).rstrip(b"\0"))
    return ""
