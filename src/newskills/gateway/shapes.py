# SPDX-License-Identifier: Apache-2.0
"""Read parts of a program's request, whose shape nobody has checked: what is wrong is refused by the field's name."""

from __future__ import annotations

from typing import Any

from newskills.base.records import Message, Row
from newskills.gateway.form import ProgramRequest, bad_request


def read_rows(value: Any, where: str) -> list[Row]:
    """Return a list of objects; an empty one for null. Raises GatewayProblem."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise bad_request(f"{where} must be a list of objects.")
    return value


def read_row(value: Any, where: str) -> Row:
    """Return an object; an empty one for null. Raises GatewayProblem."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"{where} must be an object.")
    return value


def read_text(value: Any, where: str) -> str:
    """Return a text; an empty one for null. Raises GatewayProblem."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise bad_request(f"{where} must be a text.")
    return value


def read_whole(value: Any, where: str) -> int | None:
    """Return a whole number of 1 or more, or None. Raises GatewayProblem."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise bad_request(f"{where} must be a whole number of at least 1.")
    return value


def read_seed(value: Any, where: str) -> int | None:
    """Return a whole number, or None. Raises GatewayProblem."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad_request(f"{where} must be a whole number.")
    return value


def read_number(value: Any, where: str, low: float, high: float) -> float | None:
    """Return a number between `low` and `high`, or None. Raises GatewayProblem."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise bad_request(f"{where} must be a number from {low:g} to {high:g}.")
    return float(value)


def read_texts(value: Any, where: str) -> list[str]:
    """Return a list of texts; a single text counts as a list. Raises GatewayProblem."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise bad_request(f"{where} must be a text or a list of texts.")
    return value


def join_text_parts(parts: list[Row]) -> str | list[Row]:
    """Return parts as the content of a message: a text where all are texts, which chat templates understand best."""
    if all(part.get("type") == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def image_part(url: str, detail: Any = None) -> Row:
    """Return an image as a part of a message."""
    image = {"url": url}
    if isinstance(detail, str):
        image["detail"] = detail
    return {"type": "image_url", "image_url": image}


def tool_definition(name: Any, description: Any, schema: Any, where: str) -> Row:
    """Return the declaration of a function. Raises GatewayProblem."""
    if not read_text(name, f"{where}.name"):
        raise bad_request(f"{where} has no name.")
    function: Row = {"name": name}
    if description:
        function["description"] = read_text(description, f"{where}.description")
    function["parameters"] = read_row(schema, f"{where}'s schema") or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def tool_call(identity: str, name: str, arguments: str) -> Row:
    """Return a call as a message of the model holds it."""
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def join_system_messages(messages: list[Message]) -> list[Message]:
    """Return `messages` with one system message at most, at the beginning, since many chat templates take no other.

    Leading ones are joined; those in the middle, which Claude Code sends, are said by the user, with marks around them.
    """
    leading: list[str] = []
    for message in messages:
        if message.role != "system" or not isinstance(message.content, str):
            break
        leading.append(message.content)
    joined = [*map(_said_by_user, messages[len(leading) :])]
    if leading:
        joined.insert(0, Message(role="system", content="\n\n".join(filter(None, leading))))
    return joined


def _said_by_user(message: Message) -> Message:
    if message.role != "system":
        return message
    if isinstance(message.content, str):
        return Message(role="user", content=f"<system>\n{message.content}\n</system>")
    return Message(role="user", content=message.content)


def check_choice(request: ProgramRequest) -> None:
    """Raise GatewayProblem where the program requires a tool that it does not offer, or that was dropped."""
    names = [str(tool["function"]["name"]) for tool in request.tools]
    choice = request.choice
    if choice.name and choice.name not in names:
        raise bad_request(f"The request requires the tool '{choice.name[:100]}', which this gateway cannot offer.")
    if choice.mode == "any" and not names:
        raise bad_request("The request requires a tool call, but none of its tools can be offered.")
