# SPDX-License-Identifier: Apache-2.0
"""The comparisons there are."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

import tests.agreement.cases
from tests.agreement.compare import Comparison


@cache
def comparisons() -> dict[str, Comparison]:
    """Name → comparison: `COMPARISON` of every file below `cases` that has one."""
    modules = [
        import_module(file.name)
        for file in pkgutil.walk_packages(tests.agreement.cases.__path__, "tests.agreement.cases.")
    ]
    found = [module.COMPARISON for module in modules if hasattr(module, "COMPARISON")]
    return {comparison.name: comparison for comparison in found}
