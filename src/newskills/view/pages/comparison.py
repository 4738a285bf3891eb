# SPDX-License-Identifier: Apache-2.0
"""Two runs on the same problems: the difference with its interval, and the flips, told as stories."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from newskills.base.errors import UnknownNameError
from newskills.base.paired import paired_difference
from newskills.base.records import INSTRUMENT, Row
from newskills.view.library import Indexed, Library
from newskills.view.pages.overview import settings_of
from newskills.view.records import as_text, gold_of, read_record
from newskills.view.rows import OUTCOMES
from newskills.view.tables import CORRECT, SCORED, Samples, by_problem, samples_of
from newskills.view.verdicts import answer_span

MOST_READ = 3_000
"""Flips whose records are read for their stories; those beyond are told from the index alone."""
MOST_LISTED = 2_000
STORIES = {
    "truncation": "the reply was cut off at the token limit",
    "tool": "a tool or a program failed",
    "instrument": "the instrument failed, so that there is no verdict",
    "format": "the right answer stands in the reply, and was not taken from it",
    "no_answer": "the reply has no answer",
    "content": "the model gave another answer",
}
"""Why the side that is not right is not right."""


class _Side(NamedTuple):
    indexed: Indexed
    samples: Samples
    right: Any
    scored: Any
    place: dict[int, int]


class _Flip(NamedTuple):
    identity: int
    first: float
    second: float
    first_sample: tuple[int, int]
    second_sample: tuple[int, int]


def comparison_page(library: Library, first: str, second: str, benchmark: str) -> Row:
    """From `first` to `second`. Raises UnknownNameError, DataError, and says what is missing on either side."""
    sides = [_side(library, name, benchmark) for name in (first, second)]
    a, b = sides
    common = [identity for identity in a.place if identity in b.place]
    paired = len(a.samples.sizes) == len(b.samples.sizes)
    pairs: Counter[str] = Counter()
    flips: list[_Flip] = []
    scores: list[tuple[list[float], list[float]]] = []
    for identity in common:
        left, right = _paired(a, b, identity) if paired else (_scores(a, identity), _scores(b, identity))
        if not left or not right:
            pairs["unscored"] += 1
            continue
        scores.append((left, right))
        before, after = sum(left) / len(left), sum(right) / len(right)
        pairs[_kind(before, after)] += 1
        if before != after:
            flips.append(
                _Flip(
                    identity,
                    before,
                    after,
                    _sample(a, identity, after > before),
                    _sample(b, identity, before > after),
                )
            )
    flips.sort(key=lambda flip: (-abs(flip.second - flip.first), flip.first_sample))
    listed = [_told(a, b, flip, read=number < MOST_READ) for number, flip in enumerate(flips)]
    stories = Counter((flip["direction"], flip["story"]) for flip in listed)
    return {
        "first": first,
        "second": second,
        "benchmark": benchmark,
        "progress": min(a.indexed.progress, b.indexed.progress),
        "common": len(common),
        "only_first": len(a.place) - len(common),
        "only_second": len(b.place) - len(common),
        "unscored": pairs["unscored"],
        "same_right": pairs["same_right"],
        "same_wrong": pairs["same_wrong"],
        "gains": pairs["gain"],
        "losses": pairs["loss"],
        "difference": _difference(scores),
        "stories": [
            {"direction": direction, "story": story, "text": STORIES[story], "flips": count}
            for (direction, story), count in stories.most_common()
        ],
        "flips": listed[:MOST_LISTED],
        "settings": _changed(library, a.indexed, b.indexed),
    }


def _side(library: Library, name: str, benchmark: str) -> _Side:
    run = library.run(name)
    if benchmark not in run.benchmarks:
        raise UnknownNameError(f"benchmark in {name}", benchmark, run.benchmarks)
    indexed = library.indexed(name, benchmark)
    samples = samples_of(indexed)
    right, scored = by_problem(samples)
    return _Side(
        indexed, samples, right, scored, {identity: number for number, identity in enumerate(samples.ids)}
    )


def _scores(side: _Side, identity: int) -> list[float]:
    """1 and 0 for the scored samples of a problem."""
    number = side.place[identity]
    right, scored = side.right[number], side.scored[number]
    return [1.0] * right + [0.0] * (scored - right)


def _paired(a: _Side, b: _Side, identity: int) -> tuple[list[float], list[float]]:
    """As `_scores`, of the seeds that have a verdict on both sides."""
    left, right = a.place[identity], b.place[identity]
    seeds = len(a.samples.sizes)
    if a.scored[left] == b.scored[right] == seeds:
        return _scores(a, identity), _scores(b, identity)
    both = [
        (first, second)
        for first, second in zip(_outcomes(a, left), _outcomes(b, right), strict=True)
        if first in SCORED and second in SCORED
    ]
    return [float(first == CORRECT) for first, _ in both], [float(second == CORRECT) for _, second in both]


def _outcomes(side: _Side, problem: int) -> list[int]:
    """Of each file; 0 where it has no sample of the problem."""
    outcomes, start = [], 0
    for size in side.samples.sizes:
        number = _find(side.samples, start, size, problem)
        outcomes.append(0 if number is None else side.samples.outcome[start + number])
        start += size
    return outcomes


def _kind(before: float, after: float) -> str:
    if before == after:
        return "same_right" if before >= 0.5 else "same_wrong"
    return "gain" if after > before else "loss"


def _sample(side: _Side, identity: int, failing: bool) -> tuple[int, int]:
    """(file, number) of the first sample of a problem that is not right, or is."""
    wanted, start, first = side.place[identity], 0, (0, 0)
    has_first = False
    for file, size in enumerate(side.samples.sizes):
        number = _find(side.samples, start, size, wanted)
        if number is not None:
            right = OUTCOMES[side.samples.outcome[start + number]] == "correct"
            if not has_first or right != failing:
                first, has_first = (file, number), True
            if right != failing:
                break
        start += size
    return first


def _find(samples: Samples, start: int, size: int, problem: int) -> int | None:
    """The number of a problem's sample in one file; mostly that of the problem."""
    if problem < size and samples.problem[start + problem] == problem:
        return problem
    try:
        return samples.problem.index(problem, start, start + size) - start
    except ValueError:
        return None


