# SPDX-License-Identifier: Apache-2.0
"""API-Bank, level 1 (Li et al. 2023, arXiv:2304.08244): the next call in a dialogue whose APIs are described."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_SYSTEM = (
    "You help the user by calling functions. When all values that a function needs are known, call it; ask only for "
    "what is missing. Times are written as YYYY-MM-DD HH:MM:SS, dates as YYYY-MM-DD. The current year is 2023."
)
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ROLES = {"User": "user", "AI": "assistant"}


def join_dialogues(rows: Iterable[Row]) -> Iterable[Row]:
    """Convert lines of dialogues to one row for each call in them, with the functions of its dialogue."""
    dialogues: dict[str, list[Row]] = {}
    required_by_function: dict[str, list[set[str]]] = {}
    for raw in rows:
        dialogues.setdefault(PurePosixPath(raw["_file"]).stem, []).append(raw)
        if raw["role"] == "API":
            required_by_function.setdefault(raw["api_name"], []).append(set(raw["param_dict"]))
    for name, lines in dialogues.items():
        used = sorted({line["api_name"] for line in lines if line["role"] == "API"})
        for at, line in enumerate(lines):
            if line["role"] == "API":
                functions = [_function_schema(name, required_by_function[name]) for name in used]
                yield {"dialogue": name, "turn": at, "lines": lines[: at + 1], "function": functions}


def row(raw: Row, index: int) -> Row:
    *before, last = raw["lines"]
    messages: list[Row] = [{"role": "system", "content": _SYSTEM}]
    for number, line in enumerate(before):
        messages += _line_messages(line, number)
    return {
        "id": f"{raw['dialogue']}-{raw['turn']}",
        "question": next(line["text"] for line in reversed(before) if line["role"] == "User"),
        "messages": messages,
        "function": raw["function"],
        "tools": [{"type": "function", "function": _as_tool(function)} for function in raw["function"]],
        "language": "python",
        "ground_truth": [{last["api_name"]: {name: [value] for name, value in last["param_dict"].items()}}],
        "subset_for_metrics": last["api_name"],
    }


def _line_messages(line: Row, number: int) -> list[Row]:
    if line["role"] in _ROLES:
        return [{"role": _ROLES[line["role"]], "content": line["text"]}]
    call = {"name": line["api_name"], "arguments": json.dumps(line["param_dict"])}
    identity = f"call_{number}"
    return [
        {"role": "assistant", "tool_calls": [{"id": identity, "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": identity, "content": json.dumps(line["result"]["output"])},
    ]


def _function_schema(name: str, required_sets: list[set[str]]) -> Row:
    """Return what the calls of all dialogues tell of a function: its arguments, and which are always given."""
    arguments = sorted(set().union(*required_sets))
    return {
        "name": name,
        "description": f"{_WORD.sub(' ', name).capitalize()}.",
        "parameters": {
            "type": "dict",
            "properties": {argument: {"type": "string"} for argument in arguments},
            "required": sorted(set.intersection(*required_sets)),
        },
    }


def _as_tool(function: Row) -> Row:
    return {**function, "parameters": {**function["parameters"], "type": "object"}}


BENCHMARK = Benchmark(
    name="api-bank",
    category="tool-calling",
    title="API-Bank, level 1: the next call in 214 dialogues",
    aliases=("api_bank_level_1",),
    sources=(
        Source(
            github="AlibabaResearch/DAMO-ConvAI",
            ref="main",
            revision="483554eae102996f5ec1f4feab4e78ef29c2a394",
            members="api-bank/lv1-lv2-samples/level-1-given-desc/*.jsonl",
        ),
    ),
    join=join_dialogues,
    row=row,
    prompt="",
    grader="api_bank",
    metric="bfcl",
    solver="function_calls",
    defaults={"prompt_format": "openai"},
    items={"test": 389},
    licence="MIT",
    homepage="https://github.com/AlibabaResearch/DAMO-ConvAI/tree/main/api-bank",
    citation="arXiv:2304.08244",
    version="2",
    traps=(
        "One sample per call (389) with the dialogue before it as it was; an error is not carried on.",
        "Calls are compared by the rules that the authors' programs have for each function: some arguments without "
        "case, dates in several forms, texts by shared words. The authors run them on small databases; a call that is "
        "right only there (with another user's valid token) counts as wrong here.",
        "The authors' programs refuse 60 of the 389 right calls, which can be right here: they get lists as texts, "
        "call device_id by another name, keep no state between calls, or ask the network.",
        "Functions are described by their names and arguments only: the authors' texts are not part of the data.",
    ),
)
