# SPDX-License-Identifier: Apache-2.0
"""A Tinker service in this process, and one in a process of its own."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from newskills.base.http.server import serve
from newskills.train.backends.tinker.client import Service, TinkerClient
from newskills_tinker.server.checkpoints import Checkpoints
from newskills_tinker.server.engine import BaseModel, ModelEngine
from newskills_tinker.server.queue import Queue
from newskills_tinker.server.service import TinkerService as Serving
from newskills_tinker.server.serving import all_names

KEY = "tml-test"


@contextmanager
def quiet() -> Iterator[None]:
    """The client leaves connections open; what is left of them is collected here, not in the midst of other tests."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                gc.collect()
                time.sleep(0.05)


@contextmanager
def connected(address: str, model: str = "tiny", rank: int = 4, seed: int = 5) -> Iterator[TinkerClient]:
    """A client, closed in the end."""
    with TinkerClient(Service(base_model=model, rank=rank, seed=seed, base_url=address)) as client:
        yield client


@contextmanager
def service(models: Iterable[Path], root: Path, *, token: str = "") -> Iterator[str]:
    """The address of a service of the folders `models`."""
    ready, address, ends = threading.Event(), [], []

    async def main() -> None:
        stop = asyncio.Event()
        ends.append((asyncio.get_running_loop(), stop))
        queue = Queue()
        bases = all_names({str(folder): BaseModel(str(folder), folder) for folder in models})
        engine = ModelEngine(dtype="float32", threads=1)
        server = await serve(Serving(bases, engine, queue, Checkpoints(root), token=token).answer)
        address.append(server.url)
        ready.set()
        await stop.wait()
        await server.close(0.1)
        await queue.close()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(120)
        yield address[0]
    finally:
        loop, stop = ends[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def process(model: Path, root: Path, *words: str, **environ: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, address) of `ns serve_tinker`."""
    argv = [sys.executable, "-m", "newskills", "serve_tinker", f"--model={model}", f"--output_dir={root}"]
    running = subprocess.Popen(
        [*argv, "--port=0", "--dtype=float32", "--threads=1", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environ,
    )
    try:
        said = ""
        while not (found := re.search(r"Tinker service at (\S+),", said)):
            line = running.stdout.readline()
            assert line, said
            said += line
        yield running, found[1]
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
