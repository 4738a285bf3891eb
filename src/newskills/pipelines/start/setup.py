# SPDX-License-Identifier: Apache-2.0
"""What `ns setup` does: asks, writes, tries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from newskills.base.errors import NewskillsError
from newskills.base.terminal import print_now
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.start.interview import Interview, compose_config, try_and_tell, write_config
from newskills.pipelines.start.setup_options import SetupOptions


def run(parsed: Parsed[SetupOptions]) -> int:
    _, is_complete = _set_up(parsed)
    return int(not is_complete)


def _set_up(parsed: Parsed[SetupOptions]) -> tuple[Path | None, bool]:
    """Return the file that was written, None for a dry run, and whether all that it names exists."""
    interview = Interview(parsed.options, parsed.given, os.environ, ask=_ask_on_terminal, say=print_now)
    answers = interview.answers()
    if parsed.options.dry_run:
        path, _, text = compose_config(answers, interview.folder, os.environ)
        print_now(f"==> {path} <==\n{text}")
        show_dry_run([("writes", path, "")])
        return None, True
    path, cluster = write_config(answers, interview.folder, os.environ)
    print_now(f"Wrote {path}.")
    ok = not parsed.options.test or try_and_tell(
        cluster, os.environ, say=print_now, pull=parsed.options.pull_images
    )
    print_now(f"Use it: ns COMMAND --cluster={cluster.name}" + interview.where_to_look)
    return path, ok


def set_up_cluster(parsed: Parsed[SetupOptions]) -> Path | None:
    """Return the config that was written, None for a dry run. Raises NewskillsError where the cluster lacks what it
    promises."""
    path, is_complete = _set_up(parsed)
    if not is_complete:
        raise NewskillsError("The config was written, but some of what it names does not exist.")
    return path


def _ask_on_terminal(question: str) -> str:
    sys.stdout.write(question)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stdout.write("\n")
        raise EOFError
    return line.strip()
