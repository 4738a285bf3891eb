# SPDX-License-Identifier: Apache-2.0
"""Which samples a filter chooses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.filters.test_grammar import FILTERS

from newskills.base.errors import NewskillsError
from newskills.view.filters.columns import SAMPLE_COLUMNS, SampleFacts
from newskills.view.filters.grammar import Filter, FilterAll, FilterAny, FilterNot, parse_filter
from newskills.view.filters.matching import filter_predicate, sample_filter


def sample(outcome: str = "wrong", cause: str | None = "model", seed: int | None = 0, **row: Any) -> SampleFacts:
    score = {"correct": 1.0, "unscored": None}.get(outcome, 0.0)
    return SampleFacts("base", "gsm8k", seed, outcome, cause, score, row)


ALGEBRA = sample(
    id="p1",
    subset_for_metrics=["Algebra", "hard"],
    num_generated_tokens=2500,
    generation="It is 'four'.",
    generation_start_time=10.0,
    generation_end_time=12.5,
)
BARE = sample("correct", None, seed=None, id=7)


@pytest.mark.parametrize(
    ("text", "algebra", "bare"),
    [
        ("outcome = wrong and tokens > 2000 and subset ~ algebra", True, False),
        ("tokens >= 2500 and tokens <= 2500 and tokens = 2500", True, False),
        ("tokens < 2500 or tokens > 2500", False, False),
        ("not tokens > 2000", False, True),
        ("tokens != 2500", False, True),
        ("tokens = none", False, True),
        ("tokens != none", True, False),
        ("subset = hard", True, False),
        ("subset in (Algebra, geometry)", True, False),
        ("subset not in (Algebra)", False, True),
        ("subset !~ ALG", False, True),
        ("cause = none", False, True),
        ("cause = 'none'", False, False),
        ("seed in (0, 1)", True, False),
        ("seed = none", False, True),
        ("id = 7", False, True),
        ("score = 1", False, True),
        ("seconds > 2.4 and seconds < 2.6", True, False),
        ('reply ~ "four"', True, False),
        ("reply ~ \"'FOUR'\"", True, False),
        ("run = base and benchmark = gsm8k", True, True),
        ("outcome in (wrong, no_answer) or id = 7", True, True),
    ],
)
def test_samples_are_chosen(text: str, algebra: bool, bare: bool) -> None:
    fits = filter_predicate(sample_filter(text))
    assert (fits(ALGEBRA), fits(BARE)) == (algebra, bare)


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.text())
ROWS = st.dictionaries(
    st.sampled_from(sorted({field for column in SAMPLE_COLUMNS.values() for field in column.fields})), ANYTHING
)


@given(FILTERS, ROWS)
def test_filters_obey_logic_on_any_record(tree: Filter, row: dict[str, Any]) -> None:
    """Records are of anybody: no value of a field may make a filter fail, and `not`, `and`, `or` are what they are."""
    try:
        fits = filter_predicate(tree)
    except NewskillsError:
        return
    facts = sample(**row)
    assert filter_predicate(FilterNot(tree))(facts) is not fits(facts)
    other = parse_filter("outcome = correct")
    assert filter_predicate(FilterAll((tree, other)))(facts) is False
    assert filter_predicate(FilterAny((tree, other)))(facts) is fits(facts)
