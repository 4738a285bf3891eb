# SPDX-License-Identifier: Apache-2.0
"""Two runs on the same problems: the difference with its interval, and the flips, told as stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from newskills.base.errors import UnknownNameError
from newskills.base.paired import paired_difference
from newskills.base.records import Row
from newskills.base.store import LONGEST_LINE
from newskills.run.reporting.predictions import decoder_of
from newskills.view.comparison.changes import CHANGE_WORDS, ChangeKind, change_text, kind_of_change
from newskills.view.index import FileIndex
from newskills.view.library import IndexedBenchmark, Library
from newskills.view.pages.graded import GradedScores, graded_scores
from newskills.view.pages.overview import settings_of
from newskills.view.rows import OUTCOME_NAMES
from newskills.view.stories import STORIES, STORY_FIELDS, STORY_NAMES, Story, story_by_ending, story_by_record
from newskills.view.tables import CORRECT_CODE, SCORED_CODES, Samples, by_problem, samples_of

MOST_LISTED = 2_000
_record = decoder_of(STORY_FIELDS)
_kept: WeakKeyDictionary[FileIndex, dict[tuple[int, int], Story]] = WeakKeyDictionary()
"""Stories that were read, by inode of the file and number of the record."""


class ComparedSide(NamedTuple):
    """One of two runs: its samples, and of each problem how many are right and scored."""

    indexed: IndexedBenchmark
    samples: Samples
    right: Any
    scored: Any
    place: dict[int, int]
    graded: GradedScores | None


class _Flip(NamedTuple):
    identity: int
    first: float
    second: float
    change: str
    first_sample: tuple[int, int]
    second_sample: tuple[int, int]


def comparison_page(library: Library, first: str, second: str, benchmark: str) -> Row:
    """Compare a benchmark of `first` with that of `second`. Raises UnknownNameError, DataError, and says what is
    missing on either side."""
    sides = [read_side(library, name, benchmark) for name in (first, second)]
    a, b = sides
    common = [identity for identity in a.place if identity in b.place]
    scores_of, score = _problem_pairing(a, b)
    kind = kind_of_change(max(len(side.samples.sizes) for side in sides), graded=bool(score))
    pairs: Counter[str] = Counter()
    flips: list[_Flip] = []
    scores: list[tuple[list[float], list[float]]] = []
    for identity in common:
        left, right = scores_of(identity)
        if not left or not right:
            pairs["unscored"] += 1
            continue
        scores.append((left, right))
        before, after = sum(left) / len(left), sum(right) / len(right)
        pairs[_change_direction(before, after, kind)] += 1
        if before != after:
            flips.append(
                _Flip(
                    identity,
                    before,
                    after,
                    change_text(kind, left, right),
                    _first_sample(a, identity, after > before),
                    _first_sample(b, identity, before > after),
                )
            )
    flips.sort(key=lambda flip: (-abs(flip.second - flip.first), flip.first_sample))
    listed = [_flip_row(flip, story, sides) for flip, story in zip(flips, _flip_stories(a, b, flips), strict=True)]
    stories = Counter((flip["direction"], flip["story"]) for flip in listed)
    return {
        "first": first,
        "second": second,
        "benchmark": benchmark,
        "score": score,
        "change": kind,
        "words": dict(zip(("gain", "loss"), CHANGE_WORDS[kind], strict=True)),
        "progress": min(a.indexed.progress, b.indexed.progress),
        "common": len(common),
        "only_first": len(a.place) - len(common),
        "only_second": len(b.place) - len(common),
        "unscored": pairs["unscored"],
        "same": pairs["same"],
        "same_right": pairs["same_right"],
        "same_wrong": pairs["same_wrong"],
        "gains": pairs["gain"],
        "losses": pairs["loss"],
        "difference": _score_difference(scores),
        "stories": [
            {
                "direction": direction,
                "story": story,
                "name": STORY_NAMES[story],
                "text": STORIES[story],
                "flips": count,
            }
            for (direction, story), count in stories.most_common()
        ],
        "flips": listed[:MOST_LISTED],
        "settings": _changed_settings(library, a.indexed, b.indexed),
    }


def paired_scores(a: ComparedSide, b: ComparedSide) -> list[Scores]:
    """Return the scores of each problem that has a verdict on both sides."""
    scores_of, _ = _problem_pairing(a, b)
    both = (scores_of(identity) for identity in a.place if identity in b.place)
    return [(left, right) for left, right in both if left and right]


def read_side(library: Library, name: str, benchmark: str) -> ComparedSide:
    """Read a benchmark of a run, as far as it is indexed. Raises UnknownNameError, DataError."""
    run = library.run(name)
    if benchmark not in run.benchmarks:
        raise UnknownNameError(f"benchmark in {name}", benchmark, run.benchmarks)
    indexed = library.indexed(name, benchmark)
    samples = samples_of(indexed)
    right, scored = by_problem(samples)
    place = {identity: number for number, identity in enumerate(samples.ids)}
    return ComparedSide(indexed, samples, right, scored, place, graded_scores(indexed.results))


Scores = tuple[list[float], list[float]]
"""Of one problem on both sides."""


def _problem_pairing(a: ComparedSide, b: ComparedSide) -> tuple[Callable[[int], Scores], str]:
    """Return the lookup from identity to the scores of a problem on both sides, and the name of the score, empty
    for right and wrong."""
    same_seeds = len(a.samples.sizes) == len(b.samples.sizes)
    if a.graded or b.graded:
        name = (a.graded or b.graded or GradedScores("", {})).name
        return lambda identity: _graded_pair(a, b, identity, same_seeds), name
    if same_seeds:
        return lambda identity: _paired_scores(a, b, identity), ""
    return lambda identity: (_problem_scores(a, identity), _problem_scores(b, identity)), ""


def _graded_pair(a: ComparedSide, b: ComparedSide, identity: int, same_seeds: bool) -> Scores:
    left, right = _file_scores(a, identity), _file_scores(b, identity)
    if not same_seeds:
        return [x for x in left if x is not None], [y for y in right if y is not None]
    both = [(x, y) for x, y in zip(left, right, strict=False) if x is not None and y is not None]
    return [x for x, _ in both], [y for _, y in both]


def _file_scores(side: ComparedSide, identity: int) -> Sequence[float | None]:
    """Return the score of a problem in each file; 1 and 0 on a side whose verdicts are right and wrong."""
    if side.graded is not None:
        return side.graded.by_problem.get(identity, [])
    outcomes = _file_outcomes(side, side.place[identity])
    return [float(outcome == CORRECT_CODE) if outcome in SCORED_CODES else None for outcome in outcomes]


def _problem_scores(side: ComparedSide, identity: int) -> list[float]:
    """Return 1 and 0 for the scored samples of a problem."""
    number = side.place[identity]
    right, scored = side.right[number], side.scored[number]
    return [1.0] * right + [0.0] * (scored - right)


def _paired_scores(a: ComparedSide, b: ComparedSide, identity: int) -> tuple[list[float], list[float]]:
    """Return the scores, as `_problem_scores` does, of the seeds that have a verdict on both sides."""
    left, right = a.place[identity], b.place[identity]
    seeds = len(a.samples.sizes)
    if a.scored[left] == b.scored[right] == seeds:
        return _problem_scores(a, identity), _problem_scores(b, identity)
    both = [
        (first, second)
        for first, second in zip(_file_outcomes(a, left), _file_outcomes(b, right), strict=True)
        if first in SCORED_CODES and second in SCORED_CODES
    ]
    return [float(first == CORRECT_CODE) for first, _ in both], [
        float(second == CORRECT_CODE) for _, second in both
    ]


def _file_outcomes(side: ComparedSide, problem: int) -> list[int]:
    """Return the outcome of each file; 0 where it has no sample of the problem."""
    outcomes, start = [], 0
    for size in side.samples.sizes:
        number = _find_sample(side.samples, start, size, problem)
        outcomes.append(0 if number is None else side.samples.outcome[start + number])
        start += size
    return outcomes


def _change_direction(before: float, after: float, kind: ChangeKind) -> str:
    """Return the direction of a change: `same_right` and `same_wrong` where all samples are right or wrong on both
    sides, else `same`, `gain` or `loss`."""
    if before == after:
        if kind == "score":
            return "same"
        return {1.0: "same_right", 0.0: "same_wrong"}.get(before, "same")
    if after > before:
        return "gain"
    return "loss"


def _first_sample(side: ComparedSide, identity: int, failing: bool) -> tuple[int, int]:
    """Return (file, number) of the first sample of a problem that is not right, or is; of the lowest or highest
    score."""
    wanted, start, first = side.place[identity], 0, (0, 0)
    has_first = False
    if side.graded is not None:
        scored = [(value, file) for file, value in enumerate(_file_scores(side, identity)) if value is not None]
        choose = min if failing else max
        _, file = choose(scored, key=lambda pair: pair[0])
        number = _find_sample(side.samples, sum(side.samples.sizes[:file]), side.samples.sizes[file], wanted)
        return file, number or 0
    for file, size in enumerate(side.samples.sizes):
        number = _find_sample(side.samples, start, size, wanted)
        if number is not None and side.samples.outcome[start + number] in SCORED_CODES:
            right = side.samples.outcome[start + number] == CORRECT_CODE
            if not has_first or right != failing:
                first, has_first = (file, number), True
            if right != failing:
                break
        start += size
    return first


def _find_sample(samples: Samples, start: int, size: int, problem: int) -> int | None:
    """Return the number of a problem's sample in one file, which is mostly that of the problem; None where there is
    none."""
    if problem < size and samples.problem[start + problem] == problem:
        return problem
    try:
        return samples.problem.index(problem, start, start + size) - start
    except ValueError:
        return None


def _flip_row(flip: _Flip, story: Story, sides: Sequence[ComparedSide]) -> Row:
    files = flip.first_sample[0], flip.second_sample[0]
    direction = "gain" if flip.second > flip.first else "loss"
    return {
        "direction": direction,
        "change": flip.change,
        "seeds": [side.indexed.results.files[file].seed for side, file in zip(sides, files, strict=True)],
        "first": flip.first,
        "second": flip.second,
        "samples": [*flip.first_sample, *flip.second_sample],
        "story": story,
    }


def _flip_stories(a: ComparedSide, b: ComparedSide, flips: Sequence[_Flip]) -> Iterator[Story]:
    """Yield the failure reason of the sample of each flip that is not right. Records are read where the index does
    not tell, once."""
    failed = []
    for flip in flips:
        if flip.second > flip.first:
            failed.append((a, *flip.first_sample))
        else:
            failed.append((b, *flip.second_sample))
    endings = [_sample_ending(side, file, number) for side, file, number in failed]
    unknown: dict[FileIndex, list[tuple[int, str]]] = {}
    for (side, file, number), (outcome, story) in zip(failed, endings, strict=True):
        if story is None:
            unknown.setdefault(side.indexed.indexes[file], []).append((number, outcome))
    read = {index: _read_stories(index, samples) for index, samples in unknown.items()}
    for (side, file, number), (_, story) in zip(failed, endings, strict=True):
        yield story or read[side.indexed.indexes[file]][number]


def _sample_ending(side: ComparedSide, file: int, number: int) -> tuple[str, Story | None]:
    place = sum(side.samples.sizes[:file]) + number
    outcome = OUTCOME_NAMES[side.samples.outcome[place]]
    cause = side.samples.causes[side.samples.cause[place]]
    return outcome, story_by_ending(outcome, cause, side.samples.finishes[side.samples.finish[place]])


def _read_stories(index: FileIndex, samples: Sequence[tuple[int, str]]) -> dict[int, Story]:
    """Return the failure reason of each record by its number; `samples`: (number, outcome)."""
    kept: dict[tuple[Any, int], Story] = {}
    if not index.file.unfinished:
        kept = _kept.setdefault(index, {})
    version = index.head.file
    missing = sorted((number, outcome) for number, outcome in samples if (version, number) not in kept)
    lines = index.lines([number for number, _ in missing], LONGEST_LINE)
    for (number, outcome), line in zip(missing, lines, strict=True):
        row: Row = {}
        try:
            if line is not None:
                row = _record.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        kept[version, number] = story_by_record(row, outcome)
    return {number: kept[version, number] for number, _ in samples}


def _score_difference(scores: list[tuple[list[float], list[float]]]) -> Row | None:
    """Return second minus first in points, with a 95 % interval; None for fewer than two paired problems."""
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


def _changed_settings(library: Library, a: IndexedBenchmark, b: IndexedBenchmark) -> list[Row]:
    first, second = settings_of(library, a.results), settings_of(library, b.results)
    return [
        {"setting": name, "first": first.get(name, ""), "second": second.get(name, "")}
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]
