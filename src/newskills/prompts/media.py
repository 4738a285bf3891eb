# SPDX-License-Identifier: Apache-2.0
"""Images and sound as content parts: local files become data URLs, remote addresses stay."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Literal

from newskills.base.errors import DataError
from newskills.base.records import Row

MAX_BYTES = 64 << 20
"""Largest file that is put into a request."""

_REMOTE = ("http://", "https://", "data:")


def image_part(source: str, folder: Path) -> Row:
    """An `image_url` part; `source` is an address or a path relative to `folder`. Raises DataError."""
    return {"type": "image_url", "image_url": {"url": image_url(source, folder)}}


def image_url(source: str, folder: Path) -> str:
    """`source` itself if it is an address, else the file as a data URL. Raises DataError."""
    if source.startswith(_REMOTE):
        return source
    path = folder / Path(source.removeprefix("file://")).expanduser()
    return f"data:{_kind(path, 'image')};base64,{_encoded(path)}"


def audio_part(source: str, folder: Path) -> Row:
    """An `input_audio` part of a local file. Raises DataError."""
    path = folder / Path(source).expanduser()
    _kind(path, "audio")
    return {"type": "input_audio", "input_audio": {"data": _encoded(path), "format": path.suffix.lower()[1:]}}


def _kind(path: Path, wanted: Literal["image", "audio"]) -> str:
    kind = mimetypes.guess_type(path.name)[0] or ("audio/flac" if path.suffix.lower() == ".flac" else "")
    if not kind.startswith(f"{wanted}/"):
        raise DataError(
            f"{path} does not look like a file of the kind {wanted} (its name ends in '{path.suffix}')."
        )
    return kind


def _encoded(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise DataError(f"{path} has {size:,} bytes; at most {MAX_BYTES:,} fit into a request.")
        return base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
