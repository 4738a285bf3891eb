# SPDX-License-Identifier: Apache-2.0
"""Images and sound of a record: those that its prompt carries, and files that it names within the given folders.

Only kinds that cannot hold a program are handed to a browser, known by their first bytes, not by their names.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.view.folders import Folders

MAX_MEDIA_BYTES = 64 << 20
"""Bytes."""
MAX_MEDIA_PARTS = 50
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
SOUND_SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".opus")
_MAX_DEPTH = 6


class MediaPart(NamedTuple):
    """`kind`: image or sound; `source`: a path, or `data` (base64) where that is carried along."""

    kind: str
    source: str
    data: str | None = None

    def content(self, folders: Folders, beside: Path) -> tuple[bytes, str]:
        """Read (bytes, type). Raises DataError for what may not or cannot be shown."""
        if self.data is not None:
            try:
                content = base64.b64decode(self.data, validate=True)
            except (binascii.Error, ValueError) as error:
                raise DataError(f"This {self.kind} is not base64: {error}.") from error
        else:
            content = self._read(folders, beside)
        kind = sniff_type(content)
        if kind is None:
            raise DataError(f"This is no {self.kind} of a kind that is shown.")
        return content, kind

    def _read(self, folders: Folders, beside: Path) -> bytes:
        path = Path(self.source.removeprefix("file://"))
        for candidate in (path, beside / path, *(root / path for root in folders.roots)):
            if folders.holds(candidate):
                return folders.read(candidate, MAX_MEDIA_BYTES)
        raise DataError(f"{self.source} is not in the folders that are shown: name its folder as well.")

    def summary(self) -> Row:
        return {"kind": self.kind, "source": self.source[:300]}


def media_in(messages: list[Row], row: Row) -> list[MediaPart]:
    """Return images and sound of the prompt, and of the record where the prompt does not carry them."""
    media = list(dict.fromkeys([*_carried_parts(messages, 0), *_carried_parts(row, 0)]))
    if not media:
        media = list(dict.fromkeys(_named_files(row, 0)))
    return media[:MAX_MEDIA_PARTS]


def sniff_type(data: bytes) -> str | None:
    """Return the type of an image or a sound, by its first bytes; None for anything else."""
    heads = (
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"fLaC", "audio/flac"),
        (b"OggS", "audio/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfb", "audio/mpeg"),
        (b"\xff\xf3", "audio/mpeg"),
    )
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    return next((kind for head, kind in heads if data.startswith(head)), None)


def _carried_parts(value: Any, depth: int) -> Iterator[MediaPart]:
    """Yield content parts with base64 data."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _carried_parts(item, depth + 1)
    elif isinstance(value, dict):
        for kind, prefix, key in (("image", "data:image/", "image_url"), ("sound", "data:audio/", "audio_url")):
            url = value.get(key)
            if isinstance(url, dict):
                url = url.get("url")
            if isinstance(url, str) and url.startswith(prefix) and ";base64," in url:
                yield MediaPart(kind, "in the record", url.partition(";base64,")[2])
        sound = value.get("input_audio")
        if isinstance(sound, dict) and isinstance(sound.get("data"), str):
            yield MediaPart("sound", "in the record", sound["data"])
        for item in value.values():
            if isinstance(item, list | dict):
                yield from _carried_parts(item, depth + 1)


def _named_files(value: Any, depth: int) -> Iterator[MediaPart]:
    """Yield files that the record names."""
    if isinstance(value, str):
        name = value.lower()
        if len(value) < 1000 and "\n" not in value and "://" not in value.removeprefix("file://"):
            if name.endswith(IMAGE_SUFFIXES):
                yield MediaPart("image", value)
            elif name.endswith(SOUND_SUFFIXES):
                yield MediaPart("sound", value)
    elif depth < _MAX_DEPTH and isinstance(value, list | dict):
        if isinstance(value, dict):
            value = value.values()
        for item in value:
            yield from _named_files(item, depth + 1)
