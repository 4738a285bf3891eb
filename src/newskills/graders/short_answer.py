# SPDX-License-Identifier: Apache-2.0
"""Answers of a few words against one or several right ones: exact match and token F1; ANLS and containment for text in
images."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from newskills.base.records import Row, Score
from newskills.graders.exact import final_answer
from newskills.graders.reading.overlap import anls_score, drop_score, split_spans, squad_score, trivia_score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

Gold = str | Sequence[str]


class ShortAnswerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=short_answer`."""

    measure: Annotated[
        Literal["squad", "triviaqa", "coqa", "drop", "anls", "contained"],
        Meta(
            description="squad: em and f1 of words; triviaqa: punctuation divides words; coqa: mean over leaving one "
            "right answer out; drop: em and f1 of numbers and several spans; anls: characters; contained: the whole "
            "reply has a right answer in it (of a record with `formula`, but for blanks, minding case)"
        ),
    ] = "squad"
    language: Annotated[
        str,
        Meta(description="whose articles and word borders count: en, de, es, vi, ar, zh, …; a record may differ"),
    ] = "en"
    gold_key: Annotated[str, Meta(description="field with the right answer")] = "expected_answer"
    accepted_key: Annotated[
        str, Meta(description="field with further right answers: a list of texts, or of lists of spans")
    ] = "accepted_answers"


class ShortAnswerGrader:
    """The best of all right answers counts. Fields written: `predicted_answer`, `symbolic_correct`, and the scores.

    Scores are `em` and `f1`, `anls` (then an answer counts as correct from 0.5), or `contained`.
    """

    name = "short_answer"
    version = "6"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = ShortAnswerConfig

    def __init__(self, config: ShortAnswerConfig = ShortAnswerConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def gold_reply(self, record: Row) -> str | None:
        gold = next(self._accepted_answers(record), None)
        if gold is None:
            return None
        return f"Answer: {_join_spans(gold)}"

    def same_replies(self, record: Row) -> list[str]:
        """Return each accepted answer, and the first in other dress."""
        golds = [_join_spans(gold) for gold in self._accepted_answers(record)]
        return [*(f"Answer: {gold}" for gold in golds[1:]), *(f"**Answer:**  {gold}" for gold in golds[:1])]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        of_words = self.config.measure not in ("anls", "contained")
        names = ("em", "f1") if of_words else (self.config.measure,)
        golds = list(self._accepted_answers(record))
        if not golds:
            nothing: Row = {"predicted_answer": None, "symbolic_correct": None, **dict.fromkeys(names)}
            return ungradable_score(stamp, f"the record has no {self.config.gold_key}", nothing)
        reply = visible_reply(str(record.get("generation") or ""))
        answer = short_answer(reply)
        if not reply or not answer:
            missing: Row = {"predicted_answer": None, "symbolic_correct": False, **dict.fromkeys(names, 0.0)}
            return no_answer_score(stamp, record, missing)
        measure = self._choose_measure(record)
        judged = reply if self.config.measure == "contained" else answer
        columns = list(zip(*(measure(judged, gold) for gold in golds), strict=True))
        scores = [_without_one(values) if self.config.measure == "coqa" else max(values) for values in columns]
        threshold = 0.5 if self.config.measure == "anls" else 1.0
        correct = max(columns[0]) >= threshold
        fields: Row = {
            "predicted_answer": answer,
            "symbolic_correct": correct,
            **dict(zip(names, scores, strict=True)),
        }
        why = "right" if correct else "another answer"
        return verdict_score(stamp, correct, fields, why, scores[-1])

    def _accepted_answers(self, record: Row) -> Iterator[Gold]:
        golds = list(record.get(self.config.accepted_key) or ())
        if record.get(self.config.gold_key) is not None:
            golds.insert(0, record[self.config.gold_key])
        for gold in golds:
            if isinstance(gold, list):
                yield [str(span) for span in gold]
            else:
                yield str(gold)

    def _choose_measure(self, record: Row) -> Callable[[str, Gold], tuple[float, ...]]:
        language = str(record.get("language", self.config.language))
        if self.config.measure == "contained":
            return lambda reply, gold: (
                contains_gold(reply, _join_spans(gold), formula=bool(record.get("formula"))),
            )
        if self.config.measure == "anls":
            return lambda answer, gold: (anls_score(answer, _join_spans(gold)),)
        if self.config.measure in ("squad", "coqa"):
            return lambda answer, gold: squad_score(answer, _join_spans(gold), language)
        if self.config.measure == "triviaqa":
            return lambda answer, gold: trivia_score(answer, _join_spans(gold))

        def drop(answer: str, gold: Gold) -> tuple[float, ...]:
            spans = [gold] if isinstance(gold, str) else list(gold)
            scores = [drop_score(form, spans) for form in split_spans(answer, spans)]
            return max(em for em, _ in scores), max(f1 for _, f1 in scores)

        return drop


def short_answer(text: str | None) -> str | None:
    """Return the marked answer, else the last line of the reply; None where that is empty."""
    if not text:
        return None
    return final_answer(text) or text.rsplit("\n", 1)[-1].strip() or None


_BLANK = re.compile(r"[ \n]")


def contains_gold(reply: str, gold: str, *, formula: bool) -> float:
    """Return whether `gold` stands in `reply` (arXiv:2305.07895): case aside, or of a formula blanks aside."""
    if formula:
        return float(_BLANK.sub("", gold.strip()) in _BLANK.sub("", reply))
    return float(gold.strip().lower().replace("\n", " ") in reply.lower().replace("\n", " "))


def _without_one(scores: Sequence[float]) -> float:
    """Return the mean, with each score left out once, of the best of the others, as CoQA (arXiv:1808.07042) compares
    models with people."""
    if len(scores) < 2:
        return max(scores)
    return sum(max(*scores[:at], *scores[at + 1 :], 0.0) for at in range(len(scores))) / len(scores)


def _join_spans(gold: Gold) -> str:
    if isinstance(gold, str):
        return gold
    return ", ".join(gold)
