# SPDX-License-Identifier: Apache-2.0
"""A docstring begins with a verb; of a public function that raises an error of ours it names that, or a kind of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import newskills
from newskills.base import errors
from newskills.base.libraries import APPLICATIONS, LIBRARIES, library_source
from newskills.graders.tau2.grader import SERVICES

ROOT = Path(newskills.__file__).parent
OURS = {
    name: {kind.__name__ for kind in error.__mro__ if issubclass(kind, errors.NewskillsError)}
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, errors.NewskillsError)
}
"""Error → its name, and those of the errors that it is a kind of."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files() -> list[Path]:
    """Those of newskills, its libraries and recipes, and its applications with the names that they add to it."""
    packages = [ROOT.parents[1] / library_source(name) for name in (*LIBRARIES, *APPLICATIONS)]
    roots = (ROOT, ROOT.parents[1] / "recipes", *(folder.parent for folder in packages))
    return sorted(path for root in roots for path in root.rglob("*.py"))


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
        path.relative_to(ROOT.parents[1]).as_posix(): lines
        for path in files()
        if (lines := unnamed(path.read_text(encoding="utf-8")))
    }
    assert missing == {}


_WORDS = """
Accept Adapt Add Aggregate Align Allow Answer Append Apply Ask Assign Assume Average Await Begin Blame
Book Bring Build Call Cancel Change Check Choose Close Collect Compare Compile Compute Connect Continue Convert
Copy Count Create Cut Decode Decompress Decrypt Delete Derive Describe Discover Divide Do Draw Drop Elect
Encode End Enforce Ensure Enter Escape Estimate Evaluate Execute Exempt Exit Expand Explain Export Extract
Fetch Fill Find Fine-tune Finish Fit Flatten Flush Follow Forget Format Forward Generate Get Give Grade
Group Guard Handle Hash Hold Import Improve Index Install Join Judge Justify Keep Kill Lay Leave Let Limit
List Listen Load Lock Log Lower Make Map Mark Measure Merge Move Name Note Open Override Pack Pair Parse
Place Plan Play Post Prefix Prepare Print Probe Put Query Queue Quote Raise Reach Read Record Reduce
Refuse Register Regrade Release Remove Render Replace Report Reset Resolve Restore Retrieve Return Reward Rotate
Round Run Sample Save Say Scan Search Seed Select Send Serve Set Shorten Show Shuffle Shut Solve Split Start
Stop Store Strip Submit Suggest Summarize Take Tell Test Touch Train Translate Treat Try Turn Unpack Update Validate
Wait Warn Work Wrap Write Yield
"""
VERBS = frozenset(_WORDS.split())
"""First words of docstrings of functions; a new verb is added here, in its base form."""

NO_VERB = re.compile(
    r"(?:Answer|Empty|Key|Mean|Name|Process|Question|Score|Share) (?:→|(?:of|ids|interval|for|where)\b)"
)
"""First words that are nouns where they begin a docstring."""

TOOLS = frozenset(name for service in SERVICES.values() for name in (*service.agent_tools, *service.user_tools))
"""Functions of tau2-bench whose docstrings models are told: other words would change what the benchmark measures."""

PROPERTY = re.compile(r"(?:^|\.)(?:cached_)?property$|\.setter$")


def told_to_models(path: Path) -> frozenset[str]:
    """Return the functions of a file whose docstrings are the descriptions of tools."""
    return TOOLS if path.is_relative_to(ROOT / "graders" / "tau2") else frozenset()


def without_verb(text: str, told: frozenset[str] = frozenset()) -> list[str]:
    """`function: first word` of functions, private ones too, whose docstring begins with no verb.

    A property is described as what it is. `told`: functions whose docstrings are told to models.
    """
    return [
        f"{node.name}: {docstring.split()[0]}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, Function)
        and (docstring := ast.get_docstring(node))
        and node.name not in told
        and not any(PROPERTY.search(ast.unparse(decorator)) for decorator in node.decorator_list)
        and (docstring.split()[0].rstrip(",.:;") not in VERBS or NO_VERB.match(docstring))
    ]


@pytest.mark.parametrize(
    ("docstring", "words"),
    [
        ("Of a moment ago.", ["f: Of"]),
        ("`text` without keys.", ["f: `text`"]),
        ("Whether it is there.", ["f: Whether"]),
        ("Name → group.", ["f: Name"]),
        ("Return the catalog, at most LOOK_EVERY seconds old.", []),
        ("Summarize, for Python, what was written.", []),
    ],
)
def test_a_docstring_without_a_verb_is_seen(docstring: str, words: list[str]) -> None:
    assert without_verb(f"def f():\n    '{docstring}'") == words


def test_properties_are_described_as_what_they_are() -> None:
    assert without_verb("class A:\n    @functools.cached_property\n    def f(self):\n        'Rows of it.'") == []


def test_what_models_are_told_stays_in_its_words() -> None:
    tool = "def get_user_details():\n    'Shows a user.'"
    assert without_verb(tool, told_to_models(ROOT / "graders/tau2/airline.py")) == []
    assert without_verb(tool, told_to_models(ROOT / "graders/exact.py")) == ["get_user_details: Shows"]


def test_docstrings_begin_with_a_verb() -> None:
    nouns = {
        path.relative_to(ROOT.parents[1]).as_posix(): words
        for path in files()
        if (words := without_verb(path.read_text(encoding="utf-8"), told_to_models(path)))
    }
    assert nouns == {}
