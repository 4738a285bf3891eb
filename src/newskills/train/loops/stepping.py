# SPDX-License-Identifier: Apache-2.0
"""What every loop does around a step: go on where the folder is, write down, tell, save, stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from newskills.base.errors import TrainingError
from newskills.train.loops.evaluation import (
    CHANGE,
    CORRECT,
    SCORE,
    HeldOut,
    Measured,
    best_of,
    change_of,
    change_text,
    harmful,
    is_better,
    is_worse,
    measure,
    stalled,
)
from newskills.train.loops.folder import EvaluationsLog, KeptStateLog, TrainingLog
from newskills.train.loops.schedule import rate_at
from newskills.train.settings import Schedule
from newskills.train.verbs import AdamParams, SamplingClient, Saved, TrainingClient


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


RETURNED = "returned"
"""The metric of a step after which the run went back: the step whose weights it goes on from."""
WAITING = "waiting"
"""The metric of a step whose evaluation showed a loss that the run does not act on yet; always 1."""
COLLAPSED_SHARE = 0.1
"""Where less than this share of the answers that were right at first still are, hardly a group has spread, from which a
run could recover."""
RETURN_SHARE = 0.25
"""Each time a run goes back, its learning rate is multiplied by this."""
OnStep = Callable[[Progress], None]
OnStart = Callable[[int, int], None]


class Hooks(Struct, frozen=True, kw_only=True):
    """What a training asks and tells on its way.

    on_start     called with the steps that are done and all there are, once the weights are there
    before_step  called with the number of each step (from 0), by the loops over the verbs
    on_step      called after every step
    remark       told what the user should know on the way
    stop         asked after every step; where it says so, a checkpoint is written and the rest is left for later
    held_out     problems to measure the model on
    measure      asks them; several processes let one do it
    """

    on_start: OnStart = lambda done, steps: None
    before_step: Callable[[int], None] = lambda step: None
    on_step: OnStep = lambda _: None
    remark: Callable[[str], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    held_out: HeldOut | None = None
    measure: Callable[[SamplingClient, HeldOut, int], Measured] = measure


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


class Learner(SamplingClient, Protocol):
    """What is measured and saved between steps."""

    def save_state(self, folder: Path) -> Saved | None: ...


@runtime_checkable
class ReturningClient(Protocol):
    """Weights that can go back to what they were."""

    def go_back(self, state: str) -> None:
        """Load the weights and moments of a saved state; empty: those before any training."""
        ...


class TrainingMonitor:
    """What follows every step: measure, write down, tell, save; and whether that was the last one."""

    def __init__(self, config: Steps, folder: TrainingLog, hooks: Hooks) -> None:
        self._config, self._folder, self._hooks = config, folder, hooks
        self._scores = folder.scores(SCORE)
        earlier = folder.evaluations() if isinstance(folder, EvaluationsLog) else {}
        self._at_start = earlier.get(0, [])
        self._returns = len(folder.scores(RETURNED))
        looked = self._scores[-1][0] if self._scores else 0
        self._latest = earlier.get(looked, [])
        self._waiting = bool(self._latest) and looked in dict(folder.scores(WAITING))
        self._correct_at_start = dict(folder.scores(CORRECT)).get(0, 0.0)

    def before(self, client: SamplingClient) -> None:
        """Measure, before the first step, what the held-out problems are worth to the model as it is."""
        if not self._scores and (measured := self._measured(client, 0)):
            self._at_start = measured.rewards
            self._correct_at_start = measured.metrics[CORRECT]
            self._folder.metrics({"step": 0, **measured.metrics})
            self._scores.append((0, measured.metrics[SCORE]))

    def after(self, client: Learner, done: int, metrics: dict[str, float], begun: float) -> bool | None:
        """Measure, log and save after `done` steps, the last of which began at the monotonic time `begun`.

        None: go on, after a lasting loss from the best weights so far. True: the run has ended, with all steps or
        because the held-out score has stalled, or was worse than at first too often; then the final checkpoint is the
        best one, unless the settings want the last, which is written in any case. False: `hooks.stop` said so; a
        checkpoint is written.
        """
        config, held_out = self._config, self._hooks.held_out
        measured = self._measured(client, done)
        if measured:
            metrics = metrics | measured.metrics | change_of(self._at_start or measured.rewards, measured.rewards)
        self._scores += [(done, metrics[SCORE])] if SCORE in metrics else []
        chosen = held_out is not None and held_out.settings.final == "best" and bool(self._scores)
        best = best_of(self._scores) if chosen else None
        lasting = measured is not None and self._lasts(measured, metrics)
        can_go_back = best is not None and done < config.steps and self._can_go_back(client)
        back = lasting and can_go_back
        if back:
            metrics = metrics | {RETURNED: float(best or 0)}
            self._go_back(client)
        if measured is not None and self._waiting and done < config.steps:
            metrics = metrics | {WAITING: 1.0}
        if measured is not None:
            self._tell(metrics, done, lasting=lasting, can_go_back=can_go_back)
        self._folder.metrics({"step": done, **metrics, "seconds": round(time.monotonic() - begun, 3)})
        self._folder.write()
        self._hooks.on_step(Progress(done, config.steps, metrics))
        patience = held_out.settings.patience if held_out else 0
        last = (
            done == config.steps
            or (lasting and not back)
            or (SCORE in metrics and stalled(self._scores, patience))
        )
        stopped = not last and self._hooks.stop()
        due = config.save_every and done % config.save_every == 0
        if last and best not in (None, done):
            self._folder.save(client, done)  # stays beside the one that is kept
        if last or stopped or due or back or best == done:
            self._folder.save(client, done, final=last, best=best if last else None)
        if last or stopped:
            return last
        return None

    @property
    def rate_share(self) -> float:
        """The share of the learning rate that is left after the run has gone back."""
        return float(RETURN_SHARE**self._returns)

    def _can_go_back(self, client: Learner) -> bool:
        """Return whether settings, weights and folder allow it, once more."""
        assert self._hooks.held_out is not None
        left = self._hooks.held_out.settings.returns - self._returns
        return left > 0 and isinstance(client, ReturningClient) and isinstance(self._folder, KeptStateLog)

    def _go_back(self, client: Learner) -> None:
        """Load the best weights so far."""
        assert isinstance(client, ReturningClient)
        assert isinstance(self._folder, KeptStateLog)
        self._returns += 1  # before: whoever keeps a rate of its own asks for the share
        client.go_back(self._folder.kept_state())

    def _measured(self, client: SamplingClient, done: int) -> Measured | None:
        held_out = self._hooks.held_out
        if held_out is None or not held_out.due(done, self._config.steps):
            return None
        measured = self._hooks.measure(client, held_out, self._config.seed * 1_000_003 + done)
        if isinstance(self._folder, EvaluationsLog):
            self._folder.evaluated(done, measured.rewards)
        return measured

    def _lasts(self, measured: Measured, metrics: dict[str, float]) -> bool:
        """Note an evaluation; return whether it shows a loss that the run does not recover from by itself.

        The first evaluation that shows a loss is waited out, unless hardly an answer is right any more. The loss lasts
        if the next one is worse than the start, too, and not better than the one before it.
        """
        assert self._hooks.held_out is not None
        settings = self._hooks.held_out.settings
        look = sum(step > 0 for step, _ in self._scores)
        if self._waiting:
            loss = is_worse(metrics, settings.stop_worse)
            heals = is_better(self._latest, measured.rewards)
        else:
            loss = harmful(metrics, look, settings.stop_worse)
            heals = settings.returns > 0
        heals = heals and metrics[CORRECT] >= COLLAPSED_SHARE * self._correct_at_start
        self._waiting, self._latest = loss and heals, measured.rewards
        return loss and not heals

    def _tell(self, metrics: dict[str, float], done: int, *, lasting: bool, can_go_back: bool) -> None:
        """Tell what an evaluation has shown, and what follows from a loss."""
        if CHANGE not in metrics:
            return
        text = f"step {done}: held-out reward {metrics[SCORE]:.3f}, {change_text(metrics, len(self._at_start))}"
        if RETURNED in metrics:
            step = int(metrics[RETURNED])
            weights = f"the weights of step {step}" if step else "the initial weights"
            text += (
                f". That is a loss: the run goes on from {weights} with {self.rate_share:.2g} of its learning rate"
            )
        elif WAITING in metrics:
            follows = "goes back" if can_go_back else "ends"
            text += f". That is a loss; the run {follows} unless the next evaluation is better"
        elif lasting and done < self._config.steps:
            text += (
                ". That is a loss, so the run ends here: lower ++learning_rate, raise ++batch_size or train on more "
                "problems; ++eval.stop_worse=0 goes on"
            )
        self._hooks.remark(text)


class TrainingSteps:
    """The steps that a run still has to do, as a method's `for` goes through them; a context manager.

        with TrainingSteps(client, config, folder, hooks) as steps:
            for step in steps:
                ...
                steps.done(metrics)
        return steps.ended

    It begins after the last checkpoint of `folder`. `done` measures, writes down, tells and saves (`TrainingMonitor`);
    behind it the loop ends where the run has ended or the user wants it to stop. Leaving the context raises
    TrainingError where memory ran out; the last checkpoint stays.

    ended  whether the run has ended (False: it was stopped)
    """

    def __init__(self, client: TrainingClient, config: Steps, folder: TrainingLog, hooks: Hooks) -> None:
        self._client, self._config, self._folder, self._hooks = client, config, folder, hooks
        self._monitor: TrainingMonitor | None = None
        self._memory = enough_memory("Lower ++batch_size or ++max_tokens, or leave out long sequences.")
        self._step, self._begun = 0, 0.0
        self.ended = True
        self._goes_on = True

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each step that is left, from 0. Raises DataError for a state of other weights."""
        if self._folder.finished:
            return
        self._monitor = TrainingMonitor(self._config, self._folder, self._hooks)
        first = self._folder.resume(self._client)
        self._hooks.on_start(first, self._config.steps)
        for step in range(first, self._config.steps):
            self._step, self._begun = step, time.monotonic()
            self._hooks.before_step(step)
            if step == 0:
                self._monitor.before(self._client)
            yield step
            if not self._goes_on:
                return

    def adam(self, step: int) -> AdamParams:
        """Return the optimizer's settings of a step: less of the learning rate after each time the run went back."""
        assert self._monitor is not None
        adam = adam_at(self._config, step)
        return msgspec.structs.replace(adam, learning_rate=self._monitor.rate_share * adam.learning_rate)

    def done(self, metrics: dict[str, float]) -> None:
        """End a step, whose metrics these are. Raises StorageError, and what evaluation raises."""
        assert self._monitor is not None
        ended = self._monitor.after(self._client, self._step + 1, metrics, self._begun)
        if ended is not None:
            self.ended, self._goes_on = ended, False

    def __enter__(self) -> TrainingSteps:
        self._memory.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._memory.__exit__(kind, error, trace)


@contextmanager
def enough_memory(hint: str) -> Iterator[None]:
    """Raise TrainingError for memory that ran out, on a processor or an accelerator."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # torch.OutOfMemoryError is a RuntimeError; on a CPU torch raises a plain one.
        full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
        if not full and "can't allocate memory" not in str(error):
            raise
        raise TrainingError("The training ran out of memory; the last checkpoint is usable.", hint=hint) from error


def adam_at(config: Steps, step: int) -> AdamParams:
    """Return the optimizer's settings of a step."""
    return AdamParams(
        learning_rate=rate_at(step, config.steps, config.learning_rate, config.schedule, config.warmup_steps),
        beta2=0.999,
        weight_decay=config.weight_decay,
        grad_clip_norm=config.max_grad_norm,
    )
