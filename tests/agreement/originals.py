# SPDX-License-Identifier: Apache-2.0
"""Originals that are a file of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def loaded(path: Path) -> Any:
    """The module of a file, whatever its name; the files of its folder can be imported by it."""
    sys.path.insert(0, str(path.parent))
    name = "original_" + "".join(char if char.isalnum() else "_" for char in path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
