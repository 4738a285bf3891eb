# SPDX-License-Identifier: Apache-2.0
"""What keys a config struct has: dotted path, type, default and meaning, read from its annotations."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct


class Leaf(Struct, frozen=True, kw_only=True):
    """One key. `type` still carries its Meta (bounds); `open` keys accept further sub-keys of the user's."""

    path: str
    type: Any
    default: Any
    description: str
    extra: dict[str, Any] = {}

    @property
    def required(self) -> bool:
        return self.default is NODEFAULT

    @property
    def open(self) -> bool:
        return any(get_origin(t) is dict or t is dict for t in union_members(self.type))

    @property
    def is_bool(self) -> bool:
        return bool in union_members(self.type)

    @property
    def is_list(self) -> bool:
        """Several words make one value. Where a text is allowed too, the text is the value (`1,2,5`)."""
        kinds = union_members(self.type)
        return str not in kinds and any(get_origin(t) in (list, tuple) or t in (list, tuple) for t in kinds)

    @property
    def type_name(self) -> str:
        return " | ".join(_type_name(t) for t in union_members(self.type))


def strip_meta(annotation: Any) -> Any:
    if get_origin(annotation) is typing.Annotated:
        return get_args(annotation)[0]
    return annotation


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself; Meta removed."""
    bare = strip_meta(annotation)
    if get_origin(bare) in (Union, types.UnionType):
        return tuple(strip_meta(arg) for arg in get_args(bare))
    return (bare,)


def leaves(cls: type[Struct], prefix: str = "") -> dict[str, Leaf]:
    """Return path → Leaf, nested structs flattened, in order of declaration."""
    return _cached_leaves(cls, prefix)


@functools.cache
def _cached_leaves(cls: Any, prefix: str) -> dict[str, Leaf]:
    hints = typing.get_type_hints(cls, include_extras=True)
    leaves_by_name: dict[str, Leaf] = {}
    for field in msgspec.structs.fields(cls):
        annotation = hints[field.name]
        path = f"{prefix}{field.name}"
        nested = [t for t in union_members(annotation) if isinstance(t, type) and issubclass(t, Struct)]
        if nested:
            leaves_by_name |= leaves(nested[0], f"{path}.")
            continue
        description, extra = _description_and_extra(annotation)
        default = field.default
        if default is NODEFAULT and field.default_factory is not NODEFAULT:
            default = field.default_factory()
        leaves_by_name[path] = Leaf(
            path=path, type=annotation, default=default, description=description, extra=extra
        )
    return leaves_by_name


@functools.cache
def branches(cls: type[Struct]) -> frozenset[str]:
    """Return the paths that have leaves below them: `inference` of `inference.temperature`."""
    parts = (path.split(".") for path in leaves(cls))
    return frozenset(".".join(names[:cut]) for names in parts for cut in range(1, len(names)))


def _description_and_extra(annotation: Any) -> tuple[str, dict[str, Any]]:
    description = ""
    extra: dict[str, Any] = {}
    if get_origin(annotation) is typing.Annotated:
        for item in get_args(annotation)[1:]:
            if isinstance(item, Meta):
                description = item.description or description
                extra |= item.extra or {}
    return description, extra


def _type_name(annotation: Any) -> str:
    if annotation is type(None):
        return "null"
    if get_origin(annotation) is Literal:
        return "|".join(str(value) for value in get_args(annotation))
    if get_origin(annotation) in (list, tuple):
        inner = [a for a in get_args(annotation) if a is not Ellipsis]
        if inner:
            return f"list[{_type_name(strip_meta(inner[0]))}]"
        return "list"
    if get_origin(annotation) is dict or annotation is dict:
        return "dict"
    return getattr(annotation, "__name__", str(annotation))
