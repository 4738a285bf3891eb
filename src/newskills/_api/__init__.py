# SPDX-License-Identifier: Apache-2.0
"""The commands as functions, each made when it is first asked for. `__init__.pyi` has their signatures.

An installation makes that file from the options of the commands (`hatch_build.py`), and so does `docs/generate.py`.
"""

from __future__ import annotations

from typing import Any

from newskills._api.calls import Arguments, python_function, wrap_arguments
from newskills._api.functions import FUNCTIONS, SPELLINGS

__all__ = ["Arguments", "wrap_arguments"]


def __getattr__(name: str) -> Any:
    if SPELLINGS.get(name, name) not in FUNCTIONS:
        raise AttributeError(f"module 'newskills._api' has no attribute '{name}'")
    if name in SPELLINGS:
        return __getattr__(SPELLINGS[name])
    function = globals()[name] = python_function(name)
    return function
