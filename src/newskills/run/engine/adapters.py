# SPDX-License-Identifier: Apache-2.0
"""Models that are sent a request in another form: the marks of a rendered prompt, conversations without a system role.

Servers turn the text of a completion into tokens as that of a base model, with a mark at its beginning, but a prompt
that a chat template has rendered holds its own. A request says by `add_special_tokens: false` in its `extra_body`
that its text has all its marks; what then is sent depends on the server (`parameters.Dialect.rendered`).
"""

from __future__ import annotations

import asyncio

import msgspec

from newskills.base.chat_template import merge_system
from newskills.base.protocols import Model, Tokenizer
from newskills.base.records import Inference, Reply, Request, Row
from newskills.models.kinds import MODELS

FLAG = "add_special_tokens"


def rendered_body(inference: Inference) -> Row:
    """Return the keys of a request with a rendered prompt; none where the user has set them."""
    if FLAG in inference.extra_body:
        return {}
    return {FLAG: False}


def for_rendered_prompts(model: Model, server_type: str, tokenizer: Tokenizer) -> Model:
    """Return `model`, which then sends rendered prompts as its server takes them without a second mark."""
    dialect = MODELS.properties(server_type).dialect
    if dialect is None or dialect.rendered == "flag":
        return model
    prompt_tokenizer = tokenizer if dialect.rendered == "ids" else None
    return RenderedPromptModel(model, prompt_tokenizer)


class RenderedPromptModel:
    """A Model whose rendered prompts are sent as the token ids of `tokenizer`, or as they are where there is none."""

    def __init__(self, model: Model, tokenizer: Tokenizer | None) -> None:
        self.name = model.name
        self._model, self._tokenizer = model, tokenizer

    async def complete(self, request: Request) -> Reply:
        """Return the model's reply; a rendered prompt is sent as token ids where there is a tokenizer. Raises what the
        model raises, and what a tokenizer that is asked of a server raises."""
        if FLAG in request.extra_body:
            prompt = request.prompt
            if self._tokenizer is not None and isinstance(prompt, str):
                prompt = await asyncio.to_thread(self._tokenizer.encode, prompt)
            rest = {key: value for key, value in request.extra_body.items() if key != FLAG}
            request = msgspec.structs.replace(request, prompt=prompt, extra_body=rest)
        return await self._model.complete(request)

    async def close(self) -> None:
        """Close the model behind it."""
        await self._model.close()


class SystemMergingModel:
    """A Model whose system messages are sent as the beginning of the user's."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that the model's backend cannot honour."""
        if (check := getattr(self._model, "check", None)) is not None:
            check(inference, tools=tools)

    async def complete(self, request: Request) -> Reply:
        """Return the model's reply to the request, whose system messages are merged. Raises what the model raises."""
        if request.messages is not None:
            merged = merge_system(request.messages)
            request = msgspec.structs.replace(request, messages=merged, cache_marks=msgspec.UNSET)
        return await self._model.complete(request)

    async def close(self) -> None:
        """Close the model behind it."""
        await self._model.close()
