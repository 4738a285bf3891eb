# SPDX-License-Identifier: Apache-2.0
"""What scripts and plug-ins may import: the lines of `public.jsonl`. All else may move or change in any version."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct


class PublicModule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the file. `names`: what may be imported; empty: it is run (`python -m`) or read by other programs."""

    module: str
    purpose: str
    names: tuple[str, ...] = ()


HEAD = ("| module | for | names |", "|---|---|---|")
"""First lines of the table in docs/python.md."""

FILE = Path(__file__).with_name("public.jsonl")
PUBLIC = {line.module: line for line in msgspec.json.Decoder(PublicModule).decode_lines(FILE.read_bytes())}


def public_table() -> str:
    """Return the rows of the table in docs/python.md, with a line break at their end."""
    rows = [
        f"| `{module}` | {public.purpose} | {', '.join(map(_format_name, public.names)) or 'run it'} |"
        for module, public in PUBLIC.items()
    ]
    return "\n".join([*HEAD, *rows]) + "\n"


def _format_name(name: str) -> str:
    if name == "*":
        return "all of `newskills.__all__`"
    return f"`{name}`"
