# SPDX-License-Identifier: Apache-2.0
"""Model servers for the length of a run."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from newskills.models.config import key_of
from newskills.models.serving import ServeSpec
from newskills.models.serving.gpus import gpu_shares
from newskills.run.engine.execute import check_unit
from newskills.run.engine.preflight import asks_nothing
from newskills.run.hosting.servers import RunningServer, running_server
from newskills.run.planning.config import REPLICA, EndpointConfig, GenerationConfig
from newskills.run.planning.plan import PlannedUnit
from newskills.solve.chat import MAIN


class HostedServers(Struct, frozen=True, kw_only=True):
    """Servers to start for the run, and how long each may take.

    spec  for the main model; None: that one is somebody else's
    more  the same for further models, by role
    """

    spec: ServeSpec | None
    log: Path
    timeout: float
    more: dict[str, ServeSpec] = {}

    def specs(self) -> dict[str, ServeSpec]:
        main_spec = {MAIN: self.spec} if self.spec is not None else {}
        return {**main_spec, **self.more}

    def log_of(self, role: str) -> Path:
        if role == MAIN:
            return self.log
        return self.log.with_name(f"{self.log.stem}-{role}{self.log.suffix}")


@contextlib.contextmanager
def host_servers(
    hosting: HostedServers | None, planned: Sequence[PlannedUnit], *, rerun_done: bool
) -> Iterator[dict[str, RunningServer]]:
    """Run the servers of `hosting`, by role, inside the `with`; none where they are not needed.

    They are not needed where the endpoints are somebody else's, or no unit has anything to ask. Nobody else on this
    machine can use them, where the engine can ask for a key. Raises ConfigError where they want more GPUs than there
    are.
    """
    if hosting is None or (not rerun_done and all(asks_nothing(piece.unit) for piece in planned)):
        yield {}
        return
    config = planned[0].unit.config
    specs = hosting.specs()
    shares = gpu_shares({role: spec.num_gpus for role, spec in specs.items()})
    with contextlib.ExitStack() as stack:
        running: dict[str, RunningServer] = {}
        for role, spec in specs.items():
            main = role == MAIN or role.startswith(REPLICA)
            role_config = config.server if main else config.models[role]
            configured_key, _ = key_of(role_config, os.environ)
            key = (
                configured_key or (running[MAIN].key if role.startswith(REPLICA) else "") or secrets.token_hex(16)
            )
            server = running_server(spec, hosting.log_of(role), hosting.timeout, key=key, env=shares[role])
            running[role] = stack.enter_context(server)
        yield running


def at_servers(planned: Sequence[PlannedUnit], servers: Mapping[str, RunningServer]) -> list[PlannedUnit]:
    """Return `planned` with clients that ask `servers` (by role)."""
    if not servers:
        return list(planned)
    return [
        replace(piece, unit=replace(piece.unit, config=_at_servers(piece.unit.config, servers)))
        for piece in planned
    ]


def _at_servers(config: GenerationConfig, servers: Mapping[str, RunningServer]) -> GenerationConfig:
    models = dict(config.models)
    for role, server in servers.items():
        if role == MAIN:
            config = replace(config, server=_client_config(config.server, server))
        elif role.startswith(REPLICA):
            config = replace(config, server=config.server.beside(server.base_url))
        else:
            models[role] = _client_config(models[role], server)
    return replace(config, models=models)


def _client_config(client: EndpointConfig, server: RunningServer) -> EndpointConfig:
    key = {"api_key": server.key} if server.key else {}
    return replace(client, base_url=server.base_url, model=server.model_name, **key)


def check_units(planned: Sequence[PlannedUnit], hosting: HostedServers | None) -> None:
    """Check what can be checked before a server is started: keys, settings, first prompts.

    The text endpoint may need the server's own tokenizer; then the run itself checks the prompt, once the server is
    there. Raises NewskillsError.
    """
    for unit in planned:
        text = unit.unit.config.inference.endpoint_type == "text"
        check_unit(unit.unit, rendered=hosting is None or not text)
