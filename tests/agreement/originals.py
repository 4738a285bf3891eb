# SPDX-License-Identifier: Apache-2.0
"""Originals that are a file of their own."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
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


def defined(path: Path, *names: str, **scope: Any) -> Any:
    """Functions, methods (`Class.method`), classes and constants of a file, run without the rest of it.

    `scope`: what they need of that.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [(_name(node), node) for node in tree.body]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes += [(f"{parent.name}.{_name(node)}", node) for parent in classes for node in parent.body]
    body = [node for name, node in nodes if name in names]
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = []
    code = compile(ast.Module(body, []), str(path), "exec", flags=annotations.compiler_flag)
    exec(code, scope)
    return SimpleNamespace(**scope)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""
