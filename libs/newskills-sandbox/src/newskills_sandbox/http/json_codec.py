# SPDX-License-Identifier: Apache-2.0
"""JSON by the standard library; a program that has a faster one hands that in."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, Protocol


class JsonCodec(Protocol):
    """Writes and reads JSON in UTF-8."""

    def encode(self, value: Any) -> bytes:
        """Return `value` as JSON. Raises UnicodeEncodeError for a lone surrogate."""
        ...

    def decode(self, body: bytes) -> Any:
        """Return what `body` holds. Raises ValueError with the reason where it is no JSON."""
        ...


class StandardJson:
    """JSON as Python's own module has it, without its additions (NaN, other encodings)."""

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def decode(self, body: bytes) -> Any:
        try:
            value = json.loads(body.decode(), parse_constant=_refuse_constant, parse_float=_finite_number)
            if b"\\u" in body:
                self.encode(value)  # half of a surrogate pair is no text
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        return value


def _finite_number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


STANDARD_JSON = StandardJson()
