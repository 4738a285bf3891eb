# SPDX-License-Identifier: Apache-2.0
"""`python nemo_rl_schema.py ROOT ALGORITHM`: reads a configuration as JSON, makes NeMo-RL's own `MasterConfig`.

ROOT is a checkout of NeMo-RL; its modules are imported, what they import of others is not needed for the schema and
stands in as names without content. Writes the keys that the schema does not know. Ends with pydantic's error where a
value does not fit.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

OWN = ("nemo_rl", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")


class Anything(type):
    """A class that has every attribute and takes every argument."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {"__init__": lambda self, *a, **k: None, "__call__": lambda self, *a: a[0]})

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        decorated = len(arguments) == 1 and not named and isinstance(arguments[0], type | type(Anything.__call__))
        return arguments[0] if decorated else type.__call__(cls)

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls


class StandIn(ModuleType):
    """A module of others."""

    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


class Finder:
    """Finds what is neither of NeMo-RL, of pydantic nor of Python itself."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        first = name.partition(".")[0]
        if first in OWN or first in sys.stdlib_module_names:
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


def unknown(given: Any, known: Any, at: str = "") -> list[str]:
    """Dotted keys of `given` that `known`, what the schema has made of it, lacks."""
    if isinstance(given, list) and isinstance(known, list):
        pairs = zip(given, known, strict=True)
        return [key for number, pair in enumerate(pairs) for key in unknown(*pair, f"{at}[{number}]")]
    if not isinstance(given, Mapping):
        return []
    values = known if isinstance(known, Mapping) else dict(known) if hasattr(known, "model_fields_set") else {}
    beyond = getattr(known, "model_extra", None) or {}
    keys = [f"{at}.{key}" for key in given if key not in values or key in beyond]
    return keys + [
        key for name in given if name in values for key in unknown(given[name], values[name], f"{at}.{name}")
    ]


if __name__ == "__main__":
    root, algorithm = sys.argv[1:]
    sys.path.insert(0, root)
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
    master = importlib.import_module(f"nemo_rl.algorithms.{algorithm}").MasterConfig
    config = json.load(sys.stdin)
    json.dump(unknown(config, master(**config)), sys.stdout)
