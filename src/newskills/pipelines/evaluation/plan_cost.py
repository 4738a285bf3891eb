# SPDX-License-Identifier: Apache-2.0
"""What `ns eval --plan_cost` does: tokens, time and money of what is left, by a few answers that there are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.records import Request, Sample, TokenPrices, Usage
from newskills.base.store import read_rows
from newskills.base.tables import print_table, print_text
from newskills.config.command_line import Parsed
from newskills.models.kinds import MODELS
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.specification import specification
from newskills.pipelines.notices import notice
from newskills.pipelines.placement.cluster import target_cluster
from newskills.pipelines.units.sandbox import check_sandbox
from newskills.run.engine.build import RunBuilder
from newskills.run.evaluate import EvaluationPlan, evaluate, plan_evaluation
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.spec import Unit
from newskills.run.records.state import RunState, load_state
from newskills.view.comparison.plan_shown import short_number, short_time

PROBES = 20
"""Random problems of each benchmark that are asked where nothing has been."""
HEAD = ("benchmark", "answers", "read", "written", "time", "cost", "in batches", "prompts cached")


class CostEstimate(Struct, frozen=True, kw_only=True):
    """What the rest of a benchmark will take; None where it is not known.

    answers      that are left
    seconds      with as many requests at once as the settings allow
    batch_money  where a provider's batches are used; cached_money: where its cache has what prompts share
    """

    benchmark: str
    answers: int
    input_tokens: float | None
    output_tokens: float | None
    seconds: float | None
    money: float | None
    batch_money: float | None
    cached_money: float | None


def show_costs(parsed: Parsed[EvalOptions]) -> int:
    """Print what the rest of an evaluation will take; ask some problems first where nothing is known. Raises
    NewskillsError."""
    estimates = plan_costs(parsed)
    print_table([_row(estimate) for estimate in estimates], HEAD)
    if any(estimate.money is None for estimate in estimates):
        print_text(
            "The prices are unknown: give ++server.price_per_million_input_tokens=PRICE and "
            "++server.price_per_million_output_tokens=PRICE."
        )
    if judged := specification(parsed).judges:
        print_text(f"Not counted: what the judges of {', '.join(judged)} take.")
    return 0


def plan_costs(parsed: Parsed[EvalOptions]) -> list[CostEstimate]:
    """Return what the rest of each benchmark will take. Raises NewskillsError."""
    if target_cluster(parsed.options, parsed.given, parsed.options.num_jobs) is not None:
        raise ConfigError("--plan_cost asks from this machine.", hint="Leave out --cluster.")
    plan = plan_evaluation(specification(parsed))
    unknown = [run.name for run in plan.spec.runs if not _answered(_units_of(plan, run.name))]
    if judged := [name for name in unknown if name in plan.spec.judges]:
        raise ConfigError(
            f"{', '.join(judged)}: there are no answers yet, and a probe does not judge.",
            hint="Start the evaluation, stop it after some answers (Ctrl-C), and plan again: they are kept.",
        )
    if unknown:
        _probe(parsed, unknown)
    return [_estimate(run.name, _units_of(plan, run.name)) for run in plan.spec.runs]


def _probe(parsed: Parsed[EvalOptions], names: Sequence[str]) -> None:
    """Ask one answer to each of a few problems, at once and not in batches; the evaluation goes on from there."""
    options = replace(parsed.options, until=f"rows={PROBES}", batch_api=False, plan_cost=False)
    spec = specification(Parsed(options, dict(parsed.overrides), parsed.given))
    runs = tuple(replace(run, samples=min(run.samples, 1)) for run in spec.runs if run.name in names)
    probe = plan_evaluation(replace(spec, runs=runs, summarize=False))
    check_sandbox(options, probe.answers)
    notice(f"{PROBES} problems of {', '.join(names)} are asked, in {spec.output_dir}")
    evaluation = evaluate(probe, say=notice)
    if evaluation.exit_code:
        raise NewskillsError(evaluation.message)


def _estimate(name: str, units: Sequence[Unit]) -> CostEstimate:
    states = _answered(units)
    if not states:
        raise DataError(f"{name}: the server did not say how many tokens its answers took.")
    done = sum(_done(state) for state in states)
    begun = [state for unit in units if (state := load_state(unit.paths.state)) is not None]
    rows = [state.rows for state in begun]
    left = sum(rows) + max(rows) * (len(units) - len(rows)) - sum(_done(state) for state in begun)
    used = _per_answer(states, done)
    config = units[0].config
    seconds = _seconds_of_an_answer(units)
    at_once = max(1, min(left, config.max_concurrent_requests))
    usual, batched = replace(config.server, batch_api=False).prices, _batch_prices(config)
    share = _shared(config)
    return CostEstimate(
        benchmark=name,
        answers=left,
        input_tokens=None if used.input_tokens is None else left * used.input_tokens,
        output_tokens=None if used.output_tokens is None else left * used.output_tokens,
        seconds=None if seconds is None else seconds * -(-left // at_once),
        money=_money(usual, used, left),
        batch_money=None if batched is None else _money(batched, used, left),
        cached_money=None if usual.cached is None else _money(usual, used, left, share),
    )


def _units_of(plan: EvaluationPlan, name: str) -> list[Unit]:
    return [piece.unit for piece in plan.answers if piece.unit.name == name]


def _answered(units: Sequence[Unit]) -> list[RunState]:
    """Return the states of units that have answers whose tokens are known."""
    states = [load_state(unit.paths.state) for unit in units]
    return [state for state in states if state is not None and _done(state) and state.output_tokens is not None]


def _done(state: RunState) -> int:
    return state.rows if state.status == "done" else state.done


class AnswerUsage(Struct, frozen=True):
    """Tokens of an average answer."""

    input_tokens: float | None
    output_tokens: float | None
    cached_tokens: float


def _per_answer(states: Sequence[RunState], done: int) -> AnswerUsage:
    def mean(values: Sequence[int | None]) -> float | None:
        numbers = [value for value in values if value is not None]
        return sum(numbers) / done if len(numbers) == len(values) else None

    return AnswerUsage(
        mean([state.input_tokens for state in states]),
        mean([state.output_tokens for state in states]),
        mean([state.cached_tokens or 0 for state in states]) or 0.0,
    )


def _money(prices: TokenPrices, used: AnswerUsage, answers: int, shared: float | None = None) -> float | None:
    if not prices.known or used.input_tokens is None or used.output_tokens is None:
        return None
    cached = used.cached_tokens if shared is None else shared * used.input_tokens
    total = Usage(
        input_tokens=round(answers * used.input_tokens),
        output_tokens=round(answers * used.output_tokens),
        cached_tokens=round(answers * cached),
    )
    return prices.cost(total)


def _batch_prices(config: GenerationConfig) -> TokenPrices | None:
    """Return the prices of batches; None where the provider has none, or they cost the same."""
    batch = MODELS.properties(config.server.server_type).batch
    if batch is None or batch.price == 1:
        return None
    return replace(config.server, batch_api=True).prices


def _seconds_of_an_answer(units: Sequence[Unit]) -> float | None:
    """Return the mean duration of the answers that are written."""
    seconds = [
        float(row["generation_time"])
        for unit in units
        if Path(unit.paths.output).exists()
        for row in islice(read_rows(unit.paths.output), 1_000)
        if isinstance(row.get("generation_time"), int | float)
    ]
    return sum(seconds) / len(seconds) if seconds else None


def _shared(config: GenerationConfig) -> float:
    """Return the share of an average prompt that all prompts begin with."""
    with closing(RunBuilder(os.environ)) as builder:
        solver = builder.solver(config, builder.prompt(config))
        rows = islice(read_rows(Path(config.input_file)), PROBES)
        texts = [_text(solver.request(Sample(id=str(n), row=row, position=n))) for n, row in enumerate(rows)]
    common = next((at for at, signs in enumerate(zip(*texts, strict=False)) if len({*signs}) > 1), 0)
    return common * len(texts) / max(1, sum(map(len, texts)))


def _text(request: Request) -> str:
    return msgspec.json.encode([request.tools, request.messages, request.prompt]).decode()


def _row(estimate: CostEstimate) -> tuple[str, ...]:
    money = [estimate.money, estimate.batch_money, estimate.cached_money]
    return (
        estimate.benchmark,
        f"{estimate.answers:,}",
        short_number(estimate.input_tokens),
        short_number(estimate.output_tokens),
        "—" if estimate.seconds is None else short_time(estimate.seconds),
        *map(_shown, money),
    )


def _shown(amount: float | None) -> str:
    if amount is None:
        return "—"
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.3g}"
