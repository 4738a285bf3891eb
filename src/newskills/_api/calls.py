# SPDX-License-Identifier: Apache-2.0
"""What a call of a function does: its keywords become the options of the command; `wrap_arguments` has `++` keys."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from newskills._api.expansion import expand_objects, merge_keys
from newskills._api.functions import FUNCTIONS
from newskills._api.running import beside_loop, on_a_thread, within_loop
from newskills._api.signatures import call_docstring, call_signature, is_handle, takes_settings
from newskills.base.errors import ConfigError, NewskillsError
from newskills.commands.loading import load_command
from newskills.config.command_line import Parsed, build, check_keywords, parse
from newskills.config.fields import leaves
from newskills.config.values import Text, is_sequence

if TYPE_CHECKING:
    from newskills.commands.command import Command

INSIDE = {"_reuse_exp": "reuse_code_exp", "_task_dependencies": "run_after"}
"""Keywords that NeMo-Skills' own pipelines pass on → what they are here."""

COMMAND = "command"
"""Option of `run_cmd` that `wrap_arguments` can give."""


class Arguments(Struct, frozen=True):
    """`++` keys for a call, as `wrap_arguments` makes them; or `command`, a text for bash, for `run_cmd`."""

    overrides: dict[str, Text]
    command: str = ""


class _NoOptions(Struct, frozen=True):
    pass


def wrap_arguments(text: str) -> Arguments:
    """Parse `"++inference.temperature=0.6 ++stop_phrase='a b'"`, split by the rules of the shell.

    A text that begins with neither `++key=` nor an option is a command for `run_cmd`: `wrap_arguments("echo HI")`.
    Raises ConfigError for anything else but `++key=value`.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"wrap_arguments({text!r}): {error}.") from error
    if words and not words[0].startswith(("+", "-")) and "=" not in words[0]:
        return Arguments({}, text)
    return Arguments(parse(_NoOptions, words, command="…").overrides)


def _with_command(ctx: Arguments, options: Mapping[str, Any], command: Command[Any]) -> dict[str, Any]:
    """Return `options` with the command that `ctx` carries. Raises ConfigError where none is taken, or two are
    given."""
    if COMMAND not in leaves(command.options):
        raise ConfigError(
            f"wrap_arguments({ctx.command!r}): {ctx.command.split()[0]!r} is no ++key=value.",
            hint="Options are keywords of the call; a command of your own is for run_cmd.",
        )
    if options.get(COMMAND) is not None or options.get("words"):
        raise ConfigError(f"Two commands: wrap_arguments({ctx.command!r}), and another one. Give one of them.")
    return {**options, COMMAND: ctx.command}


def _experiments_as_ids(value: Any) -> Any:
    """Replace experiments by their ids; lists lose None."""
    if is_sequence(value):
        return [_experiments_as_ids(item) for item in value if item is not None]
    return getattr(value, "id", value)


def _option_words(value: Any) -> list[str]:
    """Return the values of an option that only the command knows; a flag has none."""
    if is_sequence(value):
        values = value
    elif value is True:
        values = []
    else:
        values = [value]
    return [str(item) for item in values]


def python_function(name: str) -> Callable[..., Any]:
    """Return the function of the Python API that is called `name`, with the signature and docstring of its command.

    One whose command belongs to an application that is not installed raises ConfigError when it is called, so that
    `from newskills import *` works without it.
    """
    function = FUNCTIONS[name]
    try:
        command = load_command(function.command)
    except ConfigError as error:
        return _not_installed(name, error.message, error.hint)

    def call(ctx: Arguments | None = None, **options: Any) -> Any:
        try:
            if takes_settings(command) and within_loop():
                return beside_loop(lambda: _call_command(name, command, ctx, options), command)
            return _call_command(name, command, ctx, options)
        except (
            NewskillsError
        ) as error:  # its sentence is for people: our own frames would only push it off the screen
            raise error.with_traceback(None) from error.__cause__

    async def awaited(ctx: Arguments | None = None, **options: Any) -> Any:
        try:
            return await on_a_thread(lambda: _call_command(name, command, ctx, options), command)
        except NewskillsError as error:  # as above
            raise error.with_traceback(None) from error.__cause__

    made: Any = awaited if function.awaited else call
    made.__name__ = made.__qualname__ = name
    made.__module__ = "newskills"
    made.__doc__ = call_docstring(function, command)
    made.__signature__ = call_signature(function, command)
    return cast(Callable[..., Any], made)


def _not_installed(name: str, what: str, hint: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        raise ConfigError(what, hint=hint)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "newskills"
    call.__doc__ = f"{what} {hint}"
    return call


def _call_command(name: str, command: Command[Any], ctx: Arguments | None, options: Mapping[str, Any]) -> Any:
    names = {**INSIDE, **command.aliases}
    stands_for = expand_objects(command, {names.get(key, key): value for key, value in options.items()}, name)
    arguments = stands_for.options
    fields = leaves(command.options)
    further = {key: arguments.pop(key) for key in [*arguments] if command.more_help and key not in fields}
    more = {
        key: _option_words(value) for key, value in further.items() if value is not None and value is not False
    }
    if ctx is not None and ctx.command:
        arguments = _with_command(ctx, arguments, command)
    check_keywords(command.options, arguments, name)
    plain = {
        key: _experiments_as_ids(value) if is_handle(key, command) else value for key, value in arguments.items()
    }
    values = {key: value for key, value in plain.items() if value is not None}
    parsed = Parsed(
        build(command.options, values, command=command.name),
        merge_keys(ctx.overrides if ctx else {}, stands_for.overrides),
        frozenset(values),
        more=more,
        objects=stands_for.objects,
    )
    return command.call(parsed)
