# SPDX-License-Identifier: Apache-2.0
"""Records of others whose verdict still stands in a text: they are graded as they are read.

NeMo-Skills reads such texts whenever it makes a table, so its files have no field that tells the verdict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.records import Row
from newskills.metrics.counting.base import is_lost
from newskills.run.grade import grade_rows
from newskills.run.reporting.results import read_output


class TextVerdict(Struct, frozen=True, kw_only=True):
    """How the verdict is had from texts.

    grader, config   what reads them
    texts            the fields that it reads
    verdict          a field that only graded records have
    """

    grader: str
    texts: tuple[str, ...]
    verdict: str
    config: Row = {}


_HOTPOTQA = ("generation", "expected_answer", "supporting_facts")
TEXT_VERDICTS: Mapping[str, TextVerdict] = {
    "answer-judgement": TextVerdict(
        grader="answer-judgement",
        texts=("judgement", "generation", "expected_judgement"),
        verdict="judgement_kind",
    ),
    "arena": TextVerdict(
        grader="arena", texts=("judgement-gen-base", "judgement-base-gen"), verdict="arena_games"
    ),
    "gradingbench": TextVerdict(
        grader="gradingbench", texts=("judgement", "generation", "expected_answer"), verdict="exact"
    ),
    "hotpotqa": TextVerdict(grader="hotpotqa", texts=_HOTPOTQA, verdict="answer_em"),
    "hotpotqa_closedbook": TextVerdict(
        grader="hotpotqa", texts=_HOTPOTQA, verdict="answer_em", config={"supporting_facts": False}
    ),
    "mmau_pro_open_ended": TextVerdict(grader="mmau-pro", texts=("judgement",), verdict="judge_correct"),
    "mt-bench": TextVerdict(grader="rating", texts=("judgement-turn-1", "judgement-turn-2"), verdict="ratings"),
    "translation": TextVerdict(
        grader="translation",
        texts=("generation", "translation", "target_language"),
        verdict="bleu_counts",
        config={"reference_key": "translation"},
    ),
}
"""Metric → how, for metrics whose records a grader of ours would have marked."""


def text_verdict(metric: str, file: Path) -> TextVerdict | None:
    """Return how to read the records of `file`; None where a grader has seen them. Raises DataError."""
    how = TEXT_VERDICTS.get(metric)
    first = next(read_output(file), None) if how is not None else None
    if how is None or first is None or how.verdict in first or isinstance(first.get("grader"), str):
        return None
    if any(name in first for name in how.texts):
        return how
    return None


def fields_of(how: TextVerdict) -> Mapping[str, Any]:
    """Return the keys of a record that are needed, with any type."""
    return dict.fromkeys(how.texts, Any)


def grade_problems(problems: Iterable[Sequence[Row]], how: TextVerdict) -> Iterator[list[Row]]:
    """Yield the problems with the verdicts of their samples. Failed generations stay as they are: nothing was said."""
    waiting: deque[list[Row]] = deque()

    def samples() -> Iterator[Row]:
        for problem in problems:
            waiting.append(list(problem))
            yield from (dict(row) for row in problem)

    graded = grade_rows(samples(), how.grader, dict(how.config))
    for first in graded:
        problem = waiting.popleft()
        verdicts = [first, *islice(graded, len(problem) - 1)]
        yield [row if is_lost(row) else made for row, made in zip(problem, verdicts, strict=True)]
