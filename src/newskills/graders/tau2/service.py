# SPDX-License-Identifier: Apache-2.0
"""A simulated service: data, functions that a model or the simulated user may call, and what may be asserted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, get_origin, get_type_hints

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Row


class RefusedCall(ValueError):
    """A call that makes no sense in the state of the service; its text is for the caller."""


class ToolService:
    """`agent_tools` and `user_tools` name methods; their docstrings are what callers are told.

    A docstring's first paragraph describes the function, each further line `name: …` an argument. Methods raise
    RefusedCall, as a rule before they change anything. `data` is the service's own: it is changed.
    """

    agent_tools: tuple[str, ...] = ()
    user_tools: tuple[str, ...] = ()

    def __init__(self, data: Row, user_data: Row | None = None) -> None:
        self.data, self.user_data = data, user_data or {}

    def call(self, caller: str, name: str, arguments: Any) -> str:
        """Call a function and return what it says: JSON, or a text; refusals as `Error: …`. `caller`: assistant or
        user."""
        tools = self.agent_tools if caller == "assistant" else self.user_tools
        if name not in tools:
            return f"Error: there is no function {name}"
        function = getattr(type(self), name)
        if not isinstance(arguments, dict):
            return "Error: the arguments are no JSON object"
        try:
            _signature(function).bind(self, **arguments)
        except TypeError as error:
            return f"Error: {error}"
        if problem := _misfit_reason(_kinds(function), arguments):
            return f"Error: {problem}"
        try:
            result = function(self, **arguments)
            self.settle()
        except RefusedCall as refusal:
            return f"Error: {refusal}"
        if isinstance(result, str):
            return result
        return msgspec.json.encode(result).decode()

    def act(self, action: Row) -> Any:
        """Run an action of a task, with `name` or `func_name`. Raises DataError for one that is not there or is
        refused."""
        name = str(action.get("name") or action.get("func_name"))
        function = getattr(self, name, None)
        if name.startswith("_") or not callable(function):
            raise DataError(f"the service has no function {name}")
        try:
            result = function(**action.get("arguments", {}))
            self.settle()
            return result
        except (RefusedCall, TypeError) as error:
            raise DataError(f"{name}: {error}") from error

    def settle(self) -> None:
        """Apply to other parts of the service what follows from a call that was not refused. Raises RefusedCall."""

    def merge(self, changes: Row) -> None:
        """Lay `changes` over the data: mappings key by key."""
        _merge_changes(self.data, changes.get("agent_data") or {})
        _merge_changes(self.user_data, changes.get("user_data") or {})

    def state(self) -> bytes:
        """Encode the data so that equal data are equal bytes, whatever the order of keys."""
        return msgspec.json.encode([self.data, self.user_data], order="deterministic")

    def tools(self, caller: str) -> list[Row]:
        """Return OpenAI's descriptions of the functions."""
        return [
            _describe_function(getattr(self, name))
            for name in (self.agent_tools if caller == "assistant" else self.user_tools)
        ]


def _merge_changes(data: Row, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge_changes(data[key], value)
        else:
            data[key] = value


_kinds, _signature = cache(get_type_hints), cache(inspect.signature)


def _misfit_reason(kinds: Mapping[str, Any], arguments: Row) -> str:
    """Return what is wrong with the first argument of another type than the function's; '' where all fit."""
    for name, kind in kinds.items():
        value = arguments.get(name)
        if name not in arguments:
            continue
        if kind == list[str] and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            return f"{name} is no list of texts"
        if (kind is str or get_origin(kind) is Literal) and not isinstance(value, str):
            return f"{name} is no text"
    return ""


def _describe_function(function: Callable[..., Any]) -> Row:
    first, _, rest = (inspect.getdoc(function) or "").partition("\n\n")
    descriptions = dict(line.split(": ", 1) for line in rest.splitlines() if ": " in line)
    properties: Row = {}
    required = []
    kinds = get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        properties[name] = _argument_schema(kinds[name])
        if name in descriptions:
            properties[name]["description"] = descriptions[name]
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": function.__name__, "description": " ".join(first.split()), "parameters": schema},
    }


def _argument_schema(kind: Any) -> Row:
    """Return the JSON schema of an argument, without references.

    Any: a text, which the function checks itself.
    """
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    return _resolve_references(schema, parts)


def _resolve_references(schema: Row, parts: Row) -> Row:
    if "$ref" in schema:
        whole: Row = parts[schema["$ref"]]
        fields = {name: _resolve_references(field, parts) for name, field in whole["properties"].items()}
        return {"type": "object", "properties": fields, "required": whole["required"]}
    if "items" in schema:
        return {"type": "array", "items": _resolve_references(schema["items"], parts)}
    if "anyOf" in schema:
        return schema
    return {"type": "string", **schema}
