# SPDX-License-Identifier: Apache-2.0
"""What `ns environments [prune]` does: what environments of agents take on this machine, and its removal."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

from msgspec import Struct

from newskills.base.aio import run as run_async
from newskills.base.tables import print_table
from newskills.config.command_line import Parsed
from newskills.environments.config import EnvironmentConfig
from newskills.environments.engines import find_engine
from newskills.environments.prune import Leftover, list_leftovers, remove_leftover
from newskills.pipelines.options import doc

HEAD = ("kind", "name", "size", "state")
NOT_REMOVED = "not removed: "


class ListedLeftover(Struct, frozen=True, kw_only=True):
    """What environments have made: `kind` (container, network, volume, image), `name`, `size` as the engine says it,
    and `state`: in use, kept, left, removed, or why not."""

    kind: str
    name: str
    size: str
    state: str


class EnvironmentsOptions(Struct, frozen=True, kw_only=True):
    action: Annotated[
        Literal["list", "prune"],
        doc(
            "list: what there is (default); prune: remove what no run works with, with --yes", {"positional": True}
        ),
    ] = "list"
    names: Annotated[list[str], doc("only these", {"positional": True})] = []
    engine: Annotated[str, doc("podman, docker, …; auto: the first that is installed")] = "auto"
    left_over: Annotated[bool, doc("prune: only what killed runs have left, no images")] = False
    yes: Annotated[bool, doc("prune: remove it; without this option it is only listed")] = False


def run(parsed: Parsed[EnvironmentsOptions]) -> int:
    """List what environments of agents have left on this machine, or remove it. Raises as
    `list_or_remove_leftovers`."""
    options = parsed.options
    items = list_or_remove_leftovers(parsed)
    if items:
        print_table([(item.kind, item.name, item.size, item.state) for item in items], HEAD)
    else:
        sys.stdout.write("Nothing of newskills' environments is here.\n")
    if options.action == "prune" and items and not options.yes:
        sys.stdout.write("Nothing was removed. Remove it: ns environments prune --yes\n")
    return int(any(item.state.startswith(NOT_REMOVED) for item in items))


def list_or_remove_leftovers(parsed: Parsed[EnvironmentsOptions]) -> list[ListedLeftover]:
    """Return what is left, with what became of it where it was to be removed. Raises ConfigError,
    EnvironmentFailedError."""
    return run_async(lambda: _list_or_remove(parsed.options))


async def _list_or_remove(options: EnvironmentsOptions) -> list[ListedLeftover]:
    engine = find_engine(EnvironmentConfig(engine=options.engine), os.environ)
    leftovers = await list_leftovers(engine, os.environ)
    if options.action == "prune":
        leftovers = [item for item in leftovers if not item.in_use]
    if options.left_over:
        leftovers = [item for item in leftovers if item.kind != "image"]
    if options.names:
        leftovers = [item for item in leftovers if item.name in options.names]
    listed: list[ListedLeftover] = []
    for item in sorted(leftovers, key=lambda item: (item.kind, item.name)):
        state = _leftover_state(item)
        if options.action == "prune" and options.yes:
            reason = await remove_leftover(engine, item, os.environ)
            state = f"{NOT_REMOVED}{reason}" if reason else "removed"
        listed.append(ListedLeftover(kind=item.kind, name=item.name, size=item.size, state=state))
    return listed


def _leftover_state(item: Leftover) -> str:
    if item.in_use:
        return "in use"
    if item.kind == "image":
        return "kept for later runs"
    return "left by a killed run"
