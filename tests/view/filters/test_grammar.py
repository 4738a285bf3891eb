# SPDX-License-Identifier: Apache-2.0
"""Filters as text: what is written is read again as the same, and what cannot be read is said in one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, NewskillsError
from newskills.view.filters.columns import SAMPLE_COLUMNS
from newskills.view.filters.grammar import (
    MAX_FILTER_CHARS,
    MAX_FILTER_DEPTH,
    Filter,
    FilterAll,
    FilterAny,
    FilterCondition,
    FilterNot,
    FilterValue,
    filter_text,
    names_in,
    parse_filter,
)
from newskills.view.filters.matching import sample_filter

KEYWORDS = {"and", "or", "not", "in"}
WORDS = st.from_regex(r"[a-z0-9._/-]{1,8}", fullmatch=True).filter(lambda word: word not in KEYWORDS)
VALUES = st.builds(FilterValue, st.text(min_size=1), quoted=st.just(True)) | st.builds(FilterValue, WORDS)
NAMES = st.sampled_from(sorted(SAMPLE_COLUMNS))
SIGNS = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "~", "!~"])
LISTS = st.lists(VALUES, min_size=1, max_size=3).map(tuple)
CONDITIONS = st.builds(FilterCondition, NAMES, SIGNS, VALUES.map(lambda value: (value,))) | st.builds(
    FilterCondition, NAMES, st.sampled_from(["in", "not in"]), LISTS
)


def _larger(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(FilterNot, inner) | st.builds(FilterAll, parts) | st.builds(FilterAny, parts)


FILTERS: st.SearchStrategy[Filter] = st.recursive(CONDITIONS, _larger, max_leaves=8)


@given(FILTERS)
def test_the_text_of_a_filter_is_read_as_the_same_filter(tree: Filter) -> None:
    assert parse_filter(filter_text(tree)) == tree


@given(st.text() | st.text(alphabet="ab=!~<>() ,\"'\\andornti1", max_size=40))
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    try:
        names = names_in(sample_filter(text))
    except NewskillsError:
        return
    assert names <= set(SAMPLE_COLUMNS)


def test_how_words_bind() -> None:
    a, b, c = (FilterCondition(name, "=", (FilterValue("1"),)) for name in ("a", "b", "c"))
    assert parse_filter("a=1 or b=1 and not c=1") == FilterAny((a, FilterAll((b, FilterNot(c)))))
    assert parse_filter("(a=1 OR b=1) AND c=1") == FilterAll((FilterAny((a, b)), c))
    assert parse_filter("tokens>2000") == FilterCondition("tokens", ">", (FilterValue("2000"),))
    assert parse_filter(r'why ~ "say \"no\""') == FilterCondition(
        "why", "~", (FilterValue('say "no"', quoted=True),)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected the name of a column, got its end"),
        ("outcome", "expected one of"),
        ("outcome = ", "expected a value, got its end at character 11"),
        ("outcome = wrong tokens > 3", "expected 'and', 'or' or the end, got 'tokens' at character 17"),
        ("(outcome = wrong", "expected ')'"),
        ("outcome in wrong", "expected '('"),
        ("outcome not wrong", "expected 'in'"),
        ("outcome = 'wrong", "at character 11 opens a text that never ends"),
        ("and = 3", "expected the name of a column, got 'and'"),
        ("a ! 3", "belongs to no sign"),
        ("(" * (MAX_FILTER_DEPTH + 2), f"may have {MAX_FILTER_DEPTH} parentheses"),
        ("not " * (MAX_FILTER_DEPTH + 2), f"may have {MAX_FILTER_DEPTH} parentheses"),
        ("a" * (MAX_FILTER_CHARS + 1), "may have 10,000 characters"),
        ("toknes > 3", "Unknown column in the filter 'toknes'; did you mean 'tokens'?"),
        ("outcome = wrnog", "Unknown outcome 'wrnog'; did you mean 'wrong'?"),
        ("tokens > many", "tokens in a filter: expected a number, got 'many'"),
        ("tokens = nan", "expected a number, got 'nan'"),
        ("tokens > none", "nothing is more or less than a missing value"),
        ("id < 3", "id is a text, which has = != ~ !~ and in"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises((ConfigError, NewskillsError)) as caught:
        sample_filter(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
