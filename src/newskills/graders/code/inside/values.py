# SPDX-License-Identifier: Apache-2.0
"""Messages between judge and candidate: four bytes of length, then one value.

A value is a letter and what it needs: `i1f;` 31, `s2:ab` a text of two bytes, `l2:NT` the list [None, True]. Plain
values travel as values, whatever class derived from theirs they had; all else stays where it is and travels as a
number that stands for it. Nothing is imported that a fresh interpreter has not loaded, which would double its start.
"""

from __future__ import annotations

import builtins
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST = 1 << 25


def send(descriptor: int, message: bytes) -> None:
    """Write a message behind its length. Raises ValueError for one that is too long, OSError where nobody listens."""
    if len(message) > LONGEST:
        raise ValueError("the value is too large")
    data = memoryview(len(message).to_bytes(4, "big") + message)
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int) -> bytes | None:
    """Read the next message; None at the end. Raises ValueError for one that is too long."""
    head = _read_exactly(descriptor, 4)
    if head is None:
        return None
    size = int.from_bytes(head, "big")
    if size > LONGEST:
        raise ValueError("the message is too long")
    return _read_exactly(descriptor, size)


def _read_exactly(descriptor: int, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = os.read(descriptor, min(size - len(pieces), 1 << 16))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)


def encode(value: Any, refer: Callable[[Any], int]) -> bytes:
    """Encode `value` for the wire; `refer` gives the number of what cannot travel, or raises."""
    out: list[bytes] = []
    _write_value(value, out, refer)
    return b"".join(out)


def _write_value(value: Any, out: list[bytes], refer: Callable[[Any], int]) -> None:
    if value is None:
        out.append(b"N")
    elif value is True:
        out.append(b"T")
    elif value is False:
        out.append(b"F")
    elif isinstance(value, int):
        out.append(b"i%x;" % int(value))
    elif isinstance(value, float):
        out.append(b"f%s;" % float.__repr__(value).encode())
    elif isinstance(value, str):
        _write_bytes(b"s", str.encode(value, "utf-8", "surrogatepass"), out)
    elif isinstance(value, dict):
        out.append(b"d%d:" % (2 * len(value)))
        for key, item in value.items():
            _write_value(key, out, refer)
            _write_value(item, out, refer)
    else:
        for kind, letter in ((list, b"l"), (tuple, b"t"), (set, b"S"), (frozenset, b"Z")):
            if isinstance(value, kind):
                _write_items(letter, value, out, refer)
                return
        _write_rarer(value, out, refer)


def _write_rarer(value: Any, out: list[bytes], refer: Callable[[Any], int]) -> None:
    module, name = type(value).__module__, type(value).__qualname__
    if isinstance(value, (bytes, bytearray)):
        tag = b"b" if isinstance(value, bytes) else b"a"
        _write_bytes(tag, bytes(value), out)
    elif isinstance(value, complex):
        _write_items(b"c", (value.real, value.imag), out, refer)
    elif isinstance(value, range):
        _write_items(b"r", (value.start, value.stop, value.step), out, refer)
    elif _is_builtin_type(value):
        _write_bytes(b"y", value.__name__.encode(), out)
    elif (module, name) in (("decimal", "Decimal"), ("fractions", "Fraction")):
        _write_bytes(b"D" if name == "Decimal" else b"Q", str(value).encode(), out)
    elif (module, name) == ("collections", "deque"):
        _write_items(b"q", value, out, refer)
    elif module == "numpy" and getattr(value, "ndim", None) == 0:
        _write_value(value.item(), out, refer)
    else:
        out.append(b"R%x;" % refer(value))


def _is_builtin_type(value: Any) -> bool:
    return type(value) is type and vars(builtins).get(value.__name__) is value


def _write_bytes(letter: bytes, data: bytes, out: list[bytes]) -> None:
    out.append(b"%s%d:%s" % (letter, len(data), data))


def _write_items(letter: bytes, items: Any, out: list[bytes], refer: Callable[[Any], int]) -> None:
    out.append(b"%s%d:" % (letter, len(items)))
    for item in items:
        _write_value(item, out, refer)


def decode(data: bytes, resolve: Callable[[int], Any]) -> Any:
    """Return the value of what `encode` made. Raises ValueError, TypeError, LookupError for anything else."""
    value, end = _read_value(data, 0, resolve)
    if end != len(data):
        raise ValueError("more than one value")
    return value


def _read_value(data: bytes, at: int, resolve: Callable[[int], Any]) -> tuple[Any, int]:
    letter = data[at : at + 1]
    if letter in _CONSTANTS:
        return _CONSTANTS[letter], at + 1
    if letter in _NUMBERS:
        end = data.index(b";", at)
        number = _NUMBERS[letter](data[at + 1 : end].decode())
        value = resolve(number) if letter == b"R" else number
        return value, end + 1
    start = data.index(b":", at) + 1
    size = int(data[at + 1 : start - 1])
    if letter in _TEXTS:
        if not 0 <= size <= len(data) - start:
            raise ValueError("a text is cut off")
        return _TEXTS[letter](data[start : start + size]), start + size
    items = []
    for _ in range(size):
        item, start = _read_value(data, start, resolve)
        items.append(item)
    return _CONTAINERS[letter](items), start


def _read_decimal(data: bytes) -> Any:
    from decimal import Decimal

    return Decimal(data.decode())


def _read_fraction(data: bytes) -> Any:
    from fractions import Fraction

    return Fraction(data.decode())


def _make_deque(items: list[Any]) -> Any:
    from collections import deque

    return deque(items)


def _builtin_type(data: bytes) -> type:
    builtin = getattr(builtins, data.decode())
    if not isinstance(builtin, type):
        raise ValueError("this is no type")
    return builtin


_CONSTANTS: dict[bytes, Any] = {b"N": None, b"T": True, b"F": False}
_NUMBERS: dict[bytes, Callable[[str], Any]] = {
    b"i": lambda text: int(text, 16),
    b"f": float,
    b"R": lambda text: int(text, 16),
}
_TEXTS: dict[bytes, Callable[[bytes], Any]] = {
    b"s": lambda data: data.decode("utf-8", "surrogatepass"),
    b"b": bytes,
    b"a": bytearray,
    b"y": _builtin_type,
    b"D": _read_decimal,
    b"Q": _read_fraction,
}
_CONTAINERS: dict[bytes, Callable[[list[Any]], Any]] = {
    b"l": list,
    b"t": tuple,
    b"S": set,
    b"Z": frozenset,
    b"q": _make_deque,
    b"c": lambda parts: complex(*parts),
    b"r": lambda parts: range(*parts),
    b"d": lambda items: dict(zip(items[::2], items[1::2], strict=True)),
}
