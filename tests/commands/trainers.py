# SPDX-License-Identifier: Apache-2.0
"""A folder with prepared data, `ns serve_evals` as a process, and clients that behave as trainers do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.commands.running import write
from tests.server import Answer, Fault, Latency, Script

QUESTIONS = [{"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)} for n in range(10)]
RIGHT = {row["problem"]: row["expected_answer"] for row in QUESTIONS}
PREPARED = ("aime24", "aime25", "gsm8k")
SPLITS = {"hle": "text"}
"""Where it is not test."""


def adding(*faults: Fault, latency: float = 0.0) -> Script:
    """A model with right answers."""
    return Script(answer=Answer(kind="table", table=RIGHT), faults=faults, latency=Latency(fixed=latency))


def prepare(folder: Path, names: Sequence[str] = PREPARED, extra: str = "") -> Path:
    """`data/<name>/<split>.jsonl` with ten sums each, told apart by `extra` in front of the question."""
    for name in names:
        rows = [{**row, "problem": f"{extra}{row['problem']}"} for row in QUESTIONS]
        write(folder / "data" / name / f"{SPLITS.get(name, 'test')}.jsonl", rows)
    return folder


def order(router: str, *benchmarks: str | Mapping[str, Any], rollout: int = 3) -> dict[str, Any]:
    """What a trainer posts."""
    listed = [{"name": one} if isinstance(one, str) else dict(one) for one in benchmarks]
    return {"rollout_id": rollout, "router_url": router, "benchmarks": listed}


class Served:
    """`ns serve_evals` in a process of its own; its output is in `said`."""

    def __init__(self, folder: Path, *options: str, env: Mapping[str, str] | None = None) -> None:
        self.folder, self.log = folder, folder / "server.log"
        words = ["--host=127.0.0.1", "--port=0", "--output-root=root", "--data-dir=data", *options]
        with self.log.open("ab") as log:
            start = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "newskills", "serve_evals", *words],
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.url = self._address(start)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def jobs(self) -> list[Path]:
        """Folders of jobs, in the order of their beginning."""
        return sorted(
            (path.parent for path in self.folder.glob("root/*/job.json")), key=lambda p: p.stat().st_ctime
        )

    def call(
        self, path: str, body: object = None, *, method: str | None = None, timeout: float = 60, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """(status, JSON); `body` is sent as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, names, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def evaluate(self, *benchmarks: Any, router: str, rollout: int = 3, **more: Any) -> tuple[int, dict[str, Any]]:
        return self.call("/evaluate", order(router, *benchmarks, rollout=rollout), **more)

    def until(self, job_id: str, *states: str) -> dict[str, Any]:
        """The status of a job once it is one of `states`."""
        deadline = time.monotonic() + 300
        while True:
            found = self.call(f"/jobs/{job_id}")[1]
            if found["status"] in states:
                return found
            assert time.monotonic() < deadline, (found, self.said)
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(300)

    def _address(self, start: int) -> str:
        deadline = time.monotonic() + 300
        while True:
            fresh = self.log.read_bytes()[start:].decode(errors="replace")
            if "Evaluation server at " in fresh:
                return fresh.partition("Evaluation server at ")[2].partition(",")[0]
            assert self.process.poll() is None, fresh
            assert time.monotonic() < deadline, fresh
            time.sleep(0.02)


@contextmanager
def serving(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    served = Served(folder, *options, env=env)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
        served.process.wait(300)
