# SPDX-License-Identifier: Apache-2.0
"""How much of a long answer is true, and is it enough: F1@K over claims (Wei et al. 2024, arXiv:2403.18802, 3)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score

SUPPORTED, NOT_SUPPORTED, IRRELEVANT = VERDICTS = ("supported", "not_supported", "irrelevant")
KS = (64, 178)
"""The median and the largest number of claims that answers in the paper have."""


class LongFactConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=longfact`."""

    claims_key: Annotated[str, Meta(description="field with the claims and their verdicts")] = "claims"
    most_unrated: Annotated[
        float, Meta(ge=0, le=1, description="share of claims without a verdict above which the answer is unscored")
    ] = 0.05


class LongFactGrader:
    """Fields written: `num_supported`, `num_not_supported`, `num_irrelevant`, `num_unrated`, `precision`, `f1_at_64`,
    `f1_at_178`. Correct is an answer with claims that are all supported.

    Claims without a verdict are left out, up to a share; irrelevant ones always.
    """

    name = "longfact"
    version = "1"
    Config = LongFactConfig

    def __init__(self, config: LongFactConfig = LongFactConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        claims = record.get(self.config.claims_key)
        if not isinstance(claims, list):
            return _unscored_claims(stamp, "the judge has told no claims", {})
        verdicts = [claim.get("verdict") if isinstance(claim, dict) else None for claim in claims]
        counts = {name: verdicts.count(name) for name in VERDICTS}
        unrated = len(claims) - sum(counts.values())
        fields: Row = {**{f"num_{name}": count for name, count in counts.items()}, "num_unrated": unrated}
        if unrated > self.config.most_unrated * len(claims):
            return _unscored_claims(stamp, f"{unrated} of {len(claims)} claims have no verdict", fields)
        right, wrong = counts[SUPPORTED], counts[NOT_SUPPORTED]
        precision = right / (right + wrong) if right + wrong else 0.0
        fields |= {"precision": precision}
        fields |= {f"f1_at_{k}": f1_at(right, wrong, k) for k in KS}
        if not str(record.get("generation") or "").strip():
            return no_answer_score(stamp, record, fields)
        return verdict_score(
            stamp, right > 0 and not wrong, fields, f"{right} of {right + wrong}", fields[f"f1_at_{KS[0]}"]
        )


def f1_at(supported: int, not_supported: int, k: int) -> float:
    """Return the harmonic mean of the share of claims that are supported, and of min(1, supported / k); 0 without any.

    >>> f1_at(32, 32, 64)
    0.5
    """
    if not supported:
        return 0.0
    precision, recall = supported / (supported + not_supported), min(1.0, supported / k)
    return 2 * precision * recall / (precision + recall)


def _unscored_claims(stamp: str, why: str, counts: Row) -> Score:
    nothing: Row = {**counts, "precision": None, **{f"f1_at_{k}": None for k in KS}}
    score = ungradable_score(stamp, why, nothing)
    score.cause = "judge"
    return score
