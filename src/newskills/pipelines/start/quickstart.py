# SPDX-License-Identifier: Apache-2.0
"""What `ns quickstart` does: the main job on an embedded default."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import print_now
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import split_folder
from newskills.config.command_line import Parsed
from newskills.models.serving.weights import known_weights
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import optional_path
from newskills.pipelines.start.quickstart_options import QuickstartOptions
from newskills.recipes.improve.loop import Improvement
from newskills.recipes.improve.records import ROUNDS
from newskills.recipes.lesson import LessonSpec, run_lesson, shorten_lesson
from newskills.recipes.quickstart import (
    QUICKSTART_BENCHMARKS,
    QuickstartSpec,
    activation_line,
    run_quickstart_evaluation,
)
from newskills.run.evaluate import EvaluationOutcome
from newskills.run.planning.plan import RESULTS_FOLDER
from newskills.run.training.steps_shown import steps_shown
from newskills.train.loops.stopping import StoppedError, ended_by_term

NEXT = """
Next:
{activate}  ns view {out}   the models side by side, what changed and why, and the curves of both trainings
  ns start_server --server_type=llamacpp --model={model}.F16.gguf
  ns improve --model={model} --benchmark=sorting-lesson --rounds=3 --output_dir=out/improve
  ns quickstart --no_train  evaluate the untrained model on two benchmarks, with several seeds
  ns eval --benchmarks=gsm8k:4 --server_type=vllm --server_address=http://HOST:8000/v1 --model=NAME
  ns list benchmarks        benchmarks to evaluate on and to train on"""


REPORT = "evaluation"
"""Name of the page, without its ending."""


NEEDS = ("xllamacpp", "gguf", "reasoning_gym")


class QuickstartOutcome(Struct, frozen=True, kw_only=True):
    """What the quickstart has made: `page`, the HTML page of the results; `improvement`, the rounds of training and the
    model; or without a training `evaluation`."""

    page: Path
    improvement: Improvement | None = None
    evaluation: EvaluationOutcome | None = None


def run(parsed: Parsed[QuickstartOptions]) -> int:
    """Run the command and return the exit code. Raises ConfigError where the embedded model is not installed."""
    try:
        made = run_quickstart(parsed)
    except _UnfinishedError as unfinished:
        sys.stderr.write(f"{unfinished.message}\n")
        return unfinished.exit_code
    except StoppedError as stopped:
        print_now(str(stopped))
        return StoppedError.exit_code
    except KeyboardInterrupt:
        if not parsed.options.train:
            raise
        print_now("stopped; finished work is kept, run the same command to resume")
        return StoppedError.exit_code
    if made is not None and made.improvement is not None:
        out = Path(parsed.options.output_dir)
        print(NEXT.format(activate=activation_line(), out=out, model=made.improvement.model))
    return 0


class _UnfinishedError(NewskillsError):
    """An evaluation with work left."""


def run_quickstart(parsed: Parsed[QuickstartOptions]) -> QuickstartOutcome | None:
    """Run the quickstart and return what it made; None for a dry run. Raises ConfigError where the embedded model is
    not installed, StoppedError, NewskillsError where work is left."""
    options = parsed.options
    if missing := [module for module in NEEDS if find_spec(module) is None]:
        raise ConfigError(
            f"The embedded model needs {', '.join(missing)}, which this environment does not have.",
            hint="Run: pip install 'newskills[local]'",
        )
    if options.train:
        return _run_lesson(options)
    spec = QuickstartSpec(
        output_dir=Path(options.output_dir),
        model=options.model,
        data_dir=optional_path(options.data_dir),
        share=options.share,
    )
    if options.dry_run:
        show_dry_run(_dry_run_steps(spec))
        return None
    evaluation = run_quickstart_evaluation(spec, say=print_now)
    if evaluation.message:
        unfinished = _UnfinishedError(evaluation.message)
        unfinished.exit_code = evaluation.exit_code
        raise unfinished
    return QuickstartOutcome(page=_write_page(spec.output_dir), evaluation=evaluation)


def _run_lesson(options: QuickstartOptions) -> QuickstartOutcome | None:
    """Run the whole loop, and return what it made."""
    if options.share > 1:
        raise ConfigError(
            f"--share={options.share:g} is more than all problems of the lesson.",
            hint="Use 1 or less, or --no_train to evaluate only.",
        )
    spec = shorten_lesson(
        LessonSpec(
            output_dir=Path(options.output_dir),
            model=options.model,
            watch=steps_shown,
            data_dir=optional_path(options.data_dir),
        ),
        options.share,
    )
    if options.dry_run:
        show_dry_run(_lesson_steps(spec))
        return None
    require_train(
        "torch", "safetensors", "tokenizers", instead="ns quickstart --no_train evaluates without these packages."
    )
    with ended_by_term():
        _, improvement = run_lesson(spec, say=print_now)
    return QuickstartOutcome(page=_write_page(spec.output_dir), improvement=improvement)


def _write_page(folder: Path) -> Path:
    from newskills.view.documents.report import ReportOptions
    from newskills.view.documents.writing import write_report

    page, _ = write_report([folder], folder / REPORT, "Quickstart", ReportOptions())
    print(f"page      {page}")
    return page


def _lesson_steps(spec: LessonSpec) -> Iterator[Step]:
    out = spec.output_dir
    yield "reads", spec.model, "the model, served on this machine's CPU"
    for name in ("base", "sft", "grpo"):
        yield "writes", out / "eval" / name, f"answers to {spec.problems} held-out problems, graded"
    yield "writes", out / "data", f"a solver's answers to {spec.sft.problems} problems for SFT, others for GRPO"
    yield "writes", out / "rounds", f"of both rounds: data, checkpoints, metrics; {spec.grpo.steps} steps of GRPO"
    yield "writes", out / ROUNDS, "the test of each round: it is kept only if it is better"
    yield "writes", out / "models", "the model after each round, for more training and for serving"
    yield "writes", out / "report.md", "the comparison"
    yield "writes", out / f"{REPORT}.html", "the same with plots, curves and settings; and as Markdown"


def _dry_run_steps(spec: QuickstartSpec) -> Iterator[Step]:
    weights = known_weights(spec.model)
    if weights is not None and not weights.exists():
        yield "fetches", spec.model, f"to {weights}"
    yield "reads", weights or spec.model, "the model, served on this machine's CPU"
    for part in QUICKSTART_BENCHMARKS:
        benchmark = get_benchmark(part.name)
        path = split_folder(benchmark, spec.data_dir) / f"{benchmark.split}.jsonl"
        rows = part.problems(spec.share)
        yield "reads" if path.exists() else "writes", path, f"{rows} problems of it, {part.samples} samples each"
    yield "writes", spec.output_dir / RESULTS_FOLDER, "records and metrics"
    yield "writes", spec.output_dir / "eval-logs", "logs"
    yield "writes", spec.output_dir / f"{REPORT}.html", "a page of the results; and as Markdown"
