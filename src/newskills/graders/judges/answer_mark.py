# SPDX-License-Identifier: Apache-2.0
"""A mark from 1 to 10 that a model under test gives to an answer (ties of RewardBench 2, arXiv:2506.01937)."""

from __future__ import annotations

import re

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

_MARK = re.compile(r"\b(10|[1-9])\b[\s*_.\])}$]*\Z")
_LOWEST, _HIGHEST = 1, 10
_MIDDLE = 5.5


class MarkGrader:
    """The whole number at the end of the reply. Fields written: `rating` (null for none), `is_correct`.

    Correct: a right answer (`is_right`) gets more than 5, a wrong one 5 or less. Its worth is how near the mark is to
    10 for a right answer, to 1 for a wrong one. What a mark is worth beside others is for the metric to say.
    """

    name = "mark"
    version = "2"

    def gold_reply(self, record: Row) -> str | None:
        right = record.get("is_right")
        if right is None:
            return None
        rating = 10 if right else 1
        return f"Rating: {rating}"

    def same_replies(self, record: Row) -> list[str]:
        """Return replies that give the number in other forms."""
        number = 9 if record.get("is_right") else 2
        return [
            f"Good.\n**Rating: {number}**",
            f"{number}",
            f"Rating: [[{number}]].",
            f"rating: \\boxed{{{number}}}",
        ]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        right = record.get("is_right")
        if right is None:
            return ungradable_score(stamp, "the record has no is_right", {"rating": None, "is_correct": None})
        marks = _MARK.findall((visible_reply(str(record.get("generation") or "")) or "").rstrip()[-40:])
        if not marks:
            return no_answer_score(stamp, record, {"rating": None, "is_correct": False})
        rating = int(marks[-1])
        fields: Row = {"rating": rating, "is_correct": (rating > _MIDDLE) == bool(right)}
        height = (rating - _LOWEST) / (_HIGHEST - _LOWEST)
        score = height if right else 1 - height
        return verdict_score(stamp, fields["is_correct"], fields, f"{rating} of 10", score)
