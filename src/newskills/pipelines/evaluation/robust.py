# SPDX-License-Identifier: Apache-2.0
"""What `ns robust_eval` does: the evaluation of `ns eval` once for each prompt, then what the prompts have changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, NewskillsError, UnknownNameError
from newskills.base.terminal import print_now
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer
from newskills.graders import GRADERS
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup
from newskills.launch.experiments import Experiment
from newskills.pipelines.arguments import command_line
from newskills.pipelines.evaluation import work as single
from newskills.pipelines.evaluation.jobs import CompleteSummary, add_evaluation, check_plan, summary_hardware
from newskills.pipelines.evaluation.judges import JudgePlan
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.robust_options import RobustEvalOptions
from newskills.pipelines.evaluation.specification import evaluation_spec_and_judges
from newskills.pipelines.notices import print_note
from newskills.pipelines.pages import dry_run, show_explained
from newskills.pipelines.placement.cluster import ClusterPaths, paths_of, target_cluster
from newskills.pipelines.submission.groups import OWN_CONTAINER, main_container
from newskills.pipelines.submission.plan import Plan, job_name
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.submission.submit import run_prepared, submit_and_wait
from newskills.prompts.prompt_sets import PromptSet, Variant, load_prompt_set
from newskills.run.evaluate import EvaluationPlan, EvaluationSpec, check_kinds, metric_of
from newskills.run.hosting.roles import at_servers, check_units, host_servers
from newskills.run.planning.plan import BenchmarkRun
from newskills.run.reporting.robustness import RobustnessSummary, render_robustness, summarize_robustness
from newskills.run.reporting.summarize import SummaryOptions

ROBUSTNESS = "robustness"
"""Command of the job that compares the prompts."""
RELAXED = ("relaxed", "relaxed_extraction")
"""What graders call it that other forms of the answer count beside the expression."""


class Wording(Struct, frozen=True, kw_only=True):
    """One benchmark with one prompt: what `ns eval` would be asked for."""

    name: str
    parsed: Parsed[EvalOptions]
    plan: EvaluationPlan


def run(parsed: Parsed[RobustEvalOptions]) -> int:
    options = parsed.options
    if (cluster := target_cluster(options, parsed.given, options.num_jobs)) is not None:
        ready = prepare(parsed, cluster)
        if ready is not None:
            return run_prepared(ready, show=(ROBUSTNESS,))
        return 0
    wordings, _ = wordings_of(parsed)
    if _show_dry_run(parsed, wordings):
        return 0
    summary, message = evaluate_wordings(parsed, wordings, say=print_now)
    if summary is not None:
        sys.stdout.write(f"{render_robustness(summary.benchmarks)}\nrobustness: {summary.path}\n")
    if message:
        sys.stderr.write(f"{message}\n")
    if message:
        return 1
    return 0


def evaluate_with_prompts(parsed: Parsed[RobustEvalOptions]) -> RobustnessSummary | Experiment | None:
    """Evaluate for Python, and return the summary, the experiment, or None for a dry run; raises NewskillsError
    where work is left or the numbers cannot be trusted."""
    options = parsed.options
    if (cluster := target_cluster(options, parsed.given, options.num_jobs)) is not None:
        ready = prepare(parsed, cluster)
        if ready is not None:
            return submit_and_wait(ready)
        return None
    wordings, _ = wordings_of(parsed)
    if _show_dry_run(parsed, wordings):
        return None
    summary, message = evaluate_wordings(parsed, wordings, say=lambda text: None)
    if message:
        raise NewskillsError(message)
    return summary


def prepare(parsed: Parsed[RobustEvalOptions], cluster: ClusterConfig) -> PreparedSubmission | None:
    """Prepare one pipeline: the jobs of each prompt, and one after them that compares. Returns None where nothing
    is left to do."""
    options = parsed.options
    paths = paths_of(cluster, main_container(options), options)
    wordings, judges = wordings_of(parsed, paths)
    if parsed.explain:
        for wording in wordings:
            show_explained(wording.plan.units)
        return None
    if any(dry_run(options, wording.plan.units) for wording in wordings):
        options = replace(options, dry_run=True)
        wordings = [_as_dry_run(wording) for wording in wordings]
    plan = Plan()
    parts = []
    for wording in wordings:
        plan.prefix = f"{job_name(wording.name)}-"
        own = {name: judge for name, judge in judges.items() if name in wording.plan.spec.judges}
        parts.append(add_evaluation(wording.parsed, wording.plan, own, paths, plan))
    plan.prefix = ""
    folder = output_dir(parsed, paths)
    if not plan.jobs:
        print_note(f"nothing to do: all results are already in {folder}")
        return None
    if options.auto_summarize_results and not options.chunk_ids:
        script = CompleteSummary(
            str(folder),
            command="summarize_robustness",
            extra_arguments=[f"--accept_lost={options.accept_lost:g}"],
            expected=[path for part in parts for path in part.outputs],
        )
        command = Command(script, container=options.main_container or OWN_CONTAINER, name=ROBUSTNESS)
        group = CommandGroup([command], hardware=summary_hardware(options), name="main")
        plan.add("summarize-robustness", [group], [job for part in parts for job in part.last])
    shown = {"prompts": ", ".join(wording.name for wording in wordings), **parts[0].shown, "output": str(folder)}
    return prepare_submission(options.expname or "robust_eval", plan, cluster, options, shown)


def evaluate_wordings(
    parsed: Parsed[RobustEvalOptions], wordings: Sequence[Wording], *, say: PrintLine
) -> tuple[RobustnessSummary | None, str]:
    """Evaluate with every prompt by one server, and compare; return the summary with a sentence about what went wrong,
    or "".

    Raises NewskillsError for what can be refused before the first request.
    """
    hosting = wordings[0].plan.spec.hosting
    planned = [piece for wording in wordings for piece in wording.plan.answers]
    check_kinds([piece.unit for piece in planned])
    check_units(planned, hosting)
    messages = []
    with host_servers(hosting, planned, rerun_done=parsed.options.rerun_done) as servers:
        for number, wording in enumerate(wordings, 1):
            say(f"{wording.name} (prompt {number} of {len(wordings)})")
            own = replace(wording.plan.spec, hosting=None)
            plan = replace(wording.plan, spec=own, answers=at_servers(wording.plan.answers, servers))
            evaluation = single.evaluate_and_track(wording.parsed, plan, say=say)
            if evaluation.message:
                messages.append(f"{wording.name}: {evaluation.message}")
            if evaluation.result.exit_code:
                return None, messages[-1] if messages else f"{wording.name}: not finished."
    if not parsed.options.auto_summarize_results or parsed.options.chunk_ids:
        return None, "\n".join(messages)
    options = SummaryOptions(
        metric_type=parsed.options.metric_type,
        metrics_kwargs=wordings[0].plan.spec.metrics_kwargs,
        accept_lost=parsed.options.accept_lost / 100,
    )
    runs = [run for wording in wordings for run in wording.plan.spec.runs]
    summary = summarize_robustness(output_dir(parsed), metric_of(runs), options)
    for note in summary.notes:
        print_note(note)
    return summary, "\n".join(messages)


def wordings_of(
    parsed: Parsed[RobustEvalOptions], there: ClusterPaths | None = None
) -> tuple[list[Wording], dict[str, JudgePlan]]:
    """Resolve and check all prompts of all benchmarks, and where judges run; `there`: the paths of a cluster.

    Raises NewskillsError.
    """
    for key in ("prompt_config", "prompt"):
        if key in parsed.overrides:
            raise ConfigError(f"++{key} cannot be set: the prompts come from --prompt_set_config.")
    if parsed.options.until is not None:
        raise ConfigError("--until is for ns eval: here, every prompt is asked the same problems.")
    if parsed.options.plan_cost or parsed.options.json:
        raise ConfigError("--plan_cost and --json are for ns eval: each prompt is an evaluation of its own.")
    prompts = load_prompt_set(parsed.options.prompt_set_config)
    base = _eval_options(parsed, parsed.options.expname or "robust_eval")
    spec, judges = evaluation_spec_and_judges(base, there)
    folder = output_dir(parsed, there)
    parsed_wordings = []
    for run in spec.runs:
        taken: set[str] = set()
        for variant in _variants_of(run, prompts):
            stem = Path(variant.prompt_config).name.removesuffix(".yaml").removesuffix(".yml")
            if stem in taken:
                raise ConfigError(
                    f"{run.name}: two prompts have the name {stem}, so their result folders "
                    "would have the same name."
                )
            taken.add(stem)
            if there is not None and variant.prompt_config.endswith((".yaml", ".yml")):
                variant = replace(variant, prompt_config=there.code_in_job(variant.prompt_config))
            parsed_wordings.append(_wording_spec(base, spec, run, variant, folder / run.name / stem))
    wordings = [
        Wording(name=name, parsed=own, plan=check_plan(own.options, spec)) for name, own, spec in parsed_wordings
    ]
    return wordings, judges


def output_dir(parsed: Parsed[RobustEvalOptions], there: ClusterPaths | None = None) -> Path:
    """Return the folder of all results."""
    options = parsed.options
    folder = options.output_dir or str(Path("results") / (options.expname or "robust_eval"))
    if there is not None:
        folder = there.path_in_job(folder, "--output_dir")
    return Path(folder)


def _eval_options(parsed: Parsed[RobustEvalOptions], expname: str) -> Parsed[EvalOptions]:
    options: EvalOptions = replace(parsed.options, expname=expname)
    return Parsed(options, parsed.overrides, parsed.given, explain=parsed.explain, objects=parsed.objects)


def _wording_spec(
    base: Parsed[EvalOptions], spec: EvaluationSpec, run: BenchmarkRun, variant: Variant, folder: Path
) -> tuple[str, Parsed[EvalOptions], EvaluationSpec]:
    stem = folder.name
    options = base.options
    logs = folder / "eval-logs"
    if options.log_dir:
        logs = Path(options.log_dir, run.name, stem)
    if options.wandb_name is not None:
        options = replace(options, wandb_name=f"{options.wandb_name}-{run.name}-{stem}")
    own = replace(
        spec,
        runs=[run],
        output_dir=folder,
        layers=[*spec.layers, _wording_layer(run, variant, base)],
        judges={name: judging for name, judging in spec.judges.items() if name == run.name},
        log_dir=str(logs),
        resume_with=command_line("robust_eval"),
    )
    return f"{run.name}-{stem}", replace(base, options=options), own


def _wording_layer(run: BenchmarkRun, variant: Variant, base: Parsed[EvalOptions]) -> Layer:
    """Return the settings that the set has for this prompt. Raises ConfigError where the grader does not support
    expressions."""
    values: dict[str, object] = {"prompt_config": variant.prompt_config}
    if variant.extract_regex is not None:
        grader = str(base.overrides.get("eval_type") or run.benchmark.grader)
        settings = getattr(GRADERS.get(grader), "Config", None) if grader else None
        names = getattr(settings, "__struct_fields__", ())
        if "extract_regex" not in names:
            raise ConfigError(
                f"{variant.prompt_config}: extract_regex cannot be used for {run.name}, whose grader is "
                f"'{grader or 'a judge'}'."
            )
        values["eval_config.extract_regex"] = variant.extract_regex
        values |= {f"eval_config.{name}": True for name in RELAXED if name in names}
    return Layer("--prompt_set_config", values)


def _variants_of(run: BenchmarkRun, prompts: PromptSet) -> Sequence[Variant]:
    """Return the variants of the benchmark, else those of the prompt that it is asked with, else those of its
    kind.

    Raises UnknownNameError for a benchmark without prompts, ConfigError for an empty list.
    """
    names = [run.name, run.benchmark.name, *run.benchmark.aliases]
    if run.group is not None:
        names.append(run.group.name)
    variants, why = prompts.wordings(run.benchmark, names)
    if variants is None:
        raise UnknownNameError(
            "benchmark in --prompt_set_config",
            run.name,
            [*prompts.lists, *prompts.kinds],
            hint=f"The set has no other wordings for it: {why}. "
            "Write a YAML file of your own: benchmark: [{prompt_config: …}, …].",
        )
    if not variants:
        raise ConfigError(f"--prompt_set_config has no prompts for {run.name}.")
    return variants


def _show_dry_run(parsed: Parsed[RobustEvalOptions], wordings: Sequence[Wording]) -> bool:
    """Show `--explain` and dry runs; return whether it was one."""
    units = [piece for wording in wordings for piece in wording.plan.units]
    if not parsed.explain and not dry_run(parsed.options, units):
        return False
    for wording in wordings:
        sys.stdout.write(f"\n== {wording.name}\n")
        single.show_evaluation_plan(wording.parsed, wording.plan)
    return True


def _as_dry_run(wording: Wording) -> Wording:
    return replace(wording, parsed=replace(wording.parsed, options=replace(wording.parsed.options, dry_run=True)))
