# SPDX-License-Identifier: Apache-2.0
"""Signature and docstring of a function, from the options of its command."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Any, Literal, get_args, get_origin

from newskills._api.functions import Function
from newskills.commands.command import Command
from newskills.commands.table import typed_words
from newskills.config.fields import Leaf, leaves, union_members
from newskills.config.help import by_group

WIDTH = 100
HANDLES = {
    "run_after": "str | Experiment | Sequence[str | Experiment | None] | None",
    "reuse_code_exp": "str | Experiment | None",
}
"""Keywords that take what an earlier call returned, which is None where nothing was left to do → their types."""

FOLLOWING = ("cancel", "logs", "status")
"""Commands whose `name` may be an experiment."""

JSON, WORDS, NUMBERS = "str | dict[str, Any]", "str | Sequence[str]", "str | Sequence[int]"
TEXTS = {
    "allow": WORDS,
    "average_steps": NUMBERS,
    "benchmarks": WORDS,
    "cluster": JSON,
    "group": WORDS,
    "judge_pipeline_kwargs": JSON,
    "judge_sbatch_kwargs": JSON,
    "metrics_kwargs": JSON,
    "mount_paths": WORDS,
    "sbatch_kwargs": JSON,
    "seeds": NUMBERS,
    "steps": NUMBERS,
    "summarize_sbatch_kwargs": JSON,
}
"""Options that are a text on the command line, JSON or with commas → what Python may give as well."""

FURTHER = "further_options"
"""Name of the keywords that only the command itself can judge."""

RAISES = (
    ("TypeError", "a keyword is unknown, or a required one is missing"),
    ("ConfigError", "a value or a `++` key does not fit"),
    ("UnknownNameError", "a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are named"),
    ("DataError", "a file is missing, or its contents do not fit"),
    ("LockedError", "another run works in the same folder"),
    ("NewskillsError", "everything else, such as work that is left undone; base of all but TypeError"),
)


BENCHMARKS, SETTINGS = "benchmarks", "settings"
"""Keywords that take objects of newskills: benchmarks beside their names, and what `++` keys say."""
OBJECTS = {
    "benchmarks": "str | Benchmark | Group | Sequence[str | Benchmark | Group]",
    "judge_model": "str | Model | None",
    "model": "str | Model | Sequence[str | Model]",
}
"""Options of evaluations and generations that take objects as well → their types."""
BENCHMARK_COMMANDS = ("eval", "robust_eval", "prepare_data", "validate")
"""Commands whose benchmarks may be objects."""
PATHS = ("_dir", "_file", "_files", "_path", "folder", "folders")
"""Endings of options that are paths of files or folders."""


class Annotation(str):
    """A type as `inspect.signature` shows it: without the quotes of a text."""

    __slots__ = ()
    __repr__ = str.__str__


CONTEXT = Parameter(
    "ctx", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotation("Arguments | None")
)
ROWS = "rows"
"""Keyword of `generate` and `grade`: rows of this process in place of files."""
ROWS_PARAMETER = Parameter(
    ROWS, Parameter.KEYWORD_ONLY, default=None, annotation=Annotation("Iterable[Mapping[str, Any]] | None")
)
SETTINGS_PARAMETER = Parameter(
    SETTINGS, Parameter.KEYWORD_ONLY, default=None, annotation=Annotation("Generation | None")
)


def call_signature(function: Function, command: Command[Any]) -> Signature:
    """Return keyword-only options, required ones first, with types as texts and the defaults of the command
    line."""
    return Signature([*_call_parameters(command)], return_annotation=Annotation(function.annotation))


def is_handle(option: str, command: Command[Any]) -> bool:
    """Return whether the option may be what an earlier call returned."""
    return option in HANDLES or (option == "name" and command.name in FOLLOWING)


def takes_settings(command: Command[Any]) -> bool:
    """Return whether the `++` keys of the command are those of a generation, which `Generation` holds."""
    return command.config is not None and command.config.__name__ == "GenerationConfig"


def takes_models(command: Command[Any]) -> bool:
    """Return whether models are named with their servers, so that `Model` may stand for both."""
    return {"model", "server_type"} <= leaves(command.options).keys() and leaves(command.options)["model"].is_list


def takes_rows(command: Command[Any]) -> bool:
    """Return whether rows may be objects of this process."""
    return command.name in ("generate", "grade")


def takes_benchmarks(command: Command[Any]) -> bool:
    """Return whether benchmarks may be objects of this process."""
    return command.name in BENCHMARK_COMMANDS


def _call_parameters(command: Command[Any]) -> Iterator[Parameter]:
    yield CONTEXT
    leaves_by_need = _ordered_options(command)
    required = sum(leaf.required for leaf in leaves_by_need)
    for number, leaf in enumerate(leaves_by_need):
        if number == required and takes_settings(command):
            yield SETTINGS_PARAMETER
        if number == required and takes_rows(command):
            yield ROWS_PARAMETER
        default = leaf.default
        if leaf.required:
            default = Parameter.empty
        elif default == []:
            default = ()
        kind = Annotation(type_of(leaf, command))
        yield Parameter(leaf.path, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
    if command.more_help:
        yield Parameter(FURTHER, Parameter.VAR_KEYWORD, annotation=Annotation("object"))


def _ordered_options(command: Command[Any]) -> list[Leaf]:
    """Return the options in the order of the help page: what is required, the command's own, groups."""
    listed = [leaf for _, group in by_group(leaves(command.options).values()) for leaf in group]
    return sorted(listed, key=lambda leaf: not leaf.required)


