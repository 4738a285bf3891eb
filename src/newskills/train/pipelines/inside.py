# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.train.pipelines.inside [OPTIONS] -- TRAINER…`: a trainer inside a job, and what comes before it.

Standard library only: it runs in the images of trainers. It looks at the data first, turns problems into the rows that
verl reads, and lets the next job of a chain go on where the trainer has stopped itself because of the time limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from newskills.base.replacing import replacing_file
from newskills.train.pipelines.formats import FormatError, examine_file, rows_of, verl_row

AGAIN = 75
"""Exit code of a trainer that would go on (EX_TEMPFAIL): job scripts know it."""
PYTHON = "python"
"""First word of a trainer that runs with the interpreter of `--project`."""
DEADLINE = "{deadline}"
SOURCE = "newskills"
"""`data_source` of the rows that are made here."""


def parse_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="inside", description="Run a trainer inside a job.")
    parser.add_argument("--check", action="append", default=[], metavar="FORM,…:FILE", help="data to check first")
    parser.add_argument("--to-verl", action="append", default=[], nargs=2, metavar=("FROM", "TO"))
    parser.add_argument("--prompt", default="", help="file with {} in place of the problem")
    parser.add_argument("--folder", action="append", default=[], help="folder to create")
    parser.add_argument(
        "--project", default="", help="folder of the trainer: its uv environment and working folder"
    )
    parser.add_argument("--needs", default="", help="module that the trainer's Python must have")
    parser.add_argument("--stopped", default="", help="text that the trainer prints when the time limit stops it")
    parser.add_argument("--stopped-file", default="", help="file that it writes then")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        nargs=2,
        metavar=("MODULE", "WORD"),
        help="a word more for a trainer whose Python lacks the module",
    )
    parser.add_argument(
        "--deadline", type=int, help="seconds from now: replaces {deadline} in the words, as seconds since 1970"
    )
    parser.add_argument("command", nargs="+")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trainer; return its exit code (128 + n after signal n), 75 where it would go on, or 1 where a check
    before it fails."""
    options = parse_options(argv)
    try:
        for text in options.check:
            forms, _, path = text.partition(":")
            facts = examine_file(path, tuple(forms.split(",")))
            _print_message(f"{path}: {facts.form}" + (f", {facts.rows} rows" if facts.rows >= 0 else ""))
        for folder in options.folder:
            os.makedirs(folder, exist_ok=True)
        for source, target in options.to_verl:
            _print_message(f"{target}: {to_verl(Path(source), Path(target), Path(options.prompt))} rows")
    except (FormatError, OSError) as error:
        _print_message(str(error))
        return 1
    words = list(options.command)
    if options.deadline is not None:
        words = [word.replace(DEADLINE, str(int(time.time()) + options.deadline)) for word in words]
    if words[0] == PYTHON:
        python = python_words(options.project)
        words = [*python, *words[1:]]
        if options.needs and (lacks := missing_module_advice(python, options.needs, options.project)):
            _print_message(lacks)
            return 1
        for module, word in options.without:
            if _import_error(python, module, options.project):
                _print_message(f"the trainer has no {module}: {word}")
                words.append(word)
    mark = Path(options.stopped_file) if options.stopped_file else None
    return run_trainer(words, options.project or None, options.stopped, mark)


def to_verl(source: Path, target: Path, prompt: Path) -> int:
    """Write rows for verl, whole or not at all; return how many. A file made from an older `source` is made again."""
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return sum(1 for _ in rows_of(target))
    import json

    template = prompt.read_text(encoding="utf-8")
    count = 0
    with replacing_file(target) as file:
        for _, row in rows_of(source):
            line = json.dumps(verl_row(row, count, template, SOURCE), ensure_ascii=False)
            file.write(f"{line}\n".encode())
            count += 1
    return count


def python_words(project: str) -> list[str]:
    """Return the Python of the project's own environment where uv keeps it; else the one that runs this."""
    if project and shutil.which("uv") and os.path.isfile(os.path.join(project, "pyproject.toml")):
        return ["uv", "run", "--project", project, "python"]
    return [sys.executable]


def missing_module_advice(python: Sequence[str], module: str, project: str) -> str:
    """Return what to do where the trainer's Python cannot import `module`; empty: it can."""
    why = _import_error(python, module, project)
    if not why:
        return ""
    place = f"uv pip install --project {project}" if python[0] == "uv" else "pip install"
    return (
        f"the trainer's Python cannot grade answers: {why}. Install what newskills needs: "
        f"--installation_command='{place} msgspec filelock platformdirs pyyaml'"
    )


def _import_error(python: Sequence[str], module: str, project: str) -> str:
    """Return why this Python cannot import `module`; empty: it can."""
    try:
        tried = subprocess.run(
            [*python, "-c", f"import {module}"],
            cwd=project or None,
            env=trainer_environment(project or None),
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"{python[0]} does not start: {error}"
    if tried.returncode == 0:
        return ""
    return (tried.stderr.strip().splitlines()[-1:] or ["it ended without a message"])[0]


def trainer_environment(project: str | None) -> dict[str, str]:
    """Return our environment, with the trainer's folder among the places where Python looks for modules."""
    places = [project, os.environ.get("PYTHONPATH")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in places if place)}


def run_trainer(words: Sequence[str], folder: str | None, stopped: str, stopped_file: Path | None = None) -> int:
    """Run `words`, whose output goes on to ours line by line. TERM and INT are passed on."""
    try:
        if stopped_file is not None:
            stopped_file.unlink(missing_ok=True)
        process = subprocess.Popen(
            words, cwd=folder, env=trainer_environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        _print_message(f"the trainer does not start: {error}")
        return 127

    def passed_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, passed_on) for number in (signal.SIGTERM, signal.SIGINT)}
    mark, has_stopped = stopped.encode(), False
    assert process.stdout is not None
    try:
        with process.stdout as lines:
            for line in lines:
                has_stopped = has_stopped or bool(mark and mark in line)
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    has_stopped = has_stopped or (stopped_file is not None and stopped_file.exists())
    if code == 0 and has_stopped:
        _print_message("the trainer has saved its work because of the time limit; the next job resumes from there")
        return AGAIN
    if code >= 0:
        return code
    return 128 - code


def _print_message(text: str) -> None:
    sys.stderr.write(f"inside: {text}\n")
    sys.stderr.flush()


def check_option(forms: Sequence[str], path: str) -> str:
    """Return the value of `--check`."""
    return f"{','.join(forms)}:{path}"


if __name__ == "__main__":
    sys.exit(main())
