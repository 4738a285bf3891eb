# SPDX-License-Identifier: Apache-2.0
"""Conversations of several turns: the state of the services after each turn, and what the model has seen of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from newskills.base.records import Row
from newskills.graders.tool_calls.calls import ParsedCall, read_calls, written_calls
from newskills.graders.tool_calls.simulated import Services


def conversation_problem(turns: Sequence[Sequence[Any]], record: Row) -> str:
    """Return why the calls of the turns do not do what was wanted; empty if they do.

    After each turn that wants calls, all services must be in the state that the wanted calls lead to, and the model
    must have seen, in this turn or before, all answers that those calls give. Raises KeyError, ValueError for data
    that does not fit.
    """
    wanted: Sequence[Sequence[str]] = record["ground_truth"]
    if len(turns) != len(wanted):
        return f"the conversation ended after {len(turns)} of {len(wanted)} turns"
    long_context = "long_context" in record["id"]
    config, names = record["initial_config"], record["involved_classes"]
    model = Services(names, config, long_context=long_context)
    gold = Services(names, config, long_context=long_context)
    seen: Counter[str] = Counter()
    for number, (steps, goals) in enumerate(zip(turns, wanted, strict=True), 1):
        calls = [call for step in steps for call in read_calls(list(step))[0]]
        seen.update(map(model.call, calls))
        answers = [gold.call(_gold_call(goal)) for goal in goals]
        if not goals:
            continue
        if not calls:
            return f"turn {number}: no call"
        if different := [name for name, state in gold.state().items() if model.state()[name] != state]:
            return f"turn {number}: another state of {', '.join(different)}"
        if Counter(answers) - seen:
            return f"turn {number}: an answer was not asked for"
    return ""


def _gold_call(text: str) -> ParsedCall:
    calls = written_calls(text)
    if calls is None or len(calls) != 1:
        raise ValueError(f"'{text}' is no call")
    return calls[0]
