# SPDX-License-Identifier: Apache-2.0
"""What run.json beside or above a folder of results tells: engine, tokenizer, and the command that goes on with it."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.run.planning.spec import RUN_FILE

_MAX_PARENTS = 6


class _Server(Struct):
    server_type: str | None = None


class _Config(Struct):
    server: _Server = msgspec.field(default_factory=_Server)
    tokenizer: str | None = None


class _Unit(Struct):
    name: str = ""
    config: _Config = msgspec.field(default_factory=_Config)


class RunFile(Struct):
    """The part of a RunSpec that is read, so that those of other versions can be, too."""

    units: list[_Unit] = []
    resume_with: str = ""

    def engine(self, benchmark: str) -> str:
        """Return the type of server that served the model; empty where it is not recorded."""
        return next((unit.config.server.server_type or "" for unit in self.units if unit.name == benchmark), "")

    def tokenizer(self, benchmark: str) -> str:
        """Return the tokenizer whose chat template was applied here rather than by the server; empty for none."""
        return next((unit.config.tokenizer or "" for unit in self.units if unit.name == benchmark), "")


def run_file(folder: Path) -> RunFile:
    """Read the nearest run file from `folder` upwards; return an empty one where there is none that can be read."""
    place = folder.resolve()
    for above in chain([place], islice(place.parents, _MAX_PARENTS)):
        if (above / RUN_FILE).exists():
            try:
                return msgspec.json.decode((above / RUN_FILE).read_bytes(), type=RunFile)
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
                break
    return RunFile()
