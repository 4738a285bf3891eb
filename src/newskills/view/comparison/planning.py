# SPDX-License-Identifier: Apache-2.0
"""What it takes to see a difference: problems, samples, tokens, time and money, from runs that there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.power import (
    DifferenceVariance,
    assumed_variance,
    detectable_difference,
    measured_variance,
    problem_differences,
    problems_needed,
    upper_bound,
)
from newskills.base.reading.json_values import object_or_empty
from newskills.base.stats import upper_share
from newskills.view.comparison.records import BenchmarkRecords, SampleScore, read_run


class PlanOptions(Struct, frozen=True, kw_only=True):
    """delta: points to be seen. prices: of a million tokens read, and written; None: what past runs cost."""

    delta: float
    power: float = 0.8
    paired: bool = True
    seeds: tuple[int, ...] = (1, 2, 4, 8, 16)
    prices: tuple[float, float] | None = None


class UnitCost(Struct, frozen=True, kw_only=True):
    """Of one sample; None where past runs do not tell. `seconds`: of the run's time at its concurrency."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    seconds: float | None = None
    money: float | None = None


class PlanRow(Struct, frozen=True, kw_only=True):
    """With `samples` of each problem: how many problems are needed, and what one model's evaluation takes.

    available   whether the benchmark has that many, None where its size is not known
    detectable  points that all its problems would show
    """

    samples: int
    problems: int
    available: bool | None
    detectable: float | None
    tokens: float | None
    seconds: float | None
    money: float | None


class EvalPlan(Struct, frozen=True, kw_only=True):
    """For one benchmark. `basis`: what the variance was taken from, in a sentence."""

    benchmark: str
    delta: float
    power: float
    paired: bool
    size: int | None
    basis: str
    cost: UnitCost
    rows: tuple[PlanRow, ...]


def plan_from_runs(runs: Sequence[Path], wanted: Sequence[str], options: PlanOptions) -> list[EvalPlan]:
    """Plan from one run, or from two that differ about as much as those that will be compared.

    Raises DataError where the runs have nothing in common or nothing scored, ConfigError for other numbers of them.
    """
    if len(runs) > 2:
        raise ConfigError("A plan is made from one run, or from two.")
    records = [read_run(path, str(path), wanted) for path in runs]
    common = [name for name in records[0].benchmarks if all(name in run.benchmarks for run in records)]
    plans = [
        plan
        for name in common
        if (plan := _plan_benchmark([run.benchmarks[name] for run in records], options)) is not None
    ]
    if not plans:
        reasons = " ".join(why for run in records for why in run.left_out.values())
        raise DataError(f"There is nothing to plan from: no benchmark has two scored problems. {reasons}".rstrip())
    return plans


def plan_from_accuracy(accuracy: float, size: int | None, options: PlanOptions) -> EvalPlan:
    """Plan from an `accuracy` in percent; `size`: the number of problems, if that is known."""
    variance = assumed_variance(accuracy / 100, options.delta / 100, None, paired=options.paired)
    basis = f"an accuracy of {accuracy:g} %; half of the variance is taken to be chance from sample to sample"
    return _make_plan("any benchmark", variance, basis, size, UnitCost(), options)


def _plan_benchmark(sides: Sequence[BenchmarkRecords], options: PlanOptions) -> EvalPlan | None:
    first = sides[0]
    scores = [
        {identity: own for identity, all_ in side.samples.items() if (own := _scored_values(all_))}
        for side in sides
    ]
    ids = [identity for identity in scores[0] if identity in scores[-1]]
    if len(ids) < 2:
        return None
    before = [scores[0][identity] for identity in ids]
    single = max(len(side.files) for side in sides) == 1
    if len(sides) == 2:
        variance, basis = _of_two(before, [scores[1][identity] for identity in ids], single, options)
    else:
        variance, basis = _of_one(before, single, options)
    return _make_plan(
        first.benchmark, variance, basis, _problem_count(first), unit_cost(sides, options.prices), options
    )


