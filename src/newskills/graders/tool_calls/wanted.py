# SPDX-License-Identifier: Apache-2.0
"""The calls that a prepared row of BFCL wants, as an API would report them."""

from __future__ import annotations

from typing import Any

from newskills.base.records import Row
from newskills.graders.tool_calls.calls import api_name, written_calls
from newskills.graders.tool_calls.simulated import Services


def wanted_calls(row: Row) -> list[Row]:
    """Return the calls without arguments that may be left out; of several accepted values the first is taken."""
    return [_wanted_call(goal, row) for goal in row["ground_truth"]]


def _wanted_call(goal: Row, row: Row) -> Row:
    name, accepted = next(iter(goal.items()))
    parameters = next(function for function in row["function"] if function["name"] == name)["parameters"]
    arguments = {}
    for argument, values in accepted.items():
        if "" in values and argument not in parameters.get("required", ()):
            continue
        spec = parameters["properties"].get(argument, {"type": "any"})
        empty: Any = [] if spec["type"] == "array" else ""
        value = _plain_value(next((value_accepted for value_accepted in values if value_accepted != ""), empty))
        if row["language"] != "python":
            value = _literal_source(value, spec, row["language"])
        arguments[argument] = value
    return {"name": api_name(name), "arguments": arguments}


def _plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _plain_value(_first_accepted(values_accepted))
            for key, values_accepted in value.items()
            if not _is_optional(values_accepted)
        }
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    return value


def _first_accepted(accepted: Any) -> Any:
    if not isinstance(accepted, list):
        return accepted
    return next((value_accepted for value_accepted in accepted if value_accepted != ""), "")


def _is_optional(accepted: Any) -> bool:
    return isinstance(accepted, list) and "" in accepted


def _quoted_source(value: Any, spec: Row, language: str) -> str:
    """Return a value as a literal of the language; texts in quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    return _literal_source(value, spec, language)


def _literal_source(value: Any, spec: Row, language: str) -> str:
    """Return a value as a literal of the language; texts and things of any type stand for themselves."""
    kind = spec["type"]
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        float_suffix = "f" if language == "java" else ""
        suffix = {"long": "L", "float": float_suffix, "Bigint": "n"}
        return str(value).lower() + suffix.get(kind, "")
    if isinstance(value, list):
        item = {"type": spec.get("items", {}).get("type", "any")}
        inner = ", ".join(_quoted_source(part, item, language) for part in value)
        if language == "javascript":
            return f"[{inner}]"
        if kind == "Array":
            return f"new X[]{{{inner}}}"
        return f"new ArrayList<>(Arrays.asList({inner}))"
    pairs = [(key, _quoted_source(item, {"type": "any"}, language)) for key, item in value.items()]
    if language == "javascript":
        return "{" + ", ".join(f'"{key}": {item}' for key, item in pairs) + "}"
    return "new HashMap<>() {{ " + " ".join(f'put("{key}", {item});' for key, item in pairs) + " }}"


def wanted_turns(row: Row) -> list[list[list[Row]]]:
    """Return each wanted call of a conversation as a step, its arguments by name. Raises KeyError, ValueError."""
    services = Services(row["involved_classes"], row["initial_config"])
    return [[[_named_call(goal, services)] for goal in goals] for goals in row["ground_truth"]]


def _named_call(goal: str, services: Services) -> Row:
    calls = written_calls(goal)
    if not calls:
        raise ValueError(f"'{goal}' is no call")
    positional = dict(zip(services.parameters(calls[0].name), calls[0].positional, strict=False))
    return {"name": calls[0].name, "arguments": {**positional, **calls[0].arguments}}
