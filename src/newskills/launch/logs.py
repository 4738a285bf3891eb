# SPDX-License-Identifier: Apache-2.0
"""Logs of jobs, here or behind ssh, as they are written."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from subprocess import Popen

from newskills.base.errors import ConfigError, suggest
from newskills.launch.experiments import Experiment, JobRecord
from newskills.launch.machines.shell import Shell

JOB_LOG = "job"
"""Beside the logs of commands, the one of job.sh itself."""
LONGEST_LINE = 1 << 16
"""Bytes; longer lines come in pieces."""

_LOOK_EVERY = 0.2
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# found PATTERN...: sets `files` to those that are there.
_FOUND = 'shopt -s nullglob\nfound() { files=("$@"); [[ ${#files[@]} -gt 0 ]]; }\n'
# A last line without an end is ended, so that another file's does not go on there.
_CAT = """
if found {paths}; then
    cat -- "${{files[@]}}" | sed {label}
    [[ -z $(tail -c 1 -- "${{files[-1]}}") ]] || echo
fi
"""
# `tail` ends, after a last look, when the process that reads stdin has: that is when nobody listens any more.
_FOLLOW = "exec 3<&0\ncat <&3 >/dev/null &\nkeeper=$!\n"
_TAIL = """
{{
    until found {paths} || ! kill -0 $keeper 2>/dev/null; do sleep 0.1; done
    if found {paths}; then
        tail -q -n +1 -s 0.1 -F --pid=$keeper -- "${{files[@]}}" 2>/dev/null | sed -u {label}
        [[ -z $(tail -c 1 -- "${{files[-1]}}") ]] || echo
    fi
}} &
tails+=($!)
"""


def log_files(experiment: Experiment, job: str | None, command: str | None) -> list[tuple[str, str]]:
    """Return (label, patterns of bash for paths) of the logs; `command` "job" means the log of job.sh.

    Labels tell apart as much as has to be told apart. Raises ConfigError for unknown names.
    """
    jobs = chosen_jobs(experiment, job)
    command_names = {name for job in jobs for name in job.commands} | {JOB_LOG}
    if command is not None and command not in command_names:
        raise ConfigError(
            f"No job of '{experiment.id}' has a command '{command}'{suggest(command, command_names)}"
        )
    names = [(record, name) for record in jobs for name in (*record.commands, JOB_LOG) if command in (None, name)]
    files = []
    for record, name in names:
        label = []
        if len(jobs) > 1:
            label.append(record.name)
        if command is None:
            label.append(name)
        files.append(("/".join(label), _log_patterns(record, name)))
    return files


def chosen_jobs(experiment: Experiment, job: str | None) -> list[JobRecord]:
    """Return the jobs called `job`, or all. Raises ConfigError."""
    jobs = [job_record for job_record in experiment.jobs if job in (None, job_record.name)]
    if not jobs:
        job_names = [job_record.name for job_record in experiment.jobs]
        raise ConfigError(f"'{experiment.id}' has no job '{job}'{suggest(str(job), job_names)}")
    return jobs


def read_logs(shell: Shell, files: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of all the files, one file after the other, each line with its label in front."""
    script = _FOUND + "".join(_format_piece(_CAT, label, path) for label, path in files)
    with shell.converse(script) as process:
        yield from _read_lines(process)


def follow_logs(shell: Shell, files: Sequence[tuple[str, str]], over: Callable[[], bool]) -> Iterator[str]:
    """Yield lines as they are written, from the beginning, until `over` says (in another thread) that no more will
    come.

    Files may appear later. What `over` raises is raised here at the end.
    """
    script = _FOUND + _FOLLOW + "".join(_format_piece(_TAIL, label, path) for label, path in files)
    left = threading.Event()
    with ThreadPoolExecutor(1) as thread, shell.converse(script + 'wait "${tails[@]}"\n') as process:

        def watch() -> None:
            try:
                while not over() and not left.wait(_LOOK_EVERY):
                    pass
            finally:
                assert process.stdin is not None
                process.stdin.close()

        watcher = thread.submit(watch)
        try:
            yield from _read_lines(process)
        finally:
            left.set()
            wait([watcher])
    watcher.result()


def clean_line(line: str) -> str:
    """Return `line` without colours, and only the last state of a progress bar."""
    return _COLOURS.sub("", line.rstrip("\r")).rpartition("\r")[2]


def _read_lines(process: Popen[bytes]) -> Iterator[str]:
    assert process.stdout is not None
    while line := process.stdout.readline(LONGEST_LINE):
        yield clean_line(line.decode(errors="replace").removesuffix("\n"))


def _format_piece(pattern: str, label: str, paths: str) -> str:
    return pattern.format(paths=paths, label=_sed_label(label))


def _log_patterns(job: JobRecord, name: str) -> str:
    """Return patterns of bash, also for single files, since what is no pattern would be taken for existing."""
    path = f"{shlex.quote(f'{job.logs}/{name}.lo')}[g]"
    if name == JOB_LOG:
        return f"{path} {shlex.quote(f'{job.logs}/{job.name}_')}*_sbatch.log"
    return path


def _sed_label(label: str) -> str:
    """Return an argument of sed that puts `[label] ` in front of each line; empty without a label."""
    expression = f"s/^/[{label.replace('/', chr(92) + '/')}] /" if label else ""
    return shlex.quote(expression)
