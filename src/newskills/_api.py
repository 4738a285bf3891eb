# SPDX-License-Identifier: Apache-2.0
"""The commands as functions: same names, same options as keywords, `++` keys through `wrap_arguments`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from newskills.base.errors import ConfigError, NewskillsError
from newskills.commands.loading import load
from newskills.config.command_line import Parsed, build, check_keywords, parse
from newskills.config.fields import leaves
from newskills.config.values import Text

if TYPE_CHECKING:
    from newskills.commands.command import Command

INSIDE = {"_reuse_exp": "reuse_code_exp", "_task_dependencies": "run_after"}
"""Keywords that the reference system's own pipelines pass on → what they are here."""

COMMAND = "command"
"""Option of `run_cmd` that `wrap_arguments` can give."""

HANDLES = ("run_after", "reuse_code_exp")
"""Keywords that take what an earlier call returned, which is None where nothing was left to do."""


class Arguments(Struct, frozen=True):
    """`++` keys for a call, as `wrap_arguments` makes them; or `command`, a text for bash, for `run_cmd`."""

    overrides: dict[str, Text]
    command: str = ""


class _NoOptions(Struct, frozen=True):
    pass


def wrap_arguments(text: str) -> Arguments:
    """`"++inference.temperature=0.6 ++stop_phrase='a b'"` → Arguments, split by the rules of the shell.

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
    """`options` with the command that `ctx` carries. Raises ConfigError where none is taken, or two are given."""
    if COMMAND not in leaves(command.options):
        raise ConfigError(
            f"wrap_arguments({ctx.command!r}): {ctx.command.split()[0]!r} is no ++key=value.",
            hint="Options are keywords of the call; a command of your own is for run_cmd.",
        )
    if options.get(COMMAND) is not None or options.get("words"):
        raise ConfigError(f"Two commands: wrap_arguments({ctx.command!r}), and another one. Give one of them.")
    return {**options, COMMAND: ctx.command}


def _named(value: Any) -> Any:
    """Experiments by their ids; lists without None."""
    if isinstance(value, list | tuple):
        return [_named(one) for one in value if one is not None]
    return getattr(value, "id", value)


def _words(value: Any) -> list[str]:
    """The values of an option that only the command knows; a flag has none."""
    values = value if isinstance(value, list | tuple) else [] if value is True else [value]
    return [str(one) for one in values]


def _function(name: str) -> Callable[..., Any]:
    def call(ctx: Arguments | None = None, **options: Any) -> Any:
        try:
            return result(ctx, options)
        except (
            NewskillsError
        ) as error:  # its sentence is for people: our own frames would only push it off the screen
            raise error.with_traceback(None) from error.__cause__

    def result(ctx: Arguments | None, options: dict[str, Any]) -> Any:
        command = load(name)
        names = {**INSIDE, **command.aliases}
        options = {names.get(key, key): value for key, value in options.items()}
        known = leaves(command.options)
        own = {key: value for key, value in options.items() if command.more_help and key not in known}
        more = {key: _words(value) for key, value in own.items() if value is not None and value is not False}
        options = {key: value for key, value in options.items() if key not in own}
        if ctx is not None and ctx.command:
            options = _with_command(ctx, options, command)
        check_keywords(command.options, options, name)
        given = {key: _named(value) if key in HANDLES else value for key, value in options.items()}
        values = {key: value for key, value in given.items() if value is not None}
        overrides = dict(ctx.overrides) if ctx else {}
        parsed = Parsed(build(command.options, values, command=name), overrides, frozenset(values), more=more)
        return command.call(parsed)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`ns {name}` as a function; `ctx` carries `++` keys. Raises NewskillsError, TypeError."
    return call


async def evaluate_async(ctx: Arguments | None = None, **options: Any) -> Any:
    """`evaluate`, awaited from within a running event loop, on a thread of its own: a callback of a trainer.

    Cancelling it stops the evaluation: requests in flight may finish, what is done is on disk, and the same call goes
    on from there. Raises as `evaluate`.
    """
    import asyncio
    import importlib
    from concurrent.futures import ThreadPoolExecutor

    from newskills.run.engine.supervision import Supervision
    from newskills.run.engine.threads import ready_for_threads

    importlib.import_module("newskills.pipelines.evaluation.work")
    ready_for_threads()
    supervision = Supervision()

    def work() -> Any:
        with supervision.installed():
            return evaluate(ctx, **options)

    thread = ThreadPoolExecutor(1, "newskills-evaluate")  # the loop's own threads are the caller's
    running = asyncio.get_running_loop().run_in_executor(thread, work)
    thread.shutdown(wait=False)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        supervision.stop()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # that of being stopped
        raise


average_checkpoints = _function("average_checkpoints")
compare = _function("compare")
compute_metrics = _function("compute_metrics")
convert = _function("convert")
evaluate = _function("eval")
eval = evaluate  # noqa: A001 - the name of the command
generate = _function("generate")
grade = _function("grade")
grpo_nemo_rl = _function("grpo_nemo_rl")
ppo_verl = _function("ppo_verl")
grpo = _function("grpo")
plan_eval = _function("plan_eval")
prepare_data = _function("prepare_data")
prepare_training_data = _function("prepare_training_data")
regrade = _function("regrade")
report = _function("report")
retrieve_similar = _function("retrieve_similar")
robust_eval = _function("robust_eval")
run_cmd = _function("run_cmd")
samples = _function("samples")
sft = _function("sft")
sft_nemo_rl = _function("sft_nemo_rl")
start_server = _function("start_server")
summarize_results = _function("summarize_results")
summarize_robustness = _function("summarize_robustness")
train_megatron_lm = _function("train_megatron_lm")