def _told(a: _Side, b: _Side, flip: _Flip, *, read: bool) -> Row:
    gain = flip.second > flip.first
    side, (file, number) = (a, flip.first_sample) if gain else (b, flip.second_sample)
    return {
        "direction": "gain" if gain else "loss",
        "first": flip.first,
        "second": flip.second,
        "samples": [*flip.first_sample, *flip.second_sample],
        "story": _story(side, file, number, read=read),
    }


def _story(side: _Side, file: int, number: int, *, read: bool) -> str:
    """Of the sample that is not right."""
    place = sum(side.samples.sizes[:file]) + number
    outcome = OUTCOMES[side.samples.outcome[place]]
    cause = side.samples.causes[side.samples.cause[place]]
    if cause == "truncation" or side.samples.finishes[side.samples.finish[place]] == "length":
        return "truncation"
    if cause in ("tool", "sandbox"):
        return "tool"
    if outcome in ("unscored", "damaged") or cause in INSTRUMENT:
        return "instrument"
    row = (read_record(side.indexed.indexes[file], number).row or {}) if read else {}
    if _tool_failed(row):
        return "tool"
    gold = gold_of(row)
    if gold and 0 < len(gold[1]) < 2_000 and answer_span(as_text(row.get("generation")), gold[1]):
        return "format"
    return "no_answer" if outcome == "no_answer" else "content"


def _tool_failed(row: Row) -> bool:
    metrics = row.get("tool_metrics")
    errors = metrics.get("num_tool_errors") if isinstance(metrics, dict) else None
    return bool(errors or row.get("num_code_timeouts"))


def _difference(scores: list[tuple[list[float], list[float]]]) -> Row | None:
    """Second minus first in points, with a 95 % interval; None for fewer than two paired problems."""
    if len(scores) < 2:
        return None
    difference = paired_difference([before for before, _ in scores], [after for _, after in scores])
    return {
        "value": 100 * difference.difference,
        "low": 100 * difference.low,
        "high": 100 * difference.high,
        "p_value": difference.p_value,
        "n": difference.n,
        "method": difference.method,
        "smallest_significant": 100 * difference.smallest_significant,
        "minimum_detectable": 100 * difference.minimum_detectable,
    }


def _changed(library: Library, a: Indexed, b: Indexed) -> list[Row]:
    first, second = settings_of(library, a.results), settings_of(library, b.results)
    return [
        {"setting": name, "first": first.get(name, ""), "second": second.get(name, "")}
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]
