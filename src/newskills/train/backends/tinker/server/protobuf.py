# SPDX-License-Identifier: Apache-2.0
"""The wire form of protocol buffers (https://protobuf.dev/programming-guides/encoding), without descriptors."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from newskills.base.errors import DataError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
SIZES = {FIXED64: 8, FIXED32: 4}
LONGEST_VARINT = 10


class Field:
    """One field as it lies on the wire: `value` is the number of a varint, else the bytes."""

    __slots__ = ("kind", "number", "value")

    def __init__(self, number: int, kind: int, value: int | memoryview) -> None:
        self.number, self.kind, self.value = number, kind, value

    def integer(self) -> int:
        """Return a signed integer of 64 bits (int32, int64, bool, enum). Raises DataError."""
        if not isinstance(self.value, int):
            raise self._wrong("a number")
        return self.value - (1 << 64) if self.value >= 1 << 63 else self.value

    def double(self) -> float:
        """Return a double. Raises DataError."""
        if self.kind != FIXED64:
            raise self._wrong("a double")
        number: float = struct.unpack("<d", self.raw())[0]
        return number

    def raw(self) -> memoryview:
        """Return the bytes of the value. Raises DataError."""
        if isinstance(self.value, int):
            raise self._wrong("bytes")
        return self.value

    def text(self) -> str:
        """Return the value as text. Raises DataError, also for what is not UTF-8."""
        try:
            return str(self.message(), "utf-8")
        except UnicodeDecodeError as error:
            raise self._wrong("text in UTF-8") from error

    def message(self) -> memoryview:
        """Return the bytes of an embedded message. Raises DataError."""
        if self.kind != LENGTH:
            raise self._wrong("a message")
        return self.raw()

    def integers(self) -> list[int]:
        """Return the elements of a repeated integer field, packed or one by one. Raises DataError."""
        if self.kind != LENGTH:
            return [self.integer()]
        integers: list[int] = []
        at, data = 0, self.raw()
        while at < len(data):
            number, at = _varint(data, at)
            integers.append(Field(self.number, VARINT, number).integer())
        return integers

    def _wrong(self, wanted: str) -> DataError:
        return DataError(f"Field {self.number} of a message is not {wanted}.")


def fields(message: bytes | memoryview) -> Iterator[Field]:
    """Yield the fields of a message in their order. Raises DataError where the bytes are no message."""
    data, at = memoryview(message), 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            yield Field(number, kind, value)
            continue
        if kind == LENGTH:
            size, at = _varint(data, at)
        elif kind in SIZES:
            size = SIZES[kind]
        else:
            raise DataError(f"The message has a field of the unknown type {kind} at byte {at}.")
        if number == 0 or at + size > len(data):
            raise DataError(f"The message is cut off or damaged at byte {at}.")
        yield Field(number, kind, data[at : at + size])
        at += size


def entry(message: bytes | memoryview) -> tuple[str, Field | None]:
    """Return key and value of a map's entry; None where the value is left out. Raises DataError."""
    key, value = "", None
    for field in fields(message):
        if field.number == 1:
            key = field.text()
        elif field.number == 2:
            value = field
    return key, value


def number_field(number: int, value: int) -> bytes:
    """Encode a varint field; negative numbers take ten bytes, as for int32 and int64."""
    return _encoded(number << 3 | VARINT) + _encoded(value & ((1 << 64) - 1))


def double_field(number: int, value: float) -> bytes:
    return _encoded(number << 3 | FIXED64) + struct.pack("<d", value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Encode bytes, text in UTF-8, or an embedded message."""
    return b"".join((_encoded(number << 3 | LENGTH), _encoded(len(value)), value))


def entry_field(number: int, key: str, value: bytes) -> bytes:
    """Encode an entry of a map; `value` is its encoded field 2."""
    return bytes_field(number, bytes_field(1, key.encode()) + value)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(at + LONGEST_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), place + 1
        shift += 7
    raise DataError(f"The message is cut off or damaged at byte {at}.")


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
