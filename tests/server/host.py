# SPDX-License-Identifier: Apache-2.0
"""Where a fake server lives: a thread of the test, or a process of its own. Both show the same face."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.server.app import AnswerFunction, Application, Play
from tests.server.script import Log, Record, Script

_DEADLINE = 30.0


class FakeServer:
    """A server in a thread. `answer(body) -> text`, when given, replaces the script's answer."""

    def __init__(self, script: Script | None = None, *, answer: AnswerFunction | None = None) -> None:
        self._application = Application(script or Script(), answer)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-server", daemon=True)
        self._thread.start()
        self._call(self._application.listen())

    @property
    def port(self) -> int:
        return self._application.address[1]

    @property
    def url(self) -> str:
        """Without `/v1`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def script(self) -> Script:
        return self._application.play.script

    @script.setter
    def script(self, script: Script) -> None:
        """Replaces the behaviour; what conditions count (every, first, …) starts anew."""
        self._application.play = Play(script)

    @property
    def log(self) -> Log:
        return self._application.log

    @property
    def records(self) -> list[Record]:
        """Model requests in order of arrival."""
        return [record for record in self.log.records if record.index]

    @property
    def max_in_flight(self) -> int:
        return self.log.max_in_flight

    def down(self, seconds: float) -> None:
        """Resets all connections and refuses new ones for that long. Returns at once."""
        self._call(self._down(seconds))

    def stop(self) -> None:
        """Idempotent; afterwards the port refuses connections."""
        if self._loop.is_closed():
            return
        self._call(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_DEADLINE)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_DEADLINE)

    async def _down(self, seconds: float) -> None:
        await self._application.down(seconds)

    async def _finish(self) -> None:
        await self._application.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class FakeServerProcess:
    """A server in a process of its own, so that it shares no interpreter lock with what is tested."""

    def __init__(self, script: Script | None = None, *, port: int = 0, host: str = "127.0.0.1") -> None:
        text = msgspec.json.encode(script or Script()).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.server", "--script", text, "--port", str(port), "--host", host],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self.stop()
            raise RuntimeError("the fake server did not come up")
        self.base_url = f"{self.url}/v1"
        self.port = int(self.url.rpartition(":")[2])

    @property
    def script(self) -> Script:
        return msgspec.json.decode(self._control("script"), type=Script)

    @script.setter
    def script(self, script: Script) -> None:
        self._control("script", script)

    @property
    def log(self) -> Log:
        return msgspec.json.decode(self._control("log"), type=Log)

    @property
    def records(self) -> list[Record]:
        return [record for record in self.log.records if record.index]

    @property
    def max_in_flight(self) -> int:
        return self.log.max_in_flight

    def down(self, seconds: float) -> None:
        self._control("down", {"seconds": seconds})

    def stop(self) -> None:
        """Idempotent."""
        self._process.kill()
        self._process.wait(_DEADLINE)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _control(self, what: str, body: object = None) -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/_control/{what}", data, timeout=_DEADLINE) as reply:
            return reply.read()
