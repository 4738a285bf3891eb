# SPDX-License-Identifier: Apache-2.0
"""Tools of a user's own: functions, a class with settings, classes that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from newskills.base.errors import FatalToolError, SandboxError
from newskills.base.protocols import ToolSpec
from newskills.base.records import Row
from newskills.tools.provider import ToolContext, ToolProvider


class Place(Struct):
    lat: float
    lon: float


def roll(sides: Annotated[int, Meta(description="how many sides")] = 6, times: int = 1) -> list[int]:
    """Rolls a die. It always shows its highest number."""
    return [sides] * times


async def distance(a: Place, b: Place, unit: str | None = None) -> str:
    """How far it is."""
    await asyncio.sleep(0)
    return f"{abs(a.lat - b.lat) + abs(a.lon - b.lon)} {unit}"


def broken(x: int) -> int:
    """Divides by nothing."""
    return x // 0


def endless(*words: str) -> str:
    return " ".join(words)


class CounterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    start: int = 0
    step: int = 1
    key_variable: str = ""


class Counter(ToolProvider):
    """Counts per sample."""

    Config = CounterConfig

    def __init__(self, config: CounterConfig, context: ToolContext) -> None:
        self.config, self.key = config, context.environ.get(config.key_variable, "")
        self.counts: dict[str, int] = {}
        self.closed = False

    async def specs(self) -> Sequence[ToolSpec]:
        schema: Row = {
            "type": "object",
            "title": "countArguments",
            "properties": {"by": {"type": "integer", "title": "By"}, "note": {"type": "string"}},
            "required": ["by"],
        }
        return [ToolSpec(name="count", description="Counts on.", input_schema=schema)]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        if arguments["by"] == 13:
            raise FatalToolError("Thirteen is out of order.")
        if arguments["by"] == 14:
            raise SandboxError("The sandbox is gone.")
        value = self.counts.get(request_id, self.config.start) + arguments["by"] * self.config.step
        self.counts[request_id] = value
        return f"{value} {arguments.get('note', '')}{self.key}".strip()

    async def release(self, request_id: str) -> Row:
        return {"counted": self.counts.pop(request_id)} if request_id in self.counts else {}

    async def close(self) -> None:
        self.closed = True


class Second(Counter):
    """Has a tool of the same name."""


class Odd:
    """Has no settings, and a name that no API takes."""

    async def specs(self) -> Sequence[ToolSpec]:
        return [ToolSpec(name="søk.på/nett v2" + "x" * 80, description="", input_schema={})]

    async def execute(self, name: str, arguments: Row, request_id: str) -> str:
        return "y" * 3_000_000 if arguments.get("huge") else name

    async def release(self, request_id: str) -> Row:
        return {}

    async def close(self) -> None: ...


class NoTool:
    def __init__(self) -> None:
        self.nothing: Any = None


class Explosive:
    def __init__(self) -> None:
        raise RuntimeError("boom")
