# SPDX-License-Identifier: Apache-2.0
"""What `ns improve` does: rounds of samples, training and a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.base.terminal import counted
from newskills.commands.shared.training import STOPPED, keys_of
from newskills.commands.train.improve import Options
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.recipes.improve.problems import load_problems
from newskills.recipes.improve.records import ROUNDS, ImproveKeys, ImproveSpec
from newskills.recipes.steps_shown import steps_shown
from newskills.train.loops.stopping import StoppedError, ended_by_term

EMBEDDED = ("xllamacpp", "gguf")


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (keys, packages), DataError (problems, overlap), TrainingError."""
    options, keys = parsed.options, keys_of(ImproveKeys, parsed)
    if keys is None:
        return 0
    spec = _spec(options, keys)
    if options.dry_run:
        show_dry_run(_steps(spec))
        return 0
    require_train("torch", "safetensors", "tokenizers")
    if spec.server_type == "llamacpp" and (missing := [name for name in EMBEDDED if find_spec(name) is None]):
        raise ConfigError(
            f"The embedded server needs {', '.join(missing)}, which this environment does not have.",
            hint="Run: pip install 'newskills[local]', or choose another --server_type.",
        )
    from newskills.pipelines.improvement_report import write_improvement_report
    from newskills.recipes.improve.loop import improve

    try:
        with ended_by_term():
            improvement = improve(spec, say=_say)
    except StoppedError as stopped:
        _say(str(stopped))
        return STOPPED
    except KeyboardInterrupt:
        _say("stopped; finished work is kept, run the same command to resume")
        return STOPPED
    page = write_improvement_report(spec, improvement)
    _say(f"ended: {improvement.why}")
    kept = ", ".join(record.name for record in improvement.kept) or "none: the model is the initial one"
    _say(
        f"kept      {kept}\nmodel     {improvement.model}\nrounds    {spec.output_dir / ROUNDS}\nreport    {page}"
    )
    return 0


def _spec(options: Options, keys: ImproveKeys) -> ImproveSpec:
    return ImproveSpec(
        output_dir=Path(options.output_dir),
        model=options.model,
        benchmark=options.benchmark,
        watch=steps_shown,
        split=options.split,
        training_data=Path(options.training_data) if options.training_data else None,
        solutions=tuple(map(Path, options.solutions)),
        rounds=options.rounds,
        patience=options.patience,
        method=options.method,
        guards=tuple(filter(None, map(str.strip, (options.guard or "").split(",")))),
        margin=options.margin,
        backend=options.backend,
        server_type=options.server_type,
        server_gpus=options.server_gpus,
        data_dir=Path(options.data_dir) if options.data_dir else None,
        keys=keys,
    )


def _say(text: str) -> None:
    print(text, flush=True)


def _steps(spec: ImproveSpec) -> Iterator[Step]:
    problems = load_problems(spec, lambda text: print(text, file=sys.stderr), writes=False)
    keys, out = spec.keys, spec.output_dir
    yield "reads", spec.model, "the model"
    yield (
        "reads",
        problems.source,
        f"{counted(len(problems.training), 'problem')} to train on, at most {keys.problems} in each round",
    )
    for run_ in problems.evaluated:
        yield "reads", run_.input_file, f"{run_.name}: evaluated after each round, never trained on"
    yield "writes", out / "rounds", f"{keys.samples} samples per problem, examples, checkpoints of each round"
    yield "writes", out / "models", "the models of kept rounds"
    yield "writes", out / ROUNDS, "the test of each round"
    yield (
        "writes",
        out / "report.html",
        "curve, cost and gain of each round, samples that changed; and as Markdown",
    )
