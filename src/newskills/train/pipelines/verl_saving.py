# SPDX-License-Identifier: Apache-2.0
"""When verl saves: after the first step of a job, every half an hour, and in time before its limit, where it stops.

verl's trainer (0.9.1 and later) makes an object of `trainer.checkpoint_callback_class` before it loads the model, and
calls `on_save` after each checkpoint. It reads `trainer.save_freq` and `trainer.total_epochs` anew at each step: a
thread sets them, as verl itself knows nothing of a time limit. Standard library only: it runs in verl's images.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLBACK = "newskills.train.pipelines.verl_saving.SavingInTime"
NEEDS = "verl.trainer.ppo.checkpoint_callback"
"""Module of verl without which `trainer.checkpoint_callback_class` is ignored (0.9.0)."""
EXPIRES = "MLP_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP"
"""Variable with the time, in seconds since 1970, before which the last checkpoint has to be there. verl's older trainer
(`trainer.use_v1=false`) and its asynchronous one save by it themselves (`should_save_ckpt_esi`)."""
STOPPED = "stopped-by-the-time-limit"
"""File beside the checkpoints, written where the training has stopped itself."""
INTERVAL = 1800.0
"""Seconds after which a step is saved, however few steps there were."""
LOOK_EVERY = 0.2


class SavingInTime:
    """Decide at each step of verl whether it is saved, and end the training when no further step would be in time."""

    def __init__(self, config: Any = None, *, now: Callable[[], float] = time.time, watch: bool = True) -> None:
        expires = os.environ.get(EXPIRES, "")
        self._config = config
        self._now = now
        self._usual = int(config.trainer.save_freq)
        self._save_by = float(expires) if expires else None
        self._trainer: Any = None
        self._step = -1
        self._made = self._saved = now()
        self._began: float | None = None
        self._longest_step = self._longest_save = 0.0
        self._measured = False
        self._lock = threading.Lock()
        config.trainer.save_freq = 1
        if watch:
            threading.Thread(target=self._watch, name="saving-in-time", daemon=True).start()

    def on_save(
        self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **more: Any
    ) -> None:
        """Take note of a checkpoint; stop the training where the next one would come too late."""
        self._saved = self._now()
        if self._trainer is None:
            # Until a step has been measured: the first one, with all that came before it.
            self._trainer, self._step, self._longest_step = trainer, global_step, self._saved - self._made
        self.decide()
        if self._save_by is None or async_save:  # an asynchronous checkpoint is not on the disk yet
            return
        if global_step >= int(getattr(trainer, "total_training_steps", sys.maxsize)):
            return
        if self._saved + self._longest_step + self._longest_save > self._save_by:
            self._config.trainer.total_epochs = 0
            Path(checkpoint_dir).parent.joinpath(STOPPED).touch()
            sys.stderr.write(f"newskills: step {global_step} is saved; the time limit leaves none after it\n")

    def decide(self) -> None:
        """Set how often verl saves, from what steps and checkpoints have taken so far."""
        if self._trainer is None:
            return
        with self._lock:
            now, step = self._now(), int(self._trainer.global_steps)
            if step != self._step:
                self._end_of_step(now)
                self._step = step
            timing = getattr(self._trainer, "timing_raw", None) or {}
            self._longest_save = max(self._longest_save, float(timing.get("save_checkpoint", 0.0)))
            due = now - self._saved >= INTERVAL
            # A step that is not saved is lost if the one after it ends too late.
            after_next = (self._began or now) + 2 * (self._longest_step + self._longest_save)
            late = self._save_by is not None and after_next > self._save_by
            self._config.trainer.save_freq = 1 if due or late else self._usual

    def _end_of_step(self, now: float) -> None:
        if self._began is not None:
            took = now - self._began
            self._longest_step = max(self._longest_step, took) if self._measured else took
            self._measured = True
        self._began = now

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_EVERY)
            self.decide()
