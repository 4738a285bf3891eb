# SPDX-License-Identifier: Apache-2.0
"""The log of a gateway: each message, each set of tools and each exchange once, in an append-only file.

Histories that begin alike share their beginning: a message is a node whose identity is a hash of all that led to it, so
the history of a request is one identity, and what is new in it is a few lines. Lines:

    {"kind": "message", "node", "parent", "message"}
    {"kind": "tools", "tools_id", "tools"}
    {"kind": "exchange", "task", "number", "protocol", "model", "began", "seconds", "prompt", "reply", "tools_id", …}

`prompt` and `reply` are nodes. Keys are in no line: they are in no message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Message, Reply, ReplyTokens, Row, Usage
from newskills.base.store import AppendLog, read_rows
from newskills.gateway.form import arguments_of, encode_json, name_of
from newskills.gateway.server import GatewayExchange
from newskills.gateway.tasks import GatewayTask

LOG = "gateway.jsonl"
RECENT = 8
"""Exchanges of a task with whose tokens a prompt may begin."""


class RecordedExchange(Struct, kw_only=True, omit_defaults=True, tag_field="kind", tag="exchange"):
    """A line of the log. `prompt`, `reply`: nodes; `error` where there is no reply.

    token_ids         of the reply, where the server tells them
    after             number of the exchange with whose tokens the prompt begins; 0: none
    prompt_token_ids  of the prompt, those of that exchange left out
    logprobs          of the reply's tokens
    """

    task: str
    number: int
    protocol: str
    model: str
    began: float
    seconds: float
    prompt: str
    reply: str = ""
    tools_id: str = ""
    finish_reason: str | None = None
    usage: Row = {}
    sampling: Row = {}
    notes: list[str] = []
    error: Row = {}
    token_ids: list[int] = []
    after: int = 0
    prompt_token_ids: list[int] = []
    logprobs: list[float] = []


class GatewayLog:
    """What a gateway has recorded; `messages` by node, with the node before it."""

    def __init__(self) -> None:
        self.messages: dict[str, tuple[str, Row]] = {}
        self.tools: dict[str, list[Row]] = {}
        self.exchanges: list[RecordedExchange] = []
        self._by_number: dict[tuple[str, int], RecordedExchange] = {}

    def history(self, node: str) -> list[Row]:
        """Return the messages up to a node, the first one first."""
        return [self.messages[step][1] for step in reversed(list(self.steps(node)))]

    def steps(self, node: str) -> Iterator[str]:
        """Yield a node, and those before it, back to the first."""
        while node:
            yield node
            node = self.messages[node][0]

    def token_ids(self, exchange: RecordedExchange) -> tuple[list[int], list[int]]:
        """Return the ids of the prompt and of the reply; empty where they are not recorded."""
        parts = [exchange.prompt_token_ids]
        step = exchange
        while step.after:
            step = self._by_number[step.task, step.after]
            parts += [step.token_ids, step.prompt_token_ids]
        return [token for part in reversed(parts) for token in part], exchange.token_ids

    def snapshot(self) -> GatewayLog:
        """Return the log as it is now, for another thread; messages are never changed, so they are shared."""
        log = GatewayLog()
        log.messages, log.tools, log._by_number = self.messages, self.tools, self._by_number
        log.exchanges = list(self.exchanges)
        return log

    def append(self, exchange: RecordedExchange) -> None:
        self.exchanges.append(exchange)
        self._by_number[exchange.task, exchange.number] = exchange

    def add(self, row: Row, where: Path) -> None:
        """Add a line of the log. Raises DataError."""
        try:
            if row["kind"] == "message":
                self.messages[row["node"]] = (row["parent"], row["message"])
            elif row["kind"] == "tools":
                self.tools[row["tools_id"]] = row["tools"]
            else:
                self.append(msgspec.convert(row, RecordedExchange))
        except (KeyError, msgspec.ValidationError) as error:
            raise DataError(f"{where} is not the log of a gateway: {error}.") from error


def read_log(path: Path) -> GatewayLog:
    """Read the log of a gateway. Raises DataError."""
    log = GatewayLog()
    for row in read_rows(path):
        log.add(row, path)
    return log


class LogRecorder:
    """Appends exchanges to the log in `folder`; a log that is there goes on. Raises StorageError, DataError."""

    def __init__(self, folder: Path, changed: Callable[[str], None] = lambda task: None) -> None:
        path = folder / LOG
        self._file = AppendLog(path)
        self.log = read_log(path) if self._file.end else GatewayLog()
        self._changed = changed
        self._sequences: dict[str, deque[tuple[int, list[int]]]] = {}

    def resume(self, task: GatewayTask) -> None:
        """Count what the log holds of a task as used by it."""
        for exchange in self.log.exchanges:
            if exchange.task == task.name:
                task.requests = max(task.requests, exchange.number)
                usage = msgspec.convert(exchange.usage, Usage)
                task.tokens += usage.output_tokens or 0
                task.cost += task.prices.cost(usage)

    def record(self, exchange: GatewayExchange) -> None:
        """Append an exchange; it survives the process. Raises StorageError."""
        prompt = ""
        for message in exchange.request.messages or ():
            prompt = self._node(prompt, message_row(message))
        reply, problem = exchange.reply, exchange.problem
        line = RecordedExchange(
            task=exchange.task.name,
            number=exchange.number,
            protocol=exchange.protocol,
            model=exchange.program.model,
            began=round(exchange.began, 3),
            seconds=round(exchange.ended - exchange.began, 3),
            prompt=prompt,
            tools_id=self._tools(exchange.request.tools),
            sampling=_sampling_settings(exchange),
            notes=exchange.program.notes,
        )
        if reply is not None:
            line.reply = self._node(prompt, reply_row(reply))
            line.finish_reason = reply.finish_reason
            line.usage = {name: n for name, n in msgspec.structs.asdict(reply.usage).items() if n is not None}
            if reply.tokens is not None:
                line.token_ids = reply.tokens.generated
                line.after, line.prompt_token_ids = self._new_tokens(line.task, line.number, reply.tokens)
            line.logprobs = reply.logprobs.logprobs if reply.logprobs is not None else []
        if problem is not None:
            line.error = {"kind": problem.kind, "status": problem.status, "message": problem.message}
        self._append(line)
        self.log.append(line)
        self._file.write()
        self._changed(line.task)

    def close(self) -> None:
        self._file.close()

    def _node(self, parent: str, message: Row) -> str:
        node = _hash_value([parent, _message_essence(message)])
        if node not in self.log.messages:
            self.log.messages[node] = (parent, message)
            self._append({"kind": "message", "node": node, "parent": parent, "message": message})
        return node

    def _new_tokens(self, task: str, number: int, tokens: ReplyTokens) -> tuple[int, list[int]]:
        """Return the exchange with whose tokens a prompt begins, and the prompt's other tokens."""
        if not tokens.prompt:
            return 0, []
        recent = self._sequences.setdefault(task, deque(maxlen=RECENT))
        after, shared = max(
            ((other, len(ids)) for other, ids in recent if tokens.prompt[: len(ids)] == ids),
            key=lambda candidate: candidate[1],
            default=(0, 0),
        )
        recent.append((number, [*tokens.prompt, *tokens.generated]))
        return after, tokens.prompt[shared:]

    def _tools(self, tools: list[Row] | None) -> str:
        if not tools:
            return ""
        tools_id = _hash_value(tools)
        if tools_id not in self.log.tools:
            self.log.tools[tools_id] = tools
            self._append({"kind": "tools", "tools_id": tools_id, "tools": tools})
        return tools_id

    def _append(self, line: Any) -> None:
        self._file.append_line(encode_json(line) + b"\n")


