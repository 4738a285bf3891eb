# SPDX-License-Identifier: Apache-2.0
"""The dispatcher. A static table; nothing else is imported before the command is known."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newskills.commands._command import Command

GROUPS: dict[str, dict[str, str]] = {
    "start here": {
        "quickstart": "evaluate a real model on this machine's CPU: no GPU, no account",
        "doctor": "check this machine: extras, keys, data, servers, and what to do about what is missing",
        "list": "list benchmarks, prompts, graders, metrics, server types",
    },
    "do the work": {
        "prepare_data": "fetch and normalise benchmark data",
        "generate": "run a model over a JSONL file",
        "eval": "evaluate a model on benchmarks",
        "grade": "verdicts for any JSONL file of answers",
        "merge_chunks": "join chunk files by hand",
    },
    "look at results": {
        "summarize_results": "tables and metrics.json of a results folder",
        "compute_metrics": "metrics of single output files",
    },
    "serve": {
        "start_server": "serve a model in the foreground",
    },
    "shell": {
        "completion": "print the completion script of bash, zsh or fish",
    },
}
MODULES = {"eval": "evaluate", "list": "list_things"}
SPELLINGS = {"summarise_results": "summarize_results"}


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit code. Ends quietly when the reader of a pipe goes away."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("--version", "-V"):
        from newskills._version import __version__

        sys.stdout.write(f"newskills {__version__}\n")
        return 0
    try:
        return _run(words[0], words[1:])
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141


def _run(name: str, words: list[str]) -> int:
    from newskills.base.errors import NewskillsError

    try:
        return load(name).main(words)
    except NewskillsError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


def command_names() -> list[str]:
    return [name for group in GROUPS.values() for name in group]


def load(name: str) -> Command[Any]:
    """The command called `name` (either spelling). Raises UnknownNameError."""
    canonical = name.replace("-", "_")
    canonical = SPELLINGS.get(canonical, canonical)
    if canonical not in command_names():
        from newskills.base.errors import UnknownNameError

        raise UnknownNameError("command", name, command_names(), hint="See: ns --help")
    module = import_module(f"newskills.commands.{MODULES.get(canonical, canonical)}")
    command: Command[Any] = module.COMMAND
    return command


def overview() -> str:
    """The page of `ns --help`."""
    lines = ["usage: ns COMMAND [--options] [++key=value …]", ""]
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:<20}{summary}" for name, summary in commands.items()), ""]
    lines += ["ns COMMAND --help shows its options and all ++ keys; --explain shows where each value comes from."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
