# SPDX-License-Identifier: Apache-2.0
"""Comparisons in tests whose outcome is not the answer's say.

A class of the answer may define what its own objects equal. Between such an object and a value of another kind it
decides nothing: they are different. The tests are compiled with their comparisons and calls routed through here.
"""

from __future__ import annotations

import collections
import gc
import operator
import sys
import types
import weakref

from newskills.graders.code.inside.near import NOTHING, differ_in_content, is_array, is_table, settle_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from newskills.graders.code.inside.private import World

_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), type(...), range, type, types.FunctionType})
_DECIDES = frozenset(
    {
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getattribute__"),
        *("__sub__", "__rsub__", "__abs__", "__round__", "__array_ufunc__", "__array_function__", "__class__"),
        *("__bool__", "__float__", "__array__", "__instancecheck__", "__subclasscheck__"),
    }
)
_VALUES = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)
_FIXED = (int, float, complex, str, bytes, set, frozenset)
_PREDICATES = frozenset(
    {
        *("equals", "all", "any", "startswith", "endswith", "issubset", "issuperset", "isdisjoint", "identical"),
        *("isin", "between", "match", "fullmatch", "search", "is_integer"),
    }
)
"""Methods of values that tests ask for a truth."""
_DISGUISES = ("__class__", "__getattribute__")
_MOST_ITEMS = 20_000
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Sub": operator.sub,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda item, group: item in group,
    "NotIn": lambda item, group: item not in group,
}
_EQUAL_ASSERTS = frozenset(
    {
        *(
            "assertEqual",
            "assertEquals",
            "assertAlmostEqual",
            "assertListEqual",
            "assertTupleEqual",
            "assertDictEqual",
        ),
        *("assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual", "assertIn"),
        *(
            "assertGreater",
            "assertGreaterEqual",
            "assertLess",
            "assertLessEqual",
            "assertRegex",
            "assertDictContainsSubset",
        ),
    }
)
_UNEQUAL_ASSERTS = frozenset({"assertNotEqual", "assertNotEquals", "assertNotAlmostEqual", "assertNotIn"})
_FORWARDS = (weakref.ProxyType, weakref.CallableProxyType)
"""Classes whose objects do what others do."""
_SHOWS = frozenset(
    {types.MappingProxyType, type({}.keys()), type({}.items()), types.SimpleNamespace, collections.deque}
)
_referents = gc.get_referents
_MRO = type.__dict__["__mro__"].__get__


