# SPDX-License-Identifier: Apache-2.0
"""A model server for the length of a run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec import Struct

from newskills.config.layers import Layer
from newskills.models.config import key_of
from newskills.models.serving import ServeSpec
from newskills.run.execute import check
from newskills.run.plan import PlannedUnit
from newskills.run.prepare import asks_nothing
from newskills.run.servers import RunningServer, running_server


class Hosting(Struct, frozen=True, kw_only=True):
    """A server to start for the run, and how long it may take."""

    spec: ServeSpec
    log: Path
    timeout: float


def hosted(
    hosting: Hosting | None, planned: Sequence[PlannedUnit], *, rerun_done: bool
) -> AbstractContextManager[RunningServer | None]:
    """The server of `hosting`, running inside the `with`; None where it is not needed.

    It is not needed where the endpoint is somebody else's, or no unit has anything to ask. Nobody else on this
    machine can use it, where the engine can ask for a key.
    """
    if hosting is None or (not rerun_done and all(asks_nothing(piece.unit) for piece in planned)):
        return nullcontext()
    given, _ = key_of(planned[0].unit.config.server, os.environ)
    key = given or secrets.token_hex(16)
    return running_server(hosting.spec, log_path=hosting.log, timeout=hosting.timeout, key=key)


def address_of(server: RunningServer | None) -> Layer | None:
    """The layer that points the client at `server`."""
    if server is None:
        return None
    key = {"server.api_key": server.key} if server.key else {}
    return Layer(
        "server started here", {"server.base_url": server.base_url, "server.model": server.model_name, **key}
    )


def check_units(planned: Sequence[PlannedUnit], hosting: Hosting | None) -> None:
    """Refuses what can be refused before a server is started: keys, settings, first prompts.

    The text endpoint may need the server's own tokenizer; then the run itself checks the prompt, once the server is
    there. Raises NewskillsError.
    """
    for unit in planned:
        text = unit.unit.config.inference.endpoint_type == "text"
        check(unit.unit, rendered=hosting is None or not text)
