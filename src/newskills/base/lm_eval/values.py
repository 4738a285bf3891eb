# SPDX-License-Identifier: Apache-2.0
"""Values of metrics of lm_eval ↔ JSON, without a loss: pairs stay pairs, and numbers keep their kind."""

from __future__ import annotations

import math
from typing import Any

_TUPLE, _ARRAY, _NUMBER, _FLOAT = "__tuple__", "__array__", "__number__", "__float__"


def pack_value(value: Any) -> Any:
    """Return a value as JSON. Raises TypeError for what is no text, number, list or mapping of such."""
    if value is None or isinstance(value, bool | str | int):
        if type(value) not in (bool, str, int, type(None)) and isinstance(value, int):
            return int(value)
        return value
    if type(value) is float:
        if math.isfinite(value):
            return value
        return {_FLOAT: str(value)}
    if isinstance(value, tuple):
        return {_TUPLE: [pack_value(item) for item in value]}
    if isinstance(value, list):
        return [pack_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): pack_value(item) for key, item in value.items()}
    return _packed_number(value)


def _packed_number(value: Any) -> Any:
    import numpy

    if isinstance(value, numpy.ndarray):
        return {_ARRAY: [pack_value(item) for item in value.tolist()], "dtype": str(value.dtype)}
    if isinstance(value, numpy.bool_ | numpy.float64 | numpy.int64):
        return pack_value(value.item())
    if isinstance(value, numpy.generic):
        return {_NUMBER: pack_value(value.item()), "dtype": str(value.dtype)}
    raise TypeError(f"a metric gave a {type(value).__name__}")


def unpack_value(value: Any) -> Any:
    """Return the value that was packed."""
    if isinstance(value, list):
        return [unpack_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _FLOAT in value:
        return float(value[_FLOAT])
    if _TUPLE in value:
        return tuple(unpack_value(item) for item in value[_TUPLE])
    if _ARRAY in value or _NUMBER in value:
        import numpy

        if _ARRAY in value:
            return numpy.array(unpack_value(value[_ARRAY]), dtype=value["dtype"])
        return numpy.dtype(value["dtype"]).type(unpack_value(value[_NUMBER]))
    return {key: unpack_value(item) for key, item in value.items()}
