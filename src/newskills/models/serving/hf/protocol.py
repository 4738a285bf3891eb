# SPDX-License-Identifier: Apache-2.0
"""Requests and replies of the completions, chat and tokenize endpoints, by the names of OpenAI and vLLM.

A key that is not here is refused: nothing is dropped silently.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.models.serving.hf.loading import LoadedModel
from newskills.models.serving.hf.prompts import EncodedPrompt, chat_prompt
from newskills.models.serving.hf.sequences import Likeliest, Sampling, TokenSequence

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
GREEDY_BELOW = 1e-5
"""Logits divided by a smaller temperature are no numbers any more; vLLM draws the same line."""


class CompletionBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of /v1/completions and /v1/chat/completions. None: not sent."""

    model: str = ""
    prompt: str | list[int] | None = None
    messages: list[Row] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_k: int | None = None
    top_p: Share | None = None
    min_p: Share | None = None
    repetition_penalty: Annotated[float, Meta(ge=0.01, le=100)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    logprobs: bool | Count | None = None
    top_logprobs: Count | None = None
    echo: bool = False
    n: Literal[1] = 1
    stream: Literal[False] = False
    add_special_tokens: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = False
    include_stop_str_in_output: bool = False
    return_token_ids: bool = False
    chat_template_kwargs: Row = {}
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    user: Any = None


class TokenizeBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of /tokenize: a text, or a conversation."""

    model: str = ""
    prompt: str | None = None
    messages: list[Row] | None = None
    add_special_tokens: bool = True
    add_generation_prompt: bool = True
    tools: list[Row] | None = None
    chat_template_kwargs: Row = {}


class DetokenizeBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of /detokenize."""

    model: str = ""
    tokens: list[Annotated[int, Meta(ge=0, lt=1 << 31)]]


def sampling_of(body: CompletionBody) -> Sampling:
    """Return how tokens are chosen; what was not sent is off, as vLLM's own defaults are."""
    temperature = 1.0 if body.temperature is None else body.temperature
    return Sampling(
        temperature=temperature if temperature >= GREEDY_BELOW else 0.0,
        top_k=body.top_k or 0,
        top_p=1.0 if body.top_p is None else body.top_p,
        min_p=body.min_p or 0.0,
        repetition_penalty=body.repetition_penalty or 1.0,
        seed=body.seed,
    )


def sequence_of(body: CompletionBody, prompt: EncodedPrompt, loaded: LoadedModel, on_end: Any) -> TokenSequence:
    """Return the sequence that `body` asks for. Raises DataError for one that does not fit the model."""
    chat = body.messages is not None
    size, room = len(prompt.ids), loaded.context - len(prompt.ids)
    limit = body.max_completion_tokens or body.max_tokens
    if limit is None:
        limit = max(room, 1) if chat else 16
    if not prompt.ids:
        raise DataError("The prompt has no tokens.")
    if limit < 1:
        raise DataError("max_tokens must be at least 1.")
    if limit > room:
        raise DataError(
            f"This model's maximum context length is {loaded.context} tokens. However, you requested {size + limit} "
            f"tokens ({size} in the messages, {limit} in the completion)."
        )
    if wrong := [number for number in prompt.ids if not 0 <= number < loaded.vocabulary]:
        raise DataError(f"The prompt has the token id {wrong[0]}; the model has {loaded.vocabulary}.")
    top: int | None = None
    if chat and body.logprobs:
        top = body.top_logprobs or 0
    elif not chat and body.logprobs is not None and body.logprobs is not False:
        top = int(body.logprobs)
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    return TokenSequence(
        ids=prompt.ids,
        limit=limit,
        sampling=sampling_of(body),
        on_end=on_end,
        stop=tuple(text for text in stop if text),
        top=top,
        measured=body.echo and top is not None,
        inputs=prompt.inputs,
    )


def text_of(sequence: TokenSequence, body: CompletionBody, loaded: LoadedModel) -> str:
    """Return the text of the reply, up to what ended it."""
    ids = sequence.generated
    if sequence.finish == "stop" and not sequence.stopped_by:
        ids = ids[:-1]
    text = loaded.decode(ids, skip_special=body.skip_special_tokens)
    if sequence.stopped_by and (at := text.find(sequence.stopped_by)) >= 0:
        text = text[: at + len(sequence.stopped_by) * body.include_stop_str_in_output]
    return text


def reply_of(
    sequence: TokenSequence, prompt: EncodedPrompt, body: CompletionBody, loaded: LoadedModel, name: str
) -> Row:
    """Return the body of the reply."""
    text = text_of(sequence, body, loaded)
    choice: Row = {"index": 0, "finish_reason": sequence.finish, "stop_reason": sequence.stopped_by or None}
    if body.messages is None:
        choice["text"] = (prompt.text if prompt.text is not None else loaded.decode(prompt.ids)) * body.echo + text
        kind = "text_completion"
    else:
        choice["message"] = {"role": "assistant", "content": text}
        kind = "chat.completion"
    if sequence.top is not None:
        choice["logprobs"] = (_text_logprobs if body.messages is None else _chat_logprobs)(
            sequence, prompt, body, loaded
        )
    reply: Row = {"object": kind, "model": name, "choices": [choice]}
    if body.return_token_ids:
        choice["token_ids"] = sequence.generated
        reply["prompt_token_ids"] = sequence.ids
    size, made = len(sequence.ids), len(sequence.generated)
    reply["usage"] = {"prompt_tokens": size, "completion_tokens": made, "total_tokens": size + made}
    return reply


def _text_logprobs(
    sequence: TokenSequence, prompt: EncodedPrompt, body: CompletionBody, loaded: LoadedModel
) -> Row:
    made = loaded.pieces(sequence.all_ids, len(sequence.ids))
    tokens, values = made, list[Likeliest | None](sequence.values)
    if body.echo:
        tokens = [*_prompt_pieces(prompt, body, loaded), *made]
        values = [None, *sequence.prompt_values, *values]
    top: list[Row | None] = []
    for token, value in zip(tokens, values, strict=True):
        if value is None:
            top.append(None)
            continue
        # likelier tokens of the same text come last, so that a token never passes for the likeliest by its text
        entries = {token: value.logprob}
        entries.update({loaded.decode([number]): logprob for number, logprob in reversed(value.top)})
        top.append(entries)
    numbers = [None if value is None else value.logprob for value in values]
    return {"tokens": tokens, "token_logprobs": numbers, "top_logprobs": top}


def _prompt_pieces(prompt: EncodedPrompt, body: CompletionBody, loaded: LoadedModel) -> list[str]:
    """Return the text of each token; together they spell the prompt. Of the tokens of one sign, the first has it."""
    if prompt.text is None:
        return loaded.pieces(prompt.ids)
    encoded = loaded.tokenizer(
        prompt.text, add_special_tokens=body.add_special_tokens, return_offsets_mapping=True
    )
    pieces, reached = [], 0
    for _, end in encoded["offset_mapping"]:
        pieces.append(prompt.text[reached:end])
        reached = max(reached, end)
    return pieces


def _chat_logprobs(
    sequence: TokenSequence, prompt: EncodedPrompt, body: CompletionBody, loaded: LoadedModel
) -> Row:
    made = loaded.pieces(sequence.all_ids, len(sequence.ids))
    content = []
    for token, value in zip(made, sequence.values, strict=True):
        top = [{"token": loaded.decode([number]), "logprob": logprob} for number, logprob in value.top]
        content.append({"token": token, "logprob": value.logprob, "top_logprobs": top})
    return {"content": content}


def prompt_of(body: CompletionBody, loaded: LoadedModel) -> EncodedPrompt:
    """Return the prompt of a request as token ids. Raises DataError, ConfigError as `chat_prompt` does."""
    if body.messages is not None:
        ending = {
            "add_generation_prompt": body.add_generation_prompt and not body.continue_final_message,
            "continue_final_message": body.continue_final_message,
        }
        return chat_prompt(body.messages, loaded, {**body.chat_template_kwargs, **ending})
    if isinstance(body.prompt, list):
        return EncodedPrompt(ids=body.prompt)
    text = body.prompt or ""
    return EncodedPrompt(ids=loaded.tokenizer.encode(text, add_special_tokens=body.add_special_tokens), text=text)


def decode_request(body: bytes, kind: type[Any]) -> Any:
    """Decode a body. Raises DataError for what is no such JSON, with the key that is wrong."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise DataError(f"This server does not take the request: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"The body is not JSON: {error}.") from error
