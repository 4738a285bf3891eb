# SPDX-License-Identifier: Apache-2.0
"""Which names of benchmarks are tasks of lm_eval, told without loading it."""

from __future__ import annotations

import re

PREFIX = "lm-eval:"
WISHES = ("num_fewshot", "apply_chat_template", "fewshot_as_multiturn", "system_instruction", "gen_kwargs")
"""`++` keys that say how tasks of lm_eval make requests, beside those of a generation."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_+-]+")


def is_harness_task(name: str) -> bool:
    """Return whether `name` is a task or group of lm_eval."""
    return name.startswith(PREFIX)


def task_slug(task: str) -> str:
    """Return a task's name as a part of the name of a benchmark, which is that of a folder, too."""
    return _UNSAFE.sub("-", task).strip("-") or "task"
