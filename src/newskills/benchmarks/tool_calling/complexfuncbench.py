# SPDX-License-Identifier: Apache-2.0
"""ComplexFuncBench (Zhong et al. 2025, arXiv:2501.10132): calls that need each other's results and long reasoning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_NAMES = {"number": "float", "object": "dict", "array": "any"}


def row(raw: Row, index: int) -> Iterator[Row]:
    """Yield one row for each step of the conversation at which functions are called, with all before it as it
    was."""
    messages: list[Row] = []
    functions = [_function_schema(function) for function in raw["functions"]]
    for at, turn in enumerate(raw["conversations"]):
        calls = turn.get("function_call") if turn["role"] == "assistant" else None
        if calls:
            yield {
                "id": f"{raw['id']}-{at}",
                "question": raw["conversations"][0]["content"],
                "messages": list(messages),
                "function": functions,
                "tools": [{"type": "function", "function": function} for function in raw["functions"]],
                "check": "calls",
                "language": "python",
                "ground_truth": [
                    {call["name"]: {name: [_accepted_values(value)] for name, value in call["arguments"].items()}}
                    for call in calls
                ],
                "subset_for_metrics": str(raw["id"]).rpartition("-")[0] or "all",
            }
        messages += _turn_messages(turn, calls or [], at)


def _turn_messages(turn: Row, calls: list[Row], at: int) -> list[Row]:
    if turn["role"] == "observation":
        return [
            {"role": "tool", "tool_call_id": f"call_{at - 1}_{number}", "content": json.dumps(result)}
            for number, result in enumerate(turn["content"])
        ]
    if not calls:
        return [{"role": turn["role"], "content": turn["content"]}]
    made = [
        {
            "id": f"call_{at}_{number}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for number, call in enumerate(calls)
    ]
    return [{"role": "assistant", "tool_calls": made}]


def _accepted_values(value: Any) -> Any:
    """Return values of an object as lists of what is accepted, as the grader reads them."""
    if isinstance(value, dict):
        return {key: [inner] for key, inner in value.items()}
    return value


def _function_schema(function: Row) -> Row:
    parameters = function["parameters"]
    properties = {
        name: {"type": _NAMES.get(spec["type"], spec["type"])} for name, spec in parameters["properties"].items()
    }
    return {
        "name": function["name"],
        "parameters": {"properties": properties, "required": parameters.get("required", [])},
    }


BENCHMARK = Benchmark(
    name="complexfuncbench",
    category="tool-calling",
    title="ComplexFuncBench: calls in several steps under constraints",
    sources=(Source(hf="THUDM/ComplexFuncBench", hf_split="train"),),
    row=row,
    prompt="",
    grader="bfcl",
    metric="bfcl",
    solver="function_calls",
    defaults={"prompt_format": "openai"},
    unverified=True,
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/THUDM/ComplexFuncBench",
    citation="arXiv:2501.10132",
    traps=(
        "One sample per step with the conversation before it as it was: no score of the paper, which runs all steps.",
        "Calls must be those of the data; the authors also accept calls with equal results, and ask a judge.",
    ),
)
