# SPDX-License-Identifier: Apache-2.0
"""A world of its own for tests that share a process with the answer.

The tests, what runs them and their `unittest` have builtins of their own, stand in no table of modules, and their
frames, functions and classes are not shown to the answer's code. What both sides use (numpy, pandas, the modules that
tests import) is remembered before the answer is loaded and compared afterwards.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import importlib.machinery
import importlib.util
import operator
import os
import sys
import types

from newskills.graders.code.inside.hiding import hide as hide_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

ANSWER_FILE = "answer.py"
_COPIED = ("unittest", "contextlib")
"""Modules of Python that the tests get a copy of: what they do decides on a verdict."""
_MEMORY = ("/mem", "/maps", "/environ", "/pagemap", "/auxv", "/syscall")
_BLOCKED_EVENTS = frozenset(
    {
        *("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames"),
        *("sys._current_exceptions", "sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"),
        "sys.addaudithook",
    }
)
_STARTS = frozenset({"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen"})
_DYNAMIC = ("matplotlib",)
"""Packages that put other functions into their modules as they are used."""
_get_frame = sys._getframe
_HIDDEN: dict[type, tuple[str, ...]] = {
    types.FrameType: ("f_back", "f_globals", "f_locals", "f_code", "f_builtins", "f_trace"),
    types.FunctionType: ("__globals__", "__builtins__", "__closure__"),
}
_raw: dict[tuple[type, str], Any] = {}


def _read_attribute(owner: Any, name: str) -> Any:
    """Return an attribute as Python itself defines it."""
    kind = type(owner)
    raw = _raw.get((kind, name)) or kind.__dict__[name]
    return raw.__get__(owner)


class _Builtins(dict[str, object]):
    """The tests' builtins: Python's own, and what the tests themselves patch there for as long as they do."""

    def __init__(self, own: Mapping[str, Any], is_tests: Callable[[Any], bool]) -> None:
        super().__init__(own)
        self._is_tests = is_tests

    def __getitem__(self, name: str) -> object:
        now = vars(builtins).get(name)
        if self._is_tests(now):
            return now
        return super().__getitem__(name)


class World:
    """What the answer must not see. `notes`: what it tried, in words; `broken`: what it changed."""

    def __init__(self) -> None:
        self.notes: dict[str, None] = {}
        self.broken = ""
        self.loaded = False
        self.is_open_to_libraries = False
        self._files: tuple[str, ...] = ()
        self._hidden: tuple[str, ...] = ()
        self._kept: dict[str, types.ModuleType] = {}
        self._classes: dict[int, type] = {}
        self._globals: set[int] = set()
        self._modules: dict[str, types.ModuleType] = {}
        self._trusted = tuple(
            os.path.join(path, "") for path in {*map(os.path.abspath, filter(None, sys.path)), sys.base_prefix}
        )
        self._import = builtins.__import__
        self.builtins = {**vars(builtins), "__import__": self.import_}
        self._all_subclasses = type.__dict__["__subclasses__"]
        self._names: list[str] = []
        self._remembered: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = []
        self._functions: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = []

    def adopt(self, space: dict[str, Any]) -> dict[str, Any]:
        """Make `space` one of the private ones, with builtins of its own."""
        space["__builtins__"] = self.builtins
        self._globals.add(id(space))
        return space

    def is_private(self, space: Any) -> bool:
        return id(space) in self._globals

    def break_(self, what: str) -> None:
        """Note that the answer changed what it must not."""
        self.broken = self.broken or what
        self.notes[what] = None

    def make_tests_space(self, **names: Any) -> dict[str, Any]:
        """Return globals for the tests."""
        space = self.adopt(names)
        space["__builtins__"] = _Builtins(self.builtins, self.is_from_here)
        return space

    def is_from_here(self, value: Any) -> bool:
        """Return whether a value is a function, or of a class, of the private world."""
        if type(value) is types.FunctionType:
            return id(_read_attribute(value, "__globals__")) in self._globals
        return any(map(self.is_private_class, type(value).__mro__))

    # ---- imports ----

    def import_(
        self, name: str, space: Any = None, local: Any = None, wanted: Any = (), level: int = 0
    ) -> types.ModuleType:
        """Import as Python does, but `unittest` from the private copy. Raises ImportError."""
        if level:
            full = importlib.util.resolve_name("." * level + name, space["__package__"])
        else:
            full = name
        root = full.partition(".")[0]
        if root not in _COPIED and root not in self._modules:
            if self.loaded:
                self._check_modules()
            return self._import(name, space, local, wanted, level)
        module = self.load(full)
        for item in wanted or ():
            if item != "*" and not hasattr(module, item):
                self.load(f"{full}.{item}")
        if wanted:
            return module
        return self._modules[root]

    def load(self, full: str) -> types.ModuleType:
        """Return a copy of a module that only the tests see. Raises ImportError."""
        if full in self._modules:
            return self._modules[full]
        package, _, name = full.rpartition(".")
        parent = self.load(package) if package else None
        search_path = parent.__path__ if parent else None
        spec = importlib.machinery.PathFinder.find_spec(full, search_path)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            raise ImportError(f"No module named {full!r}")
        module = self._modules[full] = importlib.util.module_from_spec(spec)
        exec(spec.loader.get_code(full), self.adopt(vars(module)))  # type: ignore[arg-type]  # noqa: S102 - Python's own
        if parent:
            setattr(parent, name, module)
        return module

    def take(self, name: str) -> None:
        """Move a module out of the table that the answer sees."""
        module = self._modules[name] = sys.modules.pop(name)
        self._globals.add(id(vars(module)))

    def adopt_globals(self, space: dict[str, Any]) -> None:
        """Count `space` among the private ones as it is."""
        self._globals.add(id(space))

    # ---- who asks ----

    def is_foreign(self, filename: str) -> bool:
        """Return whether code is neither Python's, nor of an installed package."""
        return not filename.startswith(self._trusted) and not filename.startswith("<frozen ")

    def is_asked_from_outside(self, depth: int = 2) -> bool:
        """Return whether code that is not the tests' asks.

        Libraries count as such, since the answer may ask by way of them.

        pytest needs to look into tests: where it runs them, only the answer's code nearer than the tests is outside.
        """
        frame: Any = _get_frame(depth)
        if not self.is_open_to_libraries:
            return id(_read_attribute(frame, "f_globals")) not in self._globals
        while frame is not None:
            if id(_read_attribute(frame, "f_globals")) in self._globals:
                return False
            if self.is_foreign(_read_attribute(frame, "f_code").co_filename):
                return True
            frame = _read_attribute(frame, "f_back")
        return True

    def is_called_by_answer(self, depth: int = 2) -> bool:
        """Return whether the innermost code is the answer's."""
        frame = _get_frame(depth)
        space = _read_attribute(frame, "f_globals")
        return id(space) not in self._globals and self.is_foreign(_read_attribute(frame, "f_code").co_filename)

    def _is_imported_by_answer(self) -> bool:
        frame: Any = _get_frame(2)
        while frame is not None and _read_attribute(frame, "f_code").co_filename.startswith("<frozen importlib"):
            frame = _read_attribute(frame, "f_back")
        return frame is None or self.is_foreign(_read_attribute(frame, "f_code").co_filename)

    # ---- hiding ----

    def hide(self, files: Iterable[str], hidden: Iterable[str]) -> None:
        """Show the answer no frame, function or class of the private world from now on, nor these files of data, nor
        these packages."""
        self._files = tuple(files)
        self._kept = dict(sys.modules)
        self._classes = {id(cls): cls for cls in _all_classes()}
        if "ctypes" in hidden:
            _forget_ctypes()
        for name in [each for each in sys.modules if each.partition(".")[0] in hidden]:
            del sys.modules[name]
        self._hidden = tuple(hidden)
        for kind, names in _HIDDEN.items():
            table = gc.get_referents(kind.__dict__)[0]
            for name in names:
                table[name] = self._guard_attribute(kind, name)
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
        gc.get_referents(type.__dict__)[0]["__subclasses__"] = lambda cls: self._visible_subclasses(cls)  # noqa: PLW0108
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(type))
        sys._getframe = lambda depth=0: self._get_frame(depth)
        sys.addaudithook(self._audit_event)
        hide_process()

    def is_new_class(self, cls: type) -> bool:
        """Return whether a class has been made since the answer was loaded, by whomever."""
        return self._classes.get(id(cls)) is not cls

    def is_private_class(self, cls: type) -> bool:
        """Return whether a class has a method of the private world (which `type` was given by `hide`)."""
        return cls is not type and any(
            isinstance(value, types.FunctionType) and id(_read_attribute(value, "__globals__")) in self._globals
            for value in list(vars(cls).values())
        )

    def _guard_attribute(self, kind: type, name: str) -> property:
        raw = kind.__dict__[name]
        _raw[kind, name] = raw
        space = "f_globals" if kind is types.FrameType else "__globals__"

        def get(owner: Any) -> Any:
            value = raw.__get__(owner)
            shown = value if name == "f_back" else owner
            if (
                shown is None
                or id(_read_attribute(shown, space)) not in self._globals
                or not self.is_asked_from_outside()
            ):
                return value
            if self.is_called_by_answer():
                self.notes["looks into the tests"] = None
            return None

        def put(owner: Any, value: Any) -> None:
            if id(_read_attribute(owner, space)) in self._globals and self.is_asked_from_outside():
                self.break_("writes into the tests")
                return
            raw.__set__(owner, value)

        return property(get, put)

    def _get_frame(self, depth: int = 0) -> types.FrameType:
        """Replace `sys._getframe`, by way of one more function. Raises ValueError."""
        frame: Any = _get_frame(2)
        is_outside = self.is_asked_from_outside(3)
        for _ in range(depth):
            frame = _read_attribute(frame, "f_back")
            if frame is None or (is_outside and id(_read_attribute(frame, "f_globals")) in self._globals):
                raise ValueError("call stack is not deep enough")
        return frame  # type: ignore[no-any-return]

    def _visible_subclasses(self, cls: type) -> list[type]:
        """Replace `type.__subclasses__`."""
        subclasses: list[type] = self._all_subclasses(cls)
        if not self.is_asked_from_outside(3):
            return subclasses
        return [each for each in subclasses if not self.is_private_class(each)]

    def _audit_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse what looks into the interpreter, once the answer is loaded."""
        if not self.loaded:
            return
        if event in _BLOCKED_EVENTS:
            if self.is_asked_from_outside():
                self._refuse_action(event)
        elif event.startswith("ctypes.") or event == "marshal.loads":
            if self.is_called_by_answer():
                self._refuse_action(event)
        elif event in ("code.__new__", "compile"):
            trusted = isinstance(arguments[1], str) and not self.is_foreign(arguments[1])
            if trusted and self.is_called_by_answer():
                self._refuse_action(event)
        elif event == "object.__setattr__":
            function = type(arguments[0]) is types.FunctionType
            if function and self.is_from_here(arguments[0]) and self.is_asked_from_outside():
                self._refuse_action("writes into the tests")
        elif event == "import":
            if arguments[0].partition(".")[0] in self._hidden:
                if self._is_imported_by_answer():
                    self.notes[f"import of {arguments[0]}"] = None
                raise ImportError(f"{arguments[0]} is not here")
        else:
            self._audit_files(event, arguments)

    def _audit_files(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._files and event in _STARTS:
            self._refuse_action(event)
        if event == "open" and isinstance(arguments[0], str):
            path = os.path.abspath(arguments[0])
            if (path.startswith("/proc/") and path.endswith(_MEMORY)) or (
                self._files and path.endswith(self._files)
            ):
                self._refuse_action(path)
            if path == os.path.abspath(ANSWER_FILE) and self.is_called_by_answer(3):
                self.notes["reads its own file"] = None

    def _refuse_action(self, what: str) -> None:
        self.notes[what] = None
        raise RuntimeError(f"{what} is not allowed in an answer")

    # ---- what both sides use ----

    def remember(self, names: Iterable[str]) -> None:
        """Keep what the loaded modules of these packages, and the builtins, hold now."""
        roots = {name.partition(".")[0] for name in (*names, "contextlib")} - {"__future__", "unittest"}
        self._names = [name for name in self._kept if name.partition(".")[0] in roots | {"builtins", "sys"}]
        tables: dict[str, Mapping[str, Any]] = {"builtins": vars(builtins)}
        for name, module in list(sys.modules.items()):
            root = name.partition(".")[0]
            if root in roots and root not in _DYNAMIC and isinstance(module, types.ModuleType):
                tables[name] = vars(module)
        classes = {
            id(value): (f"{name}.{key}", vars(value))
            for name, table in list(tables.items())
            for key, value in list(table.items())
            if isinstance(value, type) and value.__module__.partition(".")[0] in roots
        }
        self._functions = [(name, table, dict(table)) for name, table in tables.items()]
        self._remembered = [(name, table, dict(table)) for name, table in classes.values()]

    def check(self) -> None:
        """Note what of the remembered is not what it was."""
        self._check_modules()
        self._check_tables(self._functions)
        self._check_tables(self._remembered)

    def check_functions(self, package: str) -> None:
        """Note which functions of a package, and of Python, are not what they were: a part of `check`."""
        roots = (package, "builtins")
        self._check_tables([each for each in self._functions if each[0].partition(".")[0] in roots])

    def _check_tables(self, tables: list[tuple[str, Mapping[str, Any], dict[str, Any]]]) -> None:
        for label, table, before in tables:
            if all(map(_is, map(table.get, before), before.values())):
                continue
            for name, value in before.items():
                now = table.get(name)
                if now is not value and _is_watched(name, value) and not self.is_from_here(now):
                    self.break_(f"patches {label}.{name}")
                    return

    def _check_modules(self) -> None:
        for name in self._names:
            now = sys.modules.get(name)
            if now is not self._kept.get(name) and not self.is_from_here(now):
                self.break_(f"replaces the module {name}")


_is = operator.is_


def _all_classes() -> list[type]:
    """Return all classes that there are."""
    classes, waiting = {id(object): object}, [object]
    while waiting:
        subclasses = [cls for cls in type.__subclasses__(waiting.pop()) if id(cls) not in classes]
        classes |= {id(cls): cls for cls in subclasses}
        waiting += subclasses
    return list(classes.values())


def _forget_ctypes() -> None:
    """Take away what other modules hold of `ctypes`, which would give any place of memory to the answer."""
    for name in ("ctypes", "_ctypes"):
        hidden_module = sys.modules.get(name)
        for module in list(sys.modules.values()):
            variables = list(vars(module).items()) if isinstance(module, types.ModuleType) else ()
            for key, value in variables:
                if value is hidden_module and module.__name__.partition(".")[0] != "ctypes":
                    vars(module)[key] = None


def _is_watched(name: str, value: Any) -> bool:
    return name != "__warningregistry__" and (
        callable(value) or isinstance(value, property | staticmethod | classmethod)
    )
