# SPDX-License-Identifier: Apache-2.0
"""What commands that train or convert share: the extra they need, and what shows the steps of a training."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec

from newskills.base.errors import ConfigError
from newskills.train.loops.sft import Progress, Told

PLAIN_EVERY = 10.0
WIDTH = 24
SHOWN = ("loss", "reward")


def require_train(*modules: str) -> None:
    """Raises ConfigError where an extra is missing."""
    if missing := [module for module in modules if find_spec(module) is None]:
        raise ConfigError(
            f"This needs {', '.join(missing)}, which this environment lacks.",
            hint="Run: pip install 'newskills[train,local]' (without a GPU, install torch from its CPU index first).",
        )


def steps_shown(title: str) -> Told:
    """A bar with what is left on a terminal, a line now and then elsewhere."""
    began = last = time.monotonic()
    first: int | None = None
    terminal = sys.stderr.isatty()

    def told(progress: Progress) -> None:
        nonlocal last, first
        now = time.monotonic()
        first = progress.done - 1 if first is None else first
        ended = progress.done == progress.steps
        if terminal:
            sys.stderr.write(f"\r\x1b[2K{title} {_bar(progress)} {_words(progress, now - began, first)}")
            sys.stderr.write("\n" if ended else "")
        elif ended or now - last >= PLAIN_EVERY:
            last = now
            sys.stderr.write(f"{title} {progress.done}/{progress.steps} {_words(progress, now - began, first)}\n")
        sys.stderr.flush()

    return told


def _bar(progress: Progress) -> str:
    full = WIDTH * progress.done // progress.steps
    return f"{'━' * full}{' ' * (WIDTH - full)} {progress.done}/{progress.steps}"


def _words(progress: Progress, seconds: float, first: int) -> str:
    pace = seconds / (progress.done - first)
    left = pace * (progress.steps - progress.done)
    values = [f"{name} {progress.metrics[name]:.3g}" for name in SHOWN if name in progress.metrics]
    return " · ".join([*values, f"{pace:.1f} s a step", f"{left // 60:.0f} min {left % 60:.0f} s left"])
