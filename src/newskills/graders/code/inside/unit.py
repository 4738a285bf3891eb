# SPDX-License-Identifier: Apache-2.0
"""The process that judges code and tests which share another one (patches of the answer's modules, its classes).

It holds the mark of every line reported. The other process has neither that nor a way to where it is written; what it
says is taken once, under the token that only its own machinery knows.
"""

from __future__ import annotations

import ast
import json
import os
import select
import signal
import sys

from newskills.graders.code.inside.hiding import hide
from newskills.graders.code.inside.testcases import missing_modules
from newskills.graders.code.inside.trial import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 1 << 20
_write, _exit, _getpid, _ascii, _fork = os.write, os._exit, os.getpid, ascii, os.fork


def main() -> None:
    """Read the task, tell `ready`, then the verdict: `kind`, `text`, `ran`, `passed`, `notes`. Never returns."""
    out = os.dup(1)
    tasks_out, tasks_in = os.pipe()
    reports_out, reports_in = os.pipe()
    pid = _fork()
    if pid == 0:
        _hold_answer(tasks_out, reports_in, (out, tasks_in, reports_out))
    os.close(tasks_out)
    os.close(reports_in)
    hide()
    task = json.loads(sys.stdin.buffer.read())
    mark = task.pop("mark")
    _write_line(out, mark, "ready")
    if missing := _missing_requirements(task):
        _write_line(out, mark, json.dumps({"kind": "missing", "text": ", ".join(missing)}))
        os.kill(pid, signal.SIGKILL)
        _exit(0)
    token = os.urandom(16).hex()
    with open(tasks_in, "wb") as file:
        file.write(json.dumps({**task, "token": token}).encode())
    report = _await_report(pid, reports_out, token)
    if report is None:
        report = _exit_verdict(pid, task["cpu"])
    _write_line(out, mark, json.dumps(report))
    os.kill(pid, signal.SIGKILL)
    _exit(0)


def _hold_answer(tasks: int, reports: int, others: tuple[int, ...]) -> None:
    """Hold the answer in this process: run its task, and report the verdict. Never returns."""
    for descriptor in others:
        os.close(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    pid = _getpid()
    with open(tasks, "rb") as file:
        task = json.loads(file.read())
    token = task.pop("token")
    verdict = run(task)
    if _getpid() == pid:  # a copy of this process has no say
        data = f"{token}{_ascii(verdict)}\n".encode()
        while data:
            data = data[_write(reports, data) :]
    _exit(0)


def _await_report(pid: int, reports: int, token: str) -> dict[str, Any] | None:
    """Return the first report under the token; None where the process has ended without one."""
    watch, data = os.pidfd_open(pid), b""
    while True:
        ready, _, _ = select.select([reports, watch], [], [])
        if reports in ready:
            piece = os.read(reports, 1 << 16)
            data = (data + piece)[-_MOST:]
            for line in data.splitlines(keepends=True):
                if line.startswith(token.encode()) and line.endswith(b"\n"):
                    report: dict[str, Any] = ast.literal_eval(line.decode()[len(token) :])
                    return report
            if piece:
                continue
        return None


def _exit_verdict(pid: int, cpu: int) -> dict[str, Any]:
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    spent = usage.ru_utime + usage.ru_stime
    if code in (-signal.SIGKILL, -signal.SIGXCPU) and spent > cpu / 2:
        return {"kind": "timeout", "text": ""}
    text = f"signal {-code}" if code < 0 else f"exit code {code}"
    return {"kind": "ended", "text": text}


def _missing_requirements(task: dict[str, Any]) -> list[str]:
    """Return the modules and data that nobody can pass without."""
    place = os.environ.get("DATA_DIR", "/data")
    return missing_modules(task["needs"]) + [
        f"{name} in the data folder" for name in task["data"] if not os.path.isfile(os.path.join(place, name))
    ]


def _write_line(out: int, mark: str, text: str) -> None:
    data = memoryview(f"\n{mark}{text}\n".encode())
    while data:
        data = data[_write(out, data) :]
