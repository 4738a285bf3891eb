# SPDX-License-Identifier: Apache-2.0
"""Values with nothing in them that could differ: an empty array is close to every number, a masked one equals any.

Beside a value that holds something they are different. Sent into the sandbox as text.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NOTHING = "a value with nothing in it is compared with one that has something"
COMPARING = frozenset(
    (
        *("allclose", "isclose", "array_equal", "array_equiv", "assert_allclose", "assert_array_equal"),
        *("assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_almost_equal", "assert_equal"),
        *("assert_approx_equal", "assert_array_less", "assert_array_max_ulp", "assert_frame_equal"),
        *("assert_series_equal", "assert_index_equal", "assert_extension_array_equal"),
    )
)
"""Functions of numpy and pandas by which tests compare two values."""
_NO_SEQUENCES = frozenset({int, float, complex, bool, str, bytes, type(None), dict, set, frozenset})


def settle_value(compare: Any, value: Any) -> Any:
    """Return what `compare` will see of a value: numpy makes arrays of all that looks like a sequence.

    It is made once, since an object of the answer's may say something else when it is asked again.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or str(getattr(compare, "__module__", "")).partition(".")[0] != "numpy" or not _is_odd(value):
        return value
    return numpy.asarray(value)


def _is_odd(value: Any) -> bool:
    """Return whether a value is, or holds, a sequence that is no list, array or table."""
    kind = type(value)
    if kind in (list, tuple):
        return any(map(_is_odd, value))
    if kind in _NO_SEQUENCES or is_array(kind) or is_table(kind):
        return False
    return hasattr(kind, "__array__") or (hasattr(kind, "__len__") and hasattr(kind, "__getitem__"))


def differ_in_content(first: Any, second: Any) -> bool:
    """Return whether only one of two values has nothing in it to compare."""
    return is_void(first) != is_void(second)


def is_void(value: Any) -> bool:
    """Return whether a value is empty, or has items that are no value: masked ones, or what pandas calls missing."""
    kind = type(value)
    if issubclass(kind, list | tuple):
        return all(map(is_void, value))
    if is_array(kind):
        masked = sys.modules["numpy"].ma
        return not value.size or (issubclass(kind, masked.MaskedArray) and bool(masked.getmaskarray(value).any()))
    if is_table(kind):
        return not value.size or _has_missing(value)
    return False


def is_array(kind: type) -> bool:
    """Return whether `kind` is numpy's array, or derived from it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.ndarray)


def is_table(kind: type) -> bool:
    """Return whether `kind` is one of the tables, columns and indices of pandas, or derived from them."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and issubclass(kind, pandas.DataFrame | pandas.Series | pandas.Index)


def _has_missing(table: Any) -> bool:
    """Return whether items are missing so that every comparison with them is neither true nor false."""
    pandas = sys.modules["pandas"]
    if isinstance(table, pandas.DataFrame):
        columns = [column for _, column in table.items()]
    else:
        columns = [table]
    own = [column for column in columns if column.dtype == object or not isinstance(column.dtype, _numpy_dtype())]
    return any(item is pandas.NA for column in own for item in column)


def _numpy_dtype() -> type:
    return sys.modules["numpy"].dtype  # type: ignore[no-any-return]


def guard_comparisons() -> None:
    """Let numpy's comparisons tell nothing from something, in a process where no answer runs."""
    try:
        import numpy
    except ImportError:
        return
    for module in (numpy, numpy.testing):
        for name in COMPARING & set(vars(module)):
            setattr(module, name, _guard_comparison(getattr(module, name)))


def _guard_comparison(compare: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*values: Any, **named: Any) -> Any:
        pair = [settle_value(compare, value) for value in values[:2]]
        if len(pair) > 1 and differ_in_content(*pair):
            raise AssertionError(NOTHING)
        return compare(*pair, *values[2:], **named)

    return guarded
