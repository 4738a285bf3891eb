# SPDX-License-Identifier: Apache-2.0
"""What every loop does around a step: go on where the folder is, write down, tell, save, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.schedule import Schedule, rate_at
from newskills.train.verbs import AdamParams, TrainingClient


class Steps(Protocol):
    """The part of a loop's settings that is common to all loops."""

    @property
    def steps(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def warmup_steps(self) -> int: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def max_grad_norm(self) -> float: ...
    @property
    def save_every(self) -> int: ...


class Progress(Struct, frozen=True):
    """After a step: how many are done, of how many, and the metrics of this one."""

    done: int
    steps: int
    metrics: dict[str, float]


Told = Callable[[Progress], None]


def run_steps(
    client: TrainingClient,
    config: Steps,
    folder: TrainingFolder,
    do: Callable[[int], dict[str, float]],
    *,
    told: Told,
    stop: Callable[[], bool],
) -> bool:
    """Calls `do` with each step (from 0) that the folder's last checkpoint has not; returns whether all are done.

    `stop` is asked after every step; where it says so, a checkpoint is written and the rest is left for later.
    """
    if folder.finished:
        return True
    for step in range(folder.resume(client), config.steps):
        begun = time.monotonic()
        metrics = do(step)
        folder.metrics({"step": step + 1, **metrics, "seconds": round(time.monotonic() - begun, 3)})
        told(Progress(step + 1, config.steps, metrics))
        last = step + 1 == config.steps
        stopped = not last and stop()
        if last or stopped or (config.save_every and (step + 1) % config.save_every == 0):
            folder.save(client, step + 1, final=last)
        if stopped:
            return False
    return True


def adam_at(config: Steps, step: int) -> AdamParams:
    """The optimizer's settings of a step."""
    return AdamParams(
        learning_rate=rate_at(step, config.steps, config.learning_rate, config.schedule, config.warmup_steps),
        beta2=0.999,
        weight_decay=config.weight_decay,
        grad_clip_norm=config.max_grad_norm,
    )