def key_type(leaf: Leaf) -> str:
    """Return the type of a `++` key as an annotation; any sequence or mapping will do for a list or a dictionary."""
    return " | ".join(dict.fromkeys(_type_name(kind) for kind in union_members(leaf.type)))


def type_of(leaf: Leaf, command: Command[Any]) -> str:
    """Return the type that the keyword takes, as an annotation: a list may be any sequence, or one value alone."""
    if leaf.path in HANDLES:
        return HANDLES[leaf.path]
    if is_handle(leaf.path, command):
        if leaf.required:
            return "str | Experiment"
        return "str | Experiment | None"
    takes = takes_benchmarks if leaf.path == BENCHMARKS else takes_models
    if leaf.path in OBJECTS and takes(command):
        return OBJECTS[leaf.path]
    names = [_type_name(kind) for kind in union_members(leaf.type)]
    if leaf.path.endswith(PATHS):
        names = [re.sub(r"\bstr\b", "str | Path", name) for name in names]
    if names[0] == "str":
        names[0] = TEXTS.get(leaf.path, "str")
    if leaf.is_list:
        names = [text for name in names for text in _one_or_several(name)]
    return " | ".join(dict.fromkeys(names))


def _one_or_several(name: str) -> tuple[str, ...]:
    inner = name.removeprefix("Sequence[").removesuffix("]")
    if name != inner:
        return (inner, name)
    return (name,)


def _type_name(kind: Any) -> str:
    if kind is type(None):
        return "None"
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(kind)))}]"
    if kind is dict or get_origin(kind) is dict:
        return "Mapping[str, Any]"
    if get_origin(kind) in (list, tuple):
        inner = get_args(kind)[0]
        return f"Sequence[{' | '.join(_type_name(each) for each in union_members(inner))}]"
    return str(kind.__name__)


def call_docstring(function: Function, command: Command[Any]) -> str:
    """Write the docstring in the form of Google's guide, which editors show as such: summary, Args, Returns,
    Raises."""
    options = leaves(command.options)
    names = f"`ns {typed_words(command.name)}` as a function."
    parts = [
        _wrap_text(_in_python(command.summary, options)),
        "",
        _wrap_text(f"{names} {function.note}".strip()),
        "",
        "Args:",
    ]
    parts.append(_format_entry("ctx", _describe_context(command)))
    if takes_settings(command):
        parts.append(_format_entry(SETTINGS, "how answers are generated, such as `Generation(temperature=0.7)`"))
    if takes_rows(command):
        parts.append(_format_entry(ROWS, "rows as objects, instead of files"))
    parts += [_format_entry(leaf.path, _describe_option(leaf, options)) for leaf in _ordered_options(command)]
    if command.more_help:
        parts.append(_format_entry(f"**{FURTHER}", "options of the benchmarks themselves"))
    if command.aliases:
        former = ", ".join(f"`{old}` for `{new}`" for old, new in command.aliases.items())
        parts += ["", _wrap_text(f"Older names of arguments work, too: {former}.")]
    parts += ["", "Returns:", textwrap.indent(_wrap_text(_describe_result(function), WIDTH - 4), " " * 4)]
    parts += ["", "Raises:", *(_format_entry(error, when) for error, when in RAISES)]
    return "\n".join(parts)


def _describe_context(command: Command[Any]) -> str:
    if command.config or command.any_keys:
        return (
            f"`++` keys, from `wrap_arguments('++key=value')`; `ns {typed_words(command.name)} --help` lists them"
        )
    if "command" in leaves(command.options):
        return "the command from `wrap_arguments('my command')`, instead of `command`"
    return "nothing: this function has no `++` keys"


def _describe_option(leaf: Leaf, options: dict[str, Leaf]) -> str:
    text = _in_python(leaf.description, options)
    if leaf.required:
        return f"{text} (required)"
    unset = leaf.default is None or leaf.default is False or leaf.default in ("", [])
    if unset:
        return text
    return f"{text} (default {leaf.default!r})"


def _in_python(text: str, options: dict[str, Leaf]) -> str:
    """Replace options in `text` by the arguments that they are here."""
    return re.sub(r"(?<![\w-])--(\w+)", lambda match: f"`{match[1]}`" if match[1] in options else match[0], text)


def _describe_result(function: Function) -> str:
    submitted = "the experiment that was submitted, None where nothing was left to do"
    if not function.returns:
        if function.submits:
            return f"On a cluster: {submitted}. Else None."
        return "None."
    meaning = function.meaning
    if function.submits:
        meaning += f" On a cluster: {submitted}."
    return f"{meaning} None with `dry_run=True`."


def _wrap_text(text: str, width: int = WIDTH) -> str:
    return "\n".join(textwrap.wrap(text, width))


def _format_entry(name: str, text: str) -> str:
    return "\n".join(textwrap.wrap(f"{name}: {text}", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8))
