# SPDX-License-Identifier: Apache-2.0
"""Images and sound as content parts: local files are checked and become base64 text; remote addresses stay.

A file is read when the request is made, never earlier, and nothing but "this file is whole" is remembered of it.
Images go as they are, unless they are larger than hosted models take; those are scaled down.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.config.packaged_path import without_container

MAX_BYTES = 64 << 20
"""Largest file that is read."""
MAX_PIXELS = 100_000_000
"""Images beyond are refused before they are decoded: a few bytes can hold billions of pixels."""
MAX_SENT = 15 << 20
"""Bytes of one image or sound in a request; as base64 a third more. Larger images are scaled down."""
MAX_SIDE = 8000
"""Pixels of the longer side of an image in a request; larger ones are scaled down."""

_REMOTE = ("http://", "https://", "data:")
_IMAGES = {"PNG": "png", "JPEG": "jpeg", "WEBP": "webp", "GIF": "gif", "BMP": "bmp"}
_SOUNDS = ("wav", "flac", "mp3", "ogg")
_SCALED_SIDES = (4096, 2048, 1024)
_BLOCK = 1 << 16
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)


class MediaError(DataError):
    """An image or a sound that cannot be sent; who knows the record adds its name."""


def image_part(source: str, folder: Path) -> Row:
    """Return an `image_url` part; `source` is an address or a path relative to `folder`. Raises MediaError,
    ConfigError."""
    return {"type": "image_url", "image_url": {"url": image_url(source, folder)}}


def image_url(source: str, folder: Path) -> str:
    """Return `source` itself if it is an address, else the file as a data URL. Raises MediaError, ConfigError."""
    if source.startswith(_REMOTE):
        return source
    path = folder / Path(without_container(source.removeprefix("file://"))).expanduser()
    data = _read_file(path)
    kind, width, height = _cached_check(_image_size, path, data)
    if len(data) > MAX_SENT or max(width, height) > MAX_SIDE:
        kind, data = _scaled_copy(path, data)
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def audio_part(source: str, folder: Path) -> Row:
    """Return an `input_audio` part of a local file. Raises MediaError, ConfigError."""
    path = folder / Path(without_container(source)).expanduser()
    data = _read_file(path)
    kind = _cached_check(_sound_kind, path, data)
    if len(data) > MAX_SENT:
        raise MediaError(f"{path} has {len(data):,} bytes of audio; at most {MAX_SENT:,} fit into a request.")
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode("ascii"), "format": kind}}


def _read_file(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise MediaError(f"{path} has {size:,} bytes; at most {MAX_BYTES:,} are read.")
        return path.read_bytes()
    except OSError as error:
        raise MediaError(f"Cannot read {path}: {error.strerror}.") from error


def _cached_check(check: Callable[[Path, bytes], Any], path: Path, data: bytes) -> Any:
    """Return what `check` says about the file; a file of the same place, size and time is not decoded again."""
    status = path.stat()
    remembered = _cache_slot(check.__name__, str(path), status.st_size, status.st_mtime_ns)
    if not remembered:
        remembered.append(check(path, data))
    return remembered[0]


@lru_cache(maxsize=100_000)
def _cache_slot(check: str, path: str, size: int, changed: int) -> list[Any]:
    """Return the cached place for one result, a list; exceptions leave it empty."""
    return []


def _image_size(path: Path, data: bytes) -> tuple[str, int, int]:
    """Return (kind, width, height) of an image that can be decoded to its end."""
    image = _opened_image(path, data)
    try:
        image.load()
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise MediaError(f"{path} is a broken image: {error}.") from error
    return _IMAGES[image.format], image.width, image.height


def _opened_image(path: Path, data: bytes) -> Any:
    pillow = _image_module()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = pillow.open(io.BytesIO(data), formats=tuple(_IMAGES))
        except pillow.DecompressionBombError as error:
            raise MediaError(f"{path} is refused: {error}") from error
        except (OSError, SyntaxError, ValueError) as error:
            kinds = ", ".join(_IMAGES)
            raise MediaError(f"{path} is not a readable image ({kinds}).") from error
    if image.width * image.height > MAX_PIXELS:
        raise MediaError(f"{path} is refused: {image.width} × {image.height} pixels are more than {MAX_PIXELS:,}.")
    return image


def _scaled_copy(path: Path, data: bytes) -> tuple[str, bytes]:
    """Return (kind, bytes) of a copy that fits. Raises MediaError where none does."""
    image = _opened_image(path, data)
    mode, kind, options = "RGB", "jpeg", {"quality": 95}
    if image.mode in ("RGBA", "LA", "P"):  # which may be transparent
        mode, kind, options = "RGBA", "png", {}
    for side in _SCALED_SIDES:
        copy = image.convert(mode)
        copy.thumbnail((side, side))
        file = io.BytesIO()
        copy.save(file, kind.upper(), **options)
        if file.tell() <= MAX_SENT:
            return kind, file.getvalue()
    raise MediaError(f"{path} is too large for a request, even when scaled down.")


def _image_module() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ConfigError("Reading images needs Pillow, which is not installed.", hint=_INSTALL) from error
    return Image


def _sound_kind(path: Path, data: bytes) -> str:
    """Format of a sound that can be decoded to its end."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise ConfigError("Reading audio needs soundfile, which is not installed.", hint=_INSTALL) from error
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as sound:
            kind = str(sound.format).lower().removesuffix("ex").replace("mpeg", "mp3")
            promised, decoded_frames = sound.frames, 0
            while kind != "wav" and (block := len(sound.read(_BLOCK, dtype="float32", always_2d=True))):
                decoded_frames += block
    except soundfile.LibsndfileError as error:
        raise MediaError(f"{path} is broken audio, or not audio: {error.error_string}") from error
    if kind not in _SOUNDS:
        raise MediaError(f"{path} is audio of the format {kind}; supported: {', '.join(_SOUNDS)}.")
    if (kind == "wav" and _cut_wave(data)) or (kind == "flac" and decoded_frames < promised):
        raise MediaError(f"{path} is broken audio: it ends before the length that it states.")
    if not promised:
        raise MediaError(f"{path} is broken audio: it is empty.")
    return kind


def _cut_wave(data: bytes) -> bool:
    """Return whether a RIFF file ends before its samples do (streams may not know their length)."""
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at : at + 4] == b"data":
            return size not in _UNKNOWN_SIZES and at + 8 + size > len(data)
        at += 8 + size + size % 2
    return True


_INSTALL = "pip install 'newskills[media]'"
