# SPDX-License-Identifier: Apache-2.0
"""OpenEnv environments (https://github.com/meta-pytorch/OpenEnv, package `openenv-core`): a server that is stepped.

The server gets what the model says as an action and gives back observation, reward and whether the task is done. The
reward of a task is the sum over its steps, as in the package's own examples.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import (
    ConfigError,
    ContextLimitError,
    DataError,
    EnvironmentFailedError,
    HttpError,
    NewskillsError,
)
from newskills.base.http.client import HttpClient
from newskills.base.protocols import Kit, Model
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.interactive.shared import reward_of
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

PACKAGE = "openenv"
INSTALL = "Install it: pip install 'newskills[openenv]'."
START = "Is its server running? For example: python -m uvicorn my_env.server.app:app --port 8000"
SCHEMA_TIMEOUT = 30.0
SHORTENED = 20_000
"""Characters of an observation that the model sees."""
_FENCE = re.compile(r"^```(?:json)?[ \t]*\r?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_GENERIC = frozenset({"Action", "CallToolAction", "ListToolsAction"})
"""Titles of schemas that stand for any tool of the server."""


class OpenEnvConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the solver `openenv`."""

    sessions: Annotated[
        int, Meta(ge=1, description="tasks at the same time; servers take one unless they say otherwise")
    ] = 1
    max_turns: Annotated[int, Meta(ge=1, description="actions per task")] = 100
    max_invalid: Annotated[int, Meta(ge=1, description="replies without a valid action, one after the other")] = 3
    step_timeout: Annotated[float, Meta(gt=0, description="seconds for one step of the environment")] = 300.0


class _Episode(Struct, kw_only=True):
    """What happened so far."""

    conversation: list[Message]
    replies: list[Reply] = []
    steps: list[Row] = []
    reward: float = 0.0
    ended: str = ""


