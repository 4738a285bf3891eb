# SPDX-License-Identifier: Apache-2.0
"""Steps that are sampled while earlier ones are learnt from, a bounded number of updates ahead."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import msgspec
from msgspec import Struct

from newskills.train.backends.trl.vllm_server import VllmServer
from newskills.train.loops.draws import DrawConfig, ProblemDraws
from newskills.train.loops.groups import Group
from newskills.train.loops.grpo import GrpoConfig, roll_out
from newskills.train.loops.samples import Problem, Scorer

POLL_SECONDS = 0.2


class StepAhead(Struct, frozen=True):
    """The groups of a step, and how many updates the weights had seen when their sampling began."""

    groups: list[Group]
    updates: int


class StepsAhead:
    """Draws the groups of each step with a server, in threads: a rollout worker of TRL's AsyncGRPOTrainer.

    A step begins when no more than `staleness` updates lie between the weights that the server has and those that it
    will be learnt with, so that nothing is sampled in vain. `adapter` names what the server is asked for after each
    update; None: the model itself.
    """

    def __init__(
        self,
        server: VllmServer,
        problems: Sequence[Problem],
        config: GrpoConfig,
        scorer: Scorer,
        staleness: int,
        adapter: Callable[[int], str] | None = None,
    ) -> None:
        """Prepare the steps. Raises ConfigError for weights that name no source."""
        self._server, self._problems, self._config = server, problems, config
        self._staleness, self.adapter = staleness, adapter
        self.rollout_buffer: queue.Queue[Future[StepAhead] | None] = queue.Queue()
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self.first = 0
        self._scorer = scorer
        # Solvers limit what they have open (sandboxes, sessions) by step.
        self.drawing = threading.Semaphore(1 if scorer.several_turns else staleness + 1)
        self._draws = ProblemDraws(
            problems, DrawConfig(size=config.batch_size, seed=config.seed, weights=config.weights)
        )
        self._changed = threading.Condition()
        self._syncs, self._stopping = 0, False

    def start(self) -> None:
        """Begin with step `first`. The weights were sent before."""
        for step in range(self.first):
            self._draws.batch(step)
        threading.Thread(target=self._run, daemon=True, name="steps-ahead").start()

    def stop(self) -> None:
        """Begin no further step."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def update_model_version(self, model_version: int) -> None:
        """Note that the server has the weights of one more update."""
        with self._changed:
            if self.adapter is not None:
                self._server.model = self.adapter(model_version)
            self._syncs += 1
            self._changed.notify_all()

    def check_health(self, stale_after_s: float) -> None:
        """Raise nothing: what fails is raised by the step that it belongs to."""

    def next(self) -> StepAhead | None:
        """Return the next step; None after the last one. Raises what drawing it raised."""
        future = self.rollout_buffer.get()
        if future is None:
            return None
        return future.result()

    def _run(self) -> None:
        for step in range(self.first, self._config.steps):
            with self._changed:
                # The first sending of weights is no update.
                while not self._stopping and self._updates < step - self._staleness:
                    self._changed.wait(POLL_SECONDS)
                if self._stopping:
                    return
            future: Future[StepAhead] = Future()
            self.rollout_buffer.put(future)
            places = self._draws.batch(step)
            threading.Thread(target=self._draw, args=(future, step, places), daemon=True).start()
        self.rollout_buffer.put(None)

    @property
    def _updates(self) -> int:
        return self.first + max(0, self._syncs - 1)

    def _draw(self, future: Future[StepAhead], step: int, places: Sequence[int]) -> None:
        try:
            with self.drawing:
                updates = self._updates
                seed = self._config.seed * 1_000_003 + step
                chosen = [self._problems[place] for place in places]
                groups = roll_out(self._server, chosen, self._config, seed, self._scorer)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that trains
            future.set_exception(error)
            return
        placed = [msgspec.structs.replace(group, place=place) for group, place in zip(groups, places, strict=True)]
        future.set_result(StepAhead(placed, updates))
