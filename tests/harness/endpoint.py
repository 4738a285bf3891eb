# SPDX-License-Identifier: Apache-2.0
"""A model whose every word is a pure function of what it reads, behind both completions endpoints.

lm_eval and newskills ask it the same, and must come to the same figures.

`python -m tests.harness.endpoint FOLDER` serves the tokenizer of that folder and prints its address.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CORPUS = [
    "Question: Which city is the capital of France? Answer: Paris",
    "The quick brown fox jumps over the lazy dog. yes no true false #### 42 The answer is (A).",
    "What is 12 + 30? It is 42, because 12 and 30 make 42.\n\nPassage: a text about nothing.",
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_tokenizer(folder: Path) -> Path:
    """A byte-level tokenizer with a chat template, as transformers and we read it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=specials, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def fraction(*parts: Any) -> float:
    """A number in 0..1 that depends on `parts` alone."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") / 2**64


class ScriptedModel:
    """`candidates`: what it may generate, by a hash of the prompt; the n-th time the same is asked, the n-th after.

    `solved`: prompt → the right reply, which is given for half of the prompts, if there is one.
    """

    def __init__(
        self,
        folder: Path,
        candidates: Sequence[str],
        *,
        logprobs: bool = True,
        solved: Callable[[str], str | None] = lambda prompt: None,
    ) -> None:
        self.folder, self.candidates, self.logprobs, self.solved = folder, list(candidates), logprobs, solved
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []

    @cached_property
    def tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self.folder / "tokenizer.json"))

    def text(self, prompt: Any) -> str:
        if isinstance(prompt, list):
            prompt = prompt[0] if prompt and isinstance(prompt[0], list) else prompt
            return str(self.tokenizer.decode(prompt, skip_special_tokens=False))
        return str(prompt)

    def generate(self, prompt: str, body: dict[str, Any]) -> tuple[str, str]:
        with self.lock:
            turn = self.seen[prompt]
            self.seen[prompt] += 1
        text = self.candidates[(int(fraction(prompt) * 1e6) + turn) % len(self.candidates)]
        if fraction("solved", prompt, turn) < 0.5:
            text = self.solved(prompt) or text
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        most = body.get("max_tokens") or 16
        finish = "length" if len(ids) > most else "stop"
        text = self.tokenizer.decode(ids[:most], skip_special_tokens=False) if len(ids) > most else text
        for stop in body.get("stop") or ():
            if (at := text.find(stop)) >= 0:
                text, finish = text[:at], "stop"
        return text, finish

    def measured(self, prompt: Any) -> dict[str, Any]:
        ids = prompt if isinstance(prompt, list) else self.tokenizer.encode(prompt, add_special_tokens=False).ids
        ids = ids[0] if ids and isinstance(ids[0], list) else ids
        tokens = [self.tokenizer.decode([id_], skip_special_tokens=False) for id_ in ids]
        values: list[float | None] = [None]
        tops: list[dict[str, float] | None] = [None]
        for before, now in itertools.pairwise(ids):
            value = math.log(0.001 + 0.9 * fraction(before, now))
            values.append(value)
            best = value if fraction(now, before) < 0.7 else value / 2
            tops.append({"best": best} if best != value else {"this": value})
        last = math.log(0.5)
        return {
            "tokens": [*tokens, "!"],
            "token_logprobs": [*values, last],
            "top_logprobs": [*tops, {"!": last}],
            "text_offset": [0] * (len(tokens) + 1),
        }

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.bodies.append(body)
        if path.endswith("/models"):
            return 200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if path.endswith("/chat/completions"):
            text, finish = self.generate(json.dumps(body["messages"]), body)
            message = {"role": "assistant", "content": text}
            return 200, {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
        if not path.endswith("/completions"):
            return 404, {"error": {"message": "nothing here"}}
        prompt = body["prompt"]
        if body.get("echo"):
            logprobs = self.measured(prompt) if self.logprobs else None
            choice = {"index": 0, "text": self.text(prompt) + "!", "logprobs": logprobs, "finish_reason": "length"}
            return 200, {"choices": [choice], "usage": usage}
        text, finish = self.generate(self.text(prompt), body)
        return 200, {"choices": [{"index": 0, "text": text, "finish_reason": finish}], "usage": usage}


class ScriptedEndpoint:
    """Serves a `ScriptedModel` while the block lasts."""

    def __init__(self, model: ScriptedModel, port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._reply(*model.answer(self.path, {}))

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self._reply(*model.answer(self.path, json.loads(self.rfile.read(length))))

            def _reply(self, status: int, told: dict[str, Any]) -> None:
                body = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.model = model
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedEndpoint:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def main() -> None:
    folder, *candidates = sys.argv[1:]
    with ScriptedEndpoint(ScriptedModel(Path(folder), candidates or CORPUS)) as endpoint:
        print(endpoint.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
