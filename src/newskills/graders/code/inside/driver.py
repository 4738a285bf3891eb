# SPDX-License-Identifier: Apache-2.0
"""Builds a program inside the sandbox and runs it on inputs. What it should print is not known in here.

Each run is a process of its own with its own limits; its streams are files, cut by the kernel. The whole file is sent
as a script.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from newskills.graders.code.inside.hiding import hide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PYTHON = "{python}"
_TAIL = 2000


def main(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read the task, tell `ready`, then what came of it, each on a line that begins with the task's mark."""
    hide()  # this process holds the mark
    task = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _write_line(out, task["mark"], "ready")
    _write_line(out, task["mark"], json.dumps(work(task)))


def run_all(task: dict[str, Any]) -> dict[str, Any]:
    """Build the program, and run it with each input, up to the first failure where the task says so.

    Returns `missing` (a program that is not here), `build` (of a failed step: code, err) or `runs`.
    """
    folder = tempfile.mkdtemp()
    failed = build(task, folder, task)
    if failed:
        return failed
    runs = []
    for text in task["inputs"]:
        runs.append(run(task["run"], folder, text.encode(), task))
        if task["stop"] and (runs[-1]["kind"] != "ended" or runs[-1]["code"] != 0):
            break
    return {"runs": runs}


def build(part: dict[str, Any], folder: str, task: dict[str, Any]) -> dict[str, Any]:
    """Build a program; return `missing` or `build` where it cannot be made, nothing where it is there."""
    for name, text in part["files"].items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)) or folder, exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            file.write(text)
    for step in part["build"]:
        if _is_missing(step[0]):
            return {"missing": step[0]}
        built = run(step, folder, b"", dict(task, cpu=task["build_cpu"], wall=3 * task["build_cpu"]))
        if built["kind"] != "ended" or built["code"] != 0:
            return {"build": built}
    if _is_missing(part["run"][0]):
        return {"missing": part["run"][0]}
    return {}


def _is_missing(program: str) -> bool:
    return program != PYTHON and not program.startswith("./") and shutil.which(program) is None


def run(argv: list[str], folder: str, data: bytes, task: dict[str, Any]) -> dict[str, Any]:
    argv = [sys.executable if part == PYTHON else part for part in argv]
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(data)
        stdin.seek(0)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        child = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment(),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=lambda: limit(task["cpu"], task["output"]),  # noqa: PLW1509 - there are no threads
        )
        code, late = _wait_for_end(child, task["wall"])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "kind": kind_of(code, late, spent, task["cpu"]),
            "code": code,
            "cpu": round(spent, 3),
            "wall": round(time.monotonic() - start, 3),
            "out": text_of(stdout, task["output"]),
            "err": text_of(stderr, task["output"])[-_TAIL:],
        }


def environment() -> dict[str, str]:
    """Return the variables of this process; the order of sets of texts is the same every time."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    places = os.pathsep.join(path for path in sys.path if path)
    return variables | {"PYTHONHASHSEED": "0", "PYTHONPATH": places}


def _wait_for_end(child: subprocess.Popen[bytes], wall: float) -> tuple[int, bool]:
    late = False
    try:
        child.wait(wall)
    except subprocess.TimeoutExpired:
        late = True
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    return child.wait(), late


def limit(cpu: float, output: int) -> None:
    seconds = max(1, int(cpu + 0.999))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(output, 1 << 26), max(output, 1 << 26)))


def kind_of(code: int, late: bool, spent: float, cpu: float) -> str:
    if late or spent > cpu or (code in (-signal.SIGXCPU, -signal.SIGKILL) and spent > cpu / 2):
        return "timeout"
    if code < 0:
        return "crashed"
    return "ended"


def text_of(file: Any, limit: int) -> str:
    file.seek(0)
    data: bytes = file.read(limit + 1)
    return data.decode("utf-8", "replace")


def _write_line(out: int, mark: str, text: str) -> None:
    data = memoryview(f"\n{mark}{text}\n".encode())
    while data:
        data = data[os.write(out, data) :]
