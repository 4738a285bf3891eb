# SPDX-License-Identifier: Apache-2.0
"""OpenAI Responses. https://platform.openai.com/docs/api-reference/responses.

Nothing is kept for a later request: programs send their whole history. Reasoning travels with them as
`encrypted_content`, which they send back unread, where they ask for it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from newskills.base.records import Message, Reply, Row, Usage
from newskills.gateway import shapes
from newskills.gateway.form import (
    GatewayProblem,
    ProgramRequest,
    ReplyHead,
    ReplyStream,
    Served,
    ToolChoice,
    argument_text,
    arguments_of,
    bad_request,
    encode_event,
    encode_json,
    name_of,
    split_text,
)
from newskills.gateway.protocols.chat import (
    CODES,
    ERROR_TYPES,
    choice_in_a_word,
    named_choice,
    openai_error,
)
from newskills.gateway.streams import BlockStream, ReplyBlock

ENCRYPTED = "reasoning.encrypted_content"
MARK = "newskills:"
"""How reasoning begins that another backend has written: as text, not encrypted at all."""
IGNORED = frozenset({"web_search_call", "file_search_call", "compaction", "item_reference", "tool_search_call"})
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
PREFIXES = {"reasoning": "rs", "text": "msg"}
FREE_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "the whole input of the tool, as plain text"}},
    "required": ["input"],
}


class ResponsesProtocol:
    """Fits `ProgramProtocol`."""

    name = "responses"
    ping = b": wait\n\n"

    def read(self, body: Row, model: str, stream: bool) -> ProgramRequest:
        for name in ("previous_response_id", "conversation"):
            if body.get(name) is not None:
                raise bad_request(f"{name}: this gateway keeps nothing; send the whole history as `input`.")
        reasoning = shapes.read_row(body.get("reasoning"), "reasoning")
        include = shapes.read_texts(body.get("include"), "include")
        request = ProgramRequest(
            messages=[],
            model=shapes.read_text(body.get("model"), "model"),
            max_tokens=shapes.read_whole(body.get("max_output_tokens"), "max_output_tokens"),
            temperature=shapes.read_number(body.get("temperature"), "temperature", 0, 2),
            top_p=shapes.read_number(body.get("top_p"), "top_p", 0, 1) or None,
            effort=shapes.read_text(reasoning.get("effort"), "reasoning.effort") or None,
            stream=body.get("stream") is True,
            response_format=_response_format(shapes.read_row(body.get("text"), "text")),
            wire={"custom": [], "spaces": {}, "encrypted": ENCRYPTED in include},
        )
        for number, offered in enumerate(shapes.read_rows(body.get("tools"), "tools")):
            _read_tool(offered, f"tools[{number}]", request)
        request.choice = _read_tool_choice(body.get("tool_choice"), body.get("parallel_tool_calls"))
        instructions = shapes.read_text(body.get("instructions"), "instructions")
        messages = [Message(role="system", content=instructions)] if instructions else []
        request.messages = shapes.join_system_messages([*messages, *_History(request).read(body.get("input"))])
        if not any(message.role != "system" for message in request.messages):
            raise bad_request("input: at least one item is needed.")
        shapes.check_choice(request)
        return request

    def answer(self, served: Served) -> Row:
        return _response_body(served, _response_status(served.reply), _output_items(served), served.reply)

    def stream(self, head: ReplyHead) -> ReplyStream:
        return ResponsesStream(head)

    def error(self, problem: GatewayProblem) -> Row:
        return openai_error(problem)

    def count(self, tokens: int) -> Row:
        return {"object": "response.input_tokens", "input_tokens": tokens}


class ResponsesStream(BlockStream):
    """A reply as items of output. The input of a tool that takes free text is told at its end, since it is written as
    JSON."""

    def __init__(self, head: ReplyHead) -> None:
        super().__init__(head)
        self._sequence = 0
        self._items: list[Row] = []
        self._identities: dict[int, str] = {}

    def beginning(self) -> bytes:
        begun = _response_body(self.head, "in_progress", [])
        return self._named("response.created", response=begun) + self._named(
            "response.in_progress", response=begun
        )

    def opening(self, block: ReplyBlock) -> bytes:
        identity = _item_id(block, self.head)
        if identity in self._identities.values():
            identity = f"{identity}_{block.number}"
        self._identities[block.number] = identity
        item = _output_item(block, identity, self.head)
        begun = {**item, **_EMPTY[item["type"]], "status": "in_progress"}
        data = self._named("response.output_item.added", output_index=block.number, item=begun)
        if block.kind == "text":
            data += self._inner(block, "content_part.added", content_index=0, part=item["content"][0])
        return data

    def growth(self, block: ReplyBlock, text: str) -> bytes:
        if block.kind == "reasoning":
            return self._inner(block, "reasoning_text.delta", content_index=0, delta=text)
        if block.kind == "text":
            return self._inner(block, "output_text.delta", content_index=0, delta=text, logprobs=[])
        if block.name in self.head.request.wire["custom"]:
            return b""
        return self._inner(block, "function_call_arguments.delta", delta=text)

    def closing(self, block: ReplyBlock, reply: Reply | None) -> bytes:
        item = _output_item(block, self._identities[block.number], self.head, reply)
        self._items.append(item)
        data = b"".join(self._inner(block, kind, **fields) for kind, fields in _last_events(item))
        return data + self._named("response.output_item.done", output_index=block.number, item=item)

    def ending(self, reply: Reply) -> bytes:
        status = _response_status(reply)
        return self._named(f"response.{status}", response=_response_body(self.head, status, self._items, reply))

    def failure(self, problem: GatewayProblem, *, begun: bool) -> bytes:
        code = problem.code or CODES.get(problem.kind) or ERROR_TYPES.get(problem.kind, "invalid_prompt")
        failed = _response_body(self.head, "failed", self._items)
        failed["error"] = {"code": code, "message": problem.message}
        return self._named("response.failed", response=failed)

    def _named(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return encode_event({"type": kind, "sequence_number": self._sequence - 1, **fields}, kind)

    def _inner(self, block: ReplyBlock, kind: str, **fields: Any) -> bytes:
        identity = self._identities[block.number]
        return self._named(f"response.{kind}", item_id=identity, output_index=block.number, **fields)


_EMPTY: dict[str, Row] = {
    "message": {"content": []},
    "reasoning": {"content": [], "encrypted_content": None},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}


def _response_body(head: ReplyHead, status: str, output: list[Row], reply: Reply | None = None) -> Row:
    """Return a response; `reply` where it has ended with one."""
    request = head.request
    reason = None
    if reply is not None and status == "incomplete":
        reason = {"reason": INCOMPLETE[reply.finish_reason or ""]}
    return {
        "id": f"resp_{head.id}",
        "object": "response",
        "created_at": head.created,
        "status": status,
        "model": request.model,
        "output": output,
        "error": None,
        "incomplete_details": reason,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": request.choice.parallel is not False,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if reply is None else _usage_counts(reply.usage),
    }


def _response_status(reply: Reply | None) -> str:
    if reply is not None and reply.finish_reason in INCOMPLETE:
        return "incomplete"
    return "completed"


def _usage_counts(counts: Usage) -> Row:
    read, written = counts.input_tokens or 0, counts.output_tokens or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": counts.cached_tokens or 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning_tokens or 0},
        "total_tokens": read + written,
    }


def _output_items(served: Served) -> list[Row]:
    """Return the output of a whole reply."""
    reply = served.reply
    blocks: list[ReplyBlock] = []
    if reply.reasoning:
        blocks.append(ReplyBlock(kind="reasoning", parts=[reply.reasoning]))
    if reply.text or not (reply.tool_calls or reply.reasoning):
        blocks.append(ReplyBlock(kind="text", parts=[reply.text]))
    for number, call in enumerate(reply.tool_calls or ()):
        parts = [argument_text(call)]
        blocks.append(
            ReplyBlock(kind="call", call=number, call_id=call.get("id") or "", name=name_of(call), parts=parts)
        )
    return [_output_item(block, _item_id(block, served), served, reply) for block in blocks]


def _item_id(block: ReplyBlock, head: ReplyHead) -> str:
    if block.kind == "call":
        return f"fc_{head.id}_{block.call}"
    return f"{PREFIXES[block.kind]}_{head.id}"


def _output_item(block: ReplyBlock, identity: str, head: ReplyHead, reply: Reply | None = None) -> Row:
    """Return a block as an item of output."""
    wire, content = head.request.wire, block.content
    if block.kind == "call":
        return _call_item(block, identity, wire)
    if block.kind == "text":
        part = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": identity, "role": "assistant"}
        return {**message, "content": [part], "status": _response_status(reply)}
    parts = [{"type": "reasoning_text", "text": content}]
    item: Row = {"type": "reasoning", "id": identity, "summary": [], "content": parts}
    if wire.get("encrypted"):
        item["encrypted_content"] = MARK + base64.b64encode(content.encode("utf-8", "replace")).decode()
    return {**item, "status": "completed"}


def _call_item(block: ReplyBlock, identity: str, wire: Row) -> Row:
    name, content = block.name, block.content
    item: Row = {"type": "function_call", "id": identity, "call_id": block.call_id, "name": name}
    if name in wire["custom"]:
        text = arguments_of({"function": {"arguments": content}}).get("input")
        item |= {"type": "custom_tool_call", "input": text if isinstance(text, str) else content}
    else:
        item["arguments"] = content
        if name in wire["spaces"]:
            item["namespace"], item["name"] = wire["spaces"][name]
    return {**item, "status": "completed"}


def _last_events(item: Row) -> Iterator[tuple[str, Row]]:
    """Yield the events that come before the end of an item: kind, fields."""
    kind = item["type"]
    if kind == "reasoning":
        yield "reasoning_text.done", {"content_index": 0, "text": item["content"][0]["text"]}
    elif kind == "message":
        part = item["content"][0]
        yield "output_text.done", {"content_index": 0, "text": part["text"], "logprobs": []}
        yield "content_part.done", {"content_index": 0, "part": part}
    elif kind == "function_call":
        yield "function_call_arguments.done", {"arguments": item["arguments"], "name": item["name"]}
    else:
        for piece in split_text(item["input"]):
            yield "custom_tool_call_input.delta", {"delta": piece}
        yield "custom_tool_call_input.done", {"input": item["input"]}


class _History:
    """Items of `input` as messages: neighbours that the model has written are one message."""

    def __init__(self, request: ProgramRequest) -> None:
        self._request = request
        self._messages: list[Message] = []

    def read(self, value: Any) -> list[Message]:
        """Return the messages. Raises GatewayProblem."""
        if isinstance(value, str):
            return [Message(role="user", content=value)]
        for item in shapes.read_rows(value, "input"):
            kind = shapes.read_text(item.get("type"), "an item's type") or ("message" if "role" in item else "")
            if kind == "message":
                self._message(item)
            elif kind in ("function_call", "custom_tool_call"):
                self._call(item, kind)
            elif kind in ("function_call_output", "custom_tool_call_output"):
                self._output(item)
            elif kind == "reasoning":
                self._reasoning(item)
            elif kind in IGNORED:
                self._request.note(f"dropped an item of type {kind}")
            else:
                raise bad_request(f"input: items of type '{str(kind)[:100]}' are not supported.")
        return self._messages

    def _assistant(self) -> Message:
        """Return the message of the model that the next item belongs to."""
        if not self._messages or self._messages[-1].role != "assistant":
            self._messages.append(Message(role="assistant", content=""))
        return self._messages[-1]

    def _message(self, item: Row) -> None:
        role = shapes.read_text(item.get("role"), "a message's role")
        content = item.get("content")
        if role not in ("user", "assistant", "system", "developer"):
            raise bad_request(f"input: the role '{role[:100]}' is not supported.")
        if not isinstance(content, str):
            content = shapes.join_text_parts(
                [self._part(part) for part in shapes.read_rows(content, "a message's content")]
            )
        if role == "assistant" and isinstance(content, str):
            message = self._assistant()
            message.content = f"{message.content or ''}{content}"
        else:
            self._messages.append(Message(role="system" if role == "developer" else role, content=content))

    def _part(self, part: Row) -> Row:
        kind = part.get("type")
        if kind in ("input_text", "output_text", "text"):
            return {"type": "text", "text": shapes.read_text(part.get("text"), "a part's text")}
        if kind == "refusal":
            return {"type": "text", "text": shapes.read_text(part.get("refusal"), "a part's refusal")}
        if kind == "input_image" and part.get("image_url"):
            return shapes.image_part(shapes.read_text(part["image_url"], "image_url"), part.get("detail"))
        raise bad_request(f"input: parts of type '{str(kind)[:100]}' are not supported (images: by image_url).")

    def _call(self, item: Row, kind: str) -> None:
        name = shapes.read_text(item.get("name"), f"{kind}.name")
        if item.get("namespace") is not None:
            name = flat_name(shapes.read_text(item["namespace"], "namespace"), name)
        if kind == "custom_tool_call":
            arguments = encode_json({"input": shapes.read_text(item.get("input"), f"{kind}.input")}).decode()
        else:
            arguments = shapes.read_text(item.get("arguments"), f"{kind}.arguments")
        message = self._assistant()
        calls = message.tool_calls or []
        message.tool_calls = [
            *calls,
            shapes.tool_call(shapes.read_text(item.get("call_id"), "call_id"), name, arguments),
        ]

    def _output(self, item: Row) -> None:
        output, pictures = item.get("output"), list[Row]()
        if not isinstance(output, str):
            parts = [self._part(part) for part in shapes.read_rows(output, "output")]
            pictures = [part for part in parts if part["type"] != "text"]
            output = "\n".join(part["text"] for part in parts if part["type"] == "text")
        identity = shapes.read_text(item.get("call_id"), "call_id")
        self._messages.append(Message(role="tool", content=output, tool_call_id=identity))
        if pictures:
            self._messages.append(Message(role="user", content=pictures))

    def _reasoning(self, item: Row) -> None:
        hidden = item.get("encrypted_content")
        if isinstance(hidden, str) and hidden.startswith(MARK):
            try:
                text = base64.b64decode(hidden.removeprefix(MARK), validate=True).decode("utf-8", "replace")
            except ValueError as error:
                raise bad_request("reasoning.encrypted_content is not what this gateway has sent.") from error
        else:
            parts = shapes.read_rows(item.get("content"), "reasoning.content")
            parts = parts or shapes.read_rows(item.get("summary"), "reasoning.summary")
            text = "\n\n".join(shapes.read_text(part.get("text"), "reasoning: a text") for part in parts)
        if text:
            # reasoning begins a reply, so it never belongs to the message before it
            self._messages.append(Message(role="assistant", content="", reasoning_content=text))


def flat_name(space: str, name: str) -> str:
    """Return the name by which a model calls a tool of a namespace."""
    return f"{space}__{name}"


def _read_tool(offered: Row, where: str, request: ProgramRequest) -> None:
    """Add a tool to the request, or a note that it is dropped. A tool that takes free text becomes a function with
    one text."""
    kind, name = offered.get("type"), offered.get("name")
    if kind == "function":
        request.tools.append(
            shapes.tool_definition(name, offered.get("description"), offered.get("parameters"), where)
        )
    elif kind == "custom":
        request.tools.append(shapes.tool_definition(name, _with_grammar(offered), FREE_TEXT, where))
        request.wire["custom"].append(name)
    elif kind == "namespace":
        space = shapes.read_text(name, f"{where}.name")
        for number, inner in enumerate(shapes.read_rows(offered.get("tools"), f"{where}.tools")):
            inner_name = shapes.read_text(inner.get("name"), f"{where}.tools[{number}].name")
            if inner.get("type") != "function":
                request.note(f"dropped a tool of type {str(inner.get('type'))[:100]}")
                continue
            flat = flat_name(space, inner_name)
            request.tools.append(
                shapes.tool_definition(flat, inner.get("description"), inner.get("parameters"), where)
            )
            request.wire["spaces"][flat] = [space, inner_name]
    else:
        request.note(f"dropped a tool of type {str(kind)[:100]}")


def _with_grammar(offered: Row) -> str:
    """Return the description of a tool that takes free text, with the grammar of that text, if it has one."""
    description = shapes.read_text(offered.get("description"), "a tool's description")
    grammar = shapes.read_row(offered.get("format"), "a tool's format")
    if grammar.get("type") != "grammar":
        return description
    definition = shapes.read_text(grammar.get("definition"), "a tool's grammar")
    return f"{description}\n\nThe input follows this grammar:\n{definition}"


def _response_format(text: Row) -> Row | None:
    form = shapes.read_row(text.get("format"), "text.format")
    if form.get("type") == "json_object":
        return {"type": "json_object"}
    if form.get("type") != "json_schema":
        return None
    schema = {
        name: form[name] for name in ("name", "schema", "strict", "description") if form.get(name) is not None
    }
    return {"type": "json_schema", "json_schema": schema}


def _read_tool_choice(value: Any, parallel: Any) -> ToolChoice:
    if (choice := choice_in_a_word(value, parallel)) is not None:
        return choice
    named = shapes.read_row(value, "tool_choice")
    if named.get("type") in ("function", "custom"):
        return named_choice(shapes.read_text(named.get("name"), "tool_choice.name"), parallel)
    raise bad_request(f"tool_choice: '{str(named.get('type'))[:100]}' cannot be required here.")
