# SPDX-License-Identifier: Apache-2.0
"""Rollouts of a model in training by the solver of an evaluation: in the sandbox, with tools, in environments."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from newskills.base.errors import (
    ConfigError,
    SandboxError,
    StorageError,
    UserError,
    boundary,
)
from newskills.base.protocols import Kit, Model
from newskills.base.records import Row
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.environments import EnvironmentPools
from newskills.run.engine.sandboxes import Sandboxes
from newskills.run.engine.tools import Toolboxes
from newskills.run.grade import LoopThread, cancel_others
from newskills.run.rewarding.policy import OTHER_TEMPLATE, PolicyBatch, PolicyFormat, PolicyModel, shows_tools
from newskills.run.rewarding.questions import QuestionFormat
from newskills.solve.chat import MAIN
from newskills.solve.interactive.shared import reward_of
from newskills.train.loops.samples import Problem, Rollout
from newskills.train.verbs import SamplingClient, SamplingParams

PATIENCE_SECONDS = 600.0
"""Seconds that code, tools or an environment may take between two replies."""


class SolverRollouts:
    """`roll_out` of a Scorer. A context manager: its sandbox, tools and environments end with it."""

    def __init__(self, asking: QuestionFormat, form: PolicyFormat, patience: float = PATIENCE_SECONDS) -> None:
        self._asking, self._form, self._patience = asking, form, patience
        self._builder = RunBuilder(os.environ)
        self._sandboxes = Sandboxes(self._builder)
        self._tools = Toolboxes(os.environ, lambda _: None)
        self._environments = EnvironmentPools(self._builder)
        self._others: dict[str, Model] = {}
        self._loop = LoopThread()
        self._stack = ExitStack()

    def __call__(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        """Sample `count` rollouts of each problem, all at once. Raises what the client raises, UserError,
        StorageError."""
        rows = [problem.row for problem in problems for _ in range(count)]
        rollouts = self._loop.run(self._solve_all(client, rows, params))
        if all(rollout.lost for rollout in rollouts):
            # A sandbox that dies takes all attempts with it. The same ones again are what would have been without.
            rollouts = self._loop.run(self._solve_all(client, rows, params))
        return [rollouts[at : at + count] for at in range(0, len(rollouts), count)]

    async def _solve_all(
        self, client: SamplingClient, rows: Sequence[Row], params: SamplingParams
    ) -> list[Rollout]:
        batch = PolicyBatch(client, self._form, params)
        attempts = enumerate(rows)
        rollouts: dict[int, Rollout] = {}

        async def work() -> None:
            for number, row in attempts:
                rollouts[number] = await self._solve(PolicyModel(batch, number), row)

        workers = [asyncio.create_task(work()) for _ in range(min(self._asking.at_once, len(rows)))]
        try:
            await batch.serve(workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return [rollouts[number] for number in range(len(rows))]

    async def _solve(self, model: PolicyModel, row: Row) -> Rollout:
        """Return the rollout of one attempt at `row`. Raises UserError, StorageError, which no other attempt would
        escape."""
        config = self._asking.config
        sandbox = self._sandboxes.get(config.sandbox)
        kit = Kit(
            models={**self._others, MAIN: model},
            sandbox=sandbox,
            tools=self._tools.get(config, sandbox),
            environments=self._environments.get(config.environment),
        )
        try:
            fields = await self._in_time(self._asking.solve(row, kit), model)
            rewards = turn_rewards(fields, len(model.turns))
            reward_of(fields.get("reward"), "The environment")
        except (UserError, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - a solver may be a plug-in: its defect says nothing of the model
            failure = boundary(error)
            lost = f"{failure.cause}: {failure.message}"
            return Rollout(turns=model.turns, row=row, text="", finish_reason="error", lost=lost)
        return Rollout(
            turns=model.turns,
            row={**row, **fields},
            text=str(fields[config.generation_key]),
            finish_reason=str(fields.get("finish_reason") or "stop"),
            rewards=rewards,
        )

    async def _in_time(self, solving: Coroutine[Any, Any, Row], model: PolicyModel) -> Row:
        """Return what `solving` returns. Raises SandboxError where the model has waited longer for what it asked for
        than `PATIENCE_SECONDS`."""
        task = asyncio.ensure_future(solving)
        turns, since = -1, time.monotonic()
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=min(1.0, self._patience))
                if model.busy or len(model.turns) != turns:
                    turns, since = len(model.turns), time.monotonic()
                elif time.monotonic() - since > self._patience and not task.done():
                    raise SandboxError(f"the environment gave no answer within {self._patience:g} seconds")
            return task.result()
        finally:
            task.cancel()

    def __enter__(self) -> SolverRollouts:
        """Start what code and tools need. Raises SandboxError, ConfigError, FatalToolError where code or tools cannot
        be run here."""
        config = self._asking.config
        with ExitStack() as stack:
            stack.enter_context(self._loop)
            stack.callback(lambda: self._loop.run(cancel_others()))
            stack.callback(self._builder.close)
            stack.callback(lambda: self._loop.run(self._sandboxes.close()))
            stack.callback(lambda: self._loop.run(self._environments.close()))
            stack.callback(lambda: self._loop.run(self._tools.close()))
            for role, server in config.models.items():
                model = self._builder.model(server, config.max_concurrent_requests)
                stack.callback(self._close, model)
                self._others[role] = self._builder.for_prompts_of(config, server, model)
            sandbox = self._sandboxes.get(config.sandbox)
            if config.needs_sandbox or config.tool_modules:
                self._loop.run(sandbox.start())
            if (tools := self._tools.get(config, sandbox)) is not None:
                self._loop.run(tools.open())
            self._stack = stack.pop_all()
        return self

    def check(self, row: Row) -> None:
        """Raise ConfigError where the model's chat template cannot show the tools of a first request."""
        request = self._asking.request(row)
        if request.tools and (why := shows_tools(self._form.tokenizer, request)):
            raise ConfigError(f"The model's chat template {why}.", hint=OTHER_TEMPLATE)

    def _close(self, model: Model) -> None:
        self._loop.run(model.close())

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def turn_rewards(fields: Row, turns: int) -> list[float]:
    """Return the rewards of single turns, as environments record them: `steps` with their `reward`, and the `turn`
    (from 0) that each belongs to where not every turn has one. Empty where there are none.

    Raises EnvironmentFailedError for a reward that is not a number.
    """
    steps = fields.get("steps")
    if not isinstance(steps, list):
        return []
    rewards = [0.0] * turns
    any_given = False
    for number, step in enumerate(steps):
        reward = step.get("reward") if isinstance(step, dict) else None
        turn = -1
        if isinstance(step, dict):
            turn = step.get("turn", number if len(steps) == turns else -1)
        if reward is None or not 0 <= turn < turns:
            continue
        rewards[turn] += reward_of(reward, "The environment")
        any_given = True
    if any_given:
        return rewards
    return []


def with_code(tags: str, executions: int, tokens: int) -> Row:
    """Return settings of an evaluation whose answers hold code, which is run.

    Raises ConfigError where none may run.
    """
    if executions < 1:
        raise ConfigError("++code_executions: expected 1 or more.")
    return {
        "code_execution": True,
        "code_tags": tags,
        "server.code_execution.max_code_executions": executions,
        "inference.endpoint_type": "text",
        "inference.tokens_to_generate": tokens,
    }
