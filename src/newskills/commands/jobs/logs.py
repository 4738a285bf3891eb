# SPDX-License-Identifier: Apache-2.0
"""`ns logs NAME`: what submitted jobs have printed."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.commands.command import Command
from newskills.config.command_line import Parsed
from newskills.pipelines.nemo_evaluator.invocations import meant, show_logs
from newskills.pipelines.options import doc
from newskills.pipelines.submission.submitted import find_submitted


class Options(Struct, frozen=True, kw_only=True):
    name: Annotated[
        str,
        doc(
            "experiment: its name (the latest one of that name), the beginning of a name, or NAME/STAMP; or "
            "an invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX",
            {"positional": True},
        ),
    ]
    job: Annotated[str | None, doc("only this job")] = None
    command: Annotated[str | None, doc("only this command of the jobs; job = the log of the job script")] = None
    follow: Annotated[
        bool,
        doc("follow: continue until the jobs have ended, and exit with their exit code", {"short": "-f"}),
    ] = False


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if (entries := meant(options.name)) is not None:
        return show_logs(entries, follow=options.follow)
    return find_submitted(options.name).show_logs(options.job, options.command, follow=options.follow)


def result(parsed: Parsed[Options]) -> None:
    """For Python: raises NewskillsError where the jobs have failed."""
    if code := run(parsed):
        raise NewskillsError(f"The jobs of '{parsed.options.name}' ended with exit code {code}.")


COMMAND = Command(
    name="logs",
    summary="Show the logs of submitted jobs, wherever they run; -f follows them until the jobs end.",
    options=Options,
    run=run,
    result=result,
    examples=("ns logs my-eval", "ns logs -f my-eval", "ns logs my-eval --job=eval-rs0 --command=server"),
)
