# SPDX-License-Identifier: Apache-2.0
"""Which continuation a model finds likeliest (acc), also per character (acc_norm), as lm-evaluation-harness counts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import ungradable_score, verdict_score

_UNLIKELY = -1e6
_BLANKS = re.compile(r"\s+")
_FIELDS = ("acc", "acc_norm", "loglikelihood")


class LoglikelihoodGrader:
    """Records of the solver `loglikelihood`. `expected_answer`: the letter, the place (from 0) or the text of the right
    one of several `continuations`; a single continuation is right where a greedy model would have written it.

    Fields written: `predicted_answer`, `symbolic_correct` (as `acc`), `acc`, `acc_norm` (for several), `loglikelihood`
    (of the right one).
    """

    name = "loglikelihood"
    version = "1"

    def gold_reply(self, record: Row) -> Row | None:
        """Return what the solver would record where the right continuation is by far the likeliest; None where that is
        not known."""
        texts = record.get("continuations") or []
        right = 0 if len(texts) == 1 else _right_place(record.get("expected_answer"), texts)
        if right is None:
            return None
        likely = [-1.0 if place == right else _UNLIKELY for place in range(len(texts))]
        return {"loglikelihoods": likely, "greedy": [place == right for place in range(len(texts))]}

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        nothing: Row = {"predicted_answer": None, "symbolic_correct": None, **dict.fromkeys(_FIELDS)}
        values, texts = record.get("loglikelihoods"), record.get("continuations")
        if not isinstance(values, list) or not isinstance(texts, list) or not 0 < len(values) == len(texts):
            why = "the record has no loglikelihoods: it was not made by the solver loglikelihood"
            return ungradable_score(stamp, why, nothing)
        if len(texts) == 1:
            return self._grade_continuation(stamp, record, nothing)
        right = _right_place(record.get("expected_answer"), texts)
        if right is None:
            return ungradable_score(stamp, "expected_answer names none of the continuations", nothing)
        chosen = _best_place(values)
        per_character = _best_place(
            [value / max(1, len(text.strip())) for value, text in zip(values, texts, strict=True)]
        )
        predicted_answer = ascii_uppercase[chosen] if chosen < 26 else str(chosen)
        fields: Row = {
            "predicted_answer": predicted_answer,
            "symbolic_correct": chosen == right,
            "acc": chosen == right,
            "acc_norm": per_character == right,
            "loglikelihood": values[right],
        }
        return verdict_score(stamp, chosen == right, fields, "likeliest continuation")

    def _grade_continuation(self, stamp: str, record: Row, nothing: Row) -> Score:
        greedy = (record.get("greedy") or [None])[0]
        if greedy is None:
            why = "the server did not say which tokens were likeliest"
            return ungradable_score(stamp, why, {**nothing, "loglikelihood": record["loglikelihoods"][0]})
        predicted_answer = "another continuation"
        if greedy:
            predicted_answer = record["continuations"][0].strip()
        fields: Row = {
            "predicted_answer": predicted_answer,
            "symbolic_correct": greedy,
            "acc": greedy,
            "acc_norm": None,
            "loglikelihood": record["loglikelihoods"][0],
        }
        return verdict_score(stamp, greedy, fields, "likeliest text" if greedy else "another text is likelier")


class LikelihoodMassGrader:
    """How much of the probability of all continuations lies on the true ones (MC2 of TruthfulQA, arXiv:2109.07958).

    Records of the solver `loglikelihood`; `true_continuations` has true or false for each of `continuations`.

    Field written: `symbolic_correct`, the probability of the true ones divided by that of all, 0–1. Correct is a record
    whose true answers have more than half.
    """

    name = "likelihood_mass"
    version = "1"

    def gold_reply(self, record: Row) -> Row | None:
        truths = record.get("true_continuations")
        if isinstance(truths, list):
            return {"loglikelihoods": [-1.0 if true else -900.0 for true in truths]}
        return None

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        values, truths = record.get("loglikelihoods"), record.get("true_continuations")
        if not isinstance(values, list) or not isinstance(truths, list) or not 0 < len(values) == len(truths):
            why = "loglikelihoods and true_continuations must be lists of the same length"
            return ungradable_score(stamp, why, {"symbolic_correct": None})
        best = max(values)
        masses = [math.exp(value - best) for value in values]
        share = math.fsum(mass for mass, true in zip(masses, truths, strict=True) if true) / math.fsum(masses)
        return verdict_score(
            stamp, share > 0.5, {"symbolic_correct": share}, f"{share:.1%} on true answers", share
        )


def _best_place(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _right_place(expected: Any, texts: Sequence[str]) -> int | None:
    """Return the place of the right continuation; None where it is not known."""
    if type(expected) is int:
        if 0 <= expected < len(texts):
            return expected
        return None
    named = [place for place, text in enumerate(texts) if text.strip() == str(expected).strip()]
    if len(named) == 1:
        return named[0]
    if len(str(expected)) == 1 and 0 <= (place := ascii_uppercase.find(str(expected))) < len(texts):
        return place
    return None


class PerplexityGrader:
    """Records of the solver `perplexity`. Fields written: `num_bytes` (UTF-8) and `num_words` of `text`, as lm_eval
    counts them. A text that was measured counts as correct: there is nothing to get wrong."""

    name = "perplexity"
    version = "1"

    def gold_reply(self, record: Row) -> Row | None:
        """Return what the solver would record of a text that the model knows by heart."""
        return {"loglikelihood": 0.0}

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        text, loglikelihood = record.get("text"), record.get("loglikelihood")
        nothing: Row = {"num_bytes": None, "num_words": None}
        if (
            not isinstance(text, str)
            or isinstance(loglikelihood, bool)
            or not isinstance(loglikelihood, int | float)
        ):
            return ungradable_score(stamp, "the record has no text with its loglikelihood", nothing)
        fields: Row = {"num_bytes": len(text.encode()), "num_words": len(_BLANKS.split(text))}
        return verdict_score(stamp, True, fields, "measured")
