# SPDX-License-Identifier: Apache-2.0
"""A tool as the model sees it: under other names where `schema_overrides` or the APIs of models ask for them."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, suggest
from newskills.base.protocols import ToolSpec
from newskills.base.records import Row

NAME_LENGTH = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class ExposedTool(Struct, frozen=True, kw_only=True):
    """`spec` is what the model is told; `own_name` and `own_parameters` (shown → own) lead back to the tool."""

    spec: ToolSpec
    provider: str
    own_name: str
    own_parameters: dict[str, str]

    def own_arguments(self, arguments: Row) -> Row:
        return {self.own_parameters.get(name, name): value for name, value in arguments.items()}


def safe_name(name: str) -> str:
    """Return `name` in the characters that all APIs allow for functions."""
    return _NOT_IN_NAMES.sub("_", name)[:NAME_LENGTH] or "tool"


def expose_tool(spec: ToolSpec, provider: str, override: Any) -> ExposedTool:
    """Return `spec` with `override` = {name, description, parameters: {own name: {name, …}}}.

    Raises ConfigError, with did-you-mean, for keys and parameters that are not there.
    """
    where = f"schema_overrides.{provider}.{spec.name}"
    override = _require_mapping(override, where)
    for key in override:
        if key not in ("name", "description", "parameters"):
            raise ConfigError(f"{where} has no key '{key}'{suggest(key, ('name', 'description', 'parameters'))}")
    schema, own = _rename_parameters(
        spec.input_schema, _require_mapping(override.get("parameters"), f"{where}.parameters"), where
    )
    shown = ToolSpec(
        name=safe_name(str(override.get("name") or spec.name)),
        description=str(override.get("description") or spec.description),
        input_schema=schema,
    )
    return ExposedTool(spec=shown, provider=provider, own_name=spec.name, own_parameters=own)


def without_parameters(schema: Row, hidden: set[str]) -> Row:
    """Return `schema` without the parameters `hidden`."""
    properties = {name: value for name, value in (schema.get("properties") or {}).items() if name not in hidden}
    return _with_properties(schema, properties, [n for n in schema.get("required") or () if n not in hidden])


def _rename_parameters(schema: Row, overrides: Row, where: str) -> tuple[Row, dict[str, str]]:
    properties: Row = schema.get("properties") or {}
    for name in overrides:
        if name not in properties:
            raise ConfigError(f"{where} has no parameter '{name}'{suggest(name, properties)}")
    renamed: Row = {}
    own: dict[str, str] = {}
    for name, kind in properties.items():
        override = dict(_require_mapping(overrides.get(name), f"{where}.parameters.{name}"))
        shown = str(override.pop("name", None) or name)
        if shown in renamed:
            raise ConfigError(f"{where} gives two parameters the name '{shown}'.")
        renamed[shown] = {**kind, **override} if isinstance(kind, dict) else kind
        own[shown] = name
    shown_names = {name: shown for shown, name in own.items()}
    required = [shown_names.get(name, name) for name in schema.get("required") or ()]
    return _with_properties(schema, renamed, required), own


def _with_properties(schema: Row, properties: Row, required: list[str]) -> Row:
    """Return the schema with these properties; titles are left out: they are made for people, and cost the model
    tokens."""
    shown: Row = {
        name: {key: value for key, value in kind.items() if key != "title"} if isinstance(kind, dict) else kind
        for name, kind in properties.items()
    }
    rest = {key: value for key, value in schema.items() if key not in ("title", "required")}
    free: Row = {} if "properties" in schema else {"additionalProperties": True}
    flat: Row = {"type": "object", **free, **rest, "properties": shown}
    if required:
        return {**flat, "required": required}
    return flat


def _require_mapping(value: Any, where: str) -> Row:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected a mapping, got {value!r}.")
    return value
