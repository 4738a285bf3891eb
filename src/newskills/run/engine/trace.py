# SPDX-License-Identifier: Apache-2.0
"""What `++log_level=debug` shows: requests with their prompts, replies with their times, retries. Never a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from newskills.base.errors import HttpError
from newskills.base.records import Reply, Request
from newskills.models.config import without_keys

MAX_SHOWN_CHARS = 4000
"""Characters of a prompt or reply."""


class Trace:
    """Says what one endpoint is asked and answers. Requests are told apart by the end of their resume key."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name, self._say = name, say

    def log_request(self, request: Request, tries: int) -> None:
        content: Any = request.prompt if request.messages is None else request.messages
        settings = msgspec.to_builtins(request.inference)
        again = f" (try {tries + 1})" if tries else ""
        self._write(request, f"asks {self._name}{again}: {_short_json(settings)}\n{_short_json(content)}")

    def log_reply(self, request: Request, reply: Reply, seconds: float) -> None:
        read, written = reply.usage.input_tokens, reply.usage.output_tokens
        calls = f"\n{_short_json(reply.tool_calls)}" if reply.tool_calls else ""
        self._write(
            request,
            f"answered after {seconds:.3f} s: finish_reason {reply.finish_reason}, tokens {read} in, {written} out"
            f"\n{_cut_text(reply.text)}{calls}",
        )

    def log_retry(self, request: Request, error: HttpError, wait: float) -> None:
        self._write(request, f"failed: {type(error).__name__}: {error} Tried again in {wait:.2f} s.")

    def log_refusal(self, request: Request, error: HttpError) -> None:
        self._write(request, f"given up: {type(error).__name__}: {error}")

    def _write(self, request: Request, text: str) -> None:
        self._say(without_keys(f"[{request.key()[-6:]}] {text}"))


def _short_json(value: Any) -> str:
    return _cut_text(msgspec.json.encode(value).decode("utf-8", "replace"))


def _cut_text(text: str) -> str:
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return f"{text[:MAX_SHOWN_CHARS]}… ({len(text) - MAX_SHOWN_CHARS:,} more characters)"
