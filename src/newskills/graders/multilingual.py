# SPDX-License-Identifier: Apache-2.0
"""Mathematics and multiple choice, and whether the reply is in the language that was asked for."""

from __future__ import annotations

import re

from msgspec.structs import replace

from newskills.base.records import Row, Score
from newskills.graders.instructions.language import is_language, language_support
from newskills.graders.math.config import MathConfig
from newskills.graders.math.grader import MathGrader
from newskills.graders.multichoice import MultichoiceConfig, MultichoiceGrader
from newskills.graders.reading.replies import visible_reply

_FORMULA = re.compile(r"\$[^$]{0,2000}\$|\\[a-zA-Z]{1,20}|```[^`]{0,20000}```")


def in_language(record: Row) -> bool | None:
    """Return whether the reply without its reasoning and formulas is in `target_language`; None without a target.

    A reply without words (a box alone) is in every language, one that never comes out of its thinking in none.
    """
    target = record.get("target_language")
    if not target or "generation" not in record:
        return None
    text = visible_reply(str(record["generation"] or ""))
    return text is not None and is_language(_FORMULA.sub(" ", text), str(target).lower())


class MultilingualMathGrader:
    """The verdict of `math`, and `language_correct`. Raises ConfigError when made where langdetect is missing."""

    name = "math_multilingual"
    version = "2"
    answer_keys = ("generation", "predicted_answer")
    gold_is_text = True
    Config = MathConfig

    def __init__(self, config: MathConfig = MathConfig()) -> None:  # noqa: B008 - frozen
        language_support()
        self.config = config
        self._inner = MathGrader(config)
        self.preload, self.gold_reply = self._inner.preload, self._inner.gold_reply
        self.same_replies, self.same_answer = self._inner.same_replies, self._inner.same_answer

    def grade(self, record: Row) -> Score:
        return _with_language(self._inner.grade(record), record, f"{self.name}@{self.version}")


class MultilingualMultichoiceGrader:
    """The verdict of `multichoice`, and `language_correct`. Raises ConfigError as `MultilingualMathGrader`."""

    name = "multichoice_multilingual"
    version = "3"
    answer_keys = ("generation", "predicted_answer")
    gold_is_text = True
    Config = MultichoiceConfig

    def __init__(self, config: MultichoiceConfig = MultichoiceConfig()) -> None:  # noqa: B008 - frozen
        language_support()
        self.config = config
        self._inner = MultichoiceGrader(config)
        self.gold_reply, self.same_replies = self._inner.gold_reply, self._inner.same_replies

    def grade(self, record: Row) -> Score:
        return _with_language(self._inner.grade(record), record, f"{self.name}@{self.version}")


def _with_language(score: Score, record: Row, stamp: str) -> Score:
    fields = {**score.fields, "language_correct": in_language(record)}
    return replace(score, fields=fields, grader=f"{stamp}, {score.grader}")
