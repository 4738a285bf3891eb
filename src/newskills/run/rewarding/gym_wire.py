# SPDX-License-Identifier: Apache-2.0
"""What NeMo Gym posts to a resources server, and what it takes back.

A row of ours travels as `newskills_row`, beside what the model is asked; other rows have the fields that the grader
reads beside `responses_create_params`.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from newskills.base.errors import DataError
from newskills.base.reading.reply_text import join_turns
from newskills.base.records import Cause, Row
from newskills.metrics.generic import GenericMetric
from newskills.models.decode import member_of
from newskills.models.openai_responses import FINISHES, request_keys
from newskills.run.rewarding.questions import QuestionFormat
from newskills.run.rewarding.reward import RewardItem, answered_record
from newskills.train.loops.samples import Judged

ROW, TASK, RESPONSE = "newskills_row", "responses_create_params", "response"
TASK_INDEX = "_ng_task_index"
MASKED_FIELD = "mask_sample"
VERIFIER, JUDGE = "verifier_error", "judge_failed"
"""Gym's names for what went wrong; it groups by them."""
_judge: Cause = "judge"


def gym_row(asking: QuestionFormat, row: Row) -> Row:
    """Return a prepared row as Gym has it. Raises DataError for one that the prompt does not fit."""
    request = asking.request(row)
    task = request_keys(request)
    task.pop("store")
    return {TASK: task, ROW: row}


def read_body(body: bytes) -> Row:
    """Read the JSON object of a request. Raises DataError."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"The body of the request is not a JSON object: {error}.") from error
    if not isinstance(value, dict):
        raise DataError("The body of the request is not a JSON object.")
    return value


def read_verify(body: Row, asking: QuestionFormat | None) -> RewardItem:
    """Read the answer to be rewarded; `asking` is that of the benchmark whose rows these are. Raises DataError."""
    response = body.get(RESPONSE)
    if not isinstance(response, dict) or not isinstance(response.get("output"), list):
        raise DataError(f"The row has no `{RESPONSE}` with `output`.")
    uses_tools = asking is not None and not asking.one_reply
    text, finish_reason = _said_and_finish(response, whole=uses_tools)
    row = body.get(ROW)
    if not isinstance(row, dict):
        row = {name: value for name, value in body.items() if name not in (TASK, RESPONSE) and name[:4] != "_ng_"}
        record = answered_record(row, text, finish_reason)
    elif asking is None:
        record = answered_record(row, text, finish_reason)
    else:
        record = asking.record(row, text, finish_reason)
    tokens = member_of(response.get("usage"), "output_tokens")
    token_count = tokens if isinstance(tokens, int) else None
    return RewardItem(record=record, written=text, tokens=token_count)


def _said_and_finish(response: Row, *, whole: bool) -> tuple[str, str]:
    """Return what the model said, and how it ended; `whole`: in all turns, as our own tools have it, else behind the
    last call of a tool."""
    texts: list[str] = []
    for item in response["output"]:
        kind = member_of(item, "type")
        if kind == "message":
            content = item.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            texts += [
                str(part.get("text") or part.get("refusal") or "") for part in parts if isinstance(part, dict)
            ]
        elif kind != "reasoning" and not whole:
            texts.clear()
    if whole:
        text = join_turns(list(filter(None, texts)), "\n")
    else:
        text = "".join(texts)
    reason = member_of(response.get("incomplete_details"), "reason")
    if reason:
        return text, FINISHES.get(str(reason), "length")
    return text, "stop"


def verdict_of(judged: Judged) -> Row:
    """Return the fields of a verdict; one without a reward does not count."""
    if judged.reward is None:
        failure_kind = JUDGE if judged.why.startswith(_judge) else VERIFIER
        return masked_verdict(judged.why, failure_kind)
    return {
        "reward": judged.reward,
        MASKED_FIELD: False,
        "failure_kind": None,
        "failure_reason": None,
        "outcome": judged.outcome,
        "predicted_answer": judged.answer,
        "reward_components": judged.components,
    }


def masked_verdict(why: str, kind: str = VERIFIER) -> Row:
    """Return the fields of a verdict that does not count, which no run of Gym's ends by."""
    return {
        "reward": 0.0,
        MASKED_FIELD: True,
        "failure_kind": kind,
        "failure_reason": why[:2000],
        "outcome": "unscored",
        "predicted_answer": None,
    }


def aggregate_metrics(responses: Sequence[Any]) -> Row:
    """Return Gym's metrics of verdicts; masked ones are counted, and count for nothing else."""
    tasks: dict[int, list[Row]] = {}
    for number, response in enumerate(responses):
        if isinstance(response, dict):
            tasks.setdefault(response.get(TASK_INDEX, number), []).append(response)
    rewards = {task: [row["reward"] for row in rows if _is_counted(row)] for task, rows in tasks.items()}
    every = [reward for some in rewards.values() for reward in some]
    counts: Row = {
        "num_scored": len(every),
        "num_masked": sum(len(rows) for rows in tasks.values()) - len(every),
        **{f"masked/{kind}": number for kind, number in sorted(_failure_kinds(tasks.values()).items())},
    }
    metrics: Row = {**_reward_spread(every), **_pass_metrics(tasks)}
    return {
        "group_level_metrics": [{TASK_INDEX: task, **_reward_spread(some)} for task, some in rewards.items()],
        "agent_metrics": {**metrics, **counts},
        "key_metrics": {
            name: value for name, value in metrics.items() if name == "mean/reward" or name.endswith("/accuracy")
        }
        | {"num_masked": counts["num_masked"]},
    }


def _is_counted(row: Row) -> bool:
    return row.get(MASKED_FIELD) is not True and isinstance(row.get("reward"), int | float)


def _failure_kinds(tasks: Any) -> Counter[str]:
    return Counter(str(row.get("failure_kind")) for rows in tasks for row in rows if not _is_counted(row))


def _reward_spread(rewards: Sequence[float]) -> Row:
    if not rewards:
        return {}
    deviation = statistics.stdev(rewards) if len(rewards) > 1 else 0.0
    return {
        "mean/reward": statistics.fmean(rewards),
        "max/reward": max(rewards),
        "min/reward": min(rewards),
        "std/reward": deviation,
    }


def _pass_metrics(tasks: dict[int, list[Row]]) -> Row:
    """Return pass@k, averages and votes in percent, by the metric of every grader that says right or wrong."""
    metric = GenericMetric()
    most = max((len(rows) for rows in tasks.values()), default=0)
    for task, rows in tasks.items():
        records = [
            {
                "id": str(task),
                "outcome": row.get("outcome") if _is_counted(row) else "unscored",
                "predicted_answer": row.get("predicted_answer"),
            }
            for row in rows
        ]
        metric.update([*records, *[{"id": str(task), "outcome": "unscored"}] * (most - len(rows))])
    return {
        f"{mode}/{name}": number.value
        for mode, numbers in metric.numbers().items()
        for name, number in numbers.items()
        if number.n
    }
