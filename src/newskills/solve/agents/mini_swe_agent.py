# SPDX-License-Identifier: Apache-2.0
"""The package mini-swe-agent (https://mini-swe-agent.com) as it is, with our model and our container in its hands.

Its agent, prompts and formats are its own; requests go through the run's endpoint (concurrency, retries, token counts),
commands through the run's environment (limits, deadlines). It works in a thread, as it knows no event loop.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.environment import AgentEnvironment
from newskills.base.errors import BadRequestError, ConfigError, ContentFilterError, ContextLimitError
from newskills.base.protocols import Model
from newskills.base.records import Message, Reply, Request, Row
from newskills.solve.agents.options import AgentOptions, Trajectory, text_after, time_for
from newskills.solve.calls.tool_calls import read_calls
from newskills.solve.chat import ask

PACKAGE = "minisweagent"
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""Line of the output that ends its work; the rest is the submission."""
OUTPUT = 4 << 20
ENDINGS = {
    "Submitted": "submitted",
    "LimitsExceeded": "steps",
    "TimeExceeded": "time",
    "RepeatedFormatError": "no_command",
}
T = TypeVar("T")


class MiniSweAgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the agent `mini-swe-agent` (`++agent_config.*`)."""

    prompt: Annotated[str, Meta(description="prompt of the record; the package asks by its own")] = ""
    config: Annotated[
        str, Meta(description="configuration of the package: a name, such as swebench, or a .yaml path")
    ] = "swebench"
    command_timeout: Annotated[
        float, Meta(ge=0, description="time limit of a command in seconds; 0 = the package's")
    ] = 0.0
    time_limit: Annotated[int, Meta(ge=0, description="seconds for one task; 0 = no limit")] = 7200


class MiniSweAgent:
    """Written fields are those of the agent `bash`; the patch is what it submits."""

    Config = MiniSweAgentConfig

    def __init__(self, options: AgentOptions, config: MiniSweAgentConfig) -> None:
        """Load the package's configuration. Raises ConfigError where the package, or its configuration, is not
        there."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise ConfigError(
                "The package mini-swe-agent is not installed.", hint="Install it: pip install 'newskills[agents]'."
            )
        os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
        from minisweagent import __version__
        from minisweagent.config import get_config_from_spec

        self._options, self.config, self.version = options, config, str(__version__)
        try:
            self._yaml: Row = get_config_from_spec(config.config)
        except FileNotFoundError as error:
            raise ConfigError(f"mini-swe-agent has no configuration '{config.config}': {error}") from error

    def prompt(self, usual: str) -> str:
        return self.config.prompt or usual

    @property
    def mounts(self) -> Mapping[str, str]:
        return {}

    def prepared(self, request: Request) -> Request:
        from minisweagent.models.utils.actions_toolcall import BASH_TOOL

        return msgspec.structs.replace(request, tools=[BASH_TOOL])

    async def work(self, request: Request, model: Model, environment: AgentEnvironment, row: Row) -> Trajectory:
        """Work on a task with the package's agent. Raises what the model and the environment raise, BadRequestError
        where the endpoint takes no tools."""
        from minisweagent.agents.default import DefaultAgent

        trajectory = Trajectory(conversation=[], steps=[], replies=[])
        bridge = _Bridge(asyncio.get_running_loop())
        settings = {**self._yaml.get("agent", {}), "step_limit": self._options.max_turns, "cost_limit": 0.0}
        agent = DefaultAgent(
            _EndpointModel(bridge, model, request, trajectory, self._yaml.get("model", {})),
            _Commands(bridge, environment, trajectory, self._timeout),
            **{**settings, "wall_time_limit_seconds": round(time_for(row, self.config.time_limit))},
        )
        try:
            ending = await bridge.in_thread(lambda: agent.run(str(row["problem_statement"])))
        except ContextLimitError:
            if not trajectory.replies:
                raise
            ending = {"exit_status": "context", "submission": ""}
        except BadRequestError as error:
            if trajectory.replies or isinstance(error, ContentFilterError):
                raise
            raise BadRequestError(
                f"The first request of mini-swe-agent, which has a tool, is refused: {error.message.rstrip('.')}.",
                hint="An endpoint without tool calls needs ++agent=bash.",
                status=error.status,
                server_text=error.server_text,
            ) from error
        status = str(ending.get("exit_status"))
        trajectory.ended = ENDINGS.get(status, status)
        trajectory.submission = str(ending.get("submission") or "")
        trajectory.conversation = [_plain_message(message) for message in agent.messages]
        return trajectory

    @property
    def _timeout(self) -> float:
        return self.config.command_timeout or float(self._yaml.get("environment", {}).get("timeout") or 60.0)