def message_row(message: Message) -> Row:
    """Return a message as records hold it."""
    row: Row = msgspec.to_builtins(message)
    return {name: value for name, value in row.items() if value is not None}


def reply_row(reply: Reply) -> Row:
    """Return a reply as a message, as records hold it."""
    row: Row = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        row["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        row["tool_calls"] = reply.tool_calls
    return row


def _message_essence(message: Row) -> list[Any]:
    """Return what stays of a message when a program sends it back: reasoning and outer blanks may be lost, and an empty
    text may be none."""
    content = message.get("content") or ""
    if isinstance(content, list) and message.get("role") == "assistant":
        content = "".join(str(part.get("text") or "") for part in content if part.get("thought") is not True)
    calls = [[call.get("id"), name_of(call), arguments_of(call)] for call in message.get("tool_calls") or ()]
    return [
        message.get("role"),
        content.strip() if isinstance(content, str) else content,
        message.get("tool_call_id"),
        calls,
    ]


def _hash_value(value: Sequence[Any]) -> str:
    return blake2b(encode_json(value), digest_size=8).hexdigest()


def _sampling_settings(exchange: GatewayExchange) -> Row:
    """Return what the request was sampled by, as far as something was said."""
    inference = exchange.request.inference
    names = ("temperature", "top_p", "top_k", "min_p", "random_seed", "tokens_to_generate")
    values = {name: getattr(inference, name) for name in (*names, "reasoning_effort", "thinking_budget")}
    return {name: value for name, value in values.items() if value is not None}
