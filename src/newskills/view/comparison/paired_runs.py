# SPDX-License-Identifier: Apache-2.0
"""Two or more runs, paired by sample: differences with intervals and p-values, and the problems that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.paired import SIGNIFICANCE_LEVEL, holm, paired_difference
from newskills.base.records import Outcome
from newskills.view.comparison.changes import ChangeKind, change_text, kind_of_change
from newskills.view.comparison.ingredients import MUST_AGREE, Difference, Kind, run_differences
from newskills.view.comparison.records import (
    BenchmarkRecords,
    RunRecords,
    SampleScore,
    read_run,
    refuse_benchmarks_among,
)
from newskills.view.stories import STORY_NAMES, Story

Verdict = Literal["better", "worse", "undecided"]


class CompareOptions(Struct, frozen=True, kw_only=True):
    """benchmarks: only these (none = all that both have). allow: kinds of difference that are accepted.

    margin: points that a run may lose and still count as not worse.
    """

    benchmarks: tuple[str, ...] = ()
    allow: tuple[Kind, ...] = ()
    margin: float = 1.0


class Side(Struct, frozen=True, kw_only=True):
    """One run on the pairs that are compared. Values in percent; `tokens` on average, None where none are known."""

    run: str
    value: float
    no_answer: float
    truncated: float
    tokens: float | None


class Flip(Struct, frozen=True, kw_only=True):
    """A problem whose mean score differs. `change`: `wrong → right`; `1/4 → 3/4` of its samples are right.

    before, after  outcome of one sample on each side: on the lower side the first with the lowest score, on the other
                   the first with the highest
    seed           of the sample on the lower side
    story          why that one is not right, as its record tells
    """

    id: str
    seed: int | None
    gained: bool
    change: str
    before: Outcome
    after: Outcome
    story: Story


class BenchmarkComparison(Struct, frozen=True, kw_only=True):
    """`after` less `before` on one benchmark, in points (percent), over problems with a score on both sides.

    p_adjusted            by Holm's method for all comparisons made at once; it decides the verdict
    problems, pairs       problems, and pairs of samples, that are compared
    change                what `gained` and `lost` count: problems with another verdict, or another share of right
                          samples, or another score
    unscored              pairs of samples left out because a side is unscored
    only_before, only_after   ids of problems that the other run lacks
    smallest_significant  minimum significant difference of these data, in points
    minimum_detectable    points of a true difference that is seen in 80 % of such comparisons
    not_worse             whether the interval excludes a loss of more than `margin` points
    """

    benchmark: str
    score: str
    before: Side
    after: Side
    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    method: str
    verdict: Verdict
    problems: int
    pairs: int
    unscored: int
    smallest_significant: float
    minimum_detectable: float
    margin: float
    not_worse: bool
    change: ChangeKind
    gained: int
    lost: int
    stories: dict[str, int]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    differs: tuple[Difference, ...]
    flips: tuple[Flip, ...]
    sentence: str = ""


class RunName(Struct, frozen=True):
    name: str
    path: str


class Comparison(Struct, frozen=True, kw_only=True):
    """All runs against the first. `left_out`: benchmark → why it is not compared; `notes`: what was found broken."""

    runs: tuple[RunName, ...]
    benchmarks: tuple[BenchmarkComparison, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]


class ComparedPair(NamedTuple):
    """A sample of the first run and its counterpart."""

    id: str
    seed: int | None
    before: SampleScore
    after: SampleScore


def compare_run_folders(runs: Sequence[Path], options: CompareOptions = CompareOptions()) -> Comparison:  # noqa: B008 - frozen
    """Compare all runs with the first. Raises ConfigError (fewer than two runs, or names of benchmarks among them),
    DataError (nothing to compare, or something differs that must not)."""
    if len(runs) < 2:
        raise ConfigError("A comparison needs two folders of results.", hint="Type: ns compare BEFORE AFTER")
    refuse_benchmarks_among(runs, options.benchmarks)
    names = run_names(runs)
    records = [read_run(path, name, options.benchmarks) for path, name in zip(runs, names, strict=True)]
    left_out: dict[str, str] = {}
    compared: list[BenchmarkComparison] = []
    for other in records[1:]:
        for name in _common_benchmarks(records[0], other, left_out):
            before, after = records[0].benchmarks[name], other.benchmarks[name]
            result = _compare_benchmark(before, after, (records[0].name, other.name), options)
            if result is None:
                left_out[name] = f"{records[0].name} and {other.name} have fewer than two problems in common."
            else:
                compared.append(result)
    _refuse_differences(compared, options)
    if not compared:
        reasons = " ".join(f"{name}: {why}" for name, why in left_out.items())
        raise DataError(f"There is nothing to compare. {reasons}".rstrip())
    return Comparison(
        runs=tuple(RunName(name, str(path)) for name, path in zip(names, runs, strict=True)),
        benchmarks=tuple(_adjust_p_values(compared)),
        left_out=left_out,
        notes=tuple(dict.fromkeys(note for run in records for note in run.notes)),
    )


def run_names(paths: Sequence[Path]) -> list[str]:
    """Return the last parts of the paths, as many as tell them apart; letters are added where nothing does."""
    resolved = [path.resolve().parts for path in paths]
    for depth in range(1, max(map(len, resolved)) + 1):
        names = ["/".join(parts[-depth:]) for parts in resolved]
        if len(set(names)) == len(names):
            return names
    return [f"{parts[-1]} ({chr(ord('A') + i)})" for i, parts in enumerate(resolved)]


def _common_benchmarks(first: RunRecords, other: RunRecords, left_out: dict[str, str]) -> list[str]:
    """Return the benchmarks of both runs; why the others are left out goes into `left_out`."""
    for run, also in ((first, other), (other, first)):
        for name, why in run.left_out.items():
            left_out[name] = f"{run.name}: {why}"
        for name in run.benchmarks:
            if name not in also.benchmarks and name not in also.left_out:
                left_out[name] = f"{also.name} has no results of it."
    return [name for name in first.benchmarks if name in other.benchmarks]


def _compare_benchmark(
    before: BenchmarkRecords, after: BenchmarkRecords, names: tuple[str, str], options: CompareOptions
) -> BenchmarkComparison | None:
    common = [identity for identity in before.samples if identity in after.samples]
    pairs, unscored = _paired_samples(before, after, common)
    by_problem = _problem_scores(before, after, common, pairs)
    if len(by_problem) < 2:
        return None
    scores = list(by_problem.values())
    result = paired_difference([a for a, _ in scores], [b for _, b in scores])
    graded = any(value not in (0, 1) for sides in scores for own in sides for value in own)
    change = kind_of_change(max(len(before.files), len(after.files)), graded=graded)
    flips = tuple(_flipped_problems(before, after, by_problem, change))
    stories: dict[str, int] = {}
    for flip in flips:
        direction = "gained" if flip.gained else "lost"
        key = f"{direction}: {STORY_NAMES[flip.story]}"
        stories[key] = stories.get(key, 0) + 1
    return BenchmarkComparison(
        benchmark=before.benchmark,
        score=before.score,
        before=_side_score(names[0], [a for a, _ in scores], [pair.before for pair in pairs]),
        after=_side_score(names[1], [b for _, b in scores], [pair.after for pair in pairs]),
        difference=100 * result.difference,
        low=100 * result.low,
        high=100 * result.high,
        p_value=result.p_value,
        p_adjusted=result.p_value,
        method=result.method,
        verdict="undecided",
        problems=result.n,
        pairs=len(pairs),
        unscored=unscored,
        smallest_significant=100 * result.smallest_significant,
        minimum_detectable=100 * result.minimum_detectable,
        margin=options.margin,
        not_worse=100 * result.low > -options.margin,
        change=change,
        gained=sum(flip.gained for flip in flips),
        lost=sum(not flip.gained for flip in flips),
        stories=stories,
        only_before=tuple(identity for identity in before.samples if identity not in after.samples),
        only_after=tuple(identity for identity in after.samples if identity not in before.samples),
        differs=tuple(run_differences(before, after)),
        flips=flips,
    )


def _paired_samples(
    before: BenchmarkRecords, after: BenchmarkRecords, common: Sequence[str]
) -> tuple[list[ComparedPair], int]:
    """Return the pairs of samples of the same problem and file, and how many pairs were left out because one of them is
    unscored.

    Runs with different numbers of seeds are paired as far as the shorter one goes.
    """
    pairs, unscored = [], 0
    for identity in common:
        sides = zip(before.seeds, before.samples[identity], after.samples[identity], strict=False)
        for seed, a, b in sides:
            if a is None or b is None:
                continue
            if a.score is None or b.score is None:
                unscored += 1
            else:
                pairs.append(ComparedPair(identity, seed, a, b))
    return pairs, unscored


def _problem_scores(
    before: BenchmarkRecords, after: BenchmarkRecords, common: Sequence[str], pairs: Sequence[ComparedPair]
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the scores of each problem on both sides: of pairs where the seeds agree in number, else of all
    samples."""
    if len(before.files) != len(after.files):
        both = (
            (name, _scored_values(before.samples[name]), _scored_values(after.samples[name])) for name in common
        )
        return {name: (a, b) for name, a, b in both if a and b}
    by_problem: dict[str, tuple[list[float], list[float]]] = {}
    for pair in pairs:
        a, b = by_problem.setdefault(pair.id, ([], []))
        a.append(pair.before.score or 0.0)
        b.append(pair.after.score or 0.0)
    return by_problem


