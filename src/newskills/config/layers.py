# SPDX-License-Identifier: Apache-2.0
"""Layers of values → one frozen struct; every leaf remembers which layer it came from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.type_errors import type_fault
from newskills.config.fields import Leaf, branches, leaves
from newskills.config.values import Text, check_finite, convert_value, parse_value

S = TypeVar("S", bound=Struct)


class Layer(Struct, frozen=True):
    """Values by dotted path (or nested dictionaries); later layers win."""

    source: str
    values: Mapping[str, Any]


class Resolved(Struct, Generic[S]):
    """The struct, and for each path that some layer set the name of the last one that did."""

    value: S
    origin: dict[str, str]


def resolve(
    cls: type[S],
    layers: Sequence[Layer],
    *,
    aliases: Mapping[str, str] | None = None,
    removed: Mapping[str, str] | None = None,
) -> Resolved[S]:
    """Merge `layers` into `cls`.

    `aliases` map other spellings to paths; `removed` maps keys that no longer exist to the sentence to show.
    Raises ConfigError for a value of the wrong type, UnknownNameError for an unknown key.
    """
    leaves_by_name = leaves(cls)
    tree: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for layer in layers:
        for key, value in _flatten_values(layer.values, branches(cls), aliases or {}):
            if key in (removed or {}):
                raise ConfigError(f"++{key}: {(removed or {})[key]}")
            path, leaf, rest = _find_leaf(key, leaves_by_name, aliases or {})
            if isinstance(value, Text):
                shown = f"++{key}={value}"
            else:
                shown = f"{key} of {layer.source}"
            if rest:
                if isinstance(value, Text):
                    value = parse_value(value)
                check_finite(value, shown)
                _put_value(tree, [*path.split("."), *rest], value, leaves_by_name)
            else:
                _put_value(tree, path.split("."), convert_value(value, leaf, shown), leaves_by_name)
            origin[".".join([path, *rest])] = layer.source
    try:
        return Resolved(msgspec.convert(tree, cls, strict=True), origin)
    except msgspec.ValidationError as error:
        raise ConfigError(f"These settings do not work together: {type_fault(error, tree)}.") from error


def explain(resolved: Resolved[Any]) -> list[tuple[str, str, str]]:
    """Return (path, value, where it came from) for every key, defaults included."""
    rows = []
    for path, leaf in leaves(type(resolved.value)).items():
        value = resolved.value
        for name in path.split("."):
            value = getattr(value, name)
        origins = {o for key, o in resolved.origin.items() if key == path or key.startswith(f"{path}.")}
        shown = "********" if leaf.extra.get("secret") and value else render_value(value)
        rows.append((path, shown, ", ".join(sorted(origins)) or "default"))
    return rows


def render_value(value: Any) -> str:
    """Return a value as it may be typed after `++key=`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, int | float):
        return repr(value)
    return msgspec.json.encode(value).decode()


def _find_leaf(
    key: str, leaves_by_name: Mapping[str, Leaf], aliases: Mapping[str, str]
) -> tuple[str, Leaf, list[str]]:
    written = key
    key = aliases.get(key.replace("-", "_"), key)
    names = key.replace("-", "_").split(".")
    for cut in range(len(names), 0, -1):
        head = ".".join(names[:cut])
        path = aliases.get(head, head)
        leaf = leaves_by_name.get(path)
        if leaf is not None and (cut == len(names) or leaf.open):
            return path, leaf, key.split(".")[cut:]
    raise UnknownNameError("option", f"++{written}", [f"++{path}" for path in (*leaves_by_name, *aliases)])


def _flatten_values(
    values: Mapping[str, Any], inner_keys: Collection[str], aliases: Mapping[str, str], prefix: str = ""
) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        key = f"{prefix}{name}"
        inner = key not in aliases and key in inner_keys
        if inner and isinstance(value, Text):
            value = parse_value(value)
        if inner and isinstance(value, Mapping):
            flat += _flatten_values(value, inner_keys, aliases, f"{key}.")
        elif inner:
            raise ConfigError(f"++{key}={value}: this key has sub-keys; write ++{key}.name=value or a {{…}}.")
        else:
            flat.append((key, value))
    return flat


def _put_value(tree: dict[str, Any], path: Sequence[str], value: Any, leaves_by_name: Mapping[str, Leaf]) -> None:
    for at, name in enumerate(path[:-1], 1):
        inner = tree.get(name)
        if not isinstance(inner, dict):
            leaf = leaves_by_name.get(".".join(path[:at]))
            inner = {}
            if leaf is not None and isinstance(leaf.default, dict):
                inner = leaf.default
        tree[name] = dict(inner)
        tree = tree[name]
    tree[path[-1]] = value
