# SPDX-License-Identifier: Apache-2.0
"""What `ns logs NAME` does: what submitted jobs have printed."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import NewskillsError
from newskills.base.terminal import print_now
from newskills.config.command_line import Parsed
from newskills.pipelines.invocations import find_invocation
from newskills.pipelines.options import SubmittedName, doc
from newskills.pipelines.submission.submitted import find_submitted


class LogsOptions(Struct, frozen=True, kw_only=True):
    name: SubmittedName
    job: Annotated[str | None, doc("only this job")] = None
    command: Annotated[str | None, doc("only this command of the jobs; job = the log of the job script")] = None
    follow: Annotated[
        bool,
        doc("follow: continue until the jobs have ended, and exit with their exit code", {"short": "-f"}),
    ] = False


def run(parsed: Parsed[LogsOptions]) -> int:
    return _show_logs(parsed, print_now)


def _show_logs(parsed: Parsed[LogsOptions], say: PrintLine) -> int:
    options = parsed.options
    if (invocation := find_invocation(options.name)) is not None:
        return invocation.show_logs(say, follow=options.follow)
    return find_submitted(options.name).show_logs(options.job, options.command, say, follow=options.follow)


def read_logs(parsed: Parsed[LogsOptions]) -> list[str]:
    """Return the lines, which `follow` prints as they come, too. Raises NewskillsError where it sees that the jobs have
    failed."""
    lines: list[str] = []

    def keep(line: str) -> None:
        lines.append(line)
        if parsed.options.follow:
            print_now(line)

    if code := _show_logs(parsed, keep):
        raise NewskillsError(f"The jobs of '{parsed.options.name}' ended with exit code {code}.")
    return lines
