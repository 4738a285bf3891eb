# SPDX-License-Identifier: Apache-2.0
"""What the commands of the three-stage recipe share: how the lines of the recipe are run and shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import NewskillsError
from newskills.commands.loading import load_command
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.pipelines.notices import print_note
from newskills_aimo.commands.options import AnswerOptions
from newskills_aimo.recipe.lines import CommandLine

T = TypeVar("T")
O = TypeVar("O", bound=Struct)  # noqa: E741 - O as in options


def results_folder(options: AnswerOptions) -> Path:
    """Return the folder for the results."""
    return Path(options.output_dir or Path("results/aimo") / Path(options.model.rstrip("/")).name)


def vllm_gpus(vllm: bool) -> int:
    """Return the number of GPUs for vLLM; 0 = llama.cpp."""
    from newskills.models.serving.gpus import visible_gpus

    if vllm:
        return max(1, visible_gpus())
    return 0


def show_lines(lines: Iterable[tuple[str, CommandLine]]) -> int:
    """Print the lines as they would be typed, each checked to be one that its command takes, and return 0. Raises
    NewskillsError."""
    for title, line in lines:
        fit = fitting_line(line)
        load_command(fit.command).parse_words(fit.words)
        heading = f"{title}: {line.why}" if title else line.why
        sys.stdout.write(f"# {heading}\n{fit.shell_text}\n")
    sys.stdout.write("Nothing was done: this is a dry run.\n")
    return 0


def value_after(run: Callable[[Parsed[O]], int], parsed: Parsed[O], value: Callable[[], T]) -> T | None:
    """Run the work of a command and return what `value` reads then, None for a dry run. Raises NewskillsError where a
    step ended otherwise than with 0."""
    if code := run(parsed):
        raise NewskillsError(f"A step ended with exit code {code}.")
    if getattr(parsed.options, "dry_run", False):
        return None
    return value()


def run_line(line: CommandLine) -> int:
    """Print and run a line; return its exit code. Raises NewskillsError."""
    fit = fitting_line(line)
    print_from_first_process(f"$ {fit.shell_text}")
    return load_command(fit.command).main(fit.words)


def print_from_first_process(text: str) -> None:
    """Print `text` in the first of several processes that train together."""
    if os.environ.get("RANK", "0") == "0":
        print(text, flush=True)


def fitting_line(line: CommandLine) -> CommandLine:
    """Return a lenient line without what its command lacks, which a note names. Raises UnknownNameError."""
    if not line.lenient:
        return line
    command = load_command(line.command)
    config_keys = leaves(command.config) if command.config else {}
    options, keys = _split_known(line.options, leaves(command.options)), _split_known(line.keys, config_keys)
    if idle := [f"--{k}={v}" for k, v in options[1].items()] + [f"++{k}={v}" for k, v in keys[1].items()]:
        print_note(f"ns {line.command} has no {', '.join(idle)}")
    return replace(line, options=options[0], keys=keys[0])


def _split_known(
    values: Mapping[str, Any], known_names: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (the values that are known, those that are not), without None."""
    known_values: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name, value in values.items():
        if value is not None:
            (known_values if name in known_names else unknown)[name] = value
    return known_values, unknown
