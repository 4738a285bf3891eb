# SPDX-License-Identifier: Apache-2.0
"""What `ns setup` does: asks, writes, tries."""

from __future__ import annotations

import os
import sys

from newskills.base.errors import NewskillsError
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.start.interview import Interview, compose_config, try_and_tell, write
from newskills.pipelines.start.setup_options import SetupOptions


def run(parsed: Parsed[SetupOptions]) -> int:
    interview = Interview(parsed.options, parsed.given, os.environ, ask=_ask, say=_say)
    answers = interview.answers()
    if parsed.options.dry_run:
        path, _, text = compose_config(answers, interview.folder, os.environ)
        _say(f"==> {path} <==\n{text}")
        show_dry_run([("writes", path, "")])
        return 0
    path, cluster = write(answers, interview.folder, os.environ)
    _say(f"Wrote {path}.")
    ok = not parsed.options.test or try_and_tell(cluster, os.environ, say=_say, pull=parsed.options.pull_images)
    _say(f"Use it: ns COMMAND --cluster={cluster.name}" + interview.where_to_look)
    if ok:
        return 0
    return 1


def result(parsed: Parsed[SetupOptions]) -> None:
    """Set up a cluster for Python; raises NewskillsError where it lacks what its config promises."""
    if run(parsed):
        raise NewskillsError("The config was written, but some of what it names does not exist.")


def _ask(question: str) -> str:
    sys.stdout.write(question)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stdout.write("\n")
        raise EOFError
    return line.strip()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
