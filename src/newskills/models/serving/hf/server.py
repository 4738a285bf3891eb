# SPDX-License-Identifier: Apache-2.0
"""The process that serves a model of transformers: `python -m newskills.models.serving.hf.server --model FOLDER`.

POST /v1/completions, /v1/chat/completions  whole replies; also log-probabilities of prompts (`echo` with `logprobs`)
POST /tokenize, /detokenize                 as vLLM's
GET  /health, /v1/models                    answered once the model is loaded
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import torch

from newskills.base import aio
from newskills.base.errors import ConfigError, DataError, NewskillsError, ServerError
from newskills.base.http.access import refusal_response
from newskills.base.http.messages import (
    HttpRequest,
    Response,
    error_response,
    json_response,
    not_found,
    wrong_method,
)
from newskills.base.http.server import ServerLimits, serve
from newskills.base.http.stopping import stop_signals
from newskills.models.kinds import TRANSFORMERS_KEY
from newskills.models.serving.cpus import usable_cores
from newskills.models.serving.hf.engine import BatchEngine, EngineLimits, MemoryExhaustedError
from newskills.models.serving.hf.loading import LoadedModel, load_served_model
from newskills.models.serving.hf.options import (
    DEFAULT_BATCH,
    DEFAULT_BATCH_ON_GPU,
    ServerOptions,
    parse_server_options,
)
from newskills.models.serving.hf.prompts import EncodedPrompt, chat_prompt
from newskills.models.serving.hf.protocol import (
    CompletionBody,
    DetokenizeBody,
    TokenizeBody,
    decode_request,
    prompt_of,
    reply_of,
    sequence_of,
)
from newskills.models.serving.hf.sequences import TokenSequence
from newskills_sandbox.memory import memory_left

BODY_BYTES = 256 << 20
LOGITS_BYTES = 1 << 30
"""Of the logits of prompts that are measured in one pass on a CPU."""
SHARE_OF_MEMORY = 0.5
"""Of what is free once the model is loaded: keys and values. Half of the rest is for logits on a GPU."""


class ModelServer:
    """Answers requests by the engine's work."""

    def __init__(self, loaded: LoadedModel, engine: BatchEngine, name: str, key: str) -> None:
        self._loaded, self._engine, self._name, self._key = loaded, engine, name, key

    async def answer(self, request: HttpRequest) -> Response:
        if request.path == "/health":
            return wrong_method(request, "GET") or json_response({"status": "ok"})
        if request.path == "/v1/models":
            return json_response({"object": "list", "data": [{"id": self._name, "object": "model"}]})
        if (stranger := refusal_response(request, self._key, "model server")) is not None:
            return stranger
        routes = {
            "/v1/completions": self._complete,
            "/v1/chat/completions": self._complete,
            "/tokenize": self._tokenize,
            "/detokenize": self._detokenize,
        }
        if (route := routes.get(request.path)) is None:
            return not_found(request)
        if (wrong := wrong_method(request, "POST")) is not None:
            return wrong
        try:
            return await route(request)
        except MemoryExhaustedError as error:
            return error_response(413, str(error))
        except (DataError, ConfigError) as error:
            return error_response(400, str(error))
        except ServerError as error:
            return error_response(500, str(error))

    async def _complete(self, request: HttpRequest) -> Response:
        body: CompletionBody = decode_request(request.body, CompletionBody)
        if (body.messages is None) == request.path.endswith("/chat/completions"):
            raise DataError(f"{request.path} takes {'a prompt' if body.messages else 'messages'}.")
        prompt = await asyncio.to_thread(prompt_of, body, self._loaded)
        sequence = await self._compute(body, prompt)
        return json_response(await asyncio.to_thread(reply_of, sequence, prompt, body, self._loaded, self._name))

    async def _compute(self, body: CompletionBody, prompt: EncodedPrompt) -> TokenSequence:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def wake(sequence: TokenSequence) -> None:
            if not ended.done():
                ended.set_result(sequence)

        sequence = sequence_of(body, prompt, self._loaded, lambda done: loop.call_soon_threadsafe(wake, done))
        self._engine.submit(sequence)
        try:
            await ended
        finally:
            sequence.cancelled = True  # who has left is not computed for
        if sequence.error is not None:
            if isinstance(sequence.error, NewskillsError):
                raise sequence.error
            kind = type(sequence.error).__name__
            raise ServerError(f"The model failed: {kind}: {sequence.error}") from sequence.error
        return sequence

    async def _tokenize(self, request: HttpRequest) -> Response:
        body: TokenizeBody = decode_request(request.body, TokenizeBody)
        ids = await asyncio.to_thread(self._ids, body)
        return json_response({"tokens": ids, "count": len(ids), "max_model_len": self._loaded.context})

    def _ids(self, body: TokenizeBody) -> list[int]:
        if body.messages is None:
            ids: list[int] = self._loaded.tokenizer.encode(
                body.prompt or "", add_special_tokens=body.add_special_tokens
            )
            return ids
        settings = {**body.chat_template_kwargs, "add_generation_prompt": body.add_generation_prompt}
        return chat_prompt(body.messages, self._loaded, {**settings, "tools": body.tools}).ids

    async def _detokenize(self, request: HttpRequest) -> Response:
        body: DetokenizeBody = decode_request(request.body, DetokenizeBody)
        return json_response({"prompt": self._loaded.decode(body.tokens)})


def limits_of(options: ServerOptions, loaded: LoadedModel) -> EngineLimits:
    """Return how much is computed at once on this machine's free memory."""
    if options.gpus:
        free = min(torch.cuda.mem_get_info(number)[0] for number in range(options.gpus))
        logits = int(free * SHARE_OF_MEMORY / 2)
    else:
        free, _ = memory_left()
        logits = LOGITS_BYTES
    usual = DEFAULT_BATCH_ON_GPU if options.gpus else DEFAULT_BATCH
    tokens = logits // (loaded.vocabulary * 8)  # float32, once for the model and once for their logarithms
    return EngineLimits(options.batch or usual, max(tokens, 1), int(free * SHARE_OF_MEMORY))


async def serve_model(options: ServerOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises NewskillsError."""
    loaded = load_served_model(options)
    name = options.alias or options.model
    engine = BatchEngine(loaded, limits_of(options, loaded), print_line)
    server = ModelServer(loaded, engine, name, os.environ.get(TRANSFORMERS_KEY, "").strip())
    listening = await serve(server.answer, options.host, options.port, limits=ServerLimits(body=BODY_BYTES))
    stop, _ = stop_signals()
    print_line(f"serving {options.model} as {name} at {listening.url} on {_describe_devices(options)}")
    await stop.wait()
    os._exit(0)  # whoever stops the server waits for nothing that it computes


def _describe_devices(options: ServerOptions) -> str:
    if options.gpus:
        return f"{options.gpus} GPUs"
    return f"the CPU with {torch.get_num_threads()} threads"


def main(argv: Sequence[str] | None = None) -> int:
    """Load and serve."""
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(usable_cores())
    try:
        options = parse_server_options(argv)
        aio.run(lambda: serve_model(options))
    except NewskillsError as error:
        print_line(str(error))
        return error.exit_code
    return 0


def print_line(text: str) -> Any:
    """Write a line into the server's log."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
