# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Row
from newskills.metrics import make_metric
from newskills.metrics.translation import corpus_bleu, corpus_chrf, mean_comet

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


@pytest.mark.parametrize(
    ("counts", "value"),
    [
        ([4, 8, 2] * 6, 100 * 5 * 0.5 * 0.25 / (4 * 0.5 + 0.25)),
        ([8, 4, 2] * 6, 100 * 5 * 0.25 * 0.5 / (4 * 0.25 + 0.5)),
        ([4, 4, 4, *[0, 5, 0], *[5, 0, 0], *[2, 2, 0] * 3], 100 * 5 * 0.25 * 0.25 / (5 * 0.25)),
        ([4, 4, 0] * 6, 0.0),
        ([0, 4, 0] * 6, 0.0),
        ([7, 7, 7] * 6, 100.0),
    ],
)
def test_chrf_counts_recall_twice_and_leaves_out_lengths_that_one_side_lacks(
    counts: list[int], value: float
) -> None:
    assert corpus_chrf(counts) == pytest.approx(value)


@pytest.mark.parametrize(
    ("counts", "value"),
    [
        ([10, 10, 8, 4, 2, 1, 10, 8, 4, 2], 100 * (0.8 * 0.5 * 0.5 * 0.5) ** 0.25),
        ([10, 10, 8, 4, 0, 0, 10, 8, 4, 2], 100 * (0.8 * 0.5 / (2 * 4) / (4 * 2)) ** 0.25),
        ([8, 10, 8, 7, 6, 5, 8, 7, 6, 5], 100 * math.exp(1 - 10 / 8)),
        ([12, 10, 12, 11, 10, 9, 12, 11, 10, 9], 100.0),
        ([4, 4, 0, 0, 0, 0, 4, 3, 2, 1], 0.0),
        ([3, 3, 3, 2, 1, 0, 3, 2, 1, 0], 0.0),
    ],
)
def test_bleu_is_a_geometric_mean_that_halves_for_what_is_missing(counts: list[int], value: float) -> None:
    assert corpus_bleu(counts) == pytest.approx(value)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=4, max_size=4),
    st.integers(1, 60),
    st.integers(1, 60),
)
def test_bleu_against_its_definition(grams: list[tuple[int, int]], ours: int, theirs: int) -> None:
    same, totals = [min(pair) for pair in grams], [total for _, total in grams]
    value = corpus_bleu([ours, theirs, *same, *totals])
    if not any(same):
        assert value == 0.0
        return
    precisions, missing = [], 0
    for matched, total in zip(same, totals, strict=True):
        missing += not matched
        precisions.append(matched / total if matched else 1 / (2**missing * total))
    brevity = min(1.0, math.exp(1 - theirs / ours))
    assert value == pytest.approx(100 * brevity * math.prod(precisions) ** 0.25)


def test_comet_is_a_mean_in_percent() -> None:
    assert (mean_comet([1.5, 2]), mean_comet([0, 0])) == (75.0, 0.0)


def test_a_score_that_some_pair_lacks_has_no_mean_over_pairs() -> None:
    metric = make_metric("translation")
    metric.update([_record("en", "de", FULL, comet=0.5)])
    metric.update([_record("en", "de", HALF, comet=0.75)])
    metric.update([_record("en", "fr", FULL)])
    modes = metric.metrics()
    assert modes["en->de"]["comet"] == 62.5
    assert "comet" not in modes["en->xx"]
    assert metric.shown() == ()
    assert "bleu_std" not in modes["en->de"], "there is one seed"
