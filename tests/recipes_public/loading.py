# SPDX-License-Identifier: Apache-2.0
"""Recipes as a user has them: files outside the package, run by their path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

RECIPES = Path(__file__).parents[2] / "recipes"
NAMES = sorted(path.parent.name for path in RECIPES.glob("*/run.py"))


def load(path: str) -> ModuleType:
    """`simple/run.py` as a module."""
    name = f"recipe_{path.removesuffix('.py').replace('/', '_')}"
    spec = importlib.util.spec_from_file_location(name, RECIPES / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
