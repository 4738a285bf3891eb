# SPDX-License-Identifier: Apache-2.0
"""What `ns aimo generate` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import sys
from pathlib import Path

from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills_aimo.commands.generate import Options
from newskills_aimo.recipe.answering import OUTPUT, AnsweringTask, answering_lines, final_answers, write_problem
from newskills_aimo.running.lines import results_folder, run_line, show_lines, value_after, vllm_gpus


def generate_answers(parsed: Parsed[Options]) -> Path | None:
    """Return the file of the answers, None for a dry run. Raises NewskillsError."""
    return value_after(run, parsed, lambda: _answering_task(parsed).output_dir / OUTPUT)


def _answering_task(parsed: Parsed[Options]) -> AnsweringTask:
    options = parsed.options
    return AnsweringTask(
        model=options.model,
        strategy=options.strategy,
        output_dir=results_folder(options) / "generated" / options.strategy,
        problem=options.problem,
        input_file=options.input_file,
        samples=options.num_samples,
        gpus=vllm_gpus(options.use_vllm),
        address=options.server_address,
        keys=parsed.overrides,
    )


def run(parsed: Parsed[Options]) -> int:
    options, spec = parsed.options, _answering_task(parsed)
    planned = list(answering_lines(spec))
    if options.dry_run:
        return show_lines(("", line) for line in planned)
    write_problem(spec)
    for line in planned:
        if code := run_line(line):
            return code
    if options.problem is not None:
        for row, answer in final_answers(spec):
            text = printable(str(row.get("generation") or ""))
            sys.stdout.write(f"{text}\nanswer: {printable(str(answer))}\n")
    sys.stdout.write(f"answers: {spec.output_dir / OUTPUT}\n")
    return 0
