# SPDX-License-Identifier: Apache-2.0
"""The text of `ns COMMAND --help`: its options, then every `++` key with type, default and meaning."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from newskills.config.fields import Leaf, leaves
from newskills.config.layers import render_value

OWN, LAST = "options", "placement"
"""Title of a command's own options, which come first; begin of the title of those that come last."""
WIDTH, COLUMN = 80, 30
"""Columns of a page, and where the meaning of an option begins."""


def command_help(
    command: str,
    summary: str,
    options: type[Struct],
    *,
    config: type[Struct] | None = None,
    examples: Sequence[str] = (),
    only: Collection[str] = (),
) -> str:
    """Render the help as plain text, the same on every machine (docs are made of it). What is required comes
    first.

    `only`: names of options, and of keys behind `++`, to show; the page then says how to see all. Empty: all.
    """
    leaves_shown = sorted(leaves(options).values(), key=lambda leaf: not leaf.required)
    keys = list(leaves(config).values()) if config is not None else []
    parts = [_usage_line(command, leaves_shown, has_keys=config is not None), "", *textwrap.wrap(summary, WIDTH)]
    for title, group in by_group([leaf for leaf in leaves_shown if not only or leaf.path in only]):
        parts += ["", f"{title}:", *_row_lines([(_flag_text(leaf), leaf.description, leaf) for leaf in group])]
    parts += ["", "general:", *_row_lines(_general_rows(all_shown=not only))]
    if shown := [leaf for leaf in keys if not only or f"++{leaf.path}" in only]:
        parts += ["", "++ keys (sub-keys with a dot; lists [a,b]; dictionaries {a:1}):"]
        parts += _row_lines([(f"  ++{leaf.path}", leaf.description, leaf) for leaf in shown])
    if examples:
        parts += ["", "examples:", *(part for line in examples for part in _example_lines(line))]
    if only:
        total = f"{len(leaves_shown)} options"
        if keys:
            total += f" and {len(keys)} ++ keys"
        parts += ["", f"All {total}: ns {command} --help=all"]
    return "\n".join(parts) + "\n"


def _usage_line(command: str, all_leaves: Iterable[Leaf], *, has_keys: bool) -> str:
    words = ["usage: ns", command]
    for leaf in all_leaves:
        if leaf.extra.get("positional"):
            dots = "…" if leaf.is_list else ""
            words.append(leaf.path.upper() + dots)
    words.append("[options]")
    if has_keys:
        words.append("[++key=value …]")
    return " ".join(words)


def _general_rows(*, all_shown: bool) -> list[tuple[str, str, None]]:
    rows: list[tuple[str, str, None]] = [("  --help, -h", "show this page", None)]
    if not all_shown:
        rows.append(("  --help=all", "show all options and ++ keys", None))
    return [*rows, ("  --explain", "show where each value comes from, and stop", None)]


def _example_lines(line: str) -> list[str]:
    """Wrap `line` as a shell takes it, in lines of a page's width where its words allow that."""
    lines = textwrap.wrap(
        line, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [f"  {part} \\" for part in lines[:-1]] + [f"  {lines[-1]}"]


def by_group(all_leaves: Iterable[Leaf]) -> list[tuple[str, list[Leaf]]]:
    """Group options by title, in the order of the help page."""
    groups: dict[str, list[Leaf]] = {}
    for leaf in all_leaves:
        groups.setdefault(leaf.extra.get("group", OWN), []).append(leaf)
    return sorted(groups.items(), key=lambda group: (group[0] != OWN, group[0].startswith(LAST)))


def _flag_text(leaf: Leaf) -> str:
    if leaf.extra.get("positional"):
        return f"  {leaf.path.upper()}"
    text = f"--{leaf.path}"
    if "short" in leaf.extra:
        text = f"{leaf.extra['short']}, {text}"
    if not leaf.is_bool:
        text += f" {leaf.type_name.replace(' | null', '')}"
    return f"  {text}"


def _row_lines(rows: Iterable[tuple[str, str, Leaf | None]]) -> list[str]:
    lines: list[str] = []
    for flag, text, leaf in rows:
        if leaf is not None and leaf.required:
            text += " (required)"
        elif leaf is not None and leaf.default not in (None, "", [], (), {}):
            text += f" (default {render_value(leaf.default)})"
        wrapped = textwrap.wrap(text, WIDTH - COLUMN) or [""]
        if len(flag) > COLUMN - 2:
            lines += _flag_lines(flag)
            lines += [" " * COLUMN + line for line in wrapped]
        else:
            lines.append(f"{flag:<{COLUMN}}{wrapped[0]}")
            lines += [" " * COLUMN + line for line in wrapped[1:]]
    return lines


def _flag_lines(flag: str) -> list[str]:
    """Wrap `flag` in lines of a page's width, broken behind a `|` between its choices."""
    first, *more = flag.split("|")
    lines = [first]
    for choice in more:
        if len(lines[-1]) + 1 + len(choice) < WIDTH:
            lines[-1] += f"|{choice}"
        else:
            lines[-1] += "|"
            lines.append(f"      {choice}")
    return lines
