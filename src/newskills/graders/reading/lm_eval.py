# SPDX-License-Identifier: Apache-2.0
"""Scores of lm_eval's own tasks: its filters and its `process_results`, on one record of the solver `lm_eval`.

The task's code runs as lm_eval runs it; what the model wrote is only text to it. Tasks that run programs of the model
are refused when their rows are made.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.lm_eval.building import HarnessTask, HarnessWishes, ScoringFacts, scoring_task
from newskills.base.lm_eval.package import PACKAGE, at_work, require_package
from newskills.base.lm_eval.values import pack_value
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import ungradable_score, verdict_score


class TaskParts(msgspec.Struct, frozen=True, kw_only=True):
    """The field `task` of a row."""

    origin: HarnessTask
    wishes: HarnessWishes = HarnessWishes()
    facts: ScoringFacts = ScoringFacts()


class HarnessGrader:
    """Fields written: `lm_eval_values`, filter → metric → value of this document, which aggregations take;
    `lm_eval_score`, that of the first metric where it is between 0 and 1; `predicted_answer`, what the first filter
    leaves.

    Correct is a record whose first metric has its best value; without a metric between 0 and 1, any that was measured.
    """

    name = "lm_eval"
    version = "1"

    def __init__(self) -> None:
        self._tasks: dict[bytes, Any] = {}

    def check(self) -> None:
        """Raise ConfigError where the package is missing."""
        require_package()

    def preload(self) -> None:
        """Import the package, which takes seconds, before worker processes are forked."""
        import lm_eval.api.task
        import lm_eval.tasks  # noqa: F401

        logging.getLogger(PACKAGE).setLevel(logging.ERROR)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        nothing: Row = {"predicted_answer": None, "lm_eval_score": None, "lm_eval_values": None}
        responses = record.get("responses")
        if not isinstance(responses, list) or len(responses) != len(record.get("requests") or ()):
            why = "the record has no responses: it was not made by the solver lm_eval"
            return ungradable_score(stamp, why, nothing)
        task, filtered = self._filter_answers(record, responses)
        values: dict[str, dict[str, Any]] = {
            name: task.process_results(record["doc"], answers) for name, answers in filtered.items()
        }
        first = next(iter(values.values()), {})
        answer = next(iter(filtered.values()), [None])
        fields: Row = {
            "predicted_answer": _answer_text(answer, record),
            "lm_eval_score": None,
            "lm_eval_values": {name: pack_value(own) for name, own in values.items()},
        }
        return _decide_score(stamp, fields, first, task)

    def _filter_answers(self, record: Row, responses: list[Any]) -> tuple[Any, dict[str, list[Any]]]:
        """Return the task, and filter → the answers that it leaves, one for each request."""
        from lm_eval.api.instance import Instance

        task = self._load_task(record)
        instances = [
            Instance(
                request_type=request["kind"],
                doc=record["doc"],
                arguments=_request_arguments(request, record),
                idx=place,
                metadata=(task.config.task, int(record["id"]), int(record.get("repeats") or 1)),
                resps=[tuple(reply) if isinstance(reply, list) else reply for reply in replies],
            )
            for place, (request, replies) in enumerate(zip(record["requests"], responses, strict=True))
        ]
        for each in task._filters:
            each.apply(instances)
        names = instances[0].filtered_resps
        return task, {name: [instance.filtered_resps[name] for instance in instances] for name in names}

    def _load_task(self, record: Row) -> Any:
        key = msgspec.json.encode(record["task"])
        if key not in self._tasks:
            try:
                parts = msgspec.convert(record["task"], TaskParts)
            except msgspec.ValidationError as error:
                raise ConfigError(f"The field 'task' of the record names no task of lm_eval: {error}.") from error
            with at_work():
                self._tasks[key] = scoring_task(parts.origin, parts.wishes, record["doc"], parts.facts)
        return self._tasks[key]


def _request_arguments(request: Row, record: Row) -> tuple[Any, ...]:
    if request["kind"] == "loglikelihood_rolling":
        return (request["text"],)
    context = record["contexts"][request["context"]]
    if request["kind"] == "loglikelihood":
        return context, request["continuation"]
    return context, {"until": request["until"], **request.get("settings", {})}


def _answer_text(answers: list[Any], record: Row) -> str | None:
    """Return the answer as a text: that of the reply, or the likeliest continuation."""
    if not answers:
        return None
    if isinstance(answers[0], tuple):
        return str(record.get("generation") or "").strip()
    first = answers[0]
    if isinstance(first, str):
        return first
    if first is None:
        return None
    return str(first)


def _decide_score(stamp: str, fields: Row, values: Row, task: Any) -> Score:
    name = next(iter(values), "")
    value = pack_value(values.get(name))
    if not isinstance(value, bool | int | float) or not 0 <= value <= 1:
        return verdict_score(stamp, True, fields, "measured")
    fields["lm_eval_score"] = value
    best = 0 if task.higher_is_better().get(name) is False else 1
    return verdict_score(stamp, value == best, fields, f"{name} {value}", float(value))
