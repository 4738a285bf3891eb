# SPDX-License-Identifier: Apache-2.0
"""Objects in the keywords of a call → the options and `++` keys that they stand for."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from newskills._api.signatures import (
    BENCHMARKS,
    ROWS,
    SETTINGS,
    takes_benchmarks,
    takes_models,
    takes_rows,
    takes_settings,
)
from newskills.base.errors import ConfigError
from newskills.config.values import Text, is_sequence

if TYPE_CHECKING:
    from newskills.base.benchmark import Benchmark, Group
    from newskills.commands.command import Command

JUDGE, JUDGE_KEYS = "judge_model", "extra_judge_args"
"""Options that name the judge, and hold its `++` keys as one text."""
SERVER = "server."


class ExpandedCall(Struct, frozen=True):
    """`options` of the command, `overrides` of its `++` keys, and `objects` that have no other form: benchmarks by
    their names, rows."""

    options: dict[str, Any]
    overrides: dict[str, Text]
    objects: dict[str, Any]


def expand_objects(command: Command[Any], arguments: Mapping[str, Any], name: str) -> ExpandedCall:
    """Return what `arguments` of the function called `name` stand for.

    Raises TypeError for an object of another type, ConfigError where something is set twice.
    """
    options, overrides, objects = dict(arguments), dict[str, Text](), dict[str, Any]()
    if takes_settings(command) and (settings := options.pop(SETTINGS, None)) is not None:
        overrides |= _settings_of(settings, name)
    if takes_models(command):
        options, overrides = _with_models(options, overrides)
        options = _with_judge(options)
    if takes_benchmarks(command) and BENCHMARKS in options:
        options[BENCHMARKS] = _benchmark_names(options[BENCHMARKS], objects)
    if takes_rows(command) and (rows := options.pop(ROWS, None)) is not None:
        objects[ROWS] = rows
    return ExpandedCall({key: _paths_as_texts(value) for key, value in options.items()}, overrides, objects)


def _settings_of(settings: Any, name: str) -> dict[str, Text]:
    from newskills._api.objects import Generation

    if not isinstance(settings, Generation):
        raise TypeError(f"{name}(): settings must be a newskills.Generation, not {type(settings).__name__}")
    return settings.overrides


def _with_models(options: dict[str, Any], overrides: dict[str, Text]) -> tuple[dict[str, Any], dict[str, Text]]:
    """Replace each `Model` in `options` by its name and its server. Raises ConfigError where a server is set
    twice, or where some of several models set what others leave out."""
    from newskills._api.objects import Model, setting_texts

    value: Any = options.get("model")
    models: list[Any] = list(value) if is_sequence(value) else [value]
    if not any(isinstance(model, Model) for model in models):
        return options, overrides
    several = [model if isinstance(model, Model) else Model(str(model)) for model in models]
    servers = [model.server_options() for model in several]
    names = dict.fromkeys(key for server in servers for key in server)
    for key in names:
        if options.get(key) is not None:
            raise ConfigError(f"{key} is set twice: as an argument and by a Model.", hint="Leave out one of them.")
        if any(key not in server for server in servers):
            lacking = next(model.name for model, server in zip(several, servers, strict=True) if key not in server)
            raise ConfigError(f"{key.removeprefix('server_')} is set for one Model, but not for {lacking}.")
    keys = dict(overrides)
    for number, model in enumerate(several):
        prefix = f"models.model{number}." if number else SERVER
        for path, text in setting_texts(model.settings, "Model", SERVER):
            _set_key(keys, f"{prefix}{path.removeprefix(SERVER)}", text)
    lists = {key: [server[key] for server in servers] for key in names}
    return {**options, "model": [model.name for model in several], **lists}, keys


def _with_judge(options: dict[str, Any]) -> dict[str, Any]:
    """Replace a judge in `options` that is a `Model` by its name and its server. Raises ConfigError."""
    from newskills._api.objects import Model, setting_texts

    judge = options.get(JUDGE)
    if not isinstance(judge, Model):
        return options
    server = {f"judge_{key}": value for key, value in judge.server_options().items()}
    for key in server:
        if options.get(key) is not None:
            raise ConfigError(f"{key} is set twice: as an argument and by a Model.", hint="Leave out one of them.")
    words = [f"++{path}={text}" for path, text in setting_texts(judge.settings, "Model", SERVER)]
    keys = " ".join(part for part in (options.get(JUDGE_KEYS), shlex.join(words)) if part)
    expanded = {**options, JUDGE: judge.name, **server}
    if keys:
        expanded[JUDGE_KEYS] = keys
    return expanded


def _benchmark_names(value: Any, benchmarks: dict[str, Any]) -> Any:
    """Replace each benchmark in `value` by its name; `benchmarks` gets it by this name. Raises ConfigError."""
    if is_sequence(value):
        return [_benchmark_name(item, benchmarks) for item in value]
    return _benchmark_name(value, benchmarks)


def _benchmark_name(value: Any, benchmarks: dict[str, Any]) -> Any:
    from newskills.base.benchmark import Benchmark, Group

    if not isinstance(value, Benchmark | Group):
        return value
    _check_name(value)
    if benchmarks.setdefault(value.name, value) is not value:
        raise ConfigError(
            f"Two benchmarks are called '{value.name}'.", hint="Rename one: its results need a folder."
        )
    return value.name


def _check_name(benchmark: Benchmark | Group) -> None:
    """Raise ConfigError for a name that cannot be a folder of results, or that stands for several."""
    if not benchmark.name or any(character in benchmark.name for character in ",/\\ "):
        raise ConfigError(f"A benchmark cannot be called {benchmark.name!r}: use letters, digits, dots, - and _.")


def _paths_as_texts(value: Any) -> Any:
    """Return `value` with paths as texts."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_paths_as_texts(item) for item in value]
    return value


def merge_keys(ctx: Mapping[str, Text], overrides: Mapping[str, Text]) -> dict[str, Text]:
    """Return the `++` keys of `wrap_arguments` and of objects together. Raises ConfigError for one that both set."""
    from newskills.run.planning.config import ALIASES

    keys = dict(ctx)
    paths = {ALIASES.get(key, key) for key in ctx}
    for path, text in overrides.items():
        if path in paths:
            raise ConfigError(
                f"{path} is set twice: by wrap_arguments, and by Generation or Model.",
                hint="Leave out one of them.",
            )
        keys[path] = text
    return keys


def _set_key(keys: dict[str, Text], path: str, text: Text) -> None:
    if path in keys:
        raise ConfigError(f"{path} is set twice: by Generation and by Model.", hint="Leave out one of them.")
    keys[path] = text
