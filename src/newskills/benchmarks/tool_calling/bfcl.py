# SPDX-License-Identifier: Apache-2.0
"""What the categories of the Berkeley Function-Calling Leaderboard share: sources, joined files, tools as APIs take
them (Patil et al., ICML 2025)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.graders.tool_calls.simulated import MODULES

_DATA = (
    "https://raw.githubusercontent.com/ShishirPatil/gorilla/main/berkeley-function-call-leaderboard/bfcl_eval/data"
)
_REVISION = "6ea57973c7a6097fd7c5915698c54c17c5b1b6c8"
_SHA256 = {
    "irrelevance": "2b6ed4c2e992cdcf5f1678a701851f944bef7550ee026ed1ddb89efed5be01a6",
    "live_irrelevance": "6559fda2beaceb609a2cd2e504c65b4a56cb448e1ef88fddfd199e163d163349",
    "live_relevance": "e03f9e241657a137cba48a89ee12f47bf3fcb7e4f6274263e9c699a0c974203a",
}
CATEGORIES = {
    "simple_python": 400,
    "simple_java": 100,
    "simple_javascript": 50,
    "parallel": 200,
    "multiple": 200,
    "parallel_multiple": 200,
    "irrelevance": 240,
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
    "live_irrelevance": 884,
    "live_relevance": 16,
    "multi_turn_base": 200,
    "multi_turn_miss_func": 200,
    "multi_turn_miss_param": 200,
    "multi_turn_long_context": 200,
}
_MISPRINTS = {
    "live_simple_106-63-0": "no value is accepted for a required argument",
    "live_simple_112-68-0": "no value is accepted for a required argument",
    "live_multiple_862-181-3": "an accepted argument is none of the function's",
    "live_multiple_964-207-0": "a required argument is not among the accepted ones",
}
_TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": "string",
    "list": "array",
    "bool": "boolean",
}
_PLAIN = frozenset(("string", "integer", "number", "boolean", "array", "object"))
_LANGUAGES = {"simple_java": "Java", "simple_javascript": "JavaScript"}
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def bfcl_benchmark(version: str, category: str, traps: tuple[str, ...] = ()) -> Benchmark:
    """Make `bfcl_<version>.<category>`; all versions share the files of the fourth."""
    conversation = category.startswith("multi_turn")
    shared = "" if version == "v4" else f"bfcl_v4.{category}"
    return Benchmark(
        name=f"bfcl_{version}.{category}",
        category="tool-calling",
        title=f"BFCL {version}: {category.replace('_', ' ')}",
        sources=(bfcl_source(category),),
        join=_join_answers,
        row=partial(row, category),
        prompt="",
        grader="bfcl",
        metric="bfcl",
        solver="conversation_calls" if conversation else "function_calls",
        defaults={"prompt_format": "openai"},
        items={"test": CATEGORIES[category]},
        data=shared,
        chance=1.0 if category.endswith("relevance") else 0.0,
        misprints={row: why for row, why in _MISPRINTS.items() if row.startswith(f"{category}_")},
        licence="Apache-2.0",
        homepage="https://gorilla.cs.berkeley.edu/leaderboard.html",
        citation="Patil et al., ICML 2025",
        traps=traps
        + (_CONVERSATION_TRAPS if conversation else ())
        + _RELEVANCE_TRAPS.get(_kind_of_check(category), ()),
    )


_RELEVANCE_TRAPS = {
    "irrelevance": ("A model that never calls anything gets 100% here.",),
    "relevance": ("A model that always calls something gets 100% here.",),
}
_CONVERSATION_TRAPS = ("The simulated services come with bfcl-eval: pip install --no-deps bfcl-eval==2026.3.23",)


def bfcl_source(category: str, more: tuple[str, ...] = ()) -> Source:
    """Return the source of questions and, where they are apart, answers; `more`: further files."""
    file = f"BFCL_v4_{category}"
    if category in _SHA256:
        return Source(url=f"{_DATA}/{file}.json", revision=_REVISION, sha256=_SHA256[category])
    files = [file, f"possible_answer/{file}"]
    files += more
    if category.startswith("multi_turn"):
        files += [f"multi_turn_func_doc/{doc}" for doc in MODULES.values()]
    return Source(url=f"{_DATA}/{{{','.join(files)}}}.json", revision=_REVISION)


def _join_answers(rows: Iterable[Row]) -> Iterable[Row]:
    """Join questions with their answers, and with the documents of the services that they involve."""
    questions: list[Row] = []
    answers: dict[str, Row] = {}
    docs: dict[str, list[Row]] = {}
    for raw in rows:
        place = PurePosixPath(raw.get("_file", ""))
        if "possible_answer" in place.parts:
            answers[raw["id"]] = raw
        elif "multi_turn_func_doc" in place.parts:
            docs.setdefault(place.stem, []).append(raw)
        else:
            questions.append(raw)
    for raw in questions:
        answer = answers.get(raw["id"], {})
        gold: Row = {key: answer[key] for key in ("ground_truth", "num_hops") if key in answer}
        if docs:
            gold["docs"] = [doc for name in raw.get("involved_classes", ()) for doc in docs[MODULES[name]]]
        yield {**raw, **gold}


def row(category: str, raw: Row, index: int) -> Row:
    language = _LANGUAGES.get(category, "Python")
    functions = raw["function"] if "function" in raw else _service_functions(raw)
    held_back = {turn: set(names) for turn, names in raw.get("missed_function", {}).items()}
    late = set().union(*held_back.values())
    made: Row = {
        "id": raw["id"],
        "question": raw["question"],
        "messages": raw["question"][0],
        "function": functions,
        "tools": [openai_tool(function, language) for function in functions if function["name"] not in late],
        "check": _kind_of_check(category),
        "language": language.lower(),
    }
    if "ground_truth" in raw:
        made["ground_truth"] = raw["ground_truth"]
    if held_back:
        made["missed_function"] = raw["missed_function"]
        made["late_tools"] = {
            turn: [openai_tool(function, language) for function in functions if function["name"] in names]
            for turn, names in held_back.items()
        }
    return made | {key: raw[key] for key in ("initial_config", "involved_classes", "path") if key in raw}


def _kind_of_check(category: str) -> str:
    if category.startswith("multi_turn"):
        return "conversation"
    if category.endswith("relevance"):
        return category.removeprefix("live_")
    return "calls"


def _service_functions(raw: Row) -> list[Row]:
    excluded = set(raw.get("excluded_function", ()))
    kept = [doc for doc in raw["docs"] if doc["name"] not in excluded]
    if not kept:
        raise ValueError("no documents of the services are here")
    return [{key: doc[key] for key in ("name", "description", "parameters")} for doc in kept]


def openai_tool(function: Row, language: str = "Python") -> Row:
    """Return a function in the shape of OpenAI's API. Values of Java and JavaScript are asked for as source
    text."""
    parameters, description = function["parameters"], function["description"]
    specs = parameters["properties"].items()
    if language == "Python":
        properties = {name: _parameter_schema(spec) for name, spec in specs}
    else:
        properties = {name: _literal_schema(spec, language) for name, spec in specs}
        description += f" The function is written in {language}."
    return {
        "type": "function",
        "function": {
            "name": _NOT_IN_NAMES.sub("_", function["name"])[:64],
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": parameters.get("required", []),
            },
        },
    }


def _parameter_schema(spec: Row) -> Row:
    kind = _TYPES.get(spec.get("type", "string"), spec.get("type", "string"))
    made: dict[str, Any] = {**spec, "type": kind if kind in _PLAIN else "string"}
    if "properties" in spec:
        made["properties"] = {name: _parameter_schema(inner) for name, inner in spec["properties"].items()}
    if "items" in spec:
        made["items"] = _parameter_schema(spec["items"])
    return made


def _literal_schema(spec: Row, language: str) -> Row:
    item = f" of {spec['items']['type']}" if "items" in spec else ""
    note = f"Give the value as a string that holds a {language} literal of the type {spec['type']}{item}."
    return {"type": "string", "description": f"{spec.get('description', '')} {note}".strip()}
