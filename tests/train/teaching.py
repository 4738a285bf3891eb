# SPDX-License-Identifier: Apache-2.0
"""A teacher of a few thousand parameters, and an HTTP server that gives its log-probabilities as vLLM does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from tests.train.tiny import tensors, tiny_folder, with_tokenizer

from newskills.models.tokenizer import HFTokenizer
from newskills.run.training.teachers import FolderTeacher
from newskills.train.settings import TrainerSettings
from newskills.train.verbs import Datum

SETTINGS = TrainerSettings(dtype="float32", threads=1)
Gives = Literal["echo", "prompt_logprobs", "nothing", "nan"]


def teacher_folder(path: Path, *, end: int, context: int = 256) -> Path:
    """Like the tiny model, with other weights."""
    with_tokenizer(tiny_folder(path, eos_token_id=end, max_position_embeddings=context))
    other, same = tensors(1), tensors(0)
    mixed = {name: 0.8 * value + 0.2 * other[name] for name, value in same.items()}
    save_file(mixed, path / "model.safetensors")
    return path


@contextmanager
def served(folder: Path, gives: Gives = "echo", vocabulary: Path | None = None) -> Iterator[str]:
    """The address of a server with the model of `folder`; `vocabulary`: folder of another tokenizer that it uses."""
    model, tokenizer, lock = (
        FolderTeacher(folder, SETTINGS),
        HFTokenizer(str(vocabulary or folder)),
        threading.Lock(),
    )

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["prompt"]
        ids = tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        with lock, torch.inference_mode():
            datum = Datum(tokens=ids[:-1], targets=ids[1:], weights=[1.0] * (len(ids) - 1))
            (scores,) = model.logprobs([datum])
        texts = [tokenizer.decode([token]) for token in ids]
        choice: dict[str, Any] = {"index": 0, "text": "!", "finish_reason": "length"}
        choice["logprobs"] = {"tokens": ["!"], "token_logprobs": [-1.0], "top_logprobs": [{"!": -1.0}]}
        if gives == "nan":
            scores = [float("nan")] * len(scores)
        if gives in ("echo", "nan") and body.get("echo"):
            choice["logprobs"] = {"tokens": [*texts, "!"], "token_logprobs": [None, *scores, -1.0]}
        if gives == "prompt_logprobs" and body.get("prompt_logprobs"):
            choice["prompt_logprobs"] = [
                None,
                *(
                    {str(token): {"logprob": score, "rank": 1, "decoded_token": text}}
                    for token, score, text in zip(ids[1:], scores, texts[1:], strict=True)
                ),
            ]
        return {"id": "1", "object": "text_completion", "model": "teacher", "choices": [choice]}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            refused = gives == "prompt_logprobs" and body.get("echo")
            reply = {"error": {"message": "echo is not supported"}} if refused else answer(body)
            data = json.dumps(reply).encode()
            self.send_response(400 if refused else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
