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
    """List what environments of agents have left on this machine, or remove it. Raises ConfigError,
    EnvironmentFailedError."""
    return run_async(lambda: _run(parsed.options))


async def _run(options: EnvironmentsOptions) -> int:
    engine = find_engine(EnvironmentConfig(engine=options.engine), os.environ)
    shown = await list_leftovers(engine, os.environ)
    if options.action == "prune":
        shown = [item for item in shown if not item.in_use]
    if options.left_over:
        shown = [item for item in shown if item.kind != "image"]
    if options.names:
        shown = [item for item in shown if item.name in options.names]
    rows: list[tuple[str, str, str, str]] = []
    failed = 0
    for item in sorted(shown, key=lambda item: (item.kind, item.name)):
        state = _state(item)
        if options.action == "prune" and options.yes:
            reason = await remove_leftover(engine, item, os.environ)
            state = f"not removed: {reason}" if reason else "removed"
            failed += bool(reason)
        rows.append((item.kind, item.name, item.size, state))
    if rows:
        print_table(rows, HEAD)
    else:
        sys.stdout.write(f"{engine.program}: nothing of newskills' environments is here.\n")
    if options.action == "prune" and rows and not options.yes:
        sys.stdout.write("Nothing was removed. Remove it: ns environments prune --yes\n")
    return int(failed > 0)


def _state(item: Leftover) -> str:
    if item.in_use:
        return "in use"
    if item.kind == "image":
        return "kept for later runs"
    return "left by a killed run"