def _scored_values(samples: Sequence[SampleScore | None]) -> list[float]:
    return [sample.score for sample in samples if sample is not None and sample.score is not None]


def _side_score(run: str, scores: Sequence[Sequence[float]], samples: Sequence[SampleScore]) -> Side:
    tokens = [sample.tokens for sample in samples if sample.tokens is not None]
    return Side(
        run=run,
        value=100 * sum(sum(own) / len(own) for own in scores) / len(scores),
        no_answer=_sample_share(samples, [sample.outcome == "no_answer" for sample in samples]),
        truncated=_sample_share(samples, [sample.cause == "truncation" for sample in samples]),
        tokens=sum(tokens) / len(tokens) if tokens else None,
    )


def _sample_share(samples: Sequence[SampleScore], which: Sequence[bool]) -> float:
    if samples:
        return 100 * sum(which) / len(samples)
    return 0.0


def _flipped_problems(
    before: BenchmarkRecords,
    after: BenchmarkRecords,
    by_problem: Mapping[str, tuple[list[float], list[float]]],
    change: ChangeKind,
) -> Iterator[Flip]:
    for identity, (left, right) in by_problem.items():
        rise = sum(right) / len(right) - sum(left) / len(left)
        if not rise:
            continue
        first = _extreme_sample(before.samples[identity], lowest=rise > 0)
        second = _extreme_sample(after.samples[identity], lowest=rise < 0)
        if rise > 0:
            number, failed, seeds = *first, before.seeds
        else:
            number, failed, seeds = *second, after.seeds
        yield Flip(
            id=identity,
            seed=seeds[number],
            gained=rise > 0,
            change=change_text(change, left, right),
            before=first[1].outcome,
            after=second[1].outcome,
            story=failed.story or "content",
        )


