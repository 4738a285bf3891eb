# SPDX-License-Identifier: Apache-2.0
"""A compiled configuration on a terminal: panels, with secrets hidden."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Sequence
from typing import Any

from newskills.base.terminal import printable
from newskills_evaluator.config import CompiledConfig
from newskills_evaluator.masking import mask_secrets
from newskills_evaluator.tasks import EvalCall

HEADING = "Compiled Configuration"


def show_compiled(compiled: CompiledConfig, hidden: Collection[str]) -> None:
    """Print the heading, the panel `run`, and the panel `config`."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.print(Text(HEADING, style="bold"))
    for title, content in (("run", compiled.run), ("config", compiled.config)):
        text = printable(_dump_yaml(mask_secrets(content, hidden))).rstrip()
        console.print(Panel(Text(text), title=Text(title), title_align="left"))


def show_tasks(compiled: CompiledConfig, calls: Sequence[EvalCall | None]) -> None:
    """Print one line a task with what will run it, then notes."""
    for task, call in zip(compiled.tasks, calls, strict=True):
        what = "NeMo Evaluator" if call is None else f"ns {shlex.join(call.evaluate)}"
        sys.stdout.write(f"task {task.index} {printable(task.name)}: {printable(what)}\n")
    for task in compiled.tasks:
        for key in task.unread:
            unread = (
                f"task {task.index} {task.name}: '{key}' is ignored here; write it below nemo_evaluator_config"
            )
            sys.stdout.write(f"note: {printable(unread)}\n")
    for call in filter(None, calls):
        for note in call.notes:
            sys.stdout.write(f"note: {printable(note)}\n")


def _dump_yaml(content: Any) -> str:
    import yaml

    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000))
