# SPDX-License-Identifier: Apache-2.0
"""The Python API: what checkers and editors read is what runs, and what it promises to take is taken."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import newskills
from newskills._api.functions import FUNCTIONS, SPELLINGS
from newskills._api.objects import generation_signature
from newskills._api.signatures import JSON, NUMBERS, TEXTS, WORDS
from newskills._api.stub import stub_text
from newskills.commands.command import resolve_function
from newskills.commands.loading import load_command
from newskills.commands.table import command_names
from newskills.config.command_line import build
from newskills.config.fields import leaves

STUB = ast.parse(stub_text())


def defined() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_stub_says_what_settings_there_are() -> None:
    (node,) = (node for node in STUB.body if isinstance(node, ast.ClassDef))
    (made,) = (item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__")
    assert node.name == "Generation"
    assert ast.get_docstring(node) == inspect.getdoc(newskills.Generation)
    assert {each.arg: unparsed(each.annotation) for each in made.args.kwonlyargs} == {
        name: unparsed(ast.parse(each.annotation, mode="eval").body)
        for name, each in generation_signature().parameters.items()
    }


def function(name: str) -> FunctionType:
    made = getattr(newskills, name)
    assert isinstance(made, FunctionType)
    return made


def test_all_names_are_there() -> None:
    assert dir(newskills) == sorted(newskills.__all__)
    assert {*FUNCTIONS, *SPELLINGS, *newskills.OBJECTS} < {*newskills.__all__}
    assert all(getattr(newskills, name) is not None for name in newskills.__all__)
    assert newskills.eval is newskills.evaluate
    assert newskills.evaluate_async is newskills.aevaluate
    assert defined().keys() == FUNCTIONS.keys()
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = newskills.evaluat  # type: ignore[attr-defined]


def test_every_command_is_a_function_that_says_what_it_returns() -> None:
    assert {each.command for each in FUNCTIONS.values()} == {*command_names()}
    for name in FUNCTIONS:
        returned = inspect.signature(function(name)).return_annotation
        assert returned not in ("None", "Any", "object", ""), name


def test_checkers_see_all_names() -> None:
    """They follow the imports below `if TYPE_CHECKING`, not `__getattr__`."""
    module = ast.parse(Path(newskills.__file__).read_text(encoding="utf-8"))
    blocks = [node.body for node in module.body if isinstance(node, ast.If)]
    imports = [node for node in blocks[0] if isinstance(node, ast.ImportFrom)]
    assert {alias.name for node in imports for alias in node.names} == {*newskills.__all__} - {"__version__"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_stub_says_what_runs(name: str) -> None:
    node, made = defined()[name], function(name)
    assert inspect.iscoroutinefunction(made) == isinstance(node, ast.AsyncFunctionDef)
    shown = inspect.signature(made)
    assert [(each.arg, unparsed(each.annotation)) for each in parameters(node)] == [
        (each.name, unparsed(ast.parse(each.annotation, mode="eval").body)) for each in shown.parameters.values()
    ]
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    assert [inspect.Parameter.empty if each is None else ast.literal_eval(each) for each in defaults] == [
        each.default for each in shown.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    assert shown.return_annotation == unparsed(node.returns)
    assert inspect.getdoc(made) == ast.get_docstring(node)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    yield from [*node.args.args, *node.args.kwonlyargs]
    if node.args.kwarg is not None:
        yield node.args.kwarg


def unparsed(node: ast.expr | None) -> str:
    assert node is not None
    return ast.unparse(node)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_tells_arguments_result_and_errors(name: str) -> None:
    made = function(name)
    text = inspect.getdoc(made) or ""
    assert made.__module__ == "newskills"
    for parameter in inspect.signature(made).parameters:
        assert f"\n    {parameter}: " in text.replace("    **", "    "), parameter
    assert "\n\nReturns:\n" in text
    assert "\n\nRaises:\n" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_result_is_that_of_the_command(name: str) -> None:
    declared = FUNCTIONS[name]
    command = load_command(declared.command)
    assert command.result is not None
    returned = inspect.signature(resolve_function(command.result)).return_annotation
    assert {part.strip() for part in returned.split(" | ")} == {
        *([declared.returns] if declared.returns else []),
        *(["Experiment"] if declared.submits else []),
        *([] if declared.always else ["None"]),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_name_that_is_no_argument_is_refused(name: str) -> None:
    if name in ("prepare_data", "aevaluate", "agenerate"):  # takes options of benchmarks; are awaited
        return
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no argument 'no_such_thing'"):
        function(name)(no_such_thing=1)


def test_what_a_text_stands_for_may_be_given_instead() -> None:
    values = {JSON: {"a": 1}, WORDS: ("a", "b"), NUMBERS: range(2, 4)}
    texts = {JSON: '{"a":1}', WORDS: "a,b", NUMBERS: "2,3"}
    met = set()
    for declared in FUNCTIONS.values():
        options = load_command(declared.command).options
        fields = leaves(options)
        for name in TEXTS.keys() & {path for path, leaf in fields.items() if not leaf.is_list}:
            required = {p: 1 if leaf.type_name == "float" else "hf" for p, leaf in fields.items() if leaf.required}
            made = build(options, {**required, name: values[TEXTS[name]]}, command="x")
            assert getattr(made, name) == texts[TEXTS[name]]
            met.add(name)
    assert met == TEXTS.keys()


def test_a_list_may_be_any_sequence_or_one_value() -> None:
    options = load_command("eval").options
    for gpus in (8, [8], (8,), range(8, 9)):
        assert build(options, {"benchmarks": "x", "server_gpus": gpus}, command="x").server_gpus == [8]
    for model in ("m", ["m"], ("m",)):
        assert build(options, {"benchmarks": "x", "model": model}, command="x").model == ["m"]
    assert build(options, {"benchmarks": "x", "chunk_ids": (1, 2)}, command="x").chunk_ids == [1, 2]
