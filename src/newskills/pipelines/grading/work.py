# SPDX-License-Identifier: Apache-2.0
"""What `ns grade` does: verdicts for any JSONL of answers, from files or standard input. The input is never changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.reading.row_files import place_in, row_lines
from newskills.base.records import Ledger, Row
from newskills.base.store import atomic_write, decode_row, encode_line, open_for_reading, read_rows
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.config.settings import read_config
from newskills.config.values import parse_value
from newskills.graders import is_executing, make_grader
from newskills.launch.registry import EXECUTORS
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.grading.options import GradeOptions
from newskills.pipelines.pages import ledger_line
from newskills.run.grade import grade_rows, with_answers, without_reasoning
from newskills.run.planning.spec import count_attempt
from newskills.sandbox.config import SandboxConfig

STDIN = "-"
ROWS = "rows"
"""Keyword of the Python function: rows of this process in place of files."""
SANDBOX = "sandbox."
END_REASONING = "end_reasoning_string"


class Graded(Struct, kw_only=True):
    """Rows with their verdicts. `ledger`: how many have which; `output_file`: where they are, None: in memory."""

    ledger: Ledger
    output_file: Path | None = None
    kept: list[Row] = []

    def rows(self) -> Iterator[Row]:
        """Yield the rows with their verdicts, in the order of the input. Raises DataError where the file is gone."""
        if self.output_file is None:
            return iter(self.kept)
        return read_rows(self.output_file)


class _Settings(Struct, frozen=True):
    """The `++` keys: of the grader, of the sandbox (as given, and whole), and what ends the reasoning."""

    grader: Row
    sandbox_keys: Row
    sandbox: SandboxConfig
    end: str


def run(parsed: Parsed[GradeOptions]) -> int:
    """Grade the rows and return the exit code: 1 where more samples were lost than `--accept_lost` allows.

    Raises DataError (rows), ConfigError, GraderError.
    """
    options, settings = parsed.options, _grade_settings(parsed)
    if options.dry_run:
        show_dry_run(_dry_run_steps(options, settings))
        return 0
    with ExitStack() as stack:
        ledger = _write_graded(_grade_files(options, settings), lambda: _open_output(options.output_file, stack))
    sys.stdout.flush()
    sys.stderr.write(f"{counted(ledger.total, 'row')}: {ledger_line(ledger)}\n")
    if _lost_share(ledger) > options.accept_lost:
        return 1
    return 0


def grade_answers(parsed: Parsed[GradeOptions]) -> Graded | None:
    """Grade for Python, and return the rows with their verdicts, None for a dry run. The rows may be objects of
    this process.

    Raises DataError (rows), ConfigError, GraderError, and NewskillsError where more samples were lost than
    `accept_lost` allows.
    """
    options, settings, rows = parsed.options, _grade_settings(parsed), parsed.objects.get(ROWS)
    if options.dry_run:
        show_dry_run(_dry_run_steps(options, settings))
        return None
    if rows is None:
        graded = _grade_files(options, settings)
    else:
        graded = _graded_objects(rows, options, settings)
    if options.output_file is None:
        kept = list(graded)
        ledger = Ledger()
        for record in kept:
            count_attempt(ledger, record["outcome"], record.get("outcome_cause"))
        _check_any(ledger)
        done = Graded(ledger=ledger, kept=kept)
    else:
        with ExitStack() as stack:
            ledger = _write_graded(graded, lambda: _open_output(options.output_file, stack))
        done = Graded(ledger=ledger, output_file=Path(options.output_file))
    if (lost := _lost_share(ledger)) > options.accept_lost:
        raise NewskillsError(
            f"{lost:.1f} % of the rows are unscored (more than the accepted {options.accept_lost:g} %): "
            f"{ledger_line(ledger)}."
        )
    return done


def _grade_settings(parsed: Parsed[GradeOptions]) -> _Settings:
    """Return what the `++` keys say. Raises ConfigError."""
    values = {key: parse_value(str(text)) for key, text in parsed.overrides.items()}
    end = _end_of_reasoning(values.pop(END_REASONING, None))
    config = {key: value for key, value in values.items() if not key.startswith(SANDBOX)}
    keys = {key.removeprefix(SANDBOX): value for key, value in values.items() if key not in config}
    return _Settings(config, keys, read_config(SandboxConfig, keys, "++sandbox"), end)


def _write_graded(graded: Iterator[Row], open_output: Callable[[], IO[bytes]]) -> Ledger:
    """Write all rows, and return how many have which verdict; the output is opened for the first. Raises DataError
    where there are none."""
    ledger = Ledger()
    for record in graded:
        if ledger.total == 0:
            out = open_output()
        count_attempt(ledger, record["outcome"], record.get("outcome_cause"))
        out.write(encode_line(record))
    _check_any(ledger)
    return ledger


def _check_any(ledger: Ledger) -> None:
    """Raise DataError where nothing was graded."""
    if ledger.total == 0:
        raise DataError("There are no rows to grade.")


def _lost_share(ledger: Ledger) -> float:
    """Return the percentage of rows that are unscored."""
    return 100 * ledger.unscored / ledger.total


def _end_of_reasoning(value: object) -> str:
    """Return the text that ends the reasoning; '' where none was given. Raises ConfigError for what is no text."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"++{END_REASONING} must be a text, got {value!r}.")
    return value


def _grade_files(options: GradeOptions, settings: _Settings) -> Iterator[Row]:
    if not EXECUTORS.properties(options.executor).uses_ray:
        return _grade_placed_rows(_read_placed_rows(options.input_files), options, settings)
    from newskills.run.grade_on_ray import grade_on_ray

    if not options.input_files or STDIN in options.input_files:
        raise ConfigError("--executor=ray reads files: give --input_files.")
    return grade_on_ray(
        options.input_files, options.grader, settings.grader, settings.sandbox, end_reasoning=settings.end
    )


def _graded_objects(rows: Iterable[Row], options: GradeOptions, settings: _Settings) -> Iterator[Row]:
    """Yield rows of this process with their verdicts; the caller's own stay as they are. Raises ConfigError."""
    if options.input_files or EXECUTORS.properties(options.executor).uses_ray:
        raise ConfigError("rows are graded in this process: leave out input_files and executor.")
    return _grade_placed_rows(
        ((f"row {number}", dict(row)) for number, row in enumerate(rows, 1)), options, settings
    )


def _grade_placed_rows(
    rows: Iterator[tuple[str, Row]], options: GradeOptions, settings: _Settings
) -> Iterator[Row]:
    answers = with_answers(rows, make_grader(options.grader, settings.grader))
    if settings.end:
        answers = without_reasoning(answers, settings.end)
    return grade_rows(answers, options.grader, settings.grader, settings.sandbox)


def _read_placed_rows(files: list[str]) -> Iterator[tuple[str, Row]]:
    """Yield (file and line, row) of each input row."""
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


def _dry_run_steps(options: GradeOptions, settings: _Settings) -> Iterator[Step]:
    """Yield the steps of a dry run. Raises NewskillsError for what is not there."""
    config, sandbox, end = settings.grader, settings.sandbox_keys, settings.end
    grader = make_grader(options.grader, config)
    yield "grader", f"{grader.name}@{grader.version}", "runs code in the sandbox" if is_executing(grader) else ""
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


def _open_output(path: str | None, stack: ExitStack) -> IO[bytes]:
    if path:
        return stack.enter_context(atomic_write(Path(path)))
    return sys.stdout.buffer
