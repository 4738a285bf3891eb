# SPDX-License-Identifier: Apache-2.0
"""`ns plan COMMAND …`: the same as `ns COMMAND … --dry_run`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError
from newskills.commands.command import Command, resolve_function
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.pipelines.options import doc

if TYPE_CHECKING:
    from newskills.pipelines.submission.plan import CommandPlan

DRY_RUN = "--dry_run"


class Options(Struct, frozen=True, kw_only=True):
    command: Annotated[str, doc("a command that runs or submits work", {"positional": True})]
    words: Annotated[list[str], doc("its options", {"positional": True})] = []


class PlanCommand(Command[Options], frozen=True, kw_only=True):
    """All words behind the command's name are for that command."""

    def main(self, argv: Sequence[str]) -> int:
        if not argv or argv[0].startswith("-"):
            return super().main(argv)
        from newskills.commands.table import one_name

        name, *rest = one_name(list(argv))
        return planned_command(name).main([DRY_RUN, *rest])


def planned_command(name: str) -> Command[Any]:
    """Return the command called `name`. Raises ConfigError for a command that has no dry run, UnknownNameError."""
    from newskills.commands.loading import load_command
    from newskills.commands.table import command_names

    command = load_command(name)
    if DRY_RUN.lstrip("-") not in leaves(command.options):
        able = [name for name in command_names() if "dry_run" in leaves(load_command(name).options)]
        raise ConfigError(f"ns {name} submits nothing, so there is no plan; {', '.join(able)} can be planned.")
    return command


def plan_command(parsed: Parsed[Options]) -> CommandPlan:
    """Return what the command would do: its text, and the jobs of a cluster. Raises ConfigError for a command that has
    no dry run, UnknownNameError, NewskillsError where the words make no sense."""
    from newskills.pipelines.placement.cluster import cluster_of
    from newskills.pipelines.submission.plan import CommandPlan

    command, words, text = planned_command(parsed.options.command), [DRY_RUN, *parsed.options.words], io.StringIO()
    with redirect_stdout(text):
        if code := command.main(words):
            raise NewskillsError(f"{command.name} ended with exit code {code}.")
    planned = command.parse_words(words)
    if command.prepare is None or getattr(planned.options, "cluster", None) is None:
        return CommandPlan(text.getvalue(), ())
    with redirect_stderr(io.StringIO()):  # its notes were shown above
        ready = resolve_function(command.prepare)(planned, cluster_of(planned.options))
    if ready is None:
        return CommandPlan(text.getvalue(), ())
    return CommandPlan(text.getvalue(), ready.submission.pipeline.jobs)


def run(parsed: Parsed[Options]) -> int:
    return planned_command(parsed.options.command).main([DRY_RUN, *parsed.options.words])


COMMAND = PlanCommand(
    name="plan",
    summary="Show what a command would do, without doing it: for a cluster, the tree of jobs with what each "
    "of them runs, the settings and where they come from, and with --show_scripts the scripts of all "
    "jobs.",
    options=Options,
    run=run,
    result=plan_command,
    examples=(
        "ns plan eval --cluster=slurm --benchmarks=gsm8k:4 --model=/models/small --server_type=vllm --server_gpus=1 "
        "--output_dir=/results --show_scripts",
    ),
)
