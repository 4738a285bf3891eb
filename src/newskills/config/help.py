# SPDX-License-Identifier: Apache-2.0
"""The text of `ns COMMAND --help`: its options, then every `++` key with type, default and meaning."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from msgspec import Struct

from newskills.config.fields import Leaf, leaves
from newskills.config.layers import render

OWN, LAST = "options", "placement"
"""Title of a command's own options, which come first; begin of the title of those that come last."""


def command_help(
    command: str,
    summary: str,
    options: type[Struct],
    *,
    config: type[Struct] | None = None,
    examples: Sequence[str] = (),
    width: int = 100,
) -> str:
    """Plain text, the same on every machine (docs are made of it). What is required comes first."""
    leaves_shown = sorted(leaves(options).values(), key=lambda leaf: not leaf.required)
    words = " ".join(
        f"{leaf.path.upper()}{'…' if leaf.is_list else ''}"
        for leaf in leaves_shown
        if leaf.extra.get("positional")
    )
    parts = [f"usage: ns {command} {words} [options]{' [++key=value …]' if config else ''}".replace("  ", " ")]
    parts += ["", *textwrap.wrap(summary, width)]
    for title, group in by_group(leaves_shown):
        parts += ["", f"{title}:", *_rows([(_flag(leaf), leaf) for leaf in group], width)]
    general = [("  --help, -h", "show this page"), ("  --explain", "show where each value comes from, and stop")]
    parts += ["", "general:", *(f"{flag:<34}{text}" for flag, text in general)]
    if config is not None:
        parts += ["", "++ keys (sub-keys with a dot; lists [a,b]; dictionaries {a:1}):"]
        parts += _rows([(f"  ++{leaf.path}", leaf) for leaf in leaves(config).values()], width)
    if examples:
        parts += ["", "examples:", *(f"  {line}" for line in examples)]
    return "\n".join(parts) + "\n"


def by_group(all_leaves: Iterable[Leaf]) -> list[tuple[str, list[Leaf]]]:
    """Title → options, in the order of the help page."""
    groups: dict[str, list[Leaf]] = {}
    for leaf in all_leaves:
        groups.setdefault(leaf.extra.get("group", OWN), []).append(leaf)
    return sorted(groups.items(), key=lambda group: (group[0] != OWN, group[0].startswith(LAST)))


def _flag(leaf: Leaf) -> str:
    if leaf.extra.get("positional"):
        return f"  {leaf.path.upper()}"
    short = f"{leaf.extra['short']}, " if "short" in leaf.extra else ""
    return f"  {short}--{leaf.path}{'' if leaf.is_bool else ' ' + leaf.type_name.replace(' | null', '')}"


def _rows(rows: Iterable[tuple[str, Leaf]], width: int) -> list[str]:
    lines: list[str] = []
    for flag, leaf in rows:
        text = leaf.description
        if leaf.required:
            text += " (required)"
        elif leaf.default not in (None, "", [], (), {}):
            text += f" (default {render(leaf.default)})"
        wrapped = textwrap.wrap(text, width - 34) or [""]
        if len(flag) > 32:
            lines += _choices(flag, width)
            lines += [" " * 34 + line for line in wrapped]
        else:
            lines.append(f"{flag:<34}{wrapped[0]}")
            lines += [" " * 34 + line for line in wrapped[1:]]
    return lines


def _choices(flag: str, width: int) -> list[str]:
    """`flag` in lines of at most `width`, broken behind a `|` between its choices."""
    first, *more = flag.split("|")
    lines = [first]
    for choice in more:
        if len(lines[-1]) + 1 + len(choice) < width:
            lines[-1] += f"|{choice}"
        else:
            lines[-1] += "|"
            lines.append(f"      {choice}")
    return lines
