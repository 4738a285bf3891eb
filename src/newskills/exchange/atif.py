# SPDX-License-Identifier: Apache-2.0
"""Trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor (versions 1.0 to 1.8), and conversations.

A step of ATIF is a message together with what followed its tool calls; a conversation is a list of messages in OpenAI's
shape. Written files name the lowest version that has all their fields, so that older readers take them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from newskills._version import __version__
from newskills.base.errors import DataError
from newskills.base.reading.json_values import list_or_empty, object_or_empty
from newskills.base.records import Row

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
TEXT_VERSION, IMAGE_VERSION, AUDIO_VERSION = VERSIONS[2], VERSIONS[6], VERSIONS[8]
"""Lowest versions that have observations as here, images, and sound."""
SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}
ROLES = {"system": "system", "user": "user", "agent": "assistant"}
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac", "ogg": "audio/ogg", "m4a": "audio/mp4"}
_DATA_URL = re.compile(r"data:([\w/+.-]+);base64,")
_SUFFIXES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def trajectory_of(conversation: Sequence[Row], agent: Row, metrics: Row, extra: Row) -> Row:
    """Return a conversation as a trajectory.

    agent     `name`, `version`, and if known `model_name`, `tool_definitions`
    metrics   `final_metrics`; values that are None are left out
    extra     whatever readers of the file may want to know of its origin
    Raises DataError where no message can be shown as a step.
    """
    steps = list(_conversation_steps(conversation))
    if not steps:
        raise DataError("A trajectory needs at least one message.")
    final = {name: value for name, value in metrics.items() if value is not None}
    trajectory: Row = {
        "schema_version": _schema_version(steps),
        "session_id": str(extra.get("session_id") or extra.get("id") or "session"),
        "agent": {"version": __version__, **{name: value for name, value in agent.items() if value}},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {**final, "total_steps": len(steps)},
        "extra": {"newskills": extra},
    }
    return trajectory


def _conversation_steps(conversation: Sequence[Row]) -> Iterator[Row]:
    """Yield the steps: a message, with the replies of tools that belong to it."""
    place = 0
    while place < len(conversation):
        message = conversation[place]
        source = SOURCES.get(str(message.get("role")))
        place += 1
        if source is None:
            yield {"source": "system", "message": "", "observation": {"results": [_result_row(message, ())]}}
            continue
        step: Row = {"source": source, "message": _atif_content(message.get("content"))}
        if source == "agent":
            place += _add_actions(step, message, conversation[place:])
        yield step


def _add_actions(step: Row, message: Row, following: Sequence[Row]) -> int:
    """Add reasoning, calls and their results to an agent's step; return how many of `following` are results."""
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        step["reasoning_content"] = reasoning
    raw_calls = message.get("tool_calls")
    if isinstance(raw_calls, list):
        calls = [_call_row(call, place) for place, call in enumerate(raw_calls)]
    else:
        calls = []
    if calls:
        step["tool_calls"] = calls
    results = []
    for reply in following:
        if reply.get("role") != "tool":
            break
        results.append(_result_row(reply, [call["tool_call_id"] for call in calls]))
    if results:
        step["observation"] = {"results": results}
    return len(results)


def _call_row(call: Any, place: int) -> Row:
    call = object_or_empty(call)
    function = object_or_empty(call.get("function"))
    text = function.get("arguments")
    arguments = text
    if isinstance(text, str):
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            arguments = None
    written: Row = {
        "tool_call_id": str(call.get("id") or f"call-{place}"),
        "function_name": str(function.get("name") or ""),
        "arguments": object_or_empty(arguments),
    }
    if not isinstance(arguments, dict) and text:
        # What the model wrote is kept, although it is no object, which the format asks for.
        written["arguments"] = {"_text": str(text)}
    return written


def _result_row(reply: Row, call_ids: Sequence[str]) -> Row:
    result: Row = {"content": _atif_content(reply.get("content"))}
    if reply.get("tool_call_id") in call_ids:
        result["source_call_id"] = reply["tool_call_id"]
    return result


