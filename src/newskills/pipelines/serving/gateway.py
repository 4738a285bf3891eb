# SPDX-License-Identifier: Apache-2.0
"""What `ns gateway` does: any program before any model, recorded."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base import aio
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError
from newskills.base.protocols import Model, Tokenizer
from newskills.base.records import Inference, Request, Row
from newskills.base.registry import load_function
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, Resolved, explain, resolve
from newskills.config.values import Text
from newskills.gateway.form import ToolChoice
from newskills.gateway.tasks import Backend, GatewayTask, TaskLimits
from newskills.models import MODELS, check_inference, make_model
from newskills.models.config import ServerConfig, without_keys
from newskills.models.tokenizer import make_tokenizer
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.models import ModelChoice, choose_model
from newskills.pipelines.serving.ended import EndedService
from newskills.pipelines.serving.endpoint import running_endpoint
from newskills.pipelines.serving.gateway_options import DEFAULT_TOKEN_ENV, GatewayKeys, GatewayOptions
from newskills.pipelines.serving.token import check_reach, describe_access, token_of
from newskills.run.gateway_server.model import LastingEndpoint
from newskills.run.gateway_server.serving import GatewaySettings, serve_gateway

LEFT_TO_PROGRAMS = ("inference.temperature", "inference.top_p", "inference.random_seed")
USUALLY_FORCED = frozenset({"reasoning_effort"})
"""Settings that a program does not decide unless it is told to: agents ask for efforts that their own models have."""
LARGEST_LIMIT = frozenset({"tokens_to_generate"})
"""Settings that are the upper limit of what a program may ask for."""


class GatewayParts(Struct, frozen=True, kw_only=True):
    """What tasks of a gateway are made of: where they ask, and what holds whatever their programs say."""

    server: ServerConfig
    keys: GatewayKeys
    request: Request
    forced: frozenset[str]
    limits: TaskLimits
    tokenizer: Tokenizer | None
    live: bool = True

    def model(self, say: PrintLine) -> LastingEndpoint:
        """Return the model, for the running event loop."""
        return LastingEndpoint(
            self.server,
            self.keys.max_concurrent_requests,
            os.environ,
            say=say,
            patience=self.keys.endpoint_patience,
            tokenizer=self.tokenizer,
        )

    def task(self, model: Model, name: str) -> GatewayTask:
        """Return a new task of that name."""
        return GatewayTask(
            model=model,
            request=self.request,
            name=name,
            forced=self.forced,
            limits=self.limits,
            prices=self.server.prices,
            backend=_backend_of(self.server, self.request.inference),
            live=self.live,
            keeps_replies=False,
        )


class GatewayChoice(Struct, frozen=True, kw_only=True):
    """What options and `++` keys have chosen, checked; nothing is started."""

    options: GatewayOptions
    keys: Resolved[GatewayKeys]
    model: ModelChoice
    request: Request
    forced: frozenset[str]

    @contextlib.contextmanager
    def running_parts(self, folder: Path) -> Iterator[GatewayParts]:
        """Yield the parts; a server is started for them where the model has none. Raises ServerStartError."""
        options, keys = self.options, self.keys.value
        with running_endpoint(self.model.host, keys.server, folder, options.server_timeout) as server:
            yield GatewayParts(
                server=server,
                keys=keys,
                request=self.request,
                forced=self.forced,
                limits=TaskLimits(
                    requests=options.max_requests,
                    tokens=options.max_tokens,
                    cost=options.max_cost,
                    seconds=options.max_seconds,
                ),
                tokenizer=_make_tokenizer(server),
                live=not options.whole_replies,
            )


def choose_gateway(options: GatewayOptions, overrides: Mapping[str, Text]) -> GatewayChoice:
    """Choose the model of a gateway, and its settings. Raises ConfigError."""
    model = choose_model(options.model_options(), overrides)
    left = Layer("left to programs", dict.fromkeys(LEFT_TO_PROGRAMS))
    resolved = resolve(GatewayKeys, [left, model.layer, Layer("command line", overrides)])
    return GatewayChoice(
        options=options,
        keys=resolved,
        model=model,
        request=_request_settings(resolved.value, options),
        forced=_forced_settings(overrides),
    )


def run_gateway(parsed: Parsed[GatewayOptions]) -> EndedService | None:
    """Serve until it is stopped; return the service that has ended, None for a dry run. Raises ConfigError, AuthError,
    ServerStartError."""
    options = parsed.options
    chosen = choose_gateway(options, parsed.overrides)
    keys, choice = chosen.keys.value, chosen.model
    if parsed.explain:
        for key, value, source in explain(chosen.keys):
            sys.stdout.write(f"++{key} = {value}  ({source})\n")
        return None
    token = token_of(options.token_env, options.token_file, os.environ, usual=DEFAULT_TOKEN_ENV)
    check_reach(options.host, token, open_to_all=options.open)
    settings = GatewaySettings(
        host=options.host,
        port=options.port,
        folder=Path(options.output_dir).expanduser().absolute(),
        socket=Path(options.socket).expanduser().absolute() if options.socket else None,
        token=token,
    )
    check_gateway(chosen)
    if options.dry_run:
        where = keys.server.base_url or keys.server.server_type
        if choice.host is not None:
            where = f"a server that is started ({choice.host.name})"
        steps = [
            ("asks", keys.server.model or "", where),
            ("listens", f"{options.host}:{options.port or 'a free port'}", describe_access(token)),
            ("writes", settings.folder, "gateway.jsonl, output.jsonl"),
            ("decides", ", ".join(sorted(chosen.forced)), "whatever programs say"),
        ]
        show_dry_run(steps)
        return None
    with chosen.running_parts(settings.folder) as parts:

        async def serve() -> str:
            model = parts.model(_print_with_time)
            return await serve_gateway(
                model,
                lambda name: parts.task(model, name),
                settings,
                say=_print_with_time,
                tokenizer=parts.tokenizer,
            )

        return EndedService(aio.run(serve))


def _request_settings(keys: GatewayKeys, options: GatewayOptions) -> Request:
    """Return the settings of each request. Raises ConfigError for an endpoint without messages."""
    inference = keys.inference
    if inference.endpoint_type == "text":
        raise ConfigError("A gateway needs an endpoint with messages.", hint="Set ++inference.endpoint_type=chat.")
    extra: Row = {}
    if options.logprobs:
        dialect = MODELS.properties(keys.server.server_type).dialect
        if inference.top_logprobs is None:
            inference = msgspec.structs.replace(inference, top_logprobs=1)  # llama.cpp takes 0 for none
        if dialect is not None:
            extra = dict.fromkeys(dialect.token_ids, True)
    return Request(inference=inference, extra_body=extra)


def _forced_settings(overrides: Mapping[str, Text]) -> frozenset[str]:
    """Return the settings that hold whatever programs say: those that are set by ++inference.*."""
    begin = "inference."
    names = {key.removeprefix(begin) for key in overrides if key.startswith(begin)}
    return USUALLY_FORCED.union(names) - LARGEST_LIMIT


def check_gateway(chosen: GatewayChoice) -> None:
    """Raise ConfigError, AuthError for what no request could be served with."""
    keys, options, request = chosen.keys.value, chosen.options, chosen.request
    server = keys.server
    prices = (server.price_per_million_input_tokens, server.price_per_million_output_tokens)
    if options.max_cost and None in prices:
        raise ConfigError(
            "--max_cost needs prices.",
            hint="Give ++server.price_per_million_input_tokens=PRICE and "
            "++server.price_per_million_output_tokens=PRICE.",
        )
    if chosen.model.host is None:
        # programs may leave out a limit that the service needs; they are told then
        limited = msgspec.structs.replace(
            request.inference, tokens_to_generate=request.inference.tokens_to_generate or 1
        )
        check_inference(make_model(server, concurrency=1, environ=os.environ), limited, tools=True)


def _backend_of(server: ServerConfig, inference: Inference) -> Backend:
    properties = MODELS.properties(server.server_type)
    keys_of_choice = load_function(properties.tool_choice)
    responses = inference.endpoint_type == "responses"

    def choice(choice: ToolChoice) -> Row:
        keys: Row = keys_of_choice(choice.mode, choice.name, choice.parallel, responses)
        return keys

    return Backend(choice=choice, blocks=properties.blocks)


def _make_tokenizer(server: ServerConfig) -> Tokenizer | None:
    """Return what counts tokens; None where there is nothing, and counts are estimated."""
    try:
        return make_tokenizer(None, server, os.environ)
    except ConfigError:
        return None


def _print_with_time(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more; programs go on
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {printable(without_keys(text))}\n")
        sys.stdout.flush()
