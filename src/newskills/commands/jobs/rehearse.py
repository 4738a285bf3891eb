# SPDX-License-Identifier: Apache-2.0
"""`ns rehearse COMMAND …`: everything that can go wrong with a submission, found before it is submitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.commands.command import Command, resolve_function
from newskills.commands.loading import load_command
from newskills.config.command_line import Parsed
from newskills.pipelines.options import doc

if TYPE_CHECKING:
    from newskills.pipelines.rehearsal.rehearse import RehearsalCheck

REHEARSED = ("generate", "eval", "run_cmd")


class Options(Struct, frozen=True, kw_only=True):
    command: Annotated[str, doc("generate, eval or run_cmd", {"positional": True})]
    words: Annotated[list[str], doc("its options", {"positional": True})] = []


class RehearseCommand(Command[Options], frozen=True, kw_only=True):
    """All words behind the command's name are for that command."""

    def main(self, argv: Sequence[str]) -> int:
        if not argv or argv[0].startswith("-"):
            return super().main(argv)
        return _report_rehearsal(argv[0], argv[1:])


def _report_rehearsal(name: str, words: Sequence[str]) -> int:
    from newskills.pipelines.rehearsal.rehearse import report_checks

    return report_checks(rehearse_command(name, words))


def rehearse_command(name: str, words: Sequence[str]) -> list[RehearsalCheck]:
    """Return the checks of a command. Raises NewskillsError for words that make no sense."""
    command = load_command(name)
    if command.prepare is None or command.name not in REHEARSED:
        raise ConfigError(f"ns {name} cannot be rehearsed; generate, eval and run_cmd can.")
    parsed = command.parse_words(words)
    from newskills.pipelines.rehearsal.rehearse import rehearse_submission

    return rehearse_submission(parsed, resolve_function(command.prepare))


def run(parsed: Parsed[Options]) -> int:
    return _report_rehearsal(parsed.options.command, parsed.options.words)


def rehearsal_checks(parsed: Parsed[Options]) -> list[RehearsalCheck]:
    """Return the checks; one that is wrong raises no error. Raises NewskillsError for words that make no sense."""
    return rehearse_command(parsed.options.command, parsed.options.words)


COMMAND = RehearseCommand(
    name="rehearse",
    summary="Run the whole pipeline of a command on this machine, with two rows of each input, without "
    "scheduler and containers, and with a stub in place of the models that the jobs would serve. "
    "This tests jobs, ports, waiting, merging and summaries. The cluster is only asked three things: "
    "does it have what the jobs need (variables, mounts, images); does its scheduler accept them "
    "(sbatch --test-only: partitions, GPUs, limits); does it know the jobs they wait for. Results go "
    "to a temporary folder; your own commands are not run.",
    options=Options,
    run=run,
    result=rehearsal_checks,
    examples=(
        "ns rehearse eval --cluster=slurm --benchmarks=gsm8k:4 --model=/models/small --server_type=vllm "
        "--server_gpus=8 --output_dir=/results",
    ),
)