class Rules:
    """Comparisons by the rules of this module.

    own   classes of the answer that the tests call by name
    """

    def __init__(self, world: World, may_approximate: bool) -> None:
        self._world = world
        self.own: set[type] = set()
        self._universal = ("/unittest/mock.py", *(() if may_approximate else ("/_pytest/",)))

    def names(self) -> dict[str, Any]:
        """Return what compiled tests call."""
        return {
            "__compare__": self.compare,
            "__assert__": self.assert_,
            "__value__": self.value,
            "__given__": self.given,
            "__near__": self.near,
        }

    def guard_calls(self, mock: Any) -> None:
        """Let what mocks were called with be compared by these rules, too."""
        equal = mock._Call.__eq__

        def guarded(call: Any, other: Any) -> Any:
            same = call is other or self._class_decides_for(tuple(call)) == self._class_decides_for(tuple(other))
            return same and equal(call, other)

        mock._Call.__eq__ = guarded

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Compare as Python does, unless one side alone is of a class that decides: then both differ."""
        if type(left) in _PLAIN and type(right) in _PLAIN:
            return _OPERATORS[name](left, right)
        if name not in ("In", "NotIn") and _is_nothing_beside(left, right):
            raise AssertionError(NOTHING)
        if name in ("In", "NotIn") and self._is_own_container(right):
            return _OPERATORS[name](left, right)
        if self._class_decides_for(left) == self._class_decides_for(right):
            return _OPERATORS[name](left, right)
        self._note_own_classes(left, right)
        if name in ("Sub", "Lt", "LtE", "Gt", "GtE"):
            raise TypeError("an object of the answer's is compared with another value")
        return name.startswith("Not")

    def assert_(self, owner: Any, name: str, *values: Any, **named: Any) -> Any:
        """Call an assertion of `unittest`."""
        method = getattr(owner, name)
        if len(values) >= 2 and (name in _EQUAL_ASSERTS or name in _UNEQUAL_ASSERTS):
            first, second = values[:2]
            alike = type(first) in _PLAIN and type(second) in _PLAIN
            is_searched = name in ("assertIn", "assertNotIn") and self._is_own_container(second)
            if not alike and not is_searched and self._class_decides_for(first) != self._class_decides_for(second):
                self._note_own_classes(first, second)
                if name in _UNEQUAL_ASSERTS:
                    return None
                raise AssertionError("a class of the answer's decides what its objects equal")
        return method(*values, **named)

    def value(self, value: Any, name: str) -> Any:
        """Return what a test takes an attribute of. Raises AssertionError."""
        kind = type(value)
        if kind not in _PLAIN and kind not in _VALUES and self._is_disguised(kind, name):
            self._world.break_("hands over a value that only looks like one")
            raise AssertionError("a value that only looks like one")
        return value

    def given(self, value: Any) -> Any:
        """Return an argument of a library's function. Raises AssertionError."""
        if type(value) not in _PLAIN and self._class_decides_for(value):
            self._note_own_classes(value)
            raise AssertionError("a class of the answer's decides what its objects equal")
        return value

    def near(self, compare: Any, *values: Any, **named: Any) -> Any:
        """Call a library's function that compares its first two arguments. Raises AssertionError."""
        for package in ("numpy", "pandas"):  # a patch that undoes itself as it is called is there now
            self._world.check_functions(package)
        if self._world.broken:
            raise AssertionError(self._world.broken)
        arguments = [self.given(value) for value in values]
        arguments[:2] = [settle_value(compare, value) for value in arguments[:2]]
        if len(arguments) >= 2 and differ_in_content(*arguments[:2]):
            raise AssertionError(NOTHING)
        return compare(*arguments, **named)

    def _note_own_classes(self, *values: Any) -> None:
        if not any(type(value) in self.own for value in values):
            self._world.notes["a class of its own decides on equality"] = None

    def _is_own_container(self, value: Any) -> bool:
        return type(value) in self.own and not isinstance(value, _VALUES)

    def _class_decides_for(self, value: Any) -> bool:
        return any(self._class_decides(kind) for kind in _held_classes(value))

    def _class_decides(self, kind: type) -> bool:
        if kind in _PLAIN or kind in _VALUES:
            return False
        if kind in _FORWARDS:
            return True
        if (is_array(kind) or is_table(kind)) and any(map(self._world.is_new_class, _MRO(kind))):
            return any(map(self._is_answers_class, _MRO(kind)))
        return any(
            self._is_answers(base, vars(base)[name])
            for base in _MRO(kind)
            if base not in (object, type)
            for name in _DECIDES
            if name in vars(base)
        )

    def _is_disguised(self, kind: type, name: str) -> bool:
        """Return whether a class of the answer says of itself what the kind that it stands for should say."""
        bases = [base for base in _MRO(kind) if base not in (object, type)]
        always = [base for base in bases if any(each in vars(base) for each in _DISGUISES)]
        by_name = [base for base in bases if name in vars(base)]
        if name not in _PREDICATES and not issubclass(kind, _FIXED) and not any(map(_is_table, bases)):
            by_name = []
        if not always and not by_name:  # asked first: threads of the answer go on while a test waits here
            return False
        if kind in self.own:
            return False
        return any(map(self._is_answers_class, dict.fromkeys(always + by_name)))

    def _is_answers_class(self, base: type) -> bool:
        functions = [value for value in vars(base).values() if isinstance(value, types.FunctionType)]
        if self._world.is_private_class(base):
            return any(map(_is_given_to_mock, functions))
        return any(self._is_answers_function(base, value) for value in functions)

    def _is_answers(self, base: type, value: Any) -> bool:
        if value is None:
            return False
        if self._world.is_private_class(base):
            return isinstance(value, types.FunctionType) and _is_given_to_mock(value)
        if isinstance(value, types.FunctionType):
            return self._is_answers_function(base, value)
        if getattr(value, "__objclass__", None) is base or self._world.is_from_here(value):
            return False
        if self._world.is_new_class(base):
            return True  # whatever its name says of where it is from
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        return isinstance(file, str) and self._is_universal(file)

    def _is_answers_function(self, base: type, function: types.FunctionType) -> bool:
        filename = function.__code__.co_filename
        if self._is_universal(filename) or (self._world.is_new_class(base) and self._passes_on(function)):
            return True
        return self._world.is_foreign(filename) and not _is_dataclass_method(base, function)

    def _passes_on(self, function: types.FunctionType) -> bool:
        """Return whether a library's function holds a function of the answer's, or an object that may hide one."""
        for cell in function.__closure__ or ():
            held = cell.cell_contents
            if type(held) is types.FunctionType:
                if self._world.is_foreign(held.__code__.co_filename):
                    return True
            elif type(held) not in _PLAIN and not isinstance(held, type):
                return True
        return False

    def _is_universal(self, file: str) -> bool:
        return any(part in file for part in self._universal)


