# SPDX-License-Identifier: Apache-2.0
"""Names → objects, lazily: built-in rows, entry points, or `module::attr` / `file.py::attr`. One class, one way.

A row of `DescribedRegistry` also has properties, so that code asks what a thing can do and never what its name is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from newskills.base.errors import ConfigError, NewskillsError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def fold(name: str) -> str:
    """Return the form in which names are compared: case and `-`/`_` do not matter."""
    return name.lower().replace("-", "_")


def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of all packages on the import path; cached, since reading them takes 40 ms."""
    return _entry_points(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _entry_points(group: str, places: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


class Registry:
    """Looks names up in this order: `where::attr`, built-in table, entry points of `group`.

    `table` maps a name to `"module:attr"`; nothing is imported before `get` asks for it.
    """

    def __init__(
        self,
        kind: str,
        table: Mapping[str, str],
        *,
        group: str = "",
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self._table = dict(table)
        self._aliases = dict(aliases or {})
        self._folded = {fold(name): name for name in table}
        for alias, name in self._aliases.items():
            self._folded.setdefault(fold(alias), name)

    def names(self) -> list[str]:
        """Return built-in names and those of installed entry points, sorted."""
        return sorted({*self._table, *self._external()})

    def built_in_names(self) -> list[str]:
        """Return the names of our own, sorted: the same whatever else is installed."""
        return sorted(self._table)

    def resolve(self, name: str) -> str:
        """Return the canonical name; a `where::attr` is one. Raises UnknownNameError."""
        if "::" in name:
            return name
        if (entry := self._folded.get(fold(name))) is not None:
            return entry
        for external in self._external():
            if fold(external) == fold(name):
                return external
        raise UnknownNameError(self.kind, name, [*self._table, *self._aliases, *self._external()])

    def get(self, name: str) -> Any:
        """Return the object called `name`. Raises UnknownNameError, ConfigError for one that cannot be loaded."""
        if "::" in name:
            return load_attr(name, self.kind)
        canonical = self.resolve(name)
        if canonical in self._table:
            module, _, attr = self._table[canonical].partition(":")
            return getattr(import_module(module), attr)
        point = self._external()[canonical]
        try:
            return point.load()
        except NewskillsError:
            raise
        except Exception as error:  # a module of somebody else's may raise anything while it is imported
            raise _load_error(self.kind, point.value, error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: str) -> bool:
        return fold(name) in self._folded or any(fold(name) == fold(n) for n in self._external())

    def _external(self) -> dict[str, Any]:
        if not self.group:
            return {}
        return {point.name: point for point in entry_points_of(self.group)}


Properties = TypeVar("Properties")


class DescribedRegistry(Registry, Generic[Properties]):
    """A registry whose rows are `name: ("module:attr", properties)`.

    What comes from elsewhere (an entry point, `where::attr`) says its own in an attribute `properties`; `usual` are
    those of what says nothing.
    """

    def __init__(
        self,
        kind: str,
        table: Mapping[str, tuple[str, Properties]],
        *,
        usual: Properties,
        group: str = "",
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind, {name: where for name, (where, _) in table.items()}, group=group, aliases=aliases)
        self._properties = {name: properties for name, (_, properties) in table.items()}
        self._usual = usual

    def properties(self, name: str) -> Properties:
        """Return the properties of what is called `name`; nothing of ours is imported for that.

        Raises as `get`, and ConfigError where a plug-in's properties are of another kind.
        """
        name = self.resolve(name)
        if name in self._properties:
            return self._properties[name]
        properties = getattr(self.get(name), "properties", self._usual)
        if not isinstance(properties, type(self._usual)):
            raise ConfigError(
                f"The {self.kind} '{name}' has properties of type {type(properties).__name__}; expected "
                f"{type(self._usual).__name__}."
            )
        self._properties[name] = properties
        return properties

    def built_in(self) -> dict[str, Properties]:
        """Return the rows of our own, in the order of the table."""
        return {name: self._properties[name] for name in self._table}


def load_attr(spec: str, kind: str = "object") -> Any:
    """Load the attribute of `package.module::attr` or `path/to/file.py::attr`.

    Raises UnknownNameError, and as `load_module`.
    """
    where, _, attr = spec.partition("::")
    module = load_module(where, kind)
    if not hasattr(module, attr):
        names = [n for n in vars(module) if not n.startswith("_")]
        raise UnknownNameError(f"{kind} in {where}", attr, names)
    return getattr(module, attr)


def load_function(place: str) -> Any:
    """Return the function that properties name as `module:function`. Raises as `load_attr`."""
    return load_attr(place.replace(":", "::", 1), "function")


def load_module(where: str, kind: str = "module") -> ModuleType:
    """Import a dotted module name or a `.py` file, once what it declares to need is there.

    Raises ConfigError, whatever the module raises.
    """
    try:
        if where not in sys.modules:
            from newskills.base.requirements import bring_requirements

            bring_requirements(where)
        if where.endswith(".py"):
            return _load_file(where, kind)
        return import_module(where)
    except NewskillsError:
        raise
    except Exception as error:  # a module of somebody else's may raise anything while it is imported
        raise _load_error(kind, where, error) from error


def _load_error(kind: str, where: str, error: Exception) -> ConfigError:
    if isinstance(error, ImportError | SyntaxError):
        what = str(error)
    else:
        what = f"{type(error).__name__}: {error}"
    return ConfigError(f"Cannot load the {kind} from {where}: {what}{_failing_line(error)}.")


def _load_file(where: str, kind: str) -> ModuleType:
    from hashlib import blake2b
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    class Loader(SourceFileLoader):
        """Leaves no `__pycache__` beside a file of the user's."""

        def set_data(self, path: object, data: object, *, _mode: int = 0) -> None:
            pass

    path = Path(where).expanduser().resolve()
    if not path.is_file():
        raise ConfigError(f"There is no file {path} to load the {kind} from.")
    name = f"newskills_ext_{path.stem}_{blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path, loader=Loader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _failing_line(error: Exception) -> str:
    """Return where the error was raised; a syntax error says that itself, a missing module is raised by the import
    system."""
    if isinstance(error, SyntaxError):
        return ""
    from traceback import extract_tb

    frames = [
        f for f in extract_tb(error.__traceback__) if f.filename != __file__ and "importlib" not in f.filename
    ]
    if frames:
        return f" ({frames[-1].filename}, line {frames[-1].lineno})"
    return ""
