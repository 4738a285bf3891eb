# SPDX-License-Identifier: Apache-2.0
"""Chat templates (Jinja) as Hugging Face tokenizers carry them, rendered in a sandbox.

A template comes with a downloaded model and is as little to be trusted as any download: it can neither reach
attributes that lead out of the sandbox nor change what it is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.records import Message, Request, Row

if TYPE_CHECKING:
    from jinja2 import Template

    from newskills.base.protocols import Tokenizer


_NO_SYSTEM_ROLE = re.compile(
    r"system\W{0,3}(?:role|message|prompt|instruction)s?\b[^.\n]{0,40}?\bnot (?:supported|allowed|enabled)"
    r"|\b(?:developer|system) instruction is not enabled|roles? must alternate"
    r"|only user(?:,? (?:and )?(?:assistant|model|tool))*\b[^.\n]{0,20}\broles are supported"
    r"|\brole\b[^\n]{0,60}\b(?:does not support|unsupported|invalid)\b[^.\n]{0,20}\bsystem\b"
    r"|\brole\b[^\n]{0,80}\b(?:should|must) be\b[^\n]{0,20}\buser\b"
    r"|\brole\W{0,3}system\W{0,3}[^.\n]{0,20}\bnot (?:supported|valid|allowed)",
    re.IGNORECASE,
)
"""What templates (Gemma, early Mistral) and endpoints say of a model without a system role."""


def render_chat_template(
    template: str, messages: Sequence[Message | Row], bos_token: str = "", eos_token: str = "", **kwargs: Any
) -> str:
    """Render `messages` as the text that the model was trained on; the generation prompt is added unless switched
    off.

    `kwargs` are the template's own variables (`enable_thinking`, `tools`, …). What templates may call:
    `raise_exception`, `strftime_now`, `tojson`, loop controls, `{% generation %}`
    (https://huggingface.co/docs/transformers/chat_templating_writing).
    Raises ConfigError for a broken template and for a conversation that the template refuses.
    """
    from jinja2 import TemplateError

    variables = {"tools": None, "documents": None, "add_generation_prompt": True, **kwargs}
    try:
        return _compile_template(template).render(
            messages=[_as_dict(message) for message in messages],
            bos_token=bos_token,
            eos_token=eos_token,
            **variables,
        )
    except (
        TemplateError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
    ) as error:
        hint = "Check the messages, or use ++inference.endpoint_type=chat."
        if refuses_system_role(str(error)):
            hint = "Set ++server.merge_system=true: the system text then goes in front of the user's."
        raise ConfigError(
            f"The model's chat template cannot render this conversation: {error}.", hint=hint
        ) from error


def refuses_system_role(text: str) -> bool:
    """Return whether the words of a chat template or an endpoint mean that a conversation has no system turn."""
    return _NO_SYSTEM_ROLE.search(text) is not None


def merge_system(messages: Sequence[Message]) -> list[Message]:
    """Return `messages` with the text of system messages in front of the next user message.

    What no user message follows becomes one.
    """
    merged: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.role in ("system", "developer"):
            waiting.append(_text_of(message))
        elif message.role == "user" and waiting:
            merged.append(msgspec.structs.replace(message, content=_with_lead("\n\n".join(waiting), message)))
            waiting = []
        else:
            merged.append(message)
    if waiting:
        merged.append(Message(role="user", content="\n\n".join(waiting)))
    return merged


def _text_of(message: Message) -> str:
    if isinstance(message.content, list):
        return "".join(str(part.get("text", "")) for part in message.content)
    return message.content or ""


def _with_lead(lead: str, message: Message) -> str | list[Row]:
    if isinstance(message.content, list):
        return [{"type": "text", "text": f"{lead}\n\n"}, *message.content]
    return f"{lead}\n\n{message.content or ''}"


def prompt_text(request: Request, tokenizer: Tokenizer) -> str | None:
    """Return the text that the model reads of a request before it answers; None where the request holds token ids.

    Messages go through the chat template with the request's tools and template variables; an answer that is begun
    stands at the end, still open. Raises as `render`.
    """
    if request.messages is None:
        if isinstance(request.prompt, str):
            return request.prompt
        return None
    messages, begun = list(request.messages), ""
    if len(messages) > 1 and messages[-1].role == "assistant" and isinstance(messages[-1].content, str):
        begun = str(messages.pop().content)
    variables = dict(request.extra_body.get("chat_template_kwargs", {}))
    if request.tools:
        variables["tools"] = request.tools
    return tokenizer.render(messages, **variables) + begun


def prompt_ids(request: Request, tokenizer: Tokenizer) -> list[int]:
    """Return the token ids that the model reads of a request before it answers. Raises as `prompt_text`."""
    if isinstance(request.prompt, list):
        return request.prompt
    return tokenizer.encode(prompt_text(request, tokenizer) or "")


@lru_cache(maxsize=8)
def _compile_template(template: str) -> Template:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class GenerationTag(Extension):
        """Marks what the assistant wrote (training masks); rendering passes it through."""

        tags = {"generation"}  # noqa: RUF012 - the shape that jinja2 reads

        def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    return environment.from_string(template)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Encode as JSON; Jinja's own filter would escape `<`, `>` and `&`."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _as_dict(message: Message | Row) -> Row:
    if isinstance(message, Mapping):
        row = dict(message)
    else:
        row = msgspec.to_builtins(message)
    if row.get("tool_calls"):
        row["tool_calls"] = [_with_parsed_arguments(call) for call in row["tool_calls"]]
    return row


def _with_parsed_arguments(call: Row) -> Row:
    """Decode arguments, which servers send as JSON text: templates walk through them as an object."""
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = msgspec.json.decode(function["arguments"])
    except msgspec.DecodeError:
        return call
    return {**call, "function": {**function, "arguments": arguments}}
