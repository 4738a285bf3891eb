# SPDX-License-Identifier: Apache-2.0
"""Answers to MathVista, brought to the kind that is wanted as the authors' script does (Lu et al. 2024, 2310.02255)."""

from __future__ import annotations

import math
import re
from string import ascii_uppercase

import msgspec

from newskills.base.records import Row, Score
from newskills.graders.math.config import MathConfig
from newskills.graders.math.grader import MathGrader
from newskills.graders.reading.letters import SEVERAL, letter_in
from newskills.graders.reading.overlap import edit_distance

_IN_BRACKETS = re.compile(r"\(([a-zA-Z])\)")
_TEXT = re.compile(r"\\(?:text|textbf|mathrm)\s?\{([^{}]*)\}")
_LONGEST = 1_000


class MathVistaGrader(MathGrader):
    """`math`, and what it calls wrong once more, as the authors normalise answers.

    Row: `answer_type` (integer, float, list, text), `precision` (decimal places), options in `A`, `B`, … An integer is
    cut, a decimal rounded to its places; of options, the one that is named or is most like the answer is chosen.
    """

    name = "mathvista"
    version = "2"
    answer_keys = ("generation", "predicted_answer")

    def __init__(self, config: MathConfig = MathConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(config)
        self._stamp = f"{self.name}@{self.version}, {MathGrader.name}@{MathGrader.version}"

    def grade(self, record: Row) -> Score:
        score = super().grade(record)
        answer = score.fields.get("predicted_answer")
        if score.outcome != "wrong" or not isinstance(answer, str) or len(answer) > _LONGEST:
            return score
        gold = str(record["expected_answer"])
        gold_answer = gold if "A" in record else normal_answer(gold, record)
        if normal_answer(answer, record) != gold_answer:
            return score
        fields = {**score.fields, "symbolic_correct": True}
        return msgspec.structs.replace(score, outcome="correct", fields=fields, cause=None, why="normalised")


def normal_answer(answer: str, record: Row) -> str | None:
    """Return the answer as it is compared: a letter, a number's text, or the text; None where it is no such number."""
    answer = _TEXT.sub(r"\1", answer).strip()
    options = {letter: str(record[letter]) for letter in ascii_uppercase if letter in record}
    if options:
        if letter_in(answer, len(options)) == SEVERAL:
            return None
        bracketed = _IN_BRACKETS.search(answer)
        letter = bracketed[1].upper() if bracketed else answer
        distances = {mark: edit_distance(answer, text) for mark, text in options.items()}
        if letter in options:
            return letter
        return min(distances, key=distances.__getitem__)
    kind = record.get("answer_type")
    if kind not in ("integer", "float"):
        return answer
    try:
        number = float(answer)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if kind == "integer":
        return str(int(number))
    return str(round(number, int(record.get("precision") or 0)))