class OpenEnvSolver:
    """Row: `environment` (address of the server), `reset` (arguments of its reset).

    Written: `reward` (sum over the steps), `steps` (turn, action, reward), `conversation`, `exit_status` (done, turns,
    no_action, context), `num_steps`, and token counts over all requests.
    """

    Config = OpenEnvConfig

    def __init__(self, parts: SolverParts, config: OpenEnvConfig = OpenEnvConfig()) -> None:  # noqa: B008 - frozen
        self._chat, self._config = parts.chat, config
        self._gate = asyncio.Semaphore(config.sessions)

    @property
    def at_once(self) -> int:
        """Sessions that the server takes."""
        return self._config.sessions

    def check(self) -> None:
        """Raise ConfigError where the package is missing."""
        if importlib.util.find_spec(PACKAGE) is None:
            raise ConfigError("The package openenv-core is not installed.", hint=INSTALL)

    def request(self, sample: Sample) -> Request:
        """Return the first request without the observation, which the server gives. Raises DataError, ConfigError."""
        row = sample.row
        if not isinstance(row.get("environment"), str) or not isinstance(row.get("reset"), dict):
            raise DataError(
                f"Row {sample.id} is not a task of an environment: it needs `environment` and `reset`."
            )
        request = self._first_request(sample, "", "")
        request.solver = {
            "environment": row["environment"],
            "reset": row["reset"],
            "settings": msgspec.to_builtins(self._config),
        }
        return request

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Play an episode on the server. Raises what the model raises, ConfigError, EnvironmentFailedError."""
        self.check()
        began = time.monotonic()
        address = str(sample.row["environment"]).rstrip("/")
        async with self._gate, _open_session(address, self._config.step_timeout) as client:
            schema = await _action_schema(client, address)
            result = await client.reset(**sample.row["reset"])
            opening = self._first_request(sample, _format_row(schema), _format_observation(result))
            episode = _Episode(conversation=list(opening.messages or ()), replies=[], steps=[])
            while not episode.ended:
                await self._turn(episode, opening, kit.models[MAIN], client, schema)
        whole = join_replies(episode.replies)
        last = episode.replies[-1]
        whole.finish_reason = "length" if episode.ended in ("context", "turns") else last.finish_reason
        attempt = await self._chat.attempt(sample, request, whole, last.text)
        attempt.fields |= {
            "reward": episode.reward,
            "steps": episode.steps,
            "num_steps": len(episode.steps),
            "exit_status": episode.ended,
            "conversation": [msgspec.to_builtins(message) for message in episode.conversation],
            "agent_seconds": round(time.monotonic() - began, 3),
        }
        return attempt

    def _first_request(self, sample: Sample, schema: str, observation: str) -> Request:
        row = {**sample.row, "action_schema": schema, "observation": observation}
        request = self._chat.request(msgspec.structs.replace(sample, row=row))
        if request.messages is None:
            raise ConfigError("An environment needs ++inference.endpoint_type=chat.")
        return request

    async def _turn(self, episode: _Episode, opening: Request, model: Model, client: Any, schema: Row) -> None:
        """Get one reply, and pass it to the environment."""
        try:
            reply = await ask(model, msgspec.structs.replace(opening, messages=list(episode.conversation)))
        except ContextLimitError:
            if not episode.replies:
                raise
            episode.ended = "context"
            return
        episode.replies.append(reply)
        turn = Message(role="assistant", content=reply.text, reasoning_content=reply.reasoning)
        episode.conversation.append(turn)
        action = parse_action(reply.text, schema)
        result = problem = None
        if isinstance(action, str):
            problem = action
        else:
            result, problem = await _take_step(client, action)
            reward = result.reward if result else None
            episode.steps.append({"turn": len(episode.replies) - 1, "action": action, "reward": reward})
        if result is not None:
            episode.reward += reward_of(result.reward, "The environment")
            if result.done:
                episode.ended = "done"
                return
        feedback = _format_observation(result) if result is not None else f"Error: {problem}"
        episode.conversation.append(Message(role="user", content=feedback))
        if self._invalid(episode) >= self._config.max_invalid:
            episode.ended = "no_action"
        elif len(episode.replies) >= self._config.max_turns:
            episode.ended = "turns"

    @staticmethod
    def _invalid(episode: _Episode) -> int:
        """Return the number of replies without a valid action at the end of the conversation."""
        feedback = [str(message.content) for message in episode.conversation if message.role == "user"][1:]
        count = 0
        for text in reversed(feedback):
            if not text.startswith("Error: "):
                break
            count += 1
        return count


def parse_action(text: str, schema: Row) -> Row | str:
    """Return the action in a reply: its last JSON object; where the schema requires a single text, plain text as well.

    A text that is returned says what is wrong.
    """
    answer = without_thinking(text)
    blocks = _FENCE.findall(answer)
    last_line = answer.rpartition("\n")[2]
    for candidate in (answer, *reversed(blocks), last_line):
        try:
            value = msgspec.json.decode(candidate.strip())
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    required = [name for name in schema.get("required") or () if name != "metadata"]
    if len(required) == 1 and answer and schema.get("properties", {}).get(required[0], {}).get("type") == "string":
        return {required[0]: blocks[-1].strip() if blocks else answer}
    return "the reply holds no JSON object. Reply with one action that fits the schema."


@asynccontextmanager
async def _open_session(address: str, timeout: float) -> AsyncIterator[Any]:
    """Open a session on the server. Raises EnvironmentFailedError."""
    from openenv.core.generic_client import GenericEnvClient

    client = GenericEnvClient(base_url=address, message_timeout_s=timeout)
    try:
        async with client:
            yield client
    except NewskillsError:
        raise
    except (OSError, RuntimeError, TimeoutError, ValueError) as error:
        raise EnvironmentFailedError(
            f"The environment at {address} failed: {str(error) or type(error).__name__}",
            hint="Is its server running, and does it take as many sessions as ++solver_config.sessions says?",
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "websockets":
            raise
        raise EnvironmentFailedError(f"The environment at {address} closed the session: {error}") from error


async def _action_schema(client: Any, address: str) -> Row:
    """Fetch the server's action schema; for one that serves tools, that of a call with the tools it has."""
    http = HttpClient(address)
    try:
        answer = await http.get(f"{urlsplit(address).path}/schema", SCHEMA_TIMEOUT)
        schema: Row = msgspec.json.decode(answer.body)["action"]
    except (HttpError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise EnvironmentFailedError(
            f"{address}/schema does not describe an OpenEnv environment: {error}",
            hint=START,
        ) from error
    finally:
        await http.close()
    if schema.get("title") not in _GENERIC:
        return schema
    listed = await client.step({"type": "list_tools"})
    return {
        "type": "object",
        "properties": {
            "type": {"const": "call_tool"},
            "tool_name": {"type": "string"},
            "arguments": {"type": "object"},
        },
        "required": ["type", "tool_name", "arguments"],
        "tools": listed.observation.get("tools", []),
    }


async def _take_step(client: Any, action: Row) -> tuple[Any, str]:
    """Return the result, or what the server says against the action. Raises RuntimeError where the server failed."""
    try:
        return await client.step(action), ""
    except RuntimeError as error:
        if "VALIDATION_ERROR" not in str(error):
            raise
        return None, str(error)


def _format_observation(result: Any) -> str:
    return _format_row({"observation": result.observation})


def _format_row(value: Row) -> str:
    text = msgspec.json.encode(value).decode()
    if len(text) <= SHORTENED:
        return text
    return f"{text[:SHORTENED]} [{len(text) - SHORTENED:,} characters left out]"