def _is_nothing_beside(left: Any, right: Any) -> bool:
    """Return whether only one of two compared values has content, and one of them is an array or table.

    The other is an array, a table or a sequence; beside an array it may be a number.
    """
    kinds = [type(each) for each in (left, right)]
    arrays, tables = sum(map(is_array, kinds)), sum(map(is_table, kinds))
    if not arrays + tables:
        return False
    is_number = any(issubclass(kind, int | float | complex) for kind in kinds)
    is_pair = (
        arrays + tables == 2 or any(issubclass(kind, list | tuple) for kind in kinds) or (arrays and is_number)
    )
    return bool(is_pair) and differ_in_content(left, right)


def _is_given_to_mock(function: types.FunctionType) -> bool:
    return function.__code__.co_name == "method"


def _is_table(base: type) -> bool:
    return base.__module__.partition(".")[0] in ("numpy", "pandas")


def _is_dataclass_method(base: type, function: types.FunctionType) -> bool:
    """Return whether `dataclasses` wrote a method; its file does not tell that."""
    fields = vars(base).get("__dataclass_fields__")
    if type(fields) is not dict or not all(type(name) is str for name in fields):
        return False
    import dataclasses

    written = dataclasses.make_dataclass("Written", list(fields), order=True).__dict__.get(function.__name__)
    ours, theirs = function.__code__, getattr(written, "__code__", None)
    return theirs is not None and (ours.co_code, ours.co_names, ours.co_consts) == (
        theirs.co_code,
        theirs.co_names,
        theirs.co_consts,
    )


def _held_classes(value: Any) -> Iterator[type]:
    """Yield the classes of the value and of what it holds, up to a limit."""
    waiting, left = [value], _MOST_ITEMS
    seen: set[int] = set()
    while waiting and left:
        item = waiting.pop()
        kind = type(item)
        if kind in _PLAIN:
            continue
        left -= 1
        yield kind
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            waiting += [*dict.keys(item), *dict.values(item)]
        elif issubclass(kind, list | tuple | set | frozenset):
            waiting += _base_items(item)
        elif kind in _SHOWS or _is_compared_in_python(kind):
            waiting += _compared_parts(item)
        else:
            waiting += _array_cells(item)


def _is_compared_in_python(kind: type) -> bool:
    """Return whether a class of Python's library compares its objects by what they hold (fractions, paths)."""
    root = str(kind.__module__).partition(".")[0]
    return root in sys.stdlib_module_names and type(getattr(kind, "__eq__", None)) is types.FunctionType


def _compared_parts(item: Any) -> list[Any]:
    """Return what an object of Python's own compares of itself."""
    parts = [each for each in _referents(item) if not isinstance(each, type | types.ModuleType)]
    tables = [each for each in parts if type(each) is dict]
    return [*parts, *(value for table in tables for value in table.values())]


def _base_items(item: Any) -> Iterator[Any]:
    base = next(each for each in (list, tuple, set, frozenset) if isinstance(item, each))
    return base.__iter__(item)


def _array_cells(item: Any) -> list[Any]:
    """Return the objects in an array or table."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and isinstance(item, numpy.ndarray):
        return numpy.ndarray.tolist(item.ravel()[:_MOST_ITEMS]) if item.dtype == object else []
    if pandas is not None and isinstance(item, pandas.DataFrame):
        return [item.columns, item.index, *(column for _, column in pandas.DataFrame.items(item))]
    if pandas is not None and isinstance(item, pandas.Series | pandas.Index):
        return list(item.to_numpy()[:_MOST_ITEMS]) if item.dtype == object else []
    return []
