# SPDX-License-Identifier: Apache-2.0
"""What the evaluations of the three-stage recipe do. Apart from their options, so that help loads no engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError
from newskills.base.records import Number
from newskills.config.command_line import Parsed
from newskills.models.serving.gpus import visible_gpus
from newskills.pipelines.notices import print_note
from newskills.run.planning.plan import RESULTS_FOLDER
from newskills_aimo.commands.evaluate import Options as OneOptions
from newskills_aimo.commands.evaluate_all import Options as AllOptions
from newskills_aimo.commands.evaluate_checkpoints import Options as CheckpointsOptions
from newskills_aimo.commands.options import BenchmarkOptions
from newskills_aimo.commands.regenerate_summary import Options as SummaryOptions
from newskills_aimo.recipe.evaluating import (
    ALL,
    EVERYTHING,
    EvaluationSettings,
    checkpoint_lines,
    checkpoint_scores,
    checkpoints_of,
    evaluate_checkpoints,
    evaluation_lines,
    headline_scores,
    run_evaluation,
    write_checkpoint_table,
    write_everything,
)
from newskills_aimo.recipe.lines import CommandLine
from newskills_aimo.running.lines import (
    print_from_first_process,
    results_folder,
    run_line,
    show_lines,
    value_after,
    vllm_gpus,
)


def run_evaluate(parsed: Parsed[OneOptions]) -> int:
    spec = _spec_of_one(parsed)
    if parsed.options.dry_run:
        return show_lines(("", line) for line in evaluation_lines(spec))
    return run_evaluation(spec, ns=run_line)


def evaluate_result(parsed: Parsed[OneOptions]) -> dict[str, Number] | None:
    """Return the headline score of each benchmark, None for a dry run. Raises NewskillsError."""
    return value_after(run_evaluate, parsed, lambda: headline_scores(_spec_of_one(parsed).output_dir))


def _spec_of_one(parsed: Parsed[OneOptions]) -> EvaluationSettings:
    return _evaluation_settings(parsed, parsed.options.benchmark.split(","), vllm_gpus(parsed.options.use_vllm))


def all_result(parsed: Parsed[AllOptions]) -> dict[str, Number] | None:
    """Return the headline score of each benchmark, None for a dry run. Raises NewskillsError."""
    return value_after(run_all, parsed, lambda: headline_scores(results_folder(parsed.options)))


def checkpoints_result(parsed: Parsed[CheckpointsOptions]) -> dict[int, dict[str, Number]] | None:
    """Return step → benchmark → headline score, None for a dry run. Raises NewskillsError."""

    def scores() -> dict[int, dict[str, Number]]:
        return {point.step: point.scores for point in checkpoint_scores(results_folder(parsed.options))}

    return value_after(run_checkpoints, parsed, scores)


def summary_result(parsed: Parsed[SummaryOptions]) -> dict[Path, dict[str, Number]] | None:
    """Return folder → benchmark → headline score, None for a dry run. Raises NewskillsError."""

    def scores() -> dict[Path, dict[str, Number]]:
        return {folder: headline_scores(folder) for folder in _measured_folders(Path(parsed.options.output_dir))}

    return value_after(run_summary, parsed, scores)


def run_all(parsed: Parsed[AllOptions]) -> int:
    options = parsed.options
    vllm = options.vllm and (visible_gpus() > 0 or "vllm" in parsed.given)
    if options.vllm and not vllm and not options.server_address:
        print_note("no GPU on this machine: llama.cpp serves on the CPU, as with --no-vllm")
    names = [name for text in options.benchmarks for name in text.split(",")] or list(ALL)
    spec = _evaluation_settings(parsed, names, vllm_gpus(vllm))
    if options.dry_run:
        return show_lines(("", line) for line in evaluation_lines(spec))
    if code := run_evaluation(spec, ns=run_line):
        return code
    if options.merge_output:
        sys.stdout.write(f"all scores: {write_everything(spec.output_dir)}\n")
    return 0


def run_checkpoints(parsed: Parsed[CheckpointsOptions]) -> int:
    options = parsed.options
    spec = _evaluation_settings(parsed, options.benchmark.split(","), vllm_gpus(options.use_vllm))
    if options.dry_run:
        return show_lines(_plan_checkpoint_lines(spec, options.base_model))
    return evaluate_checkpoints(spec, options.base_model, ns=run_line, say=print_from_first_process)


def _plan_checkpoint_lines(spec: EvaluationSettings, base: str | None) -> Iterator[tuple[str, CommandLine]]:
    for step, folder in checkpoints_of(Path(spec.model)):
        for line in checkpoint_lines(spec, folder, base):
            yield f"step {step}", line


def run_summary(parsed: Parsed[SummaryOptions]) -> int:
    """Run the command and return the exit code. Raises DataError where the folder has no records of an evaluation."""
    folder = Path(parsed.options.output_dir)
    checkpoints = _measured_folders(folder)
    if not checkpoints:
        raise DataError(
            f"{folder} has no evaluation records (neither {RESULTS_FOLDER} nor checkpoint-*/{RESULTS_FOLDER})."
        )
    summaries = [
        CommandLine(command="summarize_results", places=(str(path),), why="the table of these records")
        for path in checkpoints
    ]
    if parsed.options.dry_run:
        return show_lines(("", line) for line in summaries)
    for line in summaries:
        if code := run_line(line):
            return code
    if (folder / EVERYTHING).is_file():
        write_everything(folder)
    if checkpoint_scores(folder):
        sys.stdout.write(f"{write_checkpoint_table(folder)}\n")
    return 0


def _measured_folders(folder: Path) -> list[Path]:
    return [path for path in (folder, *sorted(folder.glob("checkpoint-*"))) if (path / RESULTS_FOLDER).is_dir()]


def _evaluation_settings(parsed: Parsed[Any], benchmarks: Sequence[str], count: int) -> EvaluationSettings:
    options: BenchmarkOptions = parsed.options
    return EvaluationSettings(
        model=options.model,
        benchmarks=benchmarks,
        output_dir=results_folder(options),
        max_samples=options.max_samples,
        samples=options.num_samples,
        gpus=count,
        address=options.server_address,
        tir=options.use_tir,
        data_dir=options.data_dir,
        keys=parsed.overrides,
    )
