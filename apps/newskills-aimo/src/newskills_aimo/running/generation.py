# SPDX-License-Identifier: Apache-2.0
"""What `ns aimo generate` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import sys

from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills_aimo.commands.generate import Options
from newskills_aimo.recipe.answering import OUTPUT, AnsweringTask, answers, keep_problem, lines
from newskills_aimo.running.lines import gpus, place, run_line, show


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    spec = AnsweringTask(
        model=options.model,
        strategy=options.strategy,
        output_dir=place(options) / "generated" / options.strategy,
        problem=options.problem,
        input_file=options.input_file,
        samples=options.num_samples,
        gpus=gpus(options.use_vllm),
        address=options.server_address,
        keys=parsed.overrides,
    )
    planned = list(lines(spec))
    if options.dry_run:
        return show(("", line) for line in planned)
    keep_problem(spec)
    for line in planned:
        if code := run_line(line):
            return code
    for row, answer in answers(spec) if options.problem is not None else ():
        sys.stdout.write(f"{printable(str(row.get('generation') or ''))}\nanswer: {printable(str(answer))}\n")
    sys.stdout.write(f"answers: {spec.output_dir / OUTPUT}\n")
    return 0
