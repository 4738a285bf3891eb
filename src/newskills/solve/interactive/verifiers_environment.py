# SPDX-License-Identifier: Apache-2.0
"""Environments of the package `verifiers` (https://github.com/PrimeIntellect-ai/verifiers, its API v1).

The package runs the task, serves its tools and gives the reward; the run's model answers, by way of an endpoint on
loopback, so that concurrency, retries and token counts are those of the run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, ContextLimitError, DataError, EnvironmentFailedError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Reply, Request, Row, Sample
from newskills.gateway.server import RunGateway
from newskills.gateway.tasks import GatewayTask
from newskills.solve.chat import MAIN
from newskills.solve.interactive.shared import SharedContext, reward_of
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

PACKAGE = "verifiers"
INSTALL = "Install it: pip install 'newskills[verifiers]'."
PLAYER = "newskills_chat_player"
"""Name under which the package finds our player; it looks for a module of that name."""
ON_THIS_MACHINE = "subprocess"
NO_KEY = "NEWSKILLS_LOOPBACK_KEY"
"""Variable of the loopback endpoint's key: not set, as it needs none."""


class VerifiersConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `verifiers`."""

    settings: Annotated[
        Row, Meta(description="settings of the environment, as in its block `[env]`: agent.harness.id, …")
    ] = {}
    max_turns: Annotated[int, Meta(ge=1, description="requests per task and player")] = 100
    time_limit: Annotated[float, Meta(gt=0, description="seconds for one task")] = 7200.0


class VerifiersSolver:
    """Row: `environment` (name of the installed environment), `taskset` (its settings), `task` (the task's data).

    Written: `reward` (mean over the players), `rewards`, `environment_metrics`, `conversation`, `exit_status`,
    `num_turns`, and token counts over all requests.
    """

    Config = VerifiersConfig

    def __init__(self, parts: SolverParts, config: VerifiersConfig = VerifiersConfig()) -> None:  # noqa: B008 - frozen
        self._chat, self._config = parts.chat, config
        self._shared: dict[str, SharedContext[_ServedEnvironment]] = {}

    def check(self) -> None:
        """Raise ConfigError where the package is missing."""
        require_package()

    def request(self, sample: Sample) -> Request:
        """Return the task's first words, if it has any, as a request. Raises DataError, ConfigError."""
        row = sample.row
        if not isinstance(row.get("environment"), str) or not isinstance(row.get("task"), dict):
            raise DataError(f"Row {sample.id} is not a task of an environment: it needs `environment` and `task`.")
        request = self._chat.request(sample)
        if request.messages is None:
            raise ConfigError("An environment needs ++inference.endpoint_type=chat.")
        request.solver = {
            "environment": row["environment"],
            "taskset": row.get("taskset") or {},
            "task": row["task"],
            "settings": self._config.settings,
            "max_turns": self._config.max_turns,
        }
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Play the task in its environment. Raises what the model raises, ConfigError, EnvironmentFailedError."""
        row = sample.row
        key = msgspec.json.encode([row["environment"], row.get("taskset") or {}]).decode()
        shared = self._shared.setdefault(key, SharedContext(lambda: self._serve_environment(row)))
        session = GatewayTask(model=kit.models[MAIN], request=msgspec.structs.replace(request, solver={}))
        async with shared.use() as served:
            try:
                episode = await asyncio.wait_for(served.play(row["task"], session), self._config.time_limit)
            except TimeoutError as error:
                raise EnvironmentFailedError(
                    f"Environment {row['environment']} did not finish in {self._config.time_limit:g} seconds.",
                    hint="Give it more: ++solver_config.time_limit=SECONDS.",
                ) from error
            finally:
                served.endpoint.end(session)
        return await self._attempt(sample, request, session, episode)

    @asynccontextmanager
    async def _serve_environment(self, row: Row) -> AsyncIterator[_ServedEnvironment]:
        environment = await asyncio.to_thread(
            load_environment,
            row["environment"],
            row.get("taskset") or {},
            self._config.settings,
            self._config.max_turns,
        )
        async with RunGateway() as endpoint, environment.serving():
            yield _ServedEnvironment(environment, endpoint)

    async def _attempt(self, sample: Sample, request: Request, session: GatewayTask, episode: Any) -> Attempt:
        """Return an episode as an attempt. Raises EnvironmentFailedError, and the failure of a request that ended the
        task."""
        cut = isinstance(session.failure, ContextLimitError) and bool(session.replies)
        if not episode.ok and not cut:
            if session.failure is not None:
                raise session.failure
            raise _failure_error(sample, episode)
        if not session.replies:
            raise EnvironmentFailedError(f"Environment {sample.row['environment']} asked the model nothing.")
        whole: Reply = join_replies(session.replies)
        last = session.replies[-1]
        whole.finish_reason = "length" if cut else last.finish_reason
        attempt = await self._chat.attempt(sample, request, whole, last.text)
        traces = episode.traces
        rewards = [reward_of(trace.reward, f"Environment {sample.row['environment']}") for trace in traces]
        first = traces[0]
        attempt.fields |= {
            "reward": None if cut else sum(rewards) / len(rewards),
            "rewards": {
                name: reward.value for trace in traces for name, reward in trace.rewards.items() if reward
            },
            "environment_metrics": {
                name: value for trace in traces for name, value in trace.metrics.items() if value is not None
            },
            "exit_status": "context" if cut else first.stop_condition or "completed",
            "num_turns": sum(trace.num_turns for trace in traces),
            "conversation": _trace_messages(first),
        }
        return attempt


class _ServedEnvironment:
    """A loaded environment with what it needs at work."""

    def __init__(self, environment: Any, endpoint: RunGateway) -> None:
        self.environment, self.endpoint = environment, endpoint

    async def play(self, data: Row, session: GatewayTask) -> Any:
        """Play one episode of the package. Raises DataError for data that are no task of this environment."""
        from pydantic import ValidationError
        from verifiers.v1 import EvalClientConfig, ModelContext

        taskset = self.environment.taskset
        task_type = type(taskset).task_type()
        try:
            task = task_type(task_type.data_type().model_validate(data), taskset.config.task)
        except ValidationError as error:
            raise DataError(f"The row is not a task of this environment: {error}.") from error
        client = EvalClientConfig(base_url=self.endpoint.url, api_key_var=NO_KEY)
        context = ModelContext(model=session.model.name, client=client)
        return await self.environment.run_episode(
            task, context, on_trace=lambda trace: self.endpoint.begin(trace.id, session)
        )


def require_package() -> None:
    """Raise ConfigError where the package is missing."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise ConfigError(f"The package {PACKAGE} is not installed.", hint=INSTALL)


def load_environment(name: str, taskset: Row, settings: Row, max_turns: int) -> Any:
    """Return the environment of an installed package (its `Env`). Raises ConfigError."""
    require_package()
    from newskills.solve.interactive import chat_harness

    sys.modules.setdefault(PLAYER, chat_harness)
    import verifiers.v1 as vf
    from verifiers.v1.configs.agent import agent_config_fields

    try:
        config_type = vf.env_config_type(name, str(settings.get("id") or ""))
        own_player = vf.default_harness_id(name) != "bash"
        raw: Row = {**settings, "taskset": {**settings.get("taskset", {}), **taskset, "id": name}}
        for role in agent_config_fields(config_type()):
            player = {} if own_player else {"harness": {"id": PLAYER}}
            usual = {"runtime": {"type": ON_THIS_MACHINE}, "max_turns": max_turns, **player}
            raw[role] = {**usual, **settings.get(role, {})}
        environment = vf.load_environment(vf.resolve_env_config(raw))
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"There is no environment '{name}' for {PACKAGE}: {error}",
            hint="Install its package; its name is that of the module (PyPI, or the Environments Hub).",
        ) from error
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        raise ConfigError(f"Environment '{name}' cannot be loaded: {error}") from error
    _refuse_code_here(environment, name)
    return environment


def _refuse_code_here(environment: Any, name: str) -> None:
    """Raise ConfigError where commands of a model would run on this machine."""
    from verifiers.v1.configs.agent import agent_config_fields

    task_needs = type(environment.taskset).task_type().NEEDS_CONTAINER
    for role, spec in agent_config_fields(environment.config).items():
        player = environment._harnesses[role]
        if spec.runtime.type == ON_THIS_MACHINE and (task_needs or player.EXECUTES_CODE):
            raise ConfigError(
                f"Environment '{name}' runs commands of the model, which needs a container.",
                hint=f"++solver_config.settings.{role}.runtime.type=docker",
            )


def _failure_error(sample: Sample, episode: Any) -> EnvironmentFailedError:
    errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
    why = f"{errors[-1].type}: {errors[-1].message}" if errors else "it did not say why"
    return EnvironmentFailedError(f"Environment {sample.row['environment']} failed: {why[:2000]}")


def _trace_messages(trace: Any) -> list[Row]:
    from verifiers.v1.dialects.chat import message_to_wire

    return [message_to_wire(message) for message in trace.messages]
