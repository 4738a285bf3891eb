# SPDX-License-Identifier: Apache-2.0
"""A compiled configuration on a terminal: panels, with secrets hidden."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from typing import Any

from newskills.base.terminal import printable
from newskills.interop.config import CompiledConfig
from newskills.interop.tasks import EvalCall

HEADING = "Compiled Configuration"
HIDDEN = "********"
_SECRET = re.compile(r"KEY|TOKEN(?!I[SZ])|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_REFERENCE = re.compile(r"(?:(?:host|runtime):)?\$?[A-Z_][A-Z0-9_]*\Z", re.ASCII)
_SHORTEST = 4


def masked(node: Any, hidden: Collection[str] = (), name: str = "") -> Any:
    """`node` without values of keys whose names speak of a secret, and without the texts `hidden` anywhere.

    Numbers (`max_new_tokens`), tokenizers and names of variables (`host:HF_TOKEN`) are none.
    """
    if isinstance(node, dict):
        return {key: masked(value, hidden, str(key)) for key, value in node.items()}
    if isinstance(node, list):
        return [masked(value, hidden, name) for value in node]
    if not isinstance(node, str):
        return node
    if node and _SECRET.search(name) and not _REFERENCE.match(node):
        return HIDDEN
    for text in hidden:
        if len(text) >= _SHORTEST:
            node = node.replace(text, HIDDEN)
    return node


def show_compiled(compiled: CompiledConfig, hidden: Collection[str]) -> None:
    """The heading, the panel `run`, the panel `config`."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.print(Text(HEADING, style="bold"))
    for title, content in (("run", compiled.run), ("config", compiled.config)):
        text = printable(_yaml(masked(_overrides_masked(content), hidden))).rstrip()
        console.print(Panel(Text(text), title=Text(title), title_align="left"))


def show_tasks(compiled: CompiledConfig, calls: Sequence[EvalCall | None]) -> None:
    """One line a task: what will run it; then what people should know."""
    for task, call in zip(compiled.tasks, calls, strict=True):
        what = "NeMo Evaluator" if call is None else f"ns {' '.join(_shown(word) for word in call.evaluate)}"
        sys.stdout.write(f"task {task.index} {printable(task.name)}: {printable(what)}\n")
    for call in calls:
        for note in call.notes if call else ():
            sys.stdout.write(f"note: {printable(note)}\n")


def _shown(word: str) -> str:
    import shlex

    return shlex.quote(word)


def _overrides_masked(content: Any) -> Any:
    """Words of the command line carry values too."""
    cli = content.get("cli") if isinstance(content, dict) else None
    if not isinstance(cli, dict):
        return content
    return {**content, "cli": {key: [_word(word) for word in words] for key, words in cli.items()}}


def _word(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name}={masked(value, name=name)}" if equals else word


def _yaml(content: Any) -> str:
    import yaml

    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000))
