# SPDX-License-Identifier: Apache-2.0
"""Public modules: they are there, they tell what they are, and the pages name no others."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from newskills._api.public import PUBLIC
from newskills.base import errors

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = [path for folder in ("docs/examples", "recipes") for path in sorted((ROOT / folder).rglob("*.py"))]
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"(?<![\w/])newskills(?:\.\w+)+")
FOR_CONTRIBUTORS = {"newskills.benchmarks.generate_catalog", "newskills.benchmarks.unproven"}
COMMANDS_OF_PLANS = {"newskills.launch.ray_node", "newskills.train.pipelines.harvest"}  # what a plan prints
ENTRY_POINTS = {
    f"newskills.{group}"
    for group in ("benchmarks", "graders", "metrics", "models", "solvers", "tools", "trainers")
}


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_has_its_names(module: str) -> None:
    if not PUBLIC[module].names:
        assert find_spec(module) is not None
        return
    loaded = import_module(module)
    assert loaded.__doc__
    for name in PUBLIC[module].names:
        if name == "*":
            assert loaded.__all__
            continue
        value = getattr(loaded, name)
        if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, errors.NewskillsError)):
            assert value.__doc__, name


def test_all_errors_are_explained() -> None:
    for name in PUBLIC["newskills.base.errors"].names:
        assert re.search(rf"^\W*{name}\s", errors.__doc__ or "", re.MULTILINE), name


def imported(text: str) -> set[tuple[str, str]]:
    """(module, name) of each import from newskills."""
    return {
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "newskills"
        for alias in node.names
    }


@pytest.mark.parametrize("path", [*PAGES, *SCRIPTS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_users_are_shown_imports_public_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    examples = FENCE.findall(text) if path.suffix == ".md" else [text]
    for module, name in (pair for example in examples for pair in imported(example)):
        assert module in PUBLIC, module
        names = PUBLIC[module].names
        assert name in (import_module(module).__all__ if names == ("*",) else names), f"{module}.{name}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_modules_that_pages_name_are_public(path: Path) -> None:
    allowed = ENTRY_POINTS | FOR_CONTRIBUTORS | COMMANDS_OF_PLANS
    for name in set(MODULE.findall(path.read_text(encoding="utf-8"))) - allowed:
        module = within(name)
        if module != "newskills":  # labels, logs and URLs begin like that, too
            assert module in PUBLIC, name
            assert {name.removeprefix(module).lstrip(".")} <= {"", *PUBLIC[module].names}, name


def within(name: str) -> str:
    """The module that a dotted name is, or is in."""
    module = "newskills"
    for part in name.split(".")[1:]:
        if not hasattr(import_module(module), "__path__") or find_spec(f"{module}.{part}") is None:
            break
        module += f".{part}"
    return module
