# SPDX-License-Identifier: Apache-2.0
"""Small random models of transformers in folders, and our server around them in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tests.harness.endpoint import make_tokenizer

from newskills.base.http.messages import HttpRequest
from newskills.models.serving.hf.engine import BatchEngine, EngineLimits
from newskills.models.serving.hf.loading import LoadedModel, load_served_model
from newskills.models.serving.hf.options import ServerOptions
from newskills.models.serving.hf.server import ModelServer

LLAMA = {
    "vocab_size": 700,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "eos_token_id": 1,
    "initializer_range": 0.4,
}


def save_model(folder: Path, config: Any, seed: int = 0) -> Path:
    """A model of `config` with random weights, and a tokenizer."""
    import transformers

    torch.manual_seed(seed)
    kind: Any = transformers.AutoModelForCausalLM
    make_tokenizer(folder)
    kind.from_config(config).save_pretrained(folder)
    return folder


def save_llama(folder: Path, **changed: Any) -> Path:
    from transformers import LlamaConfig

    return save_model(folder, LlamaConfig(**{**LLAMA, **changed}))


class Served:
    """A server without sockets: what `answer` gives to requests that are there together."""

    def __init__(self, loaded: LoadedModel, limits: EngineLimits) -> None:
        self.loaded, self.limits = loaded, limits
        self.lines: list[str] = []
        self.engine = BatchEngine(loaded, limits, self.lines.append)
        self.server = ModelServer(loaded, self.engine, "tiny", "")

    def ask(self, *bodies: dict[str, Any], path: str = "/v1/completions") -> list[tuple[int, dict[str, Any]]]:
        async def together() -> list[tuple[int, dict[str, Any]]]:
            asked = [HttpRequest("POST", path, "", {}, json.dumps(body).encode()) for body in bodies]
            replies = await asyncio.gather(*map(self.server.answer, asked))
            return [(reply.status, json.loads(reply.body)) for reply in replies]

        return asyncio.run(together())

    def texts(self, *bodies: dict[str, Any]) -> list[str]:
        replies = self.ask(*bodies)
        assert [status for status, _ in replies] == [200] * len(bodies), replies
        return [reply["choices"][0]["text"] for _, reply in replies]


@contextmanager
def served(
    folder: Path, *, sequences: int = 4, tokens: int = 4096, cache_bytes: int = 1 << 28, **options: Any
) -> Iterator[Served]:
    loaded = load_served_model(ServerOptions(model=str(folder), **options))
    place = Served(loaded, EngineLimits(sequences, tokens, cache_bytes))
    try:
        yield place
    finally:
        place.engine.close()


def body(prompt: str | list[int], tokens: int = 12, **more: Any) -> dict[str, Any]:
    fixed = {"temperature": 0.0, "seed": 0, "skip_special_tokens": False}
    return {"prompt": prompt, "max_tokens": tokens, **fixed, **more}
