# SPDX-License-Identifier: Apache-2.0
"""A text in a pickle, read without unpickling: of all that a pickle can do, only `str` is understood."""

from __future__ import annotations

import base64
import binascii
import zlib

from newskills.base.errors import DataError

_LARGEST = 1 << 30
_SIZES = {b"X": 4, b"\x8c": 1, b"\x8d": 8}
"""Opcode of a text → bytes of its length (BINUNICODE, SHORT_BINUNICODE, BINUNICODE8)."""


def text_in_pickle(data: bytes) -> str:
    """Return the text in a pickle. Raises DataError for a pickle of anything but one text."""
    at = 2 if data[:1] == b"\x80" else 0
    if data[at : at + 1] == b"\x95":
        at += 9
    size = _SIZES.get(data[at : at + 1])
    if size is None:
        raise DataError("A pickle that holds more than one text is not read.")
    begin = at + 1 + size
    end = begin + int.from_bytes(data[at + 1 : begin], "little")
    if end > len(data) or data[end:] not in _ENDINGS:
        raise DataError("A pickle that holds more than one text is not read.")
    try:
        return data[begin:end].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DataError(f"A pickled text is not UTF-8: {error}.") from error


_ENDINGS = {b".", b"\x94.", *(b"q" + bytes([number]) + b"." for number in range(256))}
"""Stop, perhaps behind the opcode that remembers the text (MEMOIZE, BINPUT)."""


def hidden_text(text: str) -> str:
    """Decode `text`, base64 of zlib of such a pickle. Raises DataError."""
    unzip = zlib.decompressobj()
    try:
        data = unzip.decompress(base64.b64decode(text, validate=True), _LARGEST)
    except (binascii.Error, zlib.error) as error:
        raise DataError(f"Tests are expected as JSON, or as base64 of zlib of a pickled text: {error}.") from error
    if not unzip.eof:
        raise DataError("Packed tests are truncated, or larger than 1 GiB.")
    return text_in_pickle(data)
