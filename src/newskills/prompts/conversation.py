# SPDX-License-Identifier: Apache-2.0
"""Records that hold their conversation already (`prompt_format=openai`)."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Message, Row
from newskills.base.type_errors import type_fault
from newskills.prompts.media import audio_part, image_url
from newskills.prompts.template import value_of

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


class Passthrough(Struct, frozen=True, kw_only=True):
    """`messages` of the record, checked; `system` takes the place of its system message, or goes first."""

    system: str | None
    suffix: str
    folder: Path

    fields = ("messages",)

    def messages(self, row: Row) -> list[Message]:
        """Return the record's messages with the system message and the suffix of the settings, where given. Raises
        MissingField, DataError."""
        messages = read_messages(row, self.folder)
        for number, message in enumerate(messages, 1):
            if message.content is None and not message.tool_calls:
                raise DataError(f"message {number}{_of_record(row)}: `content` is null or missing.")
        if self.system is not None:
            if messages[0].role in ("system", "developer"):
                del messages[0]
            messages.insert(0, Message(role="system", content=self.system))
        if self.suffix:
            append_text(messages, self.suffix)
        return messages


def read_messages(row: Row, folder: Path) -> list[Message]:
    """Return the record's `messages` with local images and sound put in. Raises MissingField, DataError.

    Keys that are no part of the chat protocol are left out. `audio: {path}` and `audios: [{path}, …]` of a message
    become parts before its text.
    """
    raw = value_of(row, "messages")
    if not isinstance(raw, list) or not raw:
        raise DataError(f"`messages` must be a list with at least one message{_of_record(row)}.")
    return [_checked_message(item, number, row, folder) for number, item in enumerate(raw, 1)]


def append_text(messages: list[Message], suffix: str) -> None:
    """Add `suffix` to the text of the last user message."""
    for message in reversed(messages):
        if message.role != "user":
            continue
        if isinstance(message.content, list):
            message.content = _with_suffix(message.content, suffix)
        else:
            message.content = (message.content or "") + suffix
        return


def _with_suffix(parts: list[Row], suffix: str) -> list[Row]:
    last = max((at for at, part in enumerate(parts) if part.get("type") == "text"), default=None)
    if last is None:
        return [*parts, {"type": "text", "text": suffix}]
    return [*parts[:last], {**parts[last], "text": parts[last]["text"] + suffix}, *parts[last + 1 :]]


def _checked_message(item: object, number: int, row: Row, folder: Path) -> Message:
    where = f"message {number}{_of_record(row)}"
    try:
        message = msgspec.convert(item, Message)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {type_fault(error, item)}.") from error
    assert isinstance(item, dict)
    if message.role not in _ROLES:
        raise DataError(f"{where}: the role '{message.role}' is not one of {', '.join(sorted(_ROLES))}.")
    if message.reasoning_content is None and isinstance(item.get("reasoning"), str):
        message.reasoning_content = item["reasoning"]
    parts = [audio_part(source, folder) for source in _audio_sources(item, where)]
    if isinstance(message.content, list):
        message.content = parts + [_with_inlined_image(part, where, folder) for part in message.content]
    elif parts:
        message.content = [*parts, {"type": "text", "text": message.content or ""}]
    return message


def _with_inlined_image(part: Row, where: str, folder: Path) -> Row:
    kind = part.get("type")
    if kind == "text" and not isinstance(part.get("text"), str):
        raise DataError(f"{where}: a text part without `text`.")
    if kind != "image_url":
        return part
    image = part.get("image_url")
    if not isinstance(image, dict) or not isinstance(image.get("url"), str):
        raise DataError(f"{where}: an image part needs image_url: {{url: …}}.")
    return {**part, "image_url": {**image, "url": image_url(image["url"], folder)}}


def _audio_sources(item: Row, where: str) -> list[str]:
    entries = item.get("audios") or []
    if not entries and item.get("audio"):
        entries = [item["audio"]]
    try:
        return [msgspec.convert(entry["path"], str) for entry in entries]
    except (TypeError, KeyError, msgspec.ValidationError) as error:
        raise DataError(f"{where}: expected audio as {{path: …}}.") from error


def _of_record(row: Row) -> str:
    if "id" not in row:
        return ""
    return f" of record {row['id']}"
