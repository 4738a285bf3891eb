# SPDX-License-Identifier: Apache-2.0
"""The one endpoint of a command, which runs already or is started for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import Struct

from newskills.base.records import Row
from newskills.models.config import ServerConfig
from newskills.pipelines.options import SERVER, ModelOptions, doc

if TYPE_CHECKING:
    from newskills.models.serving import ServeSpec

C = TypeVar("C", bound=ServerConfig)


class EndpointOptions(Struct, frozen=True, kw_only=True):
    """Which model is asked, and where."""

    model: Annotated[str | None, doc("name or path of the model", SERVER)] = None
    server_type: Annotated[
        str | None,
        doc("openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …", SERVER),
    ] = None
    server_address: Annotated[
        str | None,
        doc(
            "address of a running server, with or without /v1 (default: one is started, where that is possible)",
            SERVER,
        ),
    ] = None
    server_gpus: Annotated[int | None, doc("start a server for the model, on this many GPUs", SERVER)] = None
    server_args: Annotated[str, doc("more arguments for the engine, passed on unchanged", SERVER)] = ""
    server_timeout: Annotated[float, doc("seconds to wait for a started server", SERVER)] = 1800.0

    def model_options(self) -> ModelOptions:
        """Return the same as the options of commands that take several models."""
        names = ("model", "server_type", "server_address", "server_gpus")
        chosen: Row = {name: [value] for name in names if (value := getattr(self, name)) is not None}
        if self.server_args:
            chosen["server_args"] = [self.server_args]
        return ModelOptions(**chosen, server_timeout=self.server_timeout)


@contextlib.contextmanager
def running_endpoint(host: ServeSpec | None, server: C, folder: Path, timeout: float) -> Iterator[C]:
    """Yield the endpoint; `host` is started for it, if there is one, with its log in `folder`. Raises
    ServerStartError."""
    if host is None:
        yield server
        return
    import os
    import secrets

    import msgspec

    from newskills.models.config import key_of
    from newskills.run.hosting.servers import running_server

    key = key_of(server, os.environ)[0] or secrets.token_hex(16)
    with running_server(host, folder / "server.log", timeout, key=key) as started:
        changes = {"base_url": started.base_url, "model": started.model_name}
        if started.key:
            changes["api_key"] = started.key
        yield msgspec.structs.replace(server, **changes)
