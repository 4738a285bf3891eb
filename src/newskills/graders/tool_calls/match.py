# SPDX-License-Identifier: Apache-2.0
"""Calls against the calls that were wanted, each argument with the values that are accepted for it.

The rules are those of the Berkeley Function-Calling Leaderboard (Patil et al., ICML 2025): types by the function's
description, texts compared without case, blanks and `,./-_*^`; `""` among the accepted values makes an argument
optional; a value of the accepted values' own type stands for a variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from newskills.base.records import Row
from newskills.graders.tool_calls.calls import ParsedCall, api_name
from newskills.graders.tool_calls.literals import JAVA_TYPES, JAVASCRIPT_TYPES, value_of

PYTHON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "number": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "object": dict,
    "any": str,
}
_TYPES: Mapping[str, Mapping[str, type]] = {
    "python": PYTHON_TYPES,
    "java": JAVA_TYPES,
    "javascript": JAVASCRIPT_TYPES,
}
_NESTED = ("array", "tuple", "Array", "ArrayList")
_LOOSE = re.compile(r"[ ,./\-_*^]")


def calls_difference(
    calls: Sequence[ParsedCall], wanted: Sequence[Row], functions: Sequence[Row], language: str
) -> str:
    """Return why the calls are not those wanted, in any order; empty if they are.

    `wanted`: `{name: {argument: accepted values}}`. Raises KeyError, ValueError for data that does not fit.
    """
    if len(calls) != len(wanted):
        return f"{len(calls)} calls in place of {len(wanted)}"
    problems = [[_call_problem(call, goal, functions, language) for call in calls] for goal in wanted]
    partners: dict[int, int] = {}
    for goal in range(len(wanted)):
        if not _assign_goal(goal, problems, partners, set()):
            return problems[goal][goal] or "two of the wanted calls are answered by one"
    return ""


def _assign_goal(goal: int, problems: list[list[str]], partners: dict[int, int], seen: set[int]) -> bool:
    """Find a call for `goal`, moving other goals to other calls where needed (bipartite matching); return whether there
    is one."""
    for call, problem in enumerate(problems[goal]):
        if problem or call in seen:
            continue
        seen.add(call)
        if call not in partners or _assign_goal(partners[call], problems, partners, seen):
            partners[call] = goal
            return True
    return False


def _call_problem(call: ParsedCall, goal: Row, functions: Sequence[Row], language: str) -> str:
    name, accepted = next(iter(goal.items()))
    function = next(candidate for candidate in functions if candidate["name"] == name)
    if call.name != name and call.name != api_name(name):
        return f"{call.name} is called in place of {name}"
    if call.positional:
        return f"{name}: arguments without names"
    properties = function["parameters"]["properties"]
    for required in function["parameters"].get("required", ()):
        if required not in call.arguments:
            return f"{name}: {required} is missing"
    for argument, value in call.arguments.items():
        if argument not in properties or argument not in accepted:
            return f"{name}: {argument} is not wanted"
        if not _accepts_value(value, accepted[argument], properties[argument], language):
            return f"{name}: {argument} is {str(value)[:100]!r}"
    for argument, values in accepted.items():
        if argument not in call.arguments and "" not in values:
            return f"{name}: {argument} is missing"
    return ""


def _accepts_value(value: Any, accepted: Sequence[Any], spec: Row, language: str) -> bool:
    kind, types = spec["type"], _TYPES[language]
    wanted = types[kind]
    item = spec["items"]["type"] if kind in _NESTED and "items" in spec else None
    if language != "python":
        if not isinstance(value, str):
            return False
        value = value_of(value, kind, item, language)
    elif wanted is float and type(value) is int:
        value = _as_float(value)
    type_of_first = next((type(value_accepted) for value_accepted in accepted if value_accepted != ""), None)
    if type(value) is wanted:
        variable = type_of_first is not None and type_of_first is not wanted
        if item not in (None, "any") and not _items_fit(value, accepted, types[str(item)]):
            return False
    elif type_of_first is not None and type(value) is type_of_first:
        variable = True
    else:
        return False
    if not variable:
        if wanted is dict:
            return _any_map(value, accepted)
        if wanted is list:
            return _any_list(value, accepted, maps=item is not None and types[item] is dict)
        if wanted is str:
            return _loose_value(value) in [
                _loose_value(value_accepted) for value_accepted in accepted if isinstance(value_accepted, str)
            ]
    return value in accepted


def _as_float(value: int) -> float | int:
    try:
        return float(value)
    except OverflowError:
        return value


def _items_fit(value: Any, accepted: Sequence[Any], wanted: type) -> bool:
    for list_accepted in accepted:
        if not isinstance(list_accepted, list):
            return True
        type_of_first = next((type(item) for item in list_accepted if item != ""), None)
        if all(type(item) is wanted or type(item) is type_of_first for item in value):
            return True
    return False


def _any_list(value: list[Any], accepted: Sequence[Any], *, maps: bool) -> bool:
    if maps and all(isinstance(item, dict) for item in value):
        return any(
            len(value) == len(list_accepted)
            and all(_any_map(item, [goal]) for item, goal in zip(value, list_accepted, strict=True))
            for list_accepted in accepted
        )
    return [_loose_value(item) for item in value] in [
        [_loose_value(item) for item in list_accepted] for list_accepted in accepted
    ]


def _any_map(value: Mapping[str, Any], accepted: Sequence[Any]) -> bool:
    return any(_same_map(value, map_accepted) for map_accepted in accepted if isinstance(map_accepted, dict))


def _same_map(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    goal = {
        key: value_wanted if isinstance(value_wanted, list) else [value_wanted]
        for key, value_wanted in wanted.items()
    }
    if any(
        key not in goal or _loose_value(item) not in [_loose_value(g) for g in goal[key]]
        for key, item in value.items()
    ):
        return False
    return all(key in value or "" in values_accepted for key, values_accepted in goal.items())


def _loose_value(value: Any) -> Any:
    if isinstance(value, str):
        return _LOOSE.sub("", value).lower().replace("'", '"')
    return value
