# SPDX-License-Identifier: Apache-2.0
"""Batches that vLLM answers on this machine, without a server: `vllm run-batch` (its files are those of OpenAI).

https://docs.vllm.ai/en/latest/examples/offline_inference/openai_batch. The program works on when this process is
killed: `keeper` runs it and holds a lock as long as it lives, by which the next process finds it and starts no
second one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from newskills.base.errors import ConfigError, ServerError, StorageError, storage_error
from newskills.base.records import Reply, Request
from newskills.base.store import count_rows
from newskills.models.batch_apis.openai import encoded_row, read_row
from newskills.models.batch_apis.service import BatchLook, RowResult
from newskills.models.config import ServerConfig
from newskills.models.kinds import MODELS
from newskills.models.openai import OpenAIModel
from newskills.models.openai import make as make_model

KEEPER = Path(__file__).with_name("keeper.py")
COMMAND = "vllm run-batch"
LOG_END = 4096


class OfflineBatches:
    """A BatchService. `folder`: of the files; the name of a batch is its handle."""

    def __init__(self, model: OpenAIModel, argv: list[str], folder: Path, paths: Mapping[str, str]) -> None:
        self.model, self._argv, self._folder, self._paths = model, argv, folder, paths
        self.name, self.address = model.name, "this machine"

    def encoded(self, key: str, request: Request) -> tuple[str, bytes]:
        """Return (path, line of the file). Raises ConfigError."""
        return encoded_row(self.model, self._paths, key, request)

    def decoded(self, request: Request, body: bytes) -> Reply:
        """Return the reply that the body of a result holds. Raises ModelError."""
        return self.model.decoded(request, body)

    async def submit(self, name: str, endpoint: str, path: Path, rows: int) -> str:
        """Start the program on the file at `path`. Raises ServerError, StorageError."""
        words = [*self._argv, "--input-file", str(path), "--output-file", str(self._file(name, ".out"))]
        words += ["--model", self.model.name]
        files = (str(self._file(name, ".lock")), str(self._file(name, ".exit")))
        try:
            with self._file(name, ".log").open("ab") as log:
                started = await asyncio.to_thread(
                    subprocess.run,
                    [sys.executable, "-I", "-S", str(KEEPER), *files, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise storage_error(error, self._folder) from error
        if started.returncode:
            raise ServerError(f"{self._argv[0]} was not started: {_end_of(self._file(name, '.log'))}")
        return name

    async def find(self, name: str, rows: int, since: float) -> list[str]:
        """Return the name, where the program was started."""
        if self._runs(name) or self._file(name, ".exit").exists():
            return [name]
        return []

    async def look(self, handle: str) -> BatchLook:
        """Return what has become of a batch. Raises ConfigError where there is no such program."""
        runs = self._runs(handle)
        out, code = self._file(handle, ".out"), self._exit_code(handle)
        done = await asyncio.to_thread(count_rows, out)
        if runs:
            return BatchLook(state="running", done=done)
        if code is None:
            state = "killed"
        else:
            state = "completed" if code == "0" else f"failed with exit code {code}"
        why = "" if done or code == "0" else _end_of(self._file(handle, ".log"))
        if code == "127":
            self._file(handle, ".exit").unlink()  # the next process asks again, once there is one
            raise ConfigError(
                f"{self._argv[0]} cannot be started here: {why}.",
                hint="Install vLLM, or set ++server.batch_command='COMMAND run-batch'.",
            )
        return BatchLook(
            state=state,
            ended=True,
            done=done,
            files=(out.name,) if done else (),
            refusal=f"{state}: {why}" if why and code is not None else "",
        )

    async def download(self, handle: str, file: str) -> AsyncIterator[bytes]:
        """Yield the file of results, in pieces. Raises StorageError."""
        try:
            with (self._folder / file).open("rb") as results:
                while piece := results.read(1 << 20):
                    yield piece
        except OSError as error:
            raise storage_error(error, self._folder / file) from error

    def result(self, line: bytes) -> RowResult:
        """Read one line of results. Raises msgspec.MsgspecError for one that is damaged."""
        return read_row(line, self.model.endpoint)

    async def close(self) -> None:
        await self.model.close()

    def _file(self, name: str, suffix: str) -> Path:
        return self._folder / f"{name}{suffix}"

    def _runs(self, name: str) -> bool:
        try:
            fd = os.open(self._file(name, ".lock"), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error, self._file(name, ".lock")) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            raise StorageError(f"{self._folder} has no file locks ({error.strerror}).") from error
        finally:
            os.close(fd)
        return False

    def _exit_code(self, name: str) -> str | None:
        try:
            return self._file(name, ".exit").read_text().strip()
        except FileNotFoundError:
            return None


def make(config: ServerConfig, *, folder: Path, environ: Mapping[str, str]) -> OfflineBatches:
    """Return the batches that vLLM answers here. Raises ConfigError."""
    try:
        argv = shlex.split(config.batch_command or COMMAND)
    except ValueError as error:
        raise ConfigError(f"++server.batch_command cannot be split into words: {error}.") from error
    batch = MODELS.properties(config.server_type).batch
    assert batch is not None
    return OfflineBatches(make_model(config, concurrency=1, environ=environ), argv, folder, batch.endpoints)


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_END))
            lines = file.read().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return "it left no log"
    return next((line.strip() for line in reversed(lines) if line.strip()), f"see {log}")
