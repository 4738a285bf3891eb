# SPDX-License-Identifier: Apache-2.0
"""What `ns improve` does: rounds of training on the model's own correct replies, here or as a job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import counted, print_now
from newskills.config.command_line import Parsed
from newskills.config.layers import explain, resolve
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.models.serving import SERVERS
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import optional_path
from newskills.pipelines.placement.cluster import paths_of, target_cluster
from newskills.pipelines.submission.groups import MAIN, main_container
from newskills.pipelines.submission.prepared import PreparedSubmission
from newskills.pipelines.submission.submit import run_prepared, submit_and_wait
from newskills.pipelines.training.command_script import CommandScript
from newskills.pipelines.training.methods.placing import prepare_command, typed_words
from newskills.pipelines.training.options import ImproveOptions
from newskills.recipes.improve.problems import load_problems
from newskills.recipes.improve.records import ROUNDS, ImproveKeys, ImproveSpec, ImproveStage
from newskills.recipes.improve.stages import ImproveConfig, key_layers, read_config
from newskills.run.training.steps_shown import steps_shown
from newskills.train.loops.stopping import StoppedError, ended_by_term

if TYPE_CHECKING:
    from newskills.recipes.improve.loop import Improvement

NAME = "improve"


def run(parsed: Parsed[ImproveOptions]) -> int:
    """Improve the model; return the exit code. Raises ConfigError (keys, packages), DataError (problems, overlap),
    TrainingError."""
    options = parsed.options
    if parsed.explain:
        for key, value, source in explain(resolve(ImproveKeys, key_layers(options.config, parsed.overrides))):
            sys.stdout.write(f"++{key} = {value}  ({source})\n")
        return 0
    cluster = target_cluster(options, parsed.given)
    if cluster is not None:
        return run_prepared(prepare(parsed, cluster), show=(MAIN,))
    spec = _improve_spec(options, read_config(options.config, parsed.overrides))
    if options.dry_run:
        show_dry_run(_dry_run_steps(spec))
        return 0
    if _improve_here(spec) is None:
        return StoppedError.exit_code
    return 0


def prepare(parsed: Parsed[ImproveOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare the same command as one job, which resumes in the ones after it. Raises ConfigError, UnknownNameError."""
    options = parsed.options
    paths = paths_of(cluster, main_container(options), options)
    if options.config is not None:
        config = paths.local_path(paths.path_in_job(options.config, "--config"))
    else:
        config = None
    read_config(config, parsed.overrides)
    target = paths.path_in_job(options.output_dir, "--output_dir")
    script = CommandScript(NAME, typed_words(parsed, paths), installation_command=options.installation_command)
    shown = {"improves": options.model, "on": options.benchmark, "writes": target}
    return prepare_command(parsed, script, cluster, target, shown, gpus=options.server_gpus)


def improve_model(parsed: Parsed[ImproveOptions]) -> Improvement | Experiment | None:
    """Improve a model for Python, and return the outcome, or the submitted experiment; None for a dry run.

    Raises as `run`, and NewskillsError for an improvement that was stopped.
    """
    options = parsed.options
    cluster = target_cluster(options, parsed.given)
    if cluster is not None:
        return submit_and_wait(prepare(parsed, cluster))
    spec = _improve_spec(options, read_config(options.config, parsed.overrides))
    if options.dry_run:
        show_dry_run(_dry_run_steps(spec))
        return None
    if (improvement := _improve_here(spec)) is None:
        raise NewskillsError(f"{NAME} ended with exit code {StoppedError.exit_code}.")
    return improvement


def _improve_here(spec: ImproveSpec) -> Improvement | None:
    """Improve the model in this process; None: it was stopped."""
    require_train("torch", "safetensors", "tokenizers")
    if missing := [name for name in SERVERS.properties(spec.server_type).packages if find_spec(name) is None]:
        raise ConfigError(
            f"The embedded server needs {', '.join(missing)}, which this environment does not have.",
            hint="Run: pip install 'newskills[local]', or choose another --server_type.",
        )
    from newskills.pipelines.improvement_report import write_improvement_report
    from newskills.recipes.improve.loop import run_improvement

    try:
        with ended_by_term():
            improvement = run_improvement(spec, say=print_now)
    except StoppedError as stopped:
        print_now(str(stopped))
        return None
    except KeyboardInterrupt:
        print_now("stopped; finished work is kept, run the same command to resume")
        return None
    page = write_improvement_report(spec, improvement)
    print_now(f"ended: {improvement.why}")
    kept = ", ".join(record.name for record in improvement.kept) or "none: the model is the initial one"
    print_now(
        f"kept      {kept}\nmodel     {improvement.model}\nrounds    {spec.output_dir / ROUNDS}\nreport    {page}"
    )
    return improvement


def _improve_spec(options: ImproveOptions, config: ImproveConfig) -> ImproveSpec:
    return ImproveSpec(
        output_dir=Path(options.output_dir),
        model=options.model,
        benchmark=options.benchmark,
        watch=steps_shown,
        split=options.split,
        training_data=optional_path(options.training_data),
        solutions=tuple(map(Path, options.solutions)),
        rounds=max(options.rounds, len(config.stages)),
        stages=config.stages,
        patience=options.patience,
        method=options.method,
        guards=tuple(filter(None, map(str.strip, (options.guard or "").split(",")))),
        margin=options.margin,
        backend=options.backend,
        server_type=options.server_type,
        server_gpus=options.server_gpus,
        data_dir=optional_path(options.data_dir),
        keys=config.keys,
    )


def _dry_run_steps(spec: ImproveSpec) -> Iterator[Step]:
    problems = load_problems(spec, lambda text: print(text, file=sys.stderr), writes=False)
    out = spec.output_dir
    yield "reads", spec.model, "the model"
    for number, pool in enumerate(problems.pools, 1):
        stage = spec.stage(number)
        which = f"stage {stage.name}" if number <= len(spec.stages) else "each round"
        yield "reads", pool.source, f"{which} ({stage.method.upper()}): {pool.size}, {_describe_amount(stage)}"
    for run_ in problems.evaluated:
        yield "reads", run_.input_file, f"{run_.name}: evaluated after each round, never trained on"
    yield "writes", out / "rounds", "samples, examples, checkpoints of each round"
    yield "writes", out / "models", "the models of kept rounds"
    yield "writes", out / ROUNDS, "the test of each round"
    yield (
        "writes",
        out / "report.html",
        "curve, cost and gain of each round, problems that changed; and as Markdown",
    )


def _describe_amount(stage: ImproveStage) -> str:
    """Describe how much the stage trains."""
    keys = stage.keys
    length = f"{keys.epochs:g} epochs"
    if stage.method == "grpo":
        length = counted(keys.steps, "step")
    if keys.samples:
        return f"at most {keys.problems} problems × {counted(keys.samples, 'sample')}, {length}"
    return length
