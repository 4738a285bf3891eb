# SPDX-License-Identifier: Apache-2.0
"""newskills as a model provider of Inspect: `inspect eval TASK --model newskills/SERVER_TYPE/MODEL`.

Model arguments (`-M`) are the options and `++` keys of `ns gateway`: `-M max_tokens=100000 -M server.max_retries=5`.
Inspect finds this module by its entry point; its own converters make chat requests of its messages.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    messages_to_openai,
    model_output_from_openai,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo

from newskills.base.errors import ConfigError, HttpError, StorageError
from newskills.base.http.messages import HttpRequest, Response
from newskills.base.protocols import Model
from newskills.base.records import Reply, Request, Row
from newskills.base.store import hold_lock, write_rows
from newskills.config.settings import read_config
from newskills.config.values import Text
from newskills.gateway.recording import LogRecorder
from newskills.gateway.routes import NamedTasks
from newskills.gateway.segments import conversation_rows
from newskills.gateway.server import Gateway
from newskills.pipelines.serving.gateway import GatewayChoice, GatewayParts, check_gateway, choose_gateway
from newskills.pipelines.serving.gateway_options import GatewayOptions
from newskills.run.engine.reply_cache import CachedModel
from newskills.run.gateway_server.serving import OUTPUT_FILE
from newskills.run.records.log import Disk, GroupLog

TASK = "inspect"
REPLIES = "replies.jsonl"
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_UNSUPPORTED = (
    "best_of",
    "num_choices",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "top_k",
    "prompt_logprobs",
)
"""Settings of Inspect that would change what is sampled, and that the gateway does not take from a program."""
_log = logging.getLogger(__name__)


class ProviderOptions(GatewayOptions, frozen=True, kw_only=True):
    """Options of the provider. `cache`: answer again what a run that was cut short has asked, from the folder."""

    output_dir: str = ""
    whole_replies: bool = True
    cache: bool = False


class NewskillsAPI(ModelAPI):  # type: ignore[misc]
    """Asks by the engine of newskills: its retries, its concurrency, limits of requests, tokens and cost, and a record
    of each exchange in `output_dir`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as Inspect's own providers have it
        **model_args: Any,
    ) -> None:
        """Read the arguments; nothing is chosen or started, as Inspect makes providers to look names up. Raises
        ConfigError."""
        super().__init__(model_name, base_url, api_key, [], config)
        kind, _, model = model_name.partition("/")
        if not model:
            raise ConfigError(
                f"newskills/{model_name} names no model.",
                hint="Write newskills/SERVER_TYPE/MODEL: newskills/vllm/NAME.",
            )
        plain = {key: value for key, value in model_args.items() if not _is_key(key)}
        plain = {"output_dir": f"gateway/{model_name.replace('/', '-')}", **plain}
        plain |= {"server_type": kind, "model": model}
        if base_url:
            plain["server_address"] = base_url
        self._options = read_config(ProviderOptions, plain, "a model argument of newskills")
        self._overrides = {key: Text(value) for key, value in model_args.items() if _is_key(key)}
        if api_key is not None:
            self._overrides["server.api_key"] = Text(api_key)
        self._folder = Path(self._options.output_dir).expanduser().absolute()
        self._exit = contextlib.ExitStack()
        self._starting = threading.Lock()
        self._parts: GatewayParts | None = None
        self._running: RunningGateway | None = None

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Return the model's reply. Raises ConfigError for settings that cannot be kept, HttpError where there is no
        reply or a limit is used up, ServerStartError, LockedError where another process writes to the folder."""
        body = await _chat_body(self.model_name, input, tools, tool_choice, config)
        request = HttpRequest("POST", "/v1/chat/completions", "", {}, json.dumps(body).encode())
        response = await (await self._gateway()).answer(request)
        assert isinstance(response, Response)
        answer = msgspec.json.decode(response.body)
        if response.status != 200:
            raise HttpError(answer["error"]["message"], status=response.status)
        return await model_output_from_openai(answer)

    def max_connections(self) -> int:
        """Return the number of requests in flight, which the engine keeps to as well. Raises ConfigError."""
        return self._choose_gateway.keys.value.max_concurrent_requests

    def connection_key(self) -> str:
        return str(self._folder)

    @functools.cached_property
    def _choose_gateway(self) -> GatewayChoice:
        chosen = choose_gateway(self._options, self._overrides)
        check_gateway(chosen)
        return chosen

    async def aclose(self) -> None:
        """Write the conversations so far; further requests may follow."""
        self._write()

    async def _gateway(self) -> Gateway:
        """Return the gateway of the running event loop; each evaluation of Inspect has a loop of its own."""
        if self._parts is None:
            await asyncio.to_thread(self._start)
        assert self._parts is not None
        loop = asyncio.get_running_loop()
        if self._running is None or self._running.loop is not loop:
            endpoint = self._parts.model(_log.warning)
            model: Model = endpoint
            if self._options.cache:
                path = self._folder / REPLIES
                model = NumberingModel(
                    CachedModel(endpoint, path, GroupLog(path, Disk(_log.warning), _raise_error))
                )
            task = self._parts.task(model, TASK)
            self._recorder.resume(task)
            gateway = Gateway(NamedTasks("", lambda name: task), recorder=self._recorder)
            self._running = RunningGateway(gateway, loop)
        return self._running.gateway

    def _start(self) -> None:
        """Lock the folder and start the server, where the model needs one; once for all samples."""
        with self._starting:
            if self._parts is not None:
                return
            self._exit.enter_context(hold_lock(self._folder / ".gateway.lock", f"The folder {self._folder}"))
            parts = self._exit.enter_context(self._choose_gateway.running_parts(self._folder))
            self._recorder = LogRecorder(self._folder)
            atexit.register(self._finish)
            self._parts = parts

    def _write(self) -> None:
        if self._parts is not None:
            write_rows(self._folder / OUTPUT_FILE, conversation_rows(self._recorder.log))

    def _finish(self) -> None:
        self._write()
        self._recorder.close()
        self._exit.close()


class RunningGateway(NamedTuple):
    """A gateway, and the event loop that it belongs to."""

    gateway: Gateway
    loop: asyncio.AbstractEventLoop


class NumberingModel:
    """Numbers equal requests, so that a cache answers each of them with a reply of its own: epochs ask the same."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model
        self._counts: dict[str, int] = {}

    async def complete(self, request: Request) -> Reply:
        key = request.key()
        number = self._counts[key] = self._counts.get(key, 0) + 1
        return await self._model.complete(msgspec.structs.replace(request, solver={"number": number}))

    async def close(self) -> None:
        await self._model.close()


