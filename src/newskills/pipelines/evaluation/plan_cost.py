# SPDX-License-Identifier: Apache-2.0
"""What `ns eval --plan_cost` does: tokens, time and money of what is left, by a few answers that there are."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Request, Row, Sample, TokenPrices, Usage
from newskills.base.stats import mean_std, t_critical
from newskills.base.store import read_rows
from newskills.base.tables import print_table, print_text
from newskills.config.command_line import Parsed
from newskills.models.kinds import MODELS
from newskills.pipelines.evaluation.cost_probes import PROBES, probe_answers, probe_judges
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.specification import evaluation_spec
from newskills.pipelines.json_output import print_json
from newskills.pipelines.pages import dry_run
from newskills.pipelines.placement.cluster import target_cluster
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.preflight import check_begun
from newskills.run.evaluate import EvaluationPlan, plan_evaluation
from newskills.run.judging.generation import UNIT_PREFIX, check_judges
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.plan import BenchmarkRun
from newskills.run.planning.spec import Unit
from newskills.run.records.log import log_records
from newskills.run.records.state import RunState, load_state, usage_of
from newskills.solve.judges.judge import PREFIX
from newskills.view.comparison.plan_shown import short_number, short_time

HEAD = (
    "benchmark",
    "problems",
    "seeds",
    "answers",
    "read",
    "of these cached",
    "written",
    "time",
    "cost",
    "in batches",
    "prompts cached",
)
OPTIONAL = ("of these cached", "in batches", "prompts cached")
"""Columns that are left out where nobody knows anything."""
UNKNOWN = "—"
TOTAL = "all"


class ExpectedTotal(Struct, frozen=True, kw_only=True):
    """Of all that is left; the bounds at 95 % are None where one problem tells nothing of others."""

    value: float
    low: float | None
    high: float | None


class CostEstimate(Struct, frozen=True, kw_only=True):
    """What the rest of a benchmark, or of its judge's work, will take; None where it is not known.

    problems, seeds  of the benchmark
    answers          that are left
    cached_tokens    those of `input_tokens` that a cache has, by what was measured; `money` counts them so
    seconds          with as many requests at once as the settings allow
    batch_money      where a provider's batches are used; cached_money: where its cache has what prompts share
    """

    benchmark: str
    problems: int | None
    seeds: int | None
    answers: int
    input_tokens: ExpectedTotal | None
    output_tokens: ExpectedTotal | None
    cached_tokens: ExpectedTotal | None
    seconds: float | None
    money: ExpectedTotal | None
    batch_money: ExpectedTotal | None
    cached_money: ExpectedTotal | None


def show_costs(parsed: Parsed[EvalOptions]) -> int:
    """Print what the rest of an evaluation will take; ask some problems first where nothing is known. Raises
    NewskillsError."""
    estimates = plan_costs(parsed)
    if parsed.options.json:
        print_json(estimates)
        return 0
    rows = [_estimate_cells(estimate) for estimate in estimates]
    shown = [
        place
        for place, name in enumerate(HEAD)
        if name not in OPTIONAL or any(row[place] != UNKNOWN for row in rows)
    ]
    print_table([[row[place] for place in shown] for row in rows], [HEAD[place] for place in shown])
    work = [estimate for estimate in estimates if estimate.answers]
    if any(estimate.output_tokens is None for estimate in work):
        print_text("Some tokens are unknown: the server does not count them.")
    elif any(estimate.money is None for estimate in work):
        print_text(
            "Some prices are unknown: give ++server.price_per_million_input_tokens=PRICE and "
            "++server.price_per_million_output_tokens=PRICE, for a judge within --extra_judge_args='…'."
        )
    return 0


def plan_costs(parsed: Parsed[EvalOptions]) -> list[CostEstimate]:
    """Return what the rest of each benchmark and of each judge's work will take, and the sum of several. Raises
    NewskillsError."""
    if target_cluster(parsed.options, parsed.given, parsed.options.num_jobs) is not None:
        raise ConfigError("--plan_cost asks from this machine.", hint="Leave out --cluster.")
    plan = plan_evaluation(evaluation_spec(parsed))
    if dry_run(parsed.options, plan.answers) or plan.spec.rerun_done:
        raise ConfigError(
            "--plan_cost asks a few problems and counts what is left.",
            hint="Leave out --dry_run and --rerun_done.",
        )
    runs, judges = plan.spec.runs, plan.spec.judges
    _check_settings(plan)
    unjudged = [name for name in judges if next(_read_usages(_judging_units(plan, name)), None) is None]
    unknown = [run for run in runs if _needs_probe(plan, run, judged_next=run.name in unjudged)]
    if unknown:
        probe_answers(plan, unknown, parsed.options)
    if unjudged:
        probe_judges(plan, unjudged)
    estimates = [estimate for run in runs for estimate in _benchmark_estimates(plan, run)]
    if len(estimates) == 1:
        return estimates
    return [*estimates, _sum_estimates(estimates)]


def _check_settings(plan: EvaluationPlan) -> None:
    """Refuse to plan from answers and judgements that were made with other settings. Raises DataError."""
    with closing(RunBuilder(os.environ)) as builder:
        for piece in plan.answers:
            check_begun(piece.unit, builder)
    check_judges(plan.judgements, rerun_done=False)


def _needs_probe(plan: EvaluationPlan, run: BenchmarkRun, *, judged_next: bool) -> bool:
    """Return whether there are no answers yet, or none in a file that a judge could read."""
    units = _answer_units(plan, run.name)
    return not _begun_states(units) or (judged_next and not units[0].paths.output.exists())


def _answer_units(plan: EvaluationPlan, name: str) -> list[Unit]:
    return [piece.unit for piece in plan.answers if piece.unit.name == name]


def _judging_units(plan: EvaluationPlan, name: str) -> list[Unit]:
    return [piece.unit for piece in plan.judgements if piece.unit.name == f"{UNIT_PREFIX}{name}"]


def _begun_states(units: Sequence[Unit]) -> list[RunState]:
    """Return the states of units that have answers."""
    states = [load_state(unit.paths.state) for unit in units]
    return [state for state in states if state is not None and _done_rows(state)]


def _done_rows(state: RunState) -> int:
    if state.status == "done":
        return state.rows
    return state.done


def _benchmark_estimates(plan: EvaluationPlan, run: BenchmarkRun) -> list[CostEstimate]:
    """Return the estimate of a benchmark's answers, and that of its judge's work."""
    units = _answer_units(plan, run.name)
    rows = [state.rows for unit in units if (state := load_state(unit.paths.state)) is not None]
    total = sum(rows) + max(rows) * (len(units) - len(rows))
    seeds = len({unit.seed for unit in units})
    estimates = [_estimate_cost(run.name, units, total, seeds)]
    if judging := _judging_units(plan, run.name):
        estimates.append(_estimate_cost(f"{run.name}, judged", judging, total, seeds))
    return estimates


def _estimate_cost(name: str, units: Sequence[Unit], total: int, seeds: int) -> CostEstimate:
    """Estimate what is left of `total` answers. Raises DataError where no answer tells anything."""
    states = _begun_states(units)
    done = sum(map(_done_rows, states))
    left = total - done
    config = units[0].config
    usages = _usages_by_problem(units)
    if left and not usages:
        raise DataError(
            f"{name}: none of {done} requests got a reply, so there is nothing to plan from.",
            hint="The records in the output folder say why; --rerun_done asks them again.",
        )
    counts_cached = any(used.cached_tokens is not None for own in usages.values() for used in own)
    of_one = max(1, math.ceil(left / seeds))
    seconds = _seconds_of_an_answer(units, states)
    at_once = max(1, min(left, config.max_concurrent_requests))

    def expected(measure: Callable[[Usage], float | None]) -> ExpectedTotal | None:
        return expected_total(usages, measure, left, of_one)

    def money(prices: TokenPrices | None, shared: float | None = None) -> ExpectedTotal | None:
        if prices is None or not prices.known:
            return None
        return expected(lambda used: _price_of(prices, used, shared))

    usual = replace(config.server, batch_api=False).prices
    cached_tokens = cached_money = None
    if counts_cached:
        cached_tokens = expected(lambda used: used.cached_tokens or 0)
    if usual.cached is not None and (share := _common_prefix_share(config)) is not None:
        cached_money = money(usual, share)
    if seconds is not None:
        seconds *= math.ceil(left / at_once)
    return CostEstimate(
        benchmark=name,
        problems=total // seeds,
        seeds=seeds,
        answers=left,
        input_tokens=expected(lambda used: used.input_tokens),
        output_tokens=expected(lambda used: used.output_tokens),
        cached_tokens=cached_tokens,
        seconds=seconds,
        money=money(usual),
        batch_money=money(_batch_prices(config)),
        cached_money=cached_money,
    )


def _usages_by_problem(units: Sequence[Unit]) -> dict[str, list[Usage]]:
    """Return the tokens of all answers that there are, by problem."""
    by_problem: dict[str, list[Usage]] = defaultdict(list)
    for problem, used in _read_usages(units):
        by_problem[problem].append(used)
    return by_problem


def _read_usages(units: Sequence[Unit]) -> Iterator[tuple[str, Usage]]:
    """Yield the problem and the tokens of each answer; those that failed tell nothing."""
    for unit in units:
        prefix = PREFIX if unit.config.judges else ""
        for record in _read_records(unit):
            lost = record.get("outcome") == "unscored" and "error" in record
            if lost or f"{prefix}error" in record:
                continue
            used = usage_of(record, prefix)
            if record.get(f"{PREFIX}prefilled") and prefix and used.output_tokens is None:
                used = Usage(input_tokens=0, output_tokens=0, cached_tokens=0)  # a rule judged: nothing was asked
            yield str(record.get("id")), used


def _read_records(unit: Unit) -> Iterable[Row]:
    paths = unit.paths
    if paths.log.exists():
        return log_records(paths.log)
    if paths.output.exists():
        return read_rows(paths.output)
    return ()


def expected_total(
    usages: Mapping[str, Sequence[Usage]], measure: Callable[[Usage], float | None], left: int, of_one: int
) -> ExpectedTotal | None:
    """Return the total over the answers that are `left`, of `of_one` problems, and where it will be in 95 % of cases
    (Student's t over problems)."""
    if not left:
        return ExpectedTotal(value=0.0, low=0.0, high=0.0)
    measured = [[value for used in own if (value := measure(used)) is not None] for own in usages.values()]
    means = [sum(values) / len(values) for values in measured if values]
    if not means:
        return None
    mean, deviation = mean_std(means)
    total = left * mean
    if len(means) < 2:
        return ExpectedTotal(value=total, low=None, high=None)
    half = left * t_critical(len(means) - 1) * deviation * math.sqrt(1 / len(means) + 1 / of_one)
    return ExpectedTotal(value=total, low=max(0.0, total - half), high=total + half)


def _price_of(prices: TokenPrices, used: Usage, shared: float | None) -> float | None:
    if used.input_tokens is None or used.output_tokens is None:
        return None
    if shared is not None:
        used = replace(used, cached_tokens=round(shared * used.input_tokens), cache_written_tokens=0)
    return prices.cost(used)


def _batch_prices(config: GenerationConfig) -> TokenPrices | None:
    """Return the prices of batches; None where the provider has none, or they cost the same."""
    batch = MODELS.properties(config.server.server_type).batch
    if batch is None or batch.price == 1:
        return None
    return replace(config.server, batch_api=True).prices


def _seconds_of_an_answer(units: Sequence[Unit], states: Sequence[RunState]) -> float | None:
    """Return the mean duration of the answers that are written; where they do not tell, that of their process for each
    round of requests."""
    seconds = [
        float(row["generation_time"])
        for unit in units
        if not unit.config.judges and unit.paths.output.exists()
        for row in islice(read_rows(unit.paths.output), 1_000)
        if isinstance(row.get("generation_time"), int | float)
    ]
    if seconds:
        return sum(seconds) / len(seconds)
    at_once = units[0].config.max_concurrent_requests
    rounds = sum(math.ceil(_done_rows(state) / at_once) for state in states)
    ended = [state.ended - state.started for state in states if state.ended is not None]
    if rounds and len(ended) == len(states):
        return sum(ended) / rounds
    return None


def _common_prefix_share(config: GenerationConfig) -> float | None:
    """Return the share of an average prompt that all prompts begin with."""
    if not Path(config.input_file).exists():
        return None
    with closing(RunBuilder(os.environ)) as builder:
        solver = builder.solver(config, builder.prompt(config))
        rows = islice(read_rows(Path(config.input_file)), PROBES)
        texts = [
            _request_text(solver.request(Sample(id=str(n), row=row, position=n))) for n, row in enumerate(rows)
        ]
    common = next((at for at, signs in enumerate(zip(*texts, strict=False)) if len({*signs}) > 1), 0)
    return common * len(texts) / max(1, sum(map(len, texts)))


def _request_text(request: Request) -> str:
    return msgspec.json.encode([request.tools, request.messages, request.prompt]).decode()


def _sum_estimates(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """Return the sum; what has no batches, or no price of cached tokens, counts at its usual cost there."""

    def total(name: str) -> ExpectedTotal | None:
        return _sum_totals([getattr(estimate, name) for estimate in estimates])

    def cheaper(name: str) -> ExpectedTotal | None:
        parts = [getattr(estimate, name) for estimate in estimates]
        if not any(parts):
            return None
        return _sum_totals([part or estimate.money for part, estimate in zip(parts, estimates, strict=True)])

    seconds = [estimate.seconds for estimate in estimates if estimate.seconds is not None]
    return CostEstimate(
        benchmark=TOTAL,
        problems=None,
        seeds=None,
        answers=sum(estimate.answers for estimate in estimates),
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cached_tokens=total("cached_tokens"),
        seconds=sum(seconds) if len(seconds) == len(estimates) else None,
        money=total("money"),
        batch_money=cheaper("batch_money"),
        cached_money=cheaper("cached_money"),
    )


def _sum_totals(parts: Sequence[ExpectedTotal | None]) -> ExpectedTotal | None:
    """Return the sum of independent totals; None where one is not known."""
    known_parts = [part for part in parts if part is not None]
    if len(known_parts) < len(parts):
        return None
    value = sum(part.value for part in known_parts)
    below = [part.value - part.low for part in known_parts if part.low is not None]
    above = [part.high - part.value for part in known_parts if part.high is not None]
    if len(below) < len(parts) or len(above) < len(parts):
        return ExpectedTotal(value=value, low=None, high=None)
    return ExpectedTotal(value=value, low=value - math.hypot(*below), high=value + math.hypot(*above))


def _estimate_cells(estimate: CostEstimate) -> tuple[str, ...]:
    tokens = [estimate.input_tokens, estimate.cached_tokens, estimate.output_tokens]
    amounts = [estimate.money, estimate.batch_money, estimate.cached_money]
    duration = UNKNOWN if estimate.seconds is None else short_time(estimate.seconds)
    return (
        estimate.benchmark,
        _format_count(estimate.problems),
        _format_count(estimate.seeds),
        _format_count(estimate.answers),
        *(_format_total(total, short_number, short_number) for total in tokens),
        duration,
        *(_format_total(total, _format_amount, _format_error) for total in amounts),
    )


def _format_count(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count:,}"


def _format_total(
    total: ExpectedTotal | None, shown: Callable[[float], str], error_shown: Callable[[float], str]
) -> str:
    if total is None:
        return UNKNOWN
    if total.low is None or total.high is None or total.low == total.high:
        return shown(total.value)
    return f"{shown(total.value)} ± {error_shown(total.high - total.value)}"


def _format_amount(amount: float) -> str:
    if amount >= 1:
        return f"{amount:,.2f}"
    return f"{amount:.3g}"


def _format_error(amount: float) -> str:
    if amount >= 1:
        return f"{amount:,.2f}"
    return f"{amount:.2g}"
