# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a configuration: collected, and told all at once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills_evaluator.compile.tree import format_path, set_at_path


class ConfigProblem(Struct, frozen=True):
    """`example`: a value that may be written at `path`, where something is missing; None: that is not the trouble.

    open  a run needs it, and a dry run does without
    """

    path: tuple[str, ...]
    what: str
    example: object = None
    open: bool = False


def raise_problems(problems: Sequence[ConfigProblem], source: str) -> None:
    """Raise ConfigError that names all of `problems`, with the sections to add, if there are any."""
    if not problems:
        return
    first = {problem.path: problem for problem in reversed(problems)}
    chosen = sorted(first.values(), key=lambda problem: list(problems).index(problem))
    count = "one error" if len(chosen) == 1 else f"{len(chosen)} things"
    lines = [f"{source}: {count} to fix."]
    lines += [f"  {format_path(problem.path)}: {problem.what}" for problem in chosen]
    examples = [problem for problem in chosen if problem.example is not None]
    if examples:
        tree: Row = {}
        for problem in examples:
            set_at_path(tree, problem.path, problem.example)
        lines += ["Write your own values:", *_format_yaml_lines(tree), "or give them on the command line: "]
        lines[-1] += " ".join(f"{format_path(problem.path)}=…" for problem in examples)
    raise ConfigError("\n".join(lines))


def _format_yaml_lines(tree: Row) -> list[str]:
    import yaml

    text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=False, allow_unicode=True)
    return [f"  {line}" for line in text.rstrip().split("\n")]
