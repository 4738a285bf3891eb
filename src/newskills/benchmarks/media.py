# SPDX-License-Identifier: Apache-2.0
"""Images and sounds of raw rows → assets, and the messages that carry sound."""

from __future__ import annotations

import io
import re
import wave
from collections.abc import Mapping
from typing import Any

from newskills.base.benchmark import Asset
from newskills.base.records import Row

_MARKS = (
    (b"\x89PNG", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF8", ".gif"),
    (b"fLaC", ".flac"),
    (b"OggS", ".ogg"),
    (b"ID3", ".mp3"),
)
_UNSAFE = re.compile(r"[^\w.-]+")


def embedded_asset(value: Any, name: str) -> Asset:
    """Return an image or sound that parquet files of the hub hold as `{bytes, path}`. Raises KeyError, ValueError."""
    data = value["bytes"]
    if not isinstance(data, bytes) or not data:
        raise ValueError(f"there are no bytes of {name} in the row")
    return Asset(_UNSAFE.sub("_", name) + _media_suffix(data), data)


def _media_suffix(data: bytes) -> str:
    for mark, suffix in _MARKS:
        if data.startswith(mark):
            return suffix
    if data[:4] == b"RIFF":
        if data[8:12] == b"WEBP":
            return ".webp"
        return ".wav"
    if data[:1] == b"\xff":
        return ".mp3"
    return ".bin"


def audio_messages(instruction: str, *sounds: Asset | str, seconds: float | None = None) -> list[Row]:
    """Return a user message with sound before the text; a sound is an `Asset`, or a path beside the prepared file."""
    duration: Row = {} if seconds is None else {"duration": seconds}
    entries = [{"path": sound, **duration} for sound in sounds]
    if len(entries) == 1:
        return [{"role": "user", "content": instruction, "audio": entries[0]}]
    return [{"role": "user", "content": instruction, "audios": entries}]


def seconds_of(data: bytes) -> float | None:
    """Return the length of a WAV file; None for other sound."""
    try:
        with wave.open(io.BytesIO(data)) as sound:
            return round(float(sound.getnframes()) / float(sound.getframerate()), 3)
    except (wave.Error, EOFError, ZeroDivisionError):
        return None


def audio_fields(raw: Mapping[str, Any], name: str, instruction: str) -> Row:
    """Return `messages` and `duration` of a row with an embedded sound in the column `audio`."""
    sound = embedded_asset(raw["audio"], name)
    assert sound.data is not None, "an embedded sound has bytes"
    seconds = seconds_of(sound.data)
    return {"messages": audio_messages(instruction, sound, seconds=seconds), "duration": seconds}


def sound_in(row: Row) -> Any:
    """Return the only sound of the messages that `audio_fields` and `audio_messages` make."""
    return row["messages"][0]["audio"]["path"]


TRANSCRIBE = "Transcribe the speech. Reply with the words that are said, and nothing else."
