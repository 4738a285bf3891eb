# SPDX-License-Identifier: Apache-2.0
"""Whether tests may take long: `pytest.mark.nightly` runs then, and others do more of the same."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

NIGHTLY = "NEWSKILLS_NIGHTLY" in os.environ


def by_day(values: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Return parameters of which only the `chosen` run by day, the others at night."""
    return [value if value in chosen else pytest.param(value, marks=pytest.mark.nightly) for value in values]
