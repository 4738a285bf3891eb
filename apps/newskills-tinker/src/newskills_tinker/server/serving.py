# SPDX-License-Identifier: Apache-2.0
"""A service from its start to its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.http.hosts import own_names_only
from newskills.base.http.server import ServerLimits, serve
from newskills.base.store import hold_lock
from newskills_tinker.server import wire
from newskills_tinker.server.checkpoints import CheckpointInfo, Checkpoints, StoredRun
from newskills_tinker.server.engine import BaseModel, ModelEngine
from newskills_tinker.server.queue import Queue
from newskills_tinker.server.service import TinkerService
from newskills_tinker.server.trainer import SavedState

READ = (
    wire.LoadRequest,
    wire.ModelRequest,
    wire.SampleRequest,
    wire.StepRequest,
    CheckpointInfo,
    StoredRun,
    SavedState,
)
"""Structs that two threads read: msgspec must have completed them in one."""
LOCK = ".lock"
BODY = 64 << 20
GRACE = 2.0


class TinkerServerSettings(Struct, frozen=True, kw_only=True):
    """Where a service listens, who may use it (`token`; empty: everybody), and where it keeps what is saved."""

    host: str
    port: int
    root: Path
    token: str = ""


async def serve_until_stopped(
    models: Mapping[str, Path], engine: ModelEngine, place: TinkerServerSettings, *, say: Callable[[str], None]
) -> str:
    """Serve `models`, folders by name, until SIGINT or SIGTERM, and end after what is being worked on; return where it
    was.

    Raises DataError and ConfigError for a model that cannot be served, LockedError where another service has the same
    root, StorageError, ServerStartError.
    """
    stopped = asyncio.Event()
    for struct in READ:
        msgspec.json.Decoder(struct)
    bases = all_names({name: BaseModel(name, folder) for name, folder in models.items()})
    with hold_lock(place.root / LOCK, f"The folder {place.root}"):
        queue = Queue()
        service = TinkerService(bases, engine, queue, Checkpoints(place.root), token=place.token)
        server = await serve(
            own_names_only(service.answer, place.host), place.host, place.port, limits=ServerLimits(body=BODY)
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        say(f"Tinker service at {server.url}, states in {place.root}; Ctrl-C stops it.")
        await stopped.wait()
        await server.close(GRACE)
        await queue.close()
    return server.url


def all_names(bases: Mapping[str, BaseModel]) -> dict[str, BaseModel]:
    """Return the models by all their names: a model can also be named by its folder, absolute or not, or by the
    folder's last part."""
    bases_by_name = dict(bases)
    for base in bases.values():
        whole = base.folder.absolute()
        for name in (str(base.folder), base.folder.name, os.path.normpath(whole), str(whole.resolve())):
            bases_by_name.setdefault(name, base)
    return bases_by_name