def _of_two(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], single: bool, options: PlanOptions
) -> tuple[DifferenceVariance, str]:
    """Return (how much two runs differ, at most; that in words)."""
    variance = measured_variance(before, after, paired=options.paired)
    basis = f"the variance of two runs over {len(before):,} problems"
    if options.paired:
        differences = problem_differences(before, after)
        variance = upper_bound(variance, differences)
        basis += ", or rather the most that it may be (upper bound at 95 %)"
        if single and variance.binary:
            discordant = sum(1 for difference in differences if difference)
            most = upper_share(discordant, len(differences))
            basis += f": {discordant:,} of them differ, so at most {100 * most:.1f} % do"
    if single:
        basis += "; with one sample of each, they do not tell what more samples are worth"
    return variance, basis


def _of_one(
    before: Sequence[Sequence[float]], single: bool, options: PlanOptions
) -> tuple[DifferenceVariance, str]:
    """Return (how much another model, better by the difference, would differ from this run; what that was taken
    from).

    Few problems tell little of how sure a model is: where all of 20 are right, one in eight may still be wrong.
    """
    n = len(before)
    accuracy = min(max(sum(sum(own) / len(own) for own in before) / n, 0.0), 1.0)
    minority = min(0.5, upper_share(min(accuracy, 1 - accuracy) * n, n))
    basis = f"one run over {n:,} problems, {100 * accuracy:.1f} % right; its variance is the most that it may be"
    if single:
        within = None
        basis += " (95 %), half of which is taken to be chance from sample to sample"
    else:
        of_pairs = measured_variance(before, before, paired=False).within
        within = upper_share(min(of_pairs, 1.0) * n, n) / 2
        basis += " (upper bound at 95 %)"
    return assumed_variance(minority, options.delta / 100, within, paired=options.paired), basis


def _problem_count(records: BenchmarkRecords) -> int:
    """Return the number of problems of the benchmark, of which a probe answers only a few."""
    rows = object_or_empty(records.facts.get("data")).get("rows")
    if not isinstance(rows, int):
        rows = 0
    return max(rows, len(records.samples))


def _scored_values(samples: Sequence[SampleScore | None]) -> list[float]:
    return [sample.score for sample in samples if sample is not None and sample.score is not None]


def unit_cost(sides: Sequence[BenchmarkRecords], prices: tuple[float, float] | None) -> UnitCost:
    """Return the average cost of a row, over the files whose exit records have it."""
    states = [state for side in sides for state in side.states if state is not None and state.rows]
    rows = sum(state.rows if state.status == "done" else state.done for state in states)
    if not rows:
        return UnitCost()
    read = _sum_or_none([state.input_tokens for state in states])
    written = _sum_or_none([state.output_tokens for state in states])
    money = _sum_or_none([state.cost for state in states])
    if prices is not None and read is not None and written is not None:
        money = (prices[0] * read + prices[1] * written) / 1e6
    ends = [state.ended - state.started for state in states if state.ended is not None and state.started]
    input_tokens = None if read is None else read / rows
    output_tokens = None if written is None else written / rows
    seconds = sum(ends) / rows if len(ends) == len(states) else None
    money_per_row = None if money is None else money / rows
    return UnitCost(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seconds=seconds,
        money=money_per_row,
    )


def _sum_or_none(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) == len(values):
        return sum(numbers)
    return None


def _make_plan(
    benchmark: str,
    variance: DifferenceVariance,
    basis: str,
    size: int | None,
    cost: UnitCost,
    options: PlanOptions,
) -> EvalPlan:
    rows = []
    for samples in options.seeds:
        problems = problems_needed(variance, samples, options.delta / 100, options.power)
        if size is None:
            detectable = None
        else:
            detectable = detectable_difference(variance, samples, size, options.power)
        total = problems * samples
        token_counts = (cost.input_tokens, cost.output_tokens)
        available = None if size is None else problems <= size
        detectable_points = None if detectable is None else 100 * detectable
        tokens = None
        if None not in token_counts:
            tokens = total * sum(value or 0.0 for value in token_counts)
        seconds = None if cost.seconds is None else total * cost.seconds
        money = None if cost.money is None else total * cost.money
        rows.append(
            PlanRow(
                samples=samples,
                problems=problems,
                available=available,
                detectable=detectable_points,
                tokens=tokens,
                seconds=seconds,
                money=money,
            )
        )
    return EvalPlan(
        benchmark=benchmark,
        delta=options.delta,
        power=options.power,
        paired=options.paired,
        size=size,
        basis=basis,
        cost=cost,
        rows=tuple(rows),
    )
