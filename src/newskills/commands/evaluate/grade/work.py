# SPDX-License-Identifier: Apache-2.0
"""What `ns grade` does: verdicts for any JSONL of answers, from files or standard input. The input is never changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from newskills.base.errors import ConfigError, DataError
from newskills.base.reading.row_files import place_in, row_lines
from newskills.base.records import Ledger, Row
from newskills.base.store import atomic_write, decode_row, encode_line, open_for_reading, read_rows
from newskills.base.terminal import counted
from newskills.commands.evaluate.grade import Options
from newskills.config.command_line import Parsed
from newskills.config.settings import read_config
from newskills.config.values import parse_value
from newskills.graders import executes, make_grader
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.pages import ledger_line
from newskills.run.grade import grade_rows, with_answers, without_reasoning
from newskills.run.planning.spec import count
from newskills.sandbox.config import SandboxConfig

STDIN = "-"


SANDBOX = "sandbox."
END_REASONING = "end_reasoning_string"


def run(parsed: Parsed[Options]) -> int:
    """Grade the rows and return the exit code: 1 where more samples were lost than `--accept_lost` allows.

    Raises DataError (rows), ConfigError, GraderError.
    """
    options = parsed.options
    values = {key: parse_value(str(text)) for key, text in parsed.overrides.items()}
    end = _end_of_reasoning(values.pop(END_REASONING, None))
    config = {key: value for key, value in values.items() if not key.startswith(SANDBOX)}
    elsewhere = {key.removeprefix(SANDBOX): value for key, value in values.items() if key not in config}
    sandbox = read_config(SandboxConfig, elsewhere, "++sandbox")
    if options.dry_run:
        show_dry_run(_steps(options, config, elsewhere, end))
        return 0
    with ExitStack() as stack:
        graded = _graded(options, config, sandbox, end)
        ledger = Ledger()
        for record in graded:
            if ledger.total == 0:
                out = _open(options.output_file, stack)
            count(ledger, record["outcome"], record.get("outcome_cause"))
            out.write(encode_line(record))
    if ledger.total == 0:
        raise DataError("There are no rows to grade.")
    sys.stdout.flush()
    sys.stderr.write(f"{counted(ledger.total, 'row')}: {ledger_line(ledger)}\n")
    return 1 if 100 * ledger.unscored > options.accept_lost * ledger.total else 0


def _end_of_reasoning(value: object) -> str:
    """Return the text that ends the reasoning; '' where none was given. Raises ConfigError for what is no text."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"++{END_REASONING} must be a text, got {value!r}.")
    return value


def _graded(options: Options, config: Row, sandbox: SandboxConfig, end: str) -> Iterator[Row]:
    if options.executor == "none":
        rows = with_answers(_rows(options.input_files), make_grader(options.grader, config))
        return grade_rows(without_reasoning(rows, end) if end else rows, options.grader, config, sandbox)
    from newskills.run.grade_on_ray import grade_on_ray

    if not options.input_files or STDIN in options.input_files:
        raise ConfigError("--executor=ray reads files: give --input_files.")
    return grade_on_ray(options.input_files, options.grader, config, sandbox, end_reasoning=end)


def _rows(files: list[str]) -> Iterator[tuple[str, Row]]:
    """(file and line, row) of each."""
    if files and STDIN in files[1:]:
        raise ConfigError("--input_files: - (standard input) cannot be combined with files.")
    if not files or files == [STDIN]:
        if sys.stdin.isatty():
            raise ConfigError("Nothing to grade: give --input_files, or pipe JSONL into the command.")
        yield from _placed_rows(sys.stdin.buffer, Path("standard input"))
        return
    for name in files:
        with open_for_reading(Path(name)) as file:
            yield from _placed_rows(file, Path(name))


def _placed_rows(file: IO[bytes], path: Path) -> Iterator[tuple[str, Row]]:
    for place, line in row_lines(file, path):
        if line.strip():
            yield place_in(path, place), decode_row(line, path, place)


def _steps(options: Options, config: Row, sandbox: Row, end: str) -> Iterator[Step]:
    """Yield the steps of a dry run. Raises NewskillsError for what is not there."""
    grader = make_grader(options.grader, config)
    yield "grader", f"{grader.name}@{grader.version}", "runs code in the sandbox" if executes(grader) else ""
    for key, value in (*config.items(), *((f"{SANDBOX}{key}", value) for key, value in sandbox.items())):
        yield "setting", f"++{key}", value
    if end:
        yield "setting", f"++{END_REASONING}", end
    for name in options.input_files or [STDIN]:
        if name == STDIN:
            yield "reads", "standard input", ""
        else:
            yield "reads", name, counted(sum(1 for _ in read_rows(Path(name))), "row")
    yield "writes", options.output_file or "standard output", ""


def _open(path: str | None, stack: ExitStack) -> IO[bytes]:
    return stack.enter_context(atomic_write(Path(path))) if path else sys.stdout.buffer
