# SPDX-License-Identifier: Apache-2.0
"""Words and letters behind a number that make it another number. Data only."""

from __future__ import annotations

from fractions import Fraction

_PARTS = "halves thirds quarters fifths sixths sevenths eighths ninths tenths"
MULTIPLIERS: dict[str, int | Fraction] = {
    **dict.fromkeys(("hundred", "hundreds"), 100),
    **dict.fromkeys(("thousand", "thousands", "grand", "k"), 10**3),
    **dict.fromkeys(("lakh", "lakhs"), 10**5),
    **dict.fromkeys(("crore", "crores"), 10**7),
    **dict.fromkeys(("million", "millions", "mn", "mil", "mio"), 10**6),
    **dict.fromkeys(("billion", "billions", "bn", "b"), 10**9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 10**12),
    **dict.fromkeys(("dozen", "dozens"), 12),
    "tens": 10,
    **{name: Fraction(1, size) for size, name in enumerate(_PARTS.split(), 2)},
    "fourths": Fraction(1, 4),
    "hundredths": Fraction(1, 100),
    "thousandths": Fraction(1, 1000),
}
"""Words behind a number that multiply it."""

JOINED_MULTIPLIERS: dict[str, int] = {"K": 10**3, "k": 10**3, "M": 10**6, "B": 10**9}
"""Letters that do so right behind a number: `1.5M`."""

COLLECTIVES = frozenset({"pair", "couple", "twin", "triplet", "trio", "triple", "quartet", "quadruple"})
"""Words for several at once, which make another number of what a number without them counts …"""

COUNTED_TOGETHER = frozenset(
    {
        "ordered",
        "unordered",
        "integer",
        "number",
        "real",
        "positive",
        "solution",
        "value",
        "point",
        "root",
        "prime",
    }
    | {
        "such",
        "possible",
        "valid",
        "pythagorean",
        "angle",
        "line",
        "vertex",
        "vertices",
        "factor",
        "digit",
        "function",
    }
)
"""… unless mathematics counts them so: `5 ordered pairs`."""
