# SPDX-License-Identifier: Apache-2.0
"""What `ns plan_eval` does: how many problems and samples it takes to see a difference, and what that costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.pipelines.json_output import print_json
from newskills.pipelines.options import AtLeastOne, doc, split_names

if TYPE_CHECKING:
    from newskills.view.comparison.planning import EvalPlan


PROBE = {"group": "a probe, where neither runs nor --accuracy are given"}


class PlanEvalOptions(Struct, frozen=True, kw_only=True):
    runs: Annotated[
        list[str],
        doc(
            "folder of results to plan from, or two that differ about as much as the models that will be compared",
            {"positional": True},
        ),
    ] = []
    delta: Annotated[float, Meta(gt=0, lt=100, description="difference to detect, in points")]
    benchmarks: Annotated[
        str | None, doc("only these, comma separated (default: all); for a probe name[:samples],…, as in ns eval")
    ] = None
    power: Annotated[
        float, Meta(gt=0, lt=1, description="share of comparisons that detect the difference (power)")
    ] = 0.8
    paired: Annotated[bool, doc("both models answer the same problems; --no_paired: each has its own")] = True
    seeds: Annotated[str, doc("samples of each problem to plan for, comma separated")] = "1,2,4,8,16"
    accuracy: Annotated[
        Annotated[float, Meta(gt=0, lt=100)] | None, doc("without a run: expected accuracy in percent")
    ] = None
    problems: Annotated[AtLeastOne | None, doc("without a run: how many problems there are")] = None
    prices: Annotated[
        str | None,
        doc("price of a million tokens of input and of output, INPUT,OUTPUT (default: what past runs cost)"),
    ] = None
    json: Annotated[bool, doc("print everything as JSON")] = False
    probe: Annotated[AtLeastOne, doc("number of random problems to ask", PROBE)] = 20
    model: Annotated[str | None, doc("name or path of the model, as in ns eval", PROBE)] = None
    server_type: Annotated[str | None, doc("as in ns eval", PROBE)] = None
    server_address: Annotated[str | None, doc("address of a running server", PROBE)] = None
    server_gpus: Annotated[int | None, doc("start a server for the model, on this many GPUs", PROBE)] = None
    with_sandbox: Annotated[bool, doc("run a sandbox for the model's code", PROBE)] = False
    data_dir: Annotated[str | None, doc("folder of prepared data", PROBE)] = None
    output_dir: Annotated[
        str, doc("folder for its results; ns eval with the same folder resumes from it", PROBE)
    ] = "results/probe"


def run(parsed: Parsed[PlanEvalOptions]) -> int:
    from newskills.view.comparison.plan_shown import as_text

    plans = plan_benchmarks(parsed)
    if parsed.options.json:
        print_json(plans)
    else:
        sys.stdout.write("\n".join(map(as_text, plans)))
    return 0


def plan_benchmarks(parsed: Parsed[PlanEvalOptions]) -> list[EvalPlan]:
    """Plan for Python, and return a plan for each benchmark. Raises ConfigError where there is nothing to plan
    from, and what a probe raises."""
    from newskills.view.comparison.planning import PlanOptions, plan_from_accuracy, plan_from_runs

    options = parsed.options
    how = PlanOptions(
        delta=options.delta,
        power=options.power,
        paired=options.paired,
        seeds=_parse_seeds(options.seeds),
        prices=_parse_prices(options.prices),
    )
    needs_probe = not options.runs and options.accuracy is None and options.model and options.benchmarks
    if not needs_probe and bool(options.runs) == (options.accuracy is not None):
        raise ConfigError(
            "A plan needs either folders of results or --accuracy, or --benchmarks and --model for a probe.",
            hint="For instance: ns plan_eval results --delta 2",
        )
    if parsed.overrides and not needs_probe:
        raise ConfigError("++ keys are for a probe, and none is run here.")
    if needs_probe:
        from newskills.pipelines.evaluation.probe import run_probe

        folder, names = run_probe(_probe_options(options), options.probe, parsed.overrides)
        return plan_from_runs([folder], names, how)
    if options.accuracy is not None:
        return [plan_from_accuracy(options.accuracy, options.problems, how)]
    return plan_from_runs([Path(name) for name in options.runs], split_names(options.benchmarks), how)


def _probe_options(options: PlanEvalOptions) -> dict[str, object]:
    """Return the options that are passed to the probe's evaluation."""
    names = ("benchmarks", "model", "server_type", "server_address", "server_gpus", "with_sandbox", "data_dir")
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, False)} | {
        "output_dir": options.output_dir
    }


def _parse_seeds(text: str) -> tuple[int, ...]:
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError:
        seeds = ()
    if not seeds or min(seeds) < 1:
        raise ConfigError(f"--seeds {text}: whole numbers from 1 are expected, comma separated, such as 1,4,16.")
    return seeds


def _parse_prices(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--prices {text}: two numbers are expected, such as 0.15,0.60.") from error
    return read, written
