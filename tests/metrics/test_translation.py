# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.base.records import Row
from newskills.metrics import make_metric

FULL = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]
HALF = [4, 4, 2, 1, 0, 0, 4, 3, 2, 1]
CHRF = [4, 4, 2] * 6


def _record(source: str, target: str, counts: list[int] | None, **more: object) -> Row:
    row = {"source_language": source, "target_language": target, "sentence_chrf": 0.5, "outcome": "correct"}
    return {**row, "bleu_counts": counts, "chrf_counts": CHRF, "num_generated_tokens": 7, **more}


def test_pairs_and_their_means() -> None:
    metric = make_metric("translation")
    metric.update([_record("en", "de", FULL)] * 2)
    metric.update([_record("en", "fr", HALF), _record("en", "fr", FULL)])
    metric.update([_record("de", "fr", HALF), _record("de", "fr", HALF)])
    modes = metric.metrics()
    assert list(modes) == ["xx->xx", "de->xx", "en->xx", "xx->de", "xx->fr", "de->fr", "en->de", "en->fr"]
    half = modes["de->fr"]["bleu"]
    assert modes["en->de"]["bleu"] == pytest.approx(100)
    assert modes["en->fr"]["bleu"] == pytest.approx((half + 100) / 2)
    assert modes["en->fr"]["bleu_std"] == pytest.approx((100 - half) / 2)
    assert modes["xx->fr"]["bleu"] == pytest.approx((half + (half + 100) / 2) / 2)
    assert modes["xx->xx"]["num_entries"] == 3
    assert modes["xx->xx"]["chrf"] == pytest.approx(50)
    assert modes["de->fr"]["avg_tokens"] == 7


def test_a_lost_segment_is_left_out_and_an_empty_one_is_not() -> None:
    metric = make_metric("translation")
    metric.update([_record("en", "de", FULL)])
    metric.update([_record("en", "de", None, outcome="unscored", outcome_cause="provider")])
    found = metric.numbers()["en->de"]["bleu"]
    assert (found.value, found.n, found.unscored) == (pytest.approx(100), 1, 1)
    metric.update([metric.incorrect(_record("en", "de", FULL))])
    found = metric.numbers()["en->de"]["bleu"]
    assert found.value < 100
    assert found.low < found.value < found.high
    assert metric.ledger().unscored == 1
