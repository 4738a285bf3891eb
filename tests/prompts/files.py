# SPDX-License-Identifier: Apache-2.0
"""Small files of the real kinds, made by their libraries."""

from __future__ import annotations

import io
import wave

import pytest

Image = pytest.importorskip("PIL.Image")


def picture(kind: str = "PNG", size: tuple[int, int] = (3, 2), mode: str = "RGB") -> bytes:
    """An image in one colour."""
    file = io.BytesIO()
    Image.new(mode, size, 7).save(file, kind)
    return file.getvalue()


def sound(frames: int = 800) -> bytes:
    """Silence as WAV: 16 bits, 8 kHz."""
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setparams((1, 2, 8000, 0, "NONE", ""))
        made.writeframes(bytes(2 * frames))
    return file.getvalue()