def _raise_error(error: StorageError) -> None:
    raise error


def _is_key(name: str) -> bool:
    return "." in name or name in ("max_concurrent_requests", "endpoint_patience")


async def _chat_body(
    model: str, messages: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig
) -> Row:
    """Return the body of a chat request. Raises ConfigError for settings that would be lost."""
    if lost := [
        name for name in _UNSUPPORTED if getattr(config, name) not in (None, 1 if name == "num_choices" else None)
    ]:
        raise ConfigError(
            f"newskills does not take {', '.join(lost)} from Inspect.",
            hint="Leave it out, or set it for all requests, as far as there is a key: -M inference.top_k=20.",
        )
    body: Row = {
        "model": model,
        "messages": await messages_to_openai(messages),
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "stop": config.stop_seqs,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
        "logprobs": config.logprobs,
    }
    if tools:
        body["tools"] = [_tool_definition(tool) for tool in tools]
        body["parallel_tool_calls"] = config.parallel_tool_calls
        if isinstance(choice, ToolFunction):
            body["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
        else:
            body["tool_choice"] = _CHOICES[choice]
    if (schema := config.response_schema) is not None:
        form = {
            "name": schema.name,
            "schema": schema.json_schema.model_dump(exclude_none=True),
            "strict": schema.strict,
        }
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return {key: value for key, value in body.items() if value is not None}


def _tool_definition(tool: ToolInfo) -> Row:
    parameters = tool.parameters.model_dump(exclude_none=True)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


@modelapi(name="newskills")  # type: ignore[untyped-decorator]
def newskills_api() -> Callable[..., ModelAPI]:
    """Return the provider, as Inspect registers it."""
    return NewskillsAPI
