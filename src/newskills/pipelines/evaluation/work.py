# SPDX-License-Identifier: Apache-2.0
"""What `ns eval` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import asdict

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import print_now
from newskills.config.command_line import Parsed
from newskills.launch.experiments import Experiment
from newskills.pipelines.evaluation.evaluation import Evaluation
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.specification import SUMMARY, evaluation_spec
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import tracking_of
from newskills.pipelines.pages import cache_line, dry_run, show_explained, show_plan
from newskills.pipelines.placement.cluster import target_cluster
from newskills.pipelines.units.sandbox import check_sandbox
from newskills.run.evaluate import EvaluationOutcome, EvaluationPlan, evaluate, plan_evaluation
from newskills.run.judging.generation import UNIT_PREFIX, check_judges
from newskills.run.planning.plan import RESULTS_FOLDER
from newskills.run.reporting.tracking import log_reports


def run(parsed: Parsed[EvalOptions]) -> int:
    """Evaluate, show the plan or the costs, or submit jobs; return the exit code. Raises ConfigError and what
    `evaluate_benchmarks` raises."""
    if parsed.options.plan_cost and not parsed.explain:
        from newskills.pipelines.evaluation.plan_cost import show_costs

        return show_costs(parsed)
    if parsed.options.json:
        raise ConfigError("--json is for --plan_cost: scores as JSON are in metrics.json of the results.")
    if (cluster := target_cluster(parsed.options, parsed.given, parsed.options.num_jobs)) is not None:
        from newskills.pipelines.evaluation.jobs import prepare
        from newskills.pipelines.submission.submit import run_prepared

        ready = prepare(parsed, cluster)
        if ready is not None:
            return run_prepared(ready, show=(SUMMARY,))
        return 0
    spec = evaluation_spec(parsed)
    plan = plan_evaluation(spec)
    check_sandbox(parsed.options, plan.answers)
    if parsed.explain or dry_run(parsed.options, plan.answers):
        show_evaluation_plan(parsed, plan)
        return 0
    evaluation = evaluate_and_track(parsed, plan, say=print_now)
    sys.stdout.write(f"results: {spec.output_dir / RESULTS_FOLDER}\n")
    sys.stdout.write(cache_line(evaluation.result.units))
    for unit in evaluation.result.units:
        if unit.note and not evaluation.message:
            print_note(f"{unit.output}: {unit.note}")
    if evaluation.message:
        sys.stderr.write(f"{evaluation.message}\n")
    return evaluation.exit_code


def evaluate_benchmarks(parsed: Parsed[EvalOptions]) -> Evaluation | Experiment | None:
    """Evaluate for Python, and return the evaluation, the experiment, or None for a dry run or a plan of costs; raises
    NewskillsError where work is left or the numbers cannot be trusted.

    On a cluster: what was submitted, None where nothing is left to do.
    """
    if parsed.options.plan_cost:
        from newskills.pipelines.evaluation.plan_cost import show_costs

        show_costs(parsed)
        return None
    if (cluster := target_cluster(parsed.options, parsed.given, parsed.options.num_jobs)) is not None:
        from newskills.pipelines.evaluation.jobs import prepare
        from newskills.pipelines.submission.submit import submit_and_wait

        ready = prepare(parsed, cluster)
        if ready is not None:
            return submit_and_wait(ready)
        return None
    plan = plan_evaluation(evaluation_spec(parsed))
    check_sandbox(parsed.options, plan.answers)
    if dry_run(parsed.options, plan.answers):
        show_evaluation_plan(parsed, plan)
        return None
    outcome = evaluate_and_track(parsed, plan, say=lambda text: None)
    if outcome.exit_code:
        raise NewskillsError(outcome.message)
    return Evaluation(
        **asdict(outcome), output_dir=plan.spec.output_dir.absolute(), accept_lost=plan.spec.accept_lost
    )


def show_evaluation_plan(parsed: Parsed[EvalOptions], plan: EvaluationPlan) -> None:
    """Show what would be done (`--dry_run`), or with which settings (`--explain`). Raises NewskillsError."""
    check_judges(plan.judgements, rerun_done=plan.spec.rerun_done)
    if parsed.explain:
        show_explained(plan.units)
    else:
        show_plan(plan.units)


def evaluate_and_track(parsed: Parsed[EvalOptions], plan: EvaluationPlan, *, say: PrintLine) -> EvaluationOutcome:
    options = parsed.options
    tracking = tracking_of(
        options.wandb_name, options.wandb_project, options.wandb_group, samples=options.log_samples
    )
    evaluation = evaluate(plan, say=say)
    if tracking is not None and evaluation.reports:
        units = list(reversed(evaluation.result.units))
        judged = {
            unit.name.removeprefix(UNIT_PREFIX): Path(unit.output)
            for unit in units
            if unit.name.startswith(UNIT_PREFIX)
        }
        outputs = {unit.name: Path(unit.output) for unit in units} | judged
        log_reports(tracking, evaluation.reports, outputs)
    return evaluation
