# SPDX-License-Identifier: Apache-2.0
"""How well a model judges: its verdict, or its mark, against that of people. Here a missing one is its own failure."""

from __future__ import annotations

import re

from newskills.base.judgement import parse_judgement
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

POINTS = {"correct": 7, "almost": 6, "partial": 1, "incorrect": 0}
_WORD = re.compile(r"[A-Za-z]{1,40}")


def _judgement_text(record: Row) -> str:
    return str(record.get("judgement", record.get("generation")) or "")


class AnswerJudgementGrader:
    """Fields written: `predicted_judgement` (true, false, null), `judgement_kind`.

    The kinds: true_positive, true_negative, false_positive (wrongly accepted), false_negative, invalid.
    """

    name = "answer-judgement"
    version = "3"
    answer_keys = ("judgement", "generation")

    def gold_reply(self, record: Row) -> str | None:
        if record.get("expected_judgement") is None:
            return None
        return str(record["expected_judgement"])

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        expected = parse_judgement(record.get("expected_judgement"))
        if expected is None:
            why = "the record has no expected_judgement with Yes or No"
            return ungradable_score(stamp, why, {"predicted_judgement": None, "judgement_kind": None})
        judgement = parse_judgement(visible_reply(_judgement_text(record)))
        if judgement is None:
            fields: Row = {"predicted_judgement": None, "judgement_kind": "invalid"}
            return no_answer_score(stamp, {**record, "generation": _judgement_text(record)}, fields)
        right = judgement == expected
        truth = "true" if right else "false"
        side = "positive" if judgement else "negative"
        kind = f"{truth}_{side}"
        return verdict_score(stamp, right, {"predicted_judgement": judgement, "judgement_kind": kind}, kind)


class GradingGrader:
    """The last word: correct, almost, partial or incorrect. Fields written: `predicted_answer`, `exact`, `binarized`
    (correct and almost are alike, and so are the others), `points_off` (of 7; null without a mark)."""

    name = "gradingbench"
    version = "2"

    def gold_reply(self, record: Row) -> str | None:
        if record.get("expected_answer") is None:
            return None
        return str(record["expected_answer"])

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        expected = str(record.get("expected_answer") or "").strip().lower()
        names = ("exact", "binarized", "points_off")
        if expected not in POINTS:
            why = "expected_answer is none of the four marks"
            return ungradable_score(stamp, why, {"predicted_answer": None, **dict.fromkeys(names)})
        words = _WORD.findall((visible_reply(_judgement_text(record)) or "")[-200:])
        mark = "".join(words[-1:]).lower()
        if mark not in POINTS:
            missing: Row = {"predicted_answer": None, "exact": False, "binarized": False, "points_off": None}
            return no_answer_score(stamp, {**record, "generation": _judgement_text(record)}, missing)
        same = (POINTS[mark] > 1) == (POINTS[expected] > 1)
        values = (mark == expected, same, abs(POINTS[mark] - POINTS[expected]))
        fields = {"predicted_answer": mark, **dict(zip(names, values, strict=True))}
        return verdict_score(
            stamp, mark == expected, fields, f"{mark}, not {expected}" if mark != expected else mark
        )
