# SPDX-License-Identifier: Apache-2.0
"""Long sound of a request, cut into pieces that are sent one by one."""

from __future__ import annotations

import base64
import io
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Message, Request, Row

_SHORTEST = 0.5
"""Seconds of a rest that is worth a piece of its own; a shorter one stays with the piece before."""


def in_pieces(request: Request, seconds: float) -> list[Request]:
    """Split `request` into one for each piece of its sound; itself where the sound is short, or is not the only
    one.

    Raises DataError for sound that cannot be read, ConfigError without soundfile.
    """
    places = [
        (number, place)
        for number, message in enumerate(request.messages or [])
        for place, part in enumerate(message.content if isinstance(message.content, list) else [])
        if part.get("type") == "input_audio"
    ]
    if len(places) != 1:
        return [request]
    number, place = places[0]
    messages = request.messages or []
    parts = messages[number].content
    assert isinstance(parts, list), "only lists hold parts"
    pieces = _split_audio(base64.b64decode(parts[place]["input_audio"]["data"]), seconds)
    if len(pieces) == 1:
        return [request]
    made = []
    for piece in pieces:
        audio: Row = {"data": base64.b64encode(piece).decode("ascii"), "format": "wav"}
        content = [*parts[:place], {**parts[place], "input_audio": audio}, *parts[place + 1 :]]
        changed: Message = msgspec.structs.replace(messages[number], content=content)
        made.append(
            msgspec.structs.replace(request, messages=[*messages[:number], changed, *messages[number + 1 :]])
        )
    return made


def _split_audio(data: bytes, seconds: float) -> list[bytes]:
    """Cut sound into WAV of 16 bit; return it as it is where it is short enough."""
    try:
        import soundfile
    except ImportError as error:
        raise ConfigError(
            "Cutting audio needs soundfile, which is not installed.", hint="Run: pip install 'newskills[media]'"
        ) from error
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as sound:
            if sound.frames <= seconds * sound.samplerate:
                return [data]
            samples: Any = sound.read(dtype="int16", always_2d=True)
            rate = sound.samplerate
    except soundfile.LibsndfileError as error:
        raise DataError(f"The audio of a request cannot be read: {error.error_string}") from error
    step, pieces = int(seconds * rate), []
    starts = list(range(0, len(samples), step))
    if len(samples) - starts[-1] < _SHORTEST * rate:
        starts.pop()
    for start, end in zip(starts, [*starts[1:], len(samples)], strict=True):
        file = io.BytesIO()
        soundfile.write(file, samples[start:end], rate, format="WAV", subtype="PCM_16")
        pieces.append(file.getvalue())
    return pieces
