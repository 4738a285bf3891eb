# SPDX-License-Identifier: Apache-2.0
"""A filter → a function that says whether a sample fits.

Two-valued: what is missing equals `none` and nothing else, is in no order and contains nothing; `!=`, `!~`, `not in`
are true wherever `=`, `~`, `in` are false. A sample of several subsets fits where one of them does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, get_args

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.records import Outcome
from newskills.run.reporting.counted import subsets_of
from newskills.view.filters.columns import SAMPLE_COLUMNS, UNGRADED, SampleColumn, SampleFacts
from newskills.view.filters.grammar import (
    NONE,
    Filter,
    FilterAll,
    FilterAny,
    FilterCondition,
    FilterNot,
    FilterValue,
    names_in,
    parse_filter,
)

SamplePredicate = Callable[[SampleFacts], bool]
SampleColumns = Mapping[str, SampleColumn]
"""Names that a filter may have: columns of samples, and scanners that have results."""
OUTCOMES = (*get_args(Outcome), UNGRADED)
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NEGATIVE: Mapping[str, str] = {"!=": "=", "!~": "~", "not in": "in"}


def sample_filter(text: str, columns: SampleColumns = SAMPLE_COLUMNS) -> Filter:
    """Parse a filter of samples and check its names. Raises ConfigError, UnknownNameError."""
    tree = parse_filter(text)
    for name in names_in(tree):
        if name not in columns:
            raise UnknownNameError("column in the filter", name, columns)
    filter_predicate(tree, columns)
    return tree


def fields_of_filter(tree: Filter, columns: SampleColumns = SAMPLE_COLUMNS) -> set[str]:
    """Return the keys of a record that a filter looks at."""
    return {field for name in names_in(tree) for field in columns[name].fields}


def filter_predicate(tree: Filter, columns: SampleColumns = SAMPLE_COLUMNS) -> SamplePredicate:
    """Return the function of a checked filter. Raises ConfigError for a value that its column cannot have."""
    match tree:
        case FilterCondition():
            return _condition_predicate(tree, columns[tree.name])
        case FilterNot(part):
            inner = filter_predicate(part, columns)
            return lambda sample: not inner(sample)
        case FilterAll(parts):
            every = [filter_predicate(part, columns) for part in parts]
            return lambda sample: all(fits(sample) for fits in every)
        case FilterAny(parts):
            some = [filter_predicate(part, columns) for part in parts]
            return lambda sample: any(fits(sample) for fits in some)


def _condition_predicate(condition: FilterCondition, column: SampleColumn) -> SamplePredicate:
    positive = _NEGATIVE.get(condition.operator)
    fits = _value_test(column, positive or condition.operator, condition.values)
    read = _value_reader(column)
    if positive:
        return lambda sample: not any(fits(value) for value in read(sample))
    return lambda sample: any(fits(value) for value in read(sample))


def _value_reader(column: SampleColumn) -> Callable[[SampleFacts], list[Any]]:
    """Return a function that reads the values of a sample: one, except for subsets."""
    if column.name == "subset":
        return lambda sample: subsets_of(sample.row) or [None]
    return lambda sample: column.values((sample,))


def _value_test(column: SampleColumn, sign: str, values: tuple[FilterValue, ...]) -> Callable[[Any], bool]:
    if sign == "~":
        wanted_part = values[0].text.casefold()
        return lambda value: value is not None and wanted_part in str(value).casefold()
    targets = [_target_value(column, value) for value in values]
    if sign in _ORDERS:
        if column.kind not in ("whole", "number"):
            raise ConfigError(f"{column.name} {sign} …: {column.name} is a text, which has = != ~ !~ and in.")
        (limit,) = targets
        if limit is None:
            raise ConfigError(f"{column.name} {sign} {NONE}: nothing is more or less than a missing value.")
        order = _ORDERS[sign]
        return lambda value: value is not None and order(value, limit)
    return lambda value: value in targets


def _target_value(column: SampleColumn, value: FilterValue) -> Any:
    if not value.quoted and value.text.lower() == NONE:
        return None
    if column.name == "outcome" and value.text not in OUTCOMES:
        raise UnknownNameError("outcome", value.text, OUTCOMES)
    if column.kind not in ("whole", "number"):
        return value.text
    try:
        number = float(value.text.replace("_", ""))
    except ValueError:
        raise ConfigError(f"{column.name} in a filter: expected a number, got '{value.text}'.") from None
    if number != number:
        raise ConfigError(f"{column.name} in a filter: expected a number, got '{value.text}'.")
    return number
