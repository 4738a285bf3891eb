# SPDX-License-Identifier: Apache-2.0
"""The calls in an answer: those that the server reported, else those written in the text. Nothing is evaluated."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from newskills.base.records import Row
from newskills.graders.reading.replies import visible_reply

LONGEST = 50_000
"""Characters of a text that may be read as calls."""
_TAG = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_FENCE = re.compile(r"^```\w*\n|\n?```$")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class ParsedCall(Struct, frozen=True):
    """One call; `positional` only where it was written as source text."""

    name: str
    arguments: Row
    positional: tuple[Any, ...] = ()


def api_name(name: str) -> str:
    """Return a function's name in the characters that all APIs allow, at most 64 of them."""
    return _UNSAFE.sub("_", name)[:64]


def answered_calls(record: Row) -> tuple[list[ParsedCall], bool]:
    """Return the calls of a record, and whether all could be read.

    `tool_calls` holds them as `{"name", "arguments"}`; where it is missing or empty, the text may be a list of calls
    in Python's form, or have `<tool_call>` tags around JSON.
    """
    reported = record.get("tool_calls")
    if isinstance(reported, list) and reported:
        return read_calls(reported)
    text = visible_reply(str(record.get("generation") or "")) or ""
    if tagged := _TAG.findall(text):
        return read_calls([_read_json(part) for part in tagged])
    written = written_calls(text)
    return written or [], True


def read_calls(items: list[Any]) -> tuple[list[ParsedCall], bool]:
    """Return the calls of `{"name", "arguments"}`, and whether all could be read; arguments may be JSON text."""
    calls: list[ParsedCall] = []
    for item in items:
        if not isinstance(item, dict):
            return calls, False
        name, arguments = item.get("name"), item.get("arguments", {})
        if isinstance(arguments, str):
            arguments = _read_json(arguments) if arguments.strip() else {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return calls, False
        calls.append(ParsedCall(name, arguments))
    return calls, True


def written_calls(text: str) -> list[ParsedCall] | None:
    """Read `[f(a=1), g(b="x")]`; None for a text that is not made of calls with literal arguments."""
    text = _FENCE.sub("", text.strip()).strip().strip("`")
    if not text or len(text) > LONGEST or "(" not in text:
        return None
    if not text.startswith("["):
        text = f"[{text}]"
    try:
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.List):
            return list(_read_calls(tree))
        return None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _read_calls(tree: ast.List) -> Iterator[ParsedCall]:
    """Yield the calls of a list. Raises ValueError for what is no call with literal arguments."""
    for node in tree.elts:
        if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
            raise ValueError("no call")
        arguments = {str(keyword.arg): _literal_value(keyword.value) for keyword in node.keywords}
        yield ParsedCall(ast.unparse(node.func), arguments, tuple(map(_literal_value, node.args)))


def _literal_value(node: ast.expr) -> Any:
    """Return the value of a literal; names stand for themselves, as variables do in the data."""
    if isinstance(node, ast.Name):
        return {"true": True, "false": False, "null": None}.get(node.id, node.id)
    return ast.literal_eval(node)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
