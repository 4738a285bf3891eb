# SPDX-License-Identifier: Apache-2.0
"""What the index keeps of a record: 40 bytes, whatever the record weighs.

Little-endian: offset and length of the line (bytes), 64 bits of the sample's id, tokens of the reply, the record's
position in the input, and the numbers of its subset, outcome, cause and finish reason in the tables of the index.
A column of all records is taken out of the rows by strided slices, without a loop over them.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array
from typing import Any

import msgspec
from msgspec import Struct

ROW_STRUCT = struct.Struct("<QQQIIHBBB3x")
NO_TOKENS = 0xFFFFFFFF
"""The record does not say."""
OUTCOME_NAMES = ("", "correct", "wrong", "no_answer", "unscored", "damaged")
"""What the index tells apart. Empty: not graded (yet); damaged: a line that is no record, or too long to be read."""
DAMAGED_CODE = OUTCOME_NAMES.index("damaged")
COLUMN_PLACES = {
    "offset": (0, "Q"),
    "length": (8, "Q"),
    "id": (16, "Q"),
    "tokens": (24, "I"),
    "position": (28, "I"),
    "subset": (32, "H"),
    "outcome": (34, "B"),
    "cause": (35, "B"),
    "finish": (36, "B"),
}
"""Column → (place in the row, type code)."""


class Head(Struct):
    """The fields of a record that the index looks at; of any type, since records may be of anybody."""

    id: Any = None
    outcome: Any = None
    outcome_cause: Any = None
    finish_reason: Any = None
    num_generated_tokens: Any = None
    subset_for_metrics: Any = None
    symbolic_correct: Any = None
    is_correct: Any = None
    judgement: Any = None
    predicted_answer: Any = msgspec.UNSET
    position: Any = msgspec.field(name="_async_position", default=None)


decoder = msgspec.json.Decoder(Head)


def sample_identity(value: object, number: int) -> int:
    """Return 64 bits that samples of one problem share: a hash of its id, or of its place in the file where it has
    none."""
    text = f"#{number}" if value is None else str(value)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def outcome_of(head: Head) -> int:
    """Return the number of the outcome; for records of other systems, from their verdict."""
    if isinstance(head.outcome, str):
        if head.outcome in OUTCOME_NAMES:
            return OUTCOME_NAMES.index(head.outcome)
        return 0
    if head.symbolic_correct is not None:
        verdict = head.symbolic_correct
    else:
        verdict = head.is_correct
    if verdict is None and isinstance(head.judgement, str):
        words = head.judgement.casefold().split("judgement:")[-1].split()
        verdict = words[0].startswith("yes") if words else None
    if isinstance(verdict, bool | int | float):
        if not verdict and head.predicted_answer is None:
            return OUTCOME_NAMES.index("no_answer")
        outcome = "correct" if verdict else "wrong"
        return OUTCOME_NAMES.index(outcome)
    return 0


def tokens_of(value: object) -> int:
    """Return a number of tokens in 32 bits; `NO_TOKENS` for what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < NO_TOKENS:
        return int(value)
    return NO_TOKENS


def subset_of(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))[:200]
    if value is None:
        return ""
    return str(value)[:200]


def column_values(rows: bytes, name: str) -> array[int]:
    """Return the values of a column, of rows that lie one after the other."""
    place, code = COLUMN_PLACES[name]
    width = array(code).itemsize
    if width == 1:
        return array(code, rows[place :: ROW_STRUCT.size])
    mixed = bytearray(len(rows) // ROW_STRUCT.size * width)
    for number in range(width):
        mixed[number::width] = rows[place + number :: ROW_STRUCT.size]
    values = array(code, bytes(mixed))
    if sys.byteorder == "big":
        values.byteswap()
    return values
