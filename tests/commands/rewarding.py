# SPDX-License-Identifier: Apache-2.0
"""`ns serve_rewards` as a process, and what trainers post to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MATH = ("++reward.wrong=-0.5", "++reward.no_answer=-0.5", "++reward.format.box=0.1")
"""The rewards of the three-stage recipe for mathematics."""


class Rewards:
    """The server in a process of its own; its output is in `said`. `told`: what it says before its address."""

    command, told = "serve_rewards", "Reward server at "

    def __init__(self, folder: Path, *options: str, env: Mapping[str, str] | None = None) -> None:
        self.log = folder / "rewards.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "newskills", self.command, "--port=0", *options],
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.url = self._address()

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def call(
        self, path: str, body: object = None, *, method: str | None = None, **headers: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """(status, JSON, headers); `body` is sent as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:
                return reply.status, json.loads(reply.read()), reply.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read()), error.headers  # type: ignore[return-value]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(300)

    def below(self) -> set[int]:
        """Living processes that it has started."""
        found = [self.process.pid]
        for parent in found:
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                found += map(int, task.read_text().split())
        return set(found[1:])

    def _address(self) -> str:
        deadline = time.monotonic() + 600
        while True:
            if self.told in self.said:
                return self.said.partition(self.told)[2].partition(",")[0]
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.02)


@contextmanager
def rewards(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Rewards]:
    served = Rewards(folder, *options, env=env)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
        served.process.wait(300)
