# SPDX-License-Identifier: Apache-2.0
"""A small evaluation of random problems, from which a larger one is planned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from newskills.base.errors import ConfigError, NewskillsError
from newskills.config.command_line import Parsed, build
from newskills.config.values import Text
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.specification import evaluation_spec
from newskills.pipelines.notices import print_note
from newskills.pipelines.units.sandbox import check_sandbox
from newskills.run.evaluate import evaluate, plan_evaluation


def run_probe(
    options: Mapping[str, Any], problems: int, overrides: Mapping[str, Text]
) -> tuple[Path, tuple[str, ...]]:
    """Run a probe; return (folder of results, names of the benchmarks). `options` are those of `ns eval`,
    `overrides` its `++` keys.

    The same call again asks nothing; `ns eval` with the same options goes on from there. Raises NewskillsError.
    """
    names = frozenset(options)
    values: EvalOptions = build(EvalOptions, options, command="plan_eval")
    parsed = Parsed(values, dict(overrides), names)
    judged = evaluation_spec(parsed).judges
    if judged:
        raise ConfigError(
            f"A probe cannot be run here for {', '.join(judged)}, whose answers are judged afterwards.",
            hint="Run one, and give its folder: ns eval … ++max_samples=20",
        )
    parsed = Parsed(replace(values, until=f"rows={problems}"), dict(overrides), names)
    spec = replace(evaluation_spec(parsed), summarize=False)
    plan = plan_evaluation(spec)
    check_sandbox(parsed.options, plan.answers)
    print_note(f"probe of {problems} problems of {', '.join(run.name for run in spec.runs)}, in {spec.output_dir}")
    evaluation = evaluate(plan, say=print_note)
    if evaluation.exit_code:
        raise NewskillsError(evaluation.message)
    return spec.output_dir, tuple(run.name for run in spec.runs)
