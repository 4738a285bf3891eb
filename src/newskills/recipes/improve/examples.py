# SPDX-License-Identifier: Apache-2.0
"""Rejection sampling: replies of the model (and of others) → different correct ones as training examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.recipes.improve.records import ExampleCount, RoundMixture
from newskills.run.rewarding.reward import answered_record
from newskills.run.training.skill import Skill, Verdict

TRUNCATED_FINISH = "length"
"""The finish reason of a reply that reached its limit of tokens."""


class GradedReply(NamedTuple):
    """A reply to a problem; `outcome` as its record has it."""

    problem: str
    text: str
    outcome: str
    finish_reason: str


def read_replies(files: Sequence[Path]) -> Iterator[GradedReply]:
    """Read the replies of an evaluation. Raises DataError where the reasoning is kept apart: it would not be
    learnt."""
    for path in files:
        for row in read_rows(path):
            if row.get("reasoning_content"):
                raise DataError(
                    f"{path} keeps the reasoning apart from the reply, so a model would learn to answer without it.",
                    hint="Serve the model without a reasoning parser.",
                )
            yield GradedReply(str(row["id"]), row["generation"], row["outcome"], row.get("finish_reason") or "")


def grade_solutions(
    rows: Sequence[Row], solutions: Mapping[str, Sequence[str]], verdict: Verdict
) -> list[GradedReply]:
    """Return the replies of others to these problems, graded like the model's own."""
    pairs = [(row, text) for row in rows for text in solutions.get(row["id"], ())]
    scores = verdict([answered_record(row, text, "stop") for row, text in pairs])
    return [
        GradedReply(row["id"], text, score.outcome, "stop")
        for (row, text), score in zip(pairs, scores, strict=True)
    ]


def select_replies(
    replies: Sequence[GradedReply], mixture: RoundMixture, per_problem: int
) -> tuple[list[GradedReply], ExampleCount]:
    """Select different correct replies, at most `per_problem` of each problem; and count how many were left
    out, why."""
    outcomes: dict[str, Counter[str]] = {}
    for reply in replies:
        outcomes.setdefault(reply.problem, Counter())[reply.outcome] += 1
    left_out: Counter[str] = Counter()
    chosen: dict[str, dict[str, GradedReply]] = {}
    for reply in replies:
        counts = outcomes[reply.problem]
        kept = chosen.setdefault(reply.problem, {})
        text = reply.text.strip()
        if reply.outcome == "unscored":
            left_out["unscored"] += 1
        elif reply.outcome != "correct" or not text:
            left_out["wrong"] += 1
        elif reply.finish_reason == TRUNCATED_FINISH:
            left_out["cut_off"] += 1
        elif text in kept:
            left_out["repeated"] += 1
        elif mixture.hard and 2 * counts["correct"] > counts.total():
            left_out["too_easy"] += 1
        elif len(kept) == per_problem:
            left_out["too_many"] += 1
        else:
            kept[text] = reply
    selected = [reply for kept in chosen.values() for reply in kept.values()]
    names = ("unscored", "wrong", "cut_off", "repeated", "too_easy", "too_many")
    count = ExampleCount(
        problems=len(outcomes),
        replies=len(replies),
        earlier=0,
        examples=len(selected),
        **{name: left_out[name] for name in names},
    )
    return selected, count


def example_rows(selected: Sequence[GradedReply], rows: Sequence[Row], skill: Skill) -> Iterator[Row]:
    """Yield `{input, output, id}`, which `ns sft` takes as they are. Raises ConfigError, DataError."""
    by_id = {row["id"]: row for row in rows}
    for reply in selected:
        yield {**skill.pair(by_id[reply.problem], reply.text), "id": reply.problem}


def mixed_problems(replies: Sequence[GradedReply], rows: Sequence[Row], *, hard: bool) -> list[Row]:
    """Return problems for GRPO: those with both correct and wrong replies, as others have no advantage to learn
    from."""
    correct: Counter[str] = Counter(reply.problem for reply in replies if reply.outcome == "correct")
    scored: Counter[str] = Counter(reply.problem for reply in replies if reply.outcome != "unscored")
    most = 0.5 if hard else 1.0
    return [
        row
        for row in rows
        if 0 < correct[row["id"]] < scored[row["id"]] and correct[row["id"]] <= most * scored[row["id"]]
    ]
