# SPDX-License-Identifier: Apache-2.0
"""A double of `vllm serve --enable-lora` on a CPU: the paths that TRL's client and ours ask for, with a real model that
samples and really loads the pairs which it is sent. And FlashAttention's varlen function, written the plain way."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

NAME = "served"


class FlashAttention:
    """`flash_attn_varlen_func`: each segment of queries sees its own keys, causal from the last one back."""

    @staticmethod
    def flash_attn_varlen_func(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        starts_q: torch.Tensor,
        starts_k: torch.Tensor,
        *_: int,
        softmax_scale: float | None,
        causal: bool,
        window_size: tuple[int, int],
    ) -> torch.Tensor:
        assert causal
        assert window_size == (-1, -1)
        scale = softmax_scale or 1 / math.sqrt(query.shape[-1])
        groups = query.shape[1] // key.shape[1]
        outs = []
        for at in range(len(starts_q) - 1):
            q = query[starts_q[at] : starts_q[at + 1]]
            k, v = (part[starts_k[at] : starts_k[at + 1]].repeat_interleave(groups, 1) for part in (key, value))
            scores = torch.einsum("qhd,khd->hqk", q, k) * scale
            hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(1 + len(k) - len(q))
            outs.append(torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -math.inf).softmax(-1), v))
        return torch.cat(outs)


class VllmDouble:
    """`events`: what it was asked, in order. `hold`: completions wait until it is set."""

    def __init__(self, base: Path, *, max_loras: int = 6, logprobs_mode: str = "processed_logprobs") -> None:
        self.base, self.max_loras, self.logprobs_mode = base, max_loras, logprobs_mode
        self.model: Any = AutoModelForCausalLM.from_pretrained(base).eval()
        self.adapters: set[str] = set()
        self.events: list[str] = []
        self.hold = threading.Event()
        self.hold.set()
        self.lock = threading.Lock()
        self.broken = False
        self.url = ""

    def get(self, path: str) -> tuple[int, Any]:
        if path == "/health":
            return 200, {}
        if path == "/v1/models":
            return 200, {"data": [{"id": NAME, "max_model_len": 64}]}
        if path.startswith("/server_info"):
            config = {
                "model_config": {"dtype": "torch.float32", "logprobs_mode": self.logprobs_mode},
                "lora_config": {"max_lora_rank": 8, "max_loras": self.max_loras},
                "parallel_config": {"data_parallel_size": 1},
            }
            return 200, {"vllm_config": config}
        return 404, {}

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        if path == "/v1/completions":
            return self.completions(body)
        with self.lock:
            if path == "/v1/load_lora_adapter":
                name = body["lora_name"]
                if name in self.adapters or len(self.adapters) == self.max_loras:
                    return 400, {}
                self.events.append(f"load {name}")
                self.adapters.add(name)
                if isinstance(self.model, PeftModel):
                    self.model.load_adapter(body["lora_path"], adapter_name=name.replace(".", "_"))
                else:
                    self.model = PeftModel.from_pretrained(self.model, body["lora_path"], adapter_name=name)
                return 200, {}
            if path == "/v1/unload_lora_adapter":
                self.events.append(f"unload {body['lora_name']}")
                self.adapters.discard(body["lora_name"])
                return 200, {}
            self.events.append(path.partition("?")[0])
            return 200, {}

    def completions(self, body: dict[str, Any]) -> tuple[int, Any]:
        self.hold.wait(30)
        with self.lock:
            name = body["model"]
            if self.broken or (name != NAME and name not in self.adapters):
                return 404, {"error": f"no model {name}"}
            self.events.append(f"sample {name}")
            if name != NAME:
                self.model.set_adapter(name)
            draw = torch.Generator().manual_seed(body["seed"])
            choices: list[dict[str, Any]] = []
            for prompt in body["prompt"]:
                for _ in range(body["n"]):
                    tokens, logprobs = self._sample(prompt, body, draw)
                    choices.append(
                        {"index": len(choices), "token_ids": tokens, "logprobs": {"token_logprobs": logprobs}}
                    )
            return 200, {"choices": choices[::-1]}

    @torch.no_grad()
    def _sample(
        self, prompt: list[int], body: dict[str, Any], draw: torch.Generator
    ) -> tuple[list[int], list[float]]:
        tokens: list[int] = []
        logprobs: list[float] = []
        while len(tokens) < body["max_tokens"]:
            logits = self.model(torch.tensor([prompt + tokens])).logits[0, -1]
            rates = (logits / (body["temperature"] or 1.0)).log_softmax(-1)
            if body["temperature"]:
                token = int(torch.multinomial(rates.exp(), 1, generator=draw))
            else:
                token = int(rates.argmax())
            tokens.append(token)
            logprobs.append(float(rates[token]))
            if token in body["stop_token_ids"]:
                break
        return tokens, logprobs


@contextmanager
def served(double: VllmDouble) -> Iterator[VllmDouble]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*double.get(self.path))

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(*double.post(self.path, json.loads(text or b"{}")))

        def _answer(self, status: int, value: Any) -> None:
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    double.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
