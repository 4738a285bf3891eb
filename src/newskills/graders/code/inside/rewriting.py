# SPDX-License-Identifier: Apache-2.0
"""Tests compiled so that their comparisons, assertions and calls of libraries go through `equality.Rules`."""

from __future__ import annotations

import ast

from newskills.graders.code.inside.near import COMPARING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_NUMERIC = frozenset({"abs", "round", "sum", "float", "int"})
_OWN = frozenset({"self", "cls"})


def rewritten(tests: str, more_imports: Iterable[tuple[str, str]] = ()) -> ast.Module:
    """Return the tests with calls of `__compare__`, `__assert__`, `__value__`, `__given__`, `__near__`.

    `more_imports`: those beside the tests' own. Raises SyntaxError.
    """
    tree = ast.parse(tests)
    modules = {name for name, _ in (*imports(tree), *more_imports)}
    return ast.fix_missing_locations(_Routes(modules).visit(tree))  # type: ignore[no-any-return]


def imports(tree: ast.AST) -> list[tuple[str, str]]:
    """Return (name in the text, module) of all imports."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(each.asname or each.name.partition(".")[0], each.name) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [(each.asname or each.name, node.module) for each in node.names]
    return names


def _call_node(name: str, *values: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(values), [])


class _Routes(ast.NodeTransformer):
    def __init__(self, modules: set[str]) -> None:
        self._modules = modules

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], _COMPARED):
            name = ast.Constant(type(node.ops[0]).__name__)
            return ast.copy_location(_call_node("__compare__", name, node.left, node.comparators[0]), node)
        if any(isinstance(op, _COMPARED) for op in node.ops):
            node.left = _call_node("__given__", node.left)
            node.comparators = [_call_node("__given__", value) for value in node.comparators]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Sub):
            return ast.copy_location(_call_node("__compare__", ast.Constant("Sub"), node.left, node.right), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        own = isinstance(node.value, ast.Name) and node.value.id in self._modules | _OWN
        if isinstance(node.ctx, ast.Load) and not own:
            node.value = ast.copy_location(
                _call_node("__value__", node.value, ast.Constant(node.attr)), node.value
            )
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        called = node.func
        root = called
        while isinstance(root, ast.Attribute):
            root = root.value
        self.generic_visit(node)
        if not isinstance(root, ast.Name):
            return node
        if isinstance(called, ast.Attribute) and called.value is root and root.id in _OWN:
            if called.attr.startswith("assert"):
                node.args = [root, ast.Constant(called.attr), *node.args]
                node.func = ast.Name("__assert__", ast.Load())
            return node
        compares = called.attr if isinstance(called, ast.Attribute) else root.id
        if root.id in self._modules and compares in COMPARING:
            node.args = [node.func, *node.args]
            node.func = ast.Name("__near__", ast.Load())
        elif root.id in self._modules or (called is root and root.id in _NUMERIC):
            node.args = [
                each if isinstance(each, ast.Starred) else _call_node("__given__", each) for each in node.args
            ]
        return node
