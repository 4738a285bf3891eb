# SPDX-License-Identifier: Apache-2.0
"""What every loop does around a step: go on where the folder is, write down, tell, save, stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from newskills.train.loops.evaluation import SCORE, HeldOut, best_of, measure, stalled
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
    @property
    def seed(self) -> int: ...


class Progress(Struct, frozen=True):
    """After a step: how many are done, of how many, and the metrics of this one."""

    done: int
    steps: int
    metrics: dict[str, float]


Told = Callable[[Progress], None]


class Hooks(Struct, frozen=True, kw_only=True):
    """What a training asks and tells on its way.

    told      after every step
    stop      asked after every step; where it says so, a checkpoint is written and the rest is left for later
    held_out  problems to measure the model on
    """

    told: Told = lambda _: None
    stop: Callable[[], bool] = lambda: False
    held_out: HeldOut | None = None


class TimeLimit:
    """A `stop` for a wall-clock limit in seconds: it says so while there is still time for one more step like the
    longest, so that the checkpoint is on disk before the job is ended.
    """

    def __init__(self, seconds: float) -> None:
        self._last = time.monotonic()
        self._end, self._longest = self._last + seconds, 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now
        return now + self._longest >= self._end


def run_steps(
    client: TrainingClient,
    config: Steps,
    folder: TrainingFolder,
    do: Callable[[int], dict[str, float]],
    hooks: Hooks,
) -> bool:
    """Calls `do` with each step (from 0) that the folder's last checkpoint has not; returns whether the run has ended.

    It ends after all steps, or where the held-out score has stalled: then the final checkpoint is the best one.
    """
    if folder.finished:
        return True
    scores = folder.scores(SCORE)
    for step in range(folder.resume(client), config.steps):
        begun, done = time.monotonic(), step + 1
        metrics = do(step)
        metrics |= _measured(client, config, hooks.held_out, done)
        folder.metrics({"step": done, **metrics, "seconds": round(time.monotonic() - begun, 3)})
        hooks.told(Progress(done, config.steps, metrics))
        better = SCORE in metrics and all(metrics[SCORE] > earlier for _, earlier in scores)
        scores += [(done, metrics[SCORE])] if SCORE in metrics else []
        patience = hooks.held_out.settings.patience if hooks.held_out else 0
        last = done == config.steps or (SCORE in metrics and stalled(scores, patience))
        stopped = not last and hooks.stop()
        due = config.save_every and done % config.save_every == 0
        if last or stopped or due or (patience and better):
            folder.save(client, done, final=last, best=best_of(scores) if last and patience else None)
        if last or stopped:
            return last
    return True


def _measured(client: TrainingClient, config: Steps, held_out: HeldOut | None, done: int) -> dict[str, float]:
    if held_out is None or not held_out.due(done, config.steps):
        return {}
    return measure(client, held_out, seed=config.seed * 1_000_003 + done)


def adam_at(config: Steps, step: int) -> AdamParams:
    """The optimizer's settings of a step."""
    return AdamParams(
        learning_rate=rate_at(step, config.steps, config.learning_rate, config.schedule, config.warmup_steps),
        beta2=0.999,
        weight_decay=config.weight_decay,
        grad_clip_norm=config.max_grad_norm,
    )
