# SPDX-License-Identifier: Apache-2.0
"""A public function that raises an error of ours has a docstring that names it, or a kind of error that it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import newskills
from newskills.base import errors

ROOT = Path(newskills.__file__).parent
OURS = {
    name: {kind.__name__ for kind in error.__mro__ if issubclass(kind, errors.NewskillsError)}
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, errors.NewskillsError)
}
"""Error → its name, and those of the errors that it is a kind of."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(node: ast.Module | ast.ClassDef, inside: str = "") -> Iterator[tuple[str, Function, str]]:
    """Functions and methods whose names, and whose classes' names, begin with no underscore: (name, node, docstring).

    What makes an object may be described where its class is.
    """
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_functions(child, f"{inside}{child.name}.")
        elif isinstance(child, Function) and child.name in ("__init__", "__post_init__"):
            yield f"{inside}{child.name}", child, f"{ast.get_docstring(node)} {ast.get_docstring(child)}"
        elif isinstance(child, Function) and not child.name.startswith("_"):
            yield f"{inside}{child.name}", child, ast.get_docstring(child) or ""


def raised(function: Function) -> set[str]:
    """Errors of ours in its `raise` statements, those of functions within it aside."""
    names = set()
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            called = node.exc.func
            names.add(called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", ""))
        waiting += ast.iter_child_nodes(node)
    return names & OURS.keys()


def unnamed(text: str) -> list[str]:
    """`function: Error` for each error that no docstring of its function names."""
    return [
        f"{name}: {error}"
        for name, function, docstring in public_functions(ast.parse(text))
        for error in sorted(raised(function))
        if not any(kind in docstring for kind in OURS[error])
    ]


def test_what_is_left_out_is_seen() -> None:
    assert unnamed("def f():\n    'Reads it.'\n    raise DataError('x')") == ["f: DataError"]
    assert unnamed("class A:\n    async def f(self):\n        raise errors.AuthError('x')") == ["A.f: AuthError"]
    assert (
        unnamed("class A:\n    'Raises ConfigError.'\n    def __init__(self):\n        raise ConfigError('x')")
        == []
    )
    assert unnamed("def f():\n    'Raises UserError.'\n    raise DataError('x')") == []
    assert unnamed("def f():\n    def g():\n        raise DataError('x')") == []


def test_errors_are_named_where_they_are_raised() -> None:
    missing = {
        path.relative_to(ROOT).as_posix(): lines
        for path in sorted(ROOT.rglob("*.py"))
        if (lines := unnamed(path.read_text(encoding="utf-8")))
    }
    assert missing == {}
