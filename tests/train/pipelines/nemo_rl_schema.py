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
import typing
from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import typing_extensions
from pydantic import BaseModel, TypeAdapter  # before names stand in for what it can do without

OWN = (
    "nemo_rl",
    "packaging",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
)


class Anything(ABCMeta):
    """Of a class that has every attribute, takes every argument, and decorates without effect."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return decorated(cls, arguments, named)

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    def __ror__(cls, _: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())


def stand_in(name: str) -> Any:
    return Anything(name, (), {})


def decorated(cls: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a call of a name without content gives: the function that it decorates, or another such name."""
    return arguments[0] if len(arguments) == 1 and not named and callable(arguments[0]) else cls


class StandIn(ModuleType):
    """A module of others."""

    __version__ = "0"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)


class Finder:
    """Finds what is neither of NeMo-RL, of pydantic nor of Python itself."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        first = name.partition(".")[0]
        if first in OWN or first in sys.stdlib_module_names or first.startswith("_"):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


def kinds_of(annotation: Any) -> Iterator[Any]:
    """The models and typed dictionaries that a value of this type may be."""
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or typing_extensions.is_typeddict(annotation)
    ):
        yield annotation
    for part in typing.get_args(annotation):
        yield from kinds_of(part)


def fields_of(kind: Any) -> dict[str, Any]:
    if issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    return typing_extensions.get_type_hints(kind)


def unknown(given: Any, annotations: Sequence[Any], at: str = "") -> list[str]:
    """Dotted keys of `given` that no kind of these types has; where they have no kinds, keys are free."""
    if isinstance(given, list):
        return [key for number, item in enumerate(given) for key in unknown(item, annotations, f"{at}[{number}]")]
    kinds = [kind for annotation in annotations for kind in kinds_of(annotation)]
    if not isinstance(given, Mapping) or not kinds:
        return []
    fields: dict[str, list[Any]] = {}
    for kind in kinds:
        for name, field in fields_of(kind).items():
            fields.setdefault(name, []).append(field)
    keys = [f"{at}.{key}" for key in given if key not in fields]
    for name in given:
        keys += unknown(given[name], fields[name], f"{at}.{name}") if name in fields else []
    return keys


if __name__ == "__main__":
    root, algorithm = sys.argv[1:]
    sys.path.insert(0, root)
    sys.meta_path.insert(0, Finder())
    TypeAdapter(dict[str, int])
    typing.TypedDict = typing_extensions.TypedDict  # as pydantic wants it below Python 3.12
    master = importlib.import_module(f"nemo_rl.algorithms.{algorithm}").MasterConfig
    config = json.load(sys.stdin)
    master(**config)
    json.dump(unknown(config, [master]), sys.stdout)
