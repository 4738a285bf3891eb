# SPDX-License-Identifier: Apache-2.0
"""Berkeley Function-Calling Leaderboard (Patil et al., ICML 2025): calls against those wanted, in three languages."""

from __future__ import annotations

import importlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from newskills.base.records import Row
from newskills.graders.tool_calls.wanted import wanted_calls
from tests.agreement.compare import CALLS, Comparison, Verdict, by_grader
from tests.agreement.data import mirrored

_FOLDER = "raw.githubusercontent.com/ShishirPatil/gorilla/main/berkeley-function-call-leaderboard/bfcl_eval/data/"
_ROWS = {"simple_java": 45, "simple_javascript": 30, "simple_python": 30, "parallel": 10, "multiple": 15}
_LANGUAGES = {"simple_java": "java", "simple_javascript": "javascript"}
_LONGEST = 2_000
_JAVA = (
    "the original keeps the quotation marks of texts in Java's arrays and lists, and looks for the text of a map among "
    "the letters of the right one; ours reads both as Java does"
)
_BLANKS = "the original takes a number or a name with a blank beside it for none"
_JAVA_FORMS = (
    "as wanted",
    "arguments reversed",
    "calls reversed",
    "values as texts",
    "a mark more",
    "numbers plus one",
    "whole numbers as decimals",
    "numbers as texts",
    "lists in JSON",
    "lists reversed",
)
_LIST = re.compile(r"new\s+(?:\w+\[\]\s*\{|ArrayList<\w*>\(Arrays\.asList\()(.*?)[})]+$")


def rows() -> Iterator[Row]:
    for category, count in _ROWS.items():
        questions = mirrored(f"{_FOLDER}BFCL_v4_{category}.json")
        answers = {raw["id"]: raw for raw in mirrored(f"{_FOLDER}possible_answer/BFCL_v4_{category}.json")}
        short = [raw for raw in questions if len(json.dumps(raw["function"])) < _LONGEST]
        for raw in random.Random(category).sample(short, count):
            yield {
                "task": category,
                "check": "calls",
                "function": [{key: it[key] for key in ("name", "parameters")} for it in raw["function"]],
                "ground_truth": answers[raw["id"]]["ground_truth"],
                "language": _LANGUAGES.get(category, "python"),
            }


def forms(row: Row) -> Mapping[str, Any]:
    calls = wanted_calls(row)
    changes: Mapping[str, Callable[[Any], Any]] = {
        "values as texts": lambda value: value if isinstance(value, str) else json.dumps(value),
        "upper case": lambda value: value.upper() if isinstance(value, str) else value,
        "a mark more": lambda value: f"{value}-" if isinstance(value, str) else value,
        "a letter more": lambda value: f"{value}x" if isinstance(value, str) else value,
        "numbers plus one": lambda value: value + 1 if type(value) in (int, float) else value,
        "whole numbers as decimals": lambda value: float(value) if type(value) is int else value,
        "numbers as texts": lambda value: str(value) if type(value) in (int, float) else value,
        "lists in JSON": lambda value: _LIST.sub(r"[\1]", value) if isinstance(value, str) else value,
        "lists reversed": lambda value: value[::-1] if isinstance(value, list) else value,
        "quoted": lambda value: f'"{value}"' if isinstance(value, str) else value,
        "in a list": lambda value: [value],
        "blanks around": lambda value: f" {value} " if isinstance(value, str) else value,
        "null": lambda value: None,
        "empty texts": lambda value: "" if isinstance(value, str) else value,
    }
    made: dict[str, Any] = {
        "as wanted": calls,
        "arguments reversed": [_with(call, dict(reversed(call["arguments"].items()))) for call in calls],
        "the last argument missing": [_with(call, dict([*call["arguments"].items()][:-1])) for call in calls],
        "an argument more": [_with(call, call["arguments"] | {"other": "1"}) for call in calls],
        "another name": [{**call, "name": f"{call['name']}_now"} for call in calls],
        "twice": [*calls, calls[-1]],
        "calls reversed": calls[::-1],
    }
    for name, change in changes.items():
        made[name] = [
            _with(call, {key: change(value) for key, value in call["arguments"].items()}) for call in calls
        ]
    return {name: {"tool_calls": changed} for name, changed in made.items()}


def _with(call: Row, arguments: Row) -> Row:
    return {**call, "arguments": arguments}


def original(folder: Path) -> Verdict:
    """`folder` holds the unpacked wheel of bfcl-eval; its list of models, which needs their packages, is left out."""
    sys.path.insert(0, str(folder))
    models: Any = ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = {"any": SimpleNamespace(underscore_to_dot=True)}
    sys.modules[models.__name__] = models
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    languages = importlib.import_module("bfcl_eval.constants.enums").Language

    def verdict(row: Row, reply: Any) -> float:
        calls = [{call["name"]: call["arguments"]} for call in reply["tool_calls"]]
        goal, language = row["ground_truth"], languages(row["language"])
        try:
            checked = checker.ast_checker(row["function"], calls, goal, language, row["task"], "any")
        except Exception:
            return 0.0
        return float(checked["valid"])

    return verdict


COMPARISON = Comparison(
    name="bfcl",
    benchmarks=("bfcl_v3", "bfcl_v4"),
    scorer="BFCL `ast_checker`, bfcl-eval 2026.3.23",
    compared=CALLS,
    repository="ShishirPatil/gorilla",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("bfcl", value="is_correct"),
    known={f"simple_java/{form}": _JAVA for form in _JAVA_FORMS}
    | {f"{task}/blanks around": _BLANKS for task in _LANGUAGES},
)