def _atif_content(content: Any) -> str | list[Row]:
    """Return a text, or parts where there are images or sound."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    parts = [_atif_part(part) for part in content]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def _atif_part(part: Any) -> Row:
    kind = object_or_empty(part).get("type")
    if kind == "text":
        return {"type": "text", "text": str(part.get("text") or "")}
    if kind == "image_url":
        url = part.get("image_url")
        if isinstance(url, dict):
            url = url.get("url")
        media_type = _image_type(str(url or ""))
        if media_type:
            return {"type": "image", "source": {"media_type": media_type, "path": url}}
        return {"type": "text", "text": f"[image {str(url)[:200]}]"}
    if kind == "input_audio":
        sound = object_or_empty(part.get("input_audio"))
        sound_type = SOUNDS.get(str(sound.get("format")))
        if sound_type:
            path = f"data:{sound_type};base64,{sound.get('data') or ''}"
            return {"type": "audio", "source": {"media_type": sound_type, "path": path}}
    if isinstance(part, str):
        text = part
    else:
        text = json.dumps(part, ensure_ascii=False)
    return {"type": "text", "text": text}


def _image_type(url: str) -> str:
    """Return the type of an image; empty where the format has none of that type."""
    data = _DATA_URL.match(url)
    if data:
        if data[1] in IMAGES:
            return data[1]
        return ""
    return _SUFFIXES.get(url.partition("?")[0].rpartition(".")[2].lower(), "")


def _schema_version(steps: Sequence[Row]) -> str:
    kinds = {part["type"] for step in steps for part in _parts_of(step)}
    if "audio" in kinds:
        return AUDIO_VERSION
    if "image" in kinds:
        return IMAGE_VERSION
    return TEXT_VERSION


def _parts_of(step: Row) -> Iterator[Row]:
    results = step.get("observation", {}).get("results", ())
    for content in (step["message"], *(result["content"] for result in results)):
        if isinstance(content, list):
            yield from content


def conversation_of(trajectory: Row) -> list[Row]:
    """Return the messages of a trajectory of any version. Copied context and steps without a model have `weight` 0, so
    that nothing is learnt from them. Raises DataError for what is no trajectory."""
    version = trajectory.get("schema_version")
    if version not in VERSIONS:
        raise DataError(f"schema_version is {str(version)[:40]!r}, not one of {VERSIONS[0]} to {VERSIONS[-1]}.")
    steps = trajectory.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise DataError("The trajectory has no list of steps.")
    return [message for step in steps for message in _step_messages(step)]


def _step_messages(step: Row) -> Iterator[Row]:
    role = ROLES.get(str(step.get("source")))
    if role is None:
        raise DataError(f"Step {step.get('step_id')} has the source {str(step.get('source'))[:40]!r}.")
    message: Row = {"role": role, "content": _content_of(step.get("message"))}
    if role == "assistant":
        if isinstance(step.get("reasoning_content"), str):
            message["reasoning_content"] = step["reasoning_content"]
        calls = step.get("tool_calls")
        if isinstance(calls, list) and calls:
            message["tool_calls"] = [_call_of(call, place) for place, call in enumerate(calls)]
        if step.get("is_copied_context") or step.get("llm_call_count") == 0:
            message["weight"] = 0
    has_message = bool(message["content"]) or "tool_calls" in message or role == "assistant"
    if has_message:
        yield message
    for result in list_or_empty(object_or_empty(step.get("observation")).get("results")):
        if not isinstance(result, dict):
            result = {"content": result}
        content = _content_of(result.get("content"))
        if result.get("source_call_id"):
            yield {"role": "tool", "tool_call_id": str(result["source_call_id"]), "content": content}
        else:
            yield {"role": "user", "content": content}


def _call_of(call: Any, place: int) -> Row:
    call = object_or_empty(call)
    arguments = object_or_empty(call.get("arguments"))
    if set(arguments) == {"_text"}:
        text = str(arguments["_text"])
    else:
        text = json.dumps(arguments, ensure_ascii=False)
    function = {"name": str(call.get("function_name") or ""), "arguments": text}
    return {"id": str(call.get("tool_call_id") or f"call-{place}"), "type": "function", "function": function}


def _content_of(content: Any) -> str | list[Row]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    return [_part_of(part) for part in content]


def _part_of(part: Any) -> Row:
    if not isinstance(part, dict):
        return {"type": "text", "text": str(part)}
    source = part.get("source")
    if isinstance(source, dict) and part.get("type") == "image":
        return {"type": "image_url", "image_url": {"url": str(source.get("path") or "")}}
    if isinstance(source, dict) and part.get("type") == "audio":
        return {"type": "audio_url", "audio_url": {"url": str(source.get("path") or "")}}
    return {"type": "text", "text": str(part.get("text") or "")}
