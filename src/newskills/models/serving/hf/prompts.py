# SPDX-License-Identifier: Apache-2.0
"""Conversations as token ids, by the model's chat template; of images, its processor makes ids and pixels."""

from __future__ import annotations

import base64
import binascii
import io
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.models.decode import image_url_of
from newskills.models.serving.hf.loading import LoadedModel


class EncodedPrompt(Struct, frozen=True, kw_only=True):
    """Token ids, the text where it was one, and what a processor made of images."""

    ids: list[int]
    text: str | None = None
    inputs: Row = {}


def chat_prompt(messages: list[Row], loaded: LoadedModel, settings: Row) -> EncodedPrompt:
    """Return the prompt of a conversation by the model's chat template.

    Raises ConfigError where there is none, DataError for what the template or the model does not take.
    """
    if "chat_template" in settings:
        raise DataError("The chat template is the model's: requests cannot bring their own.")
    sees = loaded.processor is not None and loaded.processor.chat_template
    templated = loaded.processor if sees else loaded.tokenizer
    if not templated.chat_template:
        raise ConfigError(
            "This model has no chat template: it is a base model.",
            hint="Set ++inference.endpoint_type=text with a prompt made for base models, or load an instruct model.",
        )
    if sees or any(images_of(message) for message in messages):
        return image_prompt(messages, loaded, settings)
    plain = [{**message, "content": _message_text(message.get("content"))} for message in messages]
    try:
        text: str = loaded.tokenizer.apply_chat_template(plain, tokenize=False, **settings)
    except Exception as error:  # a template may raise anything, and says itself what it does not take
        raise DataError(f"The chat template does not take this conversation: {error}.") from error
    return EncodedPrompt(ids=loaded.tokenizer.encode(text, add_special_tokens=False))


def _message_text(content: Any) -> Any:
    """Return the text of a message whose content is a list of parts."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise DataError(f"A part of the type {str(kind)[:50]} cannot be read.")
    return "\n".join(part["text"] for part in content)


def images_of(message: Row) -> list[Row]:
    """Return the parts of a message that are images."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == "image_url"]


def image_prompt(messages: list[Row], loaded: LoadedModel, settings: Row) -> EncodedPrompt:
    """Return the prompt of a conversation that may have images.

    Raises DataError for a model that sees none, and for images that cannot be read.
    """
    if loaded.processor is None:
        raise DataError("This model takes no images.")
    turns = [{**message, "content": _content_parts(message.get("content"))} for message in messages]
    try:
        made = loaded.processor.apply_chat_template(
            turns, tokenize=True, return_dict=True, return_tensors="pt", **settings
        )
    except DataError:
        raise
    except (
        Exception
    ) as error:  # a template or a processor may raise anything, and says itself what it does not take
        raise DataError(f"The model's processor does not take this conversation: {error}.") from error
    seen = any(images_of(message) for message in messages)
    inputs = {name: value for name, value in made.items() if seen and name not in ("input_ids", "attention_mask")}
    return EncodedPrompt(ids=made["input_ids"][0].tolist(), inputs=inputs)


def _content_parts(content: Any) -> list[Row]:
    if isinstance(content, str) or content is None:
        return [{"type": "text", "text": content or ""}]
    return [_content_part(part) for part in content]


def _content_part(part: Any) -> Row:
    if isinstance(part, dict) and part.get("type") == "image_url":
        return {"type": "image", "image": _open_image(part)}
    return {"type": "text", "text": _message_text([part])}


def _open_image(part: Row) -> Any:
    from PIL import Image, UnidentifiedImageError

    url = image_url_of(part)
    if not isinstance(url, str) or not url.startswith("data:"):
        raise DataError("Images must be sent in the request (data:image/…;base64,…): this server fetches nothing.")
    try:
        return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2], validate=True))).convert("RGB")
    except (binascii.Error, UnidentifiedImageError, OSError) as error:
        raise DataError(f"An image of the request cannot be read: {error}.") from error