class _Bridge:
    """Between the thread of the agent and the event loop of the run."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._given_up = False

    async def in_thread(self, work: Any) -> Row:
        """Run `work` in a thread of its own: those of the loop's pool serve the run meanwhile. Raises what `work`
        raises."""
        future: asyncio.Future[Row] = self._loop.create_future()

        def tell(result: Row | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result or {})

        def run() -> None:
            try:
                result, error = work(), None
            except Exception as raised:  # noqa: BLE001 - handed to the loop, which attributes it
                result, error = None, raised
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(tell, result, error)

        threading.Thread(target=run, name="newskills-agent", daemon=True).start()
        try:
            return await future
        finally:
            self._given_up = True

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, which the loop does; called in the thread. Raises ConnectionAbortedError where
        the sample was given up."""
        if self._given_up or self._loop.is_closed():
            work.close()
            raise ConnectionAbortedError("the sample was given up")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class _EndpointModel:
    """Fits `minisweagent.Model`."""

    def __init__(
        self, bridge: _Bridge, model: Model, request: Request, trajectory: Trajectory, settings: Row
    ) -> None:
        self._bridge, self._model, self._trajectory = bridge, model, trajectory
        self._request = msgspec.structs.replace(request, solver={})
        self._observation = str(settings["observation_template"])
        self._format_error = str(settings["format_error_template"])
        self.config = SimpleNamespace(model_name=model.name)

    def query(self, messages: Sequence[Row], **_: Any) -> Row:
        from minisweagent.models.utils.actions_toolcall import parse_toolcall_actions

        converted = [msgspec.convert(_plain_message(message), Message) for message in messages]
        reply = self._bridge.wait(ask(self._model, msgspec.structs.replace(self._request, messages=converted)))
        self._trajectory.replies.append(reply)
        calls = read_calls(reply, len(self._trajectory.steps))
        actions = parse_toolcall_actions(
            [_make_call(call.id, call.name, call.raw_arguments) for call in calls],
            format_error_template=self._format_error,
            template_kwargs={"finish_reason": reply.finish_reason},
        )
        return _assistant_message(reply, [call.row() for call in calls]) | {
            "extra": {"actions": actions, "cost": 0.0}
        }

    def format_message(self, **fields: Any) -> Row:
        return fields

    def format_observation_messages(
        self, message: Row, outputs: list[Row], template_vars: Row | None = None
    ) -> list[Row]:
        from minisweagent.models.utils.actions_toolcall import format_toolcall_observation_messages

        made: list[Row] = format_toolcall_observation_messages(
            actions=message["extra"]["actions"],
            outputs=outputs,
            observation_template=self._observation,
            template_vars=template_vars,
        )
        return made

    def get_template_vars(self, **_: Any) -> Row:
        return {"model_name": self._model.name}

    def serialize(self) -> Row:
        return {}


class _Commands:
    """Fits `minisweagent.Environment`."""

    def __init__(
        self, bridge: _Bridge, environment: AgentEnvironment, trajectory: Trajectory, timeout: float
    ) -> None:
        self._bridge, self._environment, self._trajectory = bridge, environment, trajectory
        self._timeout = timeout
        self.config = SimpleNamespace(timeout=timeout)

    def execute(self, action: Row, cwd: str = "") -> Row:
        from minisweagent.exceptions import Submitted

        command = str(action.get("command", ""))
        work = self._environment.execute(command, timeout=self._timeout, max_output=OUTPUT)
        result = self._bridge.wait(work)
        self._trajectory.add_step(command, result)
        text = result.output.decode("utf-8", "replace")
        submission = text_after(SUBMIT, command, text)
        if submission is not None and result.exit_code == 0:
            extra = {"exit_status": "Submitted", "submission": submission}
            raise Submitted({"role": "exit", "content": submission, "extra": extra})
        trouble = "" if result.status == "completed" else f"The command was stopped: {result.status}."
        code = -1 if result.exit_code is None else result.exit_code
        return {"output": text, "returncode": code, "exception_info": trouble}

    def get_template_vars(self, **_: Any) -> Row:
        uname = os.uname()
        return {"system": uname.sysname, "release": uname.release, "version": "", "machine": uname.machine}

    def serialize(self) -> Row:
        return {}


def _make_call(identity: str, name: str, arguments: str) -> SimpleNamespace:
    return SimpleNamespace(id=identity, function=SimpleNamespace(name=name, arguments=arguments))


def _assistant_message(reply: Reply, calls: list[Row]) -> Row:
    return {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}


def _plain_message(message: Row) -> Row:
    """Return a message without what the package keeps beside it."""
    return {key: value for key, value in message.items() if key != "extra"}