def _extreme_sample(samples: Sequence[SampleScore | None], *, lowest: bool) -> tuple[int, SampleScore]:
    """Return the number and the sample of the first that has the lowest, or the highest, score."""
    scored = [
        (sample.score, number, sample)
        for number, sample in enumerate(samples)
        if sample is not None and sample.score is not None
    ]
    choose = min if lowest else max
    _, number, sample = choose(scored, key=lambda item: item[0])
    return number, sample


def _adjust_p_values(compared: Sequence[BenchmarkComparison]) -> Iterator[BenchmarkComparison]:
    """Yield the comparisons with Holm's p-values over all of them, the verdict that follows, and the sentence."""
    for item, p_adjusted in zip(compared, holm([item.p_value for item in compared]), strict=True):
        verdict: Verdict = "undecided"
        if p_adjusted < SIGNIFICANCE_LEVEL:
            verdict = "better" if item.difference > 0 else "worse"
        done = replace(item, p_adjusted=p_adjusted, verdict=verdict)
        yield replace(done, sentence=result_sentence(done, len(compared)))


def result_sentence(item: BenchmarkComparison, tests: int) -> str:
    """Return a sentence on the result of one comparison, as one of `tests`."""
    numbers = f"[{item.low:.1f}, {item.high:.1f}], p {p_text(item.p_value)}"
    if tests > 1:
        numbers += f" (adjusted for {tests} comparisons: p {p_text(item.p_adjusted)})"
    if item.verdict == "undecided":
        start = (
            f"No significant difference between {item.before.run} and {item.after.run}: "
            f"{item.difference:+.1f} points {numbers}"
        )
    else:
        points = abs(item.difference)
        start = f"{item.after.run} is {item.verdict} by {points:.1f} points {_loss_interval(item, numbers)}"
    if item.smallest_significant > 100:
        least = "too few problems for any difference to be significant."
    else:
        least = f"minimum significant difference: {item.smallest_significant:.1f} points."
    return f"{start}, on {item.problems:,} paired problems; {item.unscored:,} unscored; {least}"


def _loss_interval(item: BenchmarkComparison, numbers: str) -> str:
    """Return `numbers` with the interval of a loss given as that of the points lost."""
    if item.verdict == "better":
        return numbers
    return numbers.replace(f"[{item.low:.1f}, {item.high:.1f}]", f"[{-item.high:.1f}, {-item.low:.1f}]")


def p_text(p_value: float) -> str:
    """Format a p-value with two significant digits.

    >>> p_text(0.016), p_text(1e-9)
    ('= 0.016', '< 0.0001')
    """
    if p_value >= 0.0001:
        return f"= {p_value:.2g}"
    return "< 0.0001"


def _refuse_differences(compared: Sequence[BenchmarkComparison], options: CompareOptions) -> None:
    """Raise DataError that names what differs and must not, and how to compare all the same."""
    refused = [kind for kind in MUST_AGREE if kind not in options.allow]
    lines = [
        f"{item.benchmark}: {difference.kind} differs: {difference}"
        for item in compared
        for difference in item.differs
        if difference.kind in refused
    ]
    if not lines:
        return
    kinds = [kind for kind in refused if any(f": {kind} differs: " in line for line in lines)]
    shown = "".join(f"\n  {line}" for line in dict.fromkeys(lines[:12]))
    if len(lines) > 12:
        shown += f"\n  and {len(lines) - 12} more"
    raise DataError(
        f"These runs differ in {' and '.join(kinds)}, so that a difference of their scores says little about the "
        f"models:{shown}\n",
        hint=f"Compare them all the same: --allow {','.join(kinds)}",
    )


def check_benchmark(name: str, comparison: Comparison) -> None:
    """Raise DataError for a benchmark that was left out, UnknownNameError for one that neither run has."""
    if name in comparison.left_out:
        raise DataError(f"{name} is not compared: {comparison.left_out[name]}")
    if all(item.benchmark != name for item in comparison.benchmarks):
        raise UnknownNameError("benchmark", name, [item.benchmark for item in comparison.benchmarks])
