# SPDX-License-Identifier: Apache-2.0
"""Tells which unit tests hand over and compare plain data only: they need not share a process with an answer."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from msgspec import Struct

_MODULES = frozenset(
    (
        *("__future__", "unittest", "math", "cmath", "json", "re", "string", "decimal", "fractions"),
        *("itertools", "functools", "operator", "statistics", "typing", "collections", "copy", "textwrap"),
    )
)
"""Modules whose part in a test is the same in either process."""
_OBJECTS = frozenset(
    (
        *("issubclass", "type", "id", "vars", "dir", "callable", "open", "input", "super"),
        *("globals", "locals", "eval", "exec", "compile", "getattr", "setattr", "hasattr", "delattr", "object"),
        *("OrderedDict", "mock", "patch", "MagicMock", "Mock", "__file__", "__name__", "iter", "next", "hash"),
    )
)
"""Names by which tests look at more of a value than it says of itself."""
_IDENTITY = frozenset({"assertIs", "assertIsNot", "assertNotIsInstance", "assertLogs", "assertWarns"})
_KINDS = frozenset({"int", "float", "complex", "bool", "str", "bytes", "list", "tuple", "dict", "set"})
_CHANGES = frozenset(
    (
        *("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "add", "discard"),
        *("setdefault", "popitem", "appendleft", "popleft", "extendleft", "rotate"),
    )
)
_BASES = frozenset({"TestCase", "unittest.TestCase"})
_CONTEXTS = frozenset({"self.assertRaises", "self.assertRaisesRegex", "self.subTest"})
_ODD = (
    *(ast.Lambda, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef, ast.Yield, ast.YieldFrom),
    *(ast.Global, ast.Nonlocal, ast.Delete, ast.Match),
)


class PlainTests(Struct, frozen=True, kw_only=True):
    """What plain tests need of an answer.

    names    what they take from it
    imports  statements of the benchmark's head that they rely on
    calls    they only call functions by name, so that nothing but data can come back
    """

    names: list[str]
    imports: str
    calls: bool


def plain_tests(tests: str, head: str, entry: str) -> PlainTests | None:
    """Return what the tests need; None where they reach into objects, files, modules or the run itself."""
    try:
        tree, head_imports = ast.parse(tests), list(_head_imports(head))
    except (SyntaxError, ValueError):
        return None
    tree.body = [node for node in tree.body if not _is_main(node)]
    if not all(map(_is_plain, ast.walk(tree))) or not all(map(_is_plain_top, tree.body)):
        return None
    if not all(_is_allowed_import(node) for node in ast.walk(tree)):
        return None
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _bound_names(tree)
    names = sorted(name for name in loaded if name == entry or not hasattr(builtins, name))
    imports = [node for node in head_imports if {*_imported_names(node)} & set(names)]
    if not all(map(_is_allowed_import, imports)):
        return None
    names = [name for name in names if not any(name in _imported_names(node) for node in imports)]
    if not names:
        return None
    text = "".join(f"{ast.unparse(node)}\n" for node in imports)
    return PlainTests(names=names, imports=text, calls=_only_calls(tree, set(names)))


def _head_imports(head: str) -> Iterator[ast.Import | ast.ImportFrom]:
    for text in (head, f"{head}    pass\n"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        yield from (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
        return


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [each.asname or each.name.partition(".")[0] for each in node.names]


def _is_allowed_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return all(each.name in _MODULES for each in node.names)
    return not isinstance(node, ast.ImportFrom) or (node.module in _MODULES and not node.level)


def _bound_names(tree: ast.AST) -> set[str]:
    """Return names that the tests give to anything themselves."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= set(_imported_names(node))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def _is_plain(node: ast.AST) -> bool:
    """Return whether a part of the tests means the same for values that have travelled."""
    if isinstance(node, _ODD):
        return False
    if isinstance(node, ast.Name):
        return node.id not in _OBJECTS
    if isinstance(node, ast.Attribute):
        return _is_plain_attribute(node)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) or isinstance(node.value, ast.Name)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "self.assertIsInstance"):
        kinds = {each.id for arg in node.args[1:2] for each in ast.walk(arg) if isinstance(each, ast.Name)}
        return bool(kinds) and kinds <= _KINDS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr not in _CHANGES or isinstance(node.func.value, ast.Name)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        is_identity = any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        return not is_identity or any(isinstance(side, ast.Constant) for side in sides)
    if isinstance(node, ast.With):
        return all(_is_plain_context(item.context_expr) for item in node.items)
    return True


def _is_plain_attribute(node: ast.Attribute) -> bool:
    return node.attr not in _IDENTITY and node.attr not in _OBJECTS and not node.attr.startswith("__")


def _is_plain_context(call: ast.expr) -> bool:
    """Return whether `call` asserts that one of Python's own errors is raised, or begins a part of a test."""
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in _CONTEXTS:
        return False
    if ast.unparse(call.func) == "self.subTest":
        return True
    if call.args and isinstance(call.args[0], ast.Name):
        kind = getattr(builtins, call.args[0].id, None)
    else:
        kind = None
    return isinstance(kind, type) and issubclass(kind, Exception)


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _is_plain_top(node: ast.stmt) -> bool:
    """Return whether a statement of the module is an import, a value, a test function or a class of tests."""
    if isinstance(node, ast.ClassDef):
        bases = {ast.unparse(base) for base in node.bases}
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        if any(isinstance(each, ast.ClassDef) for each in node.body) or node.keywords or not bases <= _BASES:
            return False
        return all(map(_is_plain_function, methods)) and (bool(bases) or all(map(_is_bare_test, methods)))
    if isinstance(node, ast.FunctionDef):
        return _is_plain_function(node) and node.name.startswith("test") and not node.args.args
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr)


def _is_plain_function(node: ast.FunctionDef) -> bool:
    """Return whether a function is decorated as a method of a class at most, and defines nothing within."""
    decorators = {ast.unparse(each) for each in node.decorator_list}
    inner = [
        each for each in ast.walk(node) if each is not node and isinstance(each, ast.FunctionDef | ast.ClassDef)
    ]
    return decorators <= {"classmethod", "staticmethod"} and not inner


def _is_bare_test(node: ast.FunctionDef) -> bool:
    """Return whether a method is a test that pytest gives nothing to."""
    return (
        node.name.startswith("test")
        and not node.decorator_list
        and [arg.arg for arg in node.args.args] == ["self"]
    )


def _only_calls(tree: ast.AST, names: set[str]) -> bool:
    """Return whether the names are only called, and no attribute is taken of anything but `self` and modules."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    if any(use not in called for use in uses) or any(name[:1].isupper() for name in names):
        return False
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {name for node in imports for name in _imported_names(node)}
    roots = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return all(isinstance(root, ast.Name) and root.id in {"self", "cls", *modules} for root in roots)
