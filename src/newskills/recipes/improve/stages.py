# SPDX-License-Identifier: Apache-2.0
"""A configuration of `ns improve`: settings of all rounds, and stages, the first rounds, with settings of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.config.layers import Layer, resolve
from newskills.config.settings_file import read_settings
from newskills.recipes.improve.records import BASE, ImproveKeys, ImproveStage, Method

EXAMPLE_HINT = "An example is in docs/improve.md."
FOR_ALL = ("held_out", "alpha", "overlap_share")
"""Keys of the gate: a stage cannot have its own."""
_NAME = re.compile(r"(?!round-)[A-Za-z0-9][\w-]{0,39}", re.ASCII)


class ImproveConfig(NamedTuple):
    """The keys of all rounds, and the stages."""

    keys: ImproveKeys
    stages: tuple[ImproveStage, ...]


class _StageFile(Struct, frozen=True, kw_only=True):
    """What a stage has besides keys."""

    method: Annotated[Method, Meta(description="sft or grpo")] = "sft"
    training_data: Annotated[str | None, Meta(description="JSONL file of problems")] = None
    solutions: Annotated[tuple[str, ...], Meta(description="files of replies to these problems")] = ()
    examples: Annotated[tuple[str, ...], Meta(description="files of rows for ns sft")] = ()
    prompt_config: Annotated[str | None, Meta(description="another prompt")] = None
    code_tags: Annotated[str | None, Meta(description="how code is marked, which is run")] = None
    code_executions: Annotated[int, Meta(ge=1, description="largest number of code blocks")] = 5


def key_layers(file: str | None, overrides: Mapping[str, Any]) -> list[Layer]:
    """Return where the keys of all rounds come from: the YAML `file`, then the command line. Raises
    ConfigError."""
    shared, _ = _read_stage_file(file)
    layers = [Layer("command line", overrides)]
    if file is not None:
        layers.insert(0, Layer(file, shared))
    return layers


def _read_stage_file(file: str | None) -> tuple[dict[str, Any], object]:
    """Return the settings of all rounds, and the value of `stages`."""
    if file is not None:
        shared = read_settings(Path(file).expanduser(), EXAMPLE_HINT)
    else:
        shared = {}
    return shared, shared.pop("stages", ())


def read_config(file: str | None, overrides: Mapping[str, Any]) -> ImproveConfig:
    """Read the settings: the YAML `file`, then the `++` keys of the command line, then, for each stage, its own
    settings.

    Raises ConfigError, UnknownNameError.
    """
    _, written = _read_stage_file(file)
    layers = key_layers(file, overrides)
    stages = tuple(
        _make_stage(values, layers, f"{file}, stage {at}")
        for at, values in enumerate(_checked_list(written, file), 1)
    )
    names = [stage.name for stage in stages]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{file}: two stages are called {twice[0]}; each needs a name of its own.")
    return ImproveConfig(resolve(ImproveKeys, layers).value, stages)


def _checked_list(written: object, file: str | None) -> Sequence[Any]:
    if not isinstance(written, list | tuple):
        raise ConfigError(f"{file}: `stages` must be a list of settings, each with a name.", hint=EXAMPLE_HINT)
    return written


def _make_stage(values: object, layers: Sequence[Layer], where: str) -> ImproveStage:
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: expected settings, got {type(values).__name__}.", hint=EXAMPLE_HINT)
    name = values.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == BASE:
        raise ConfigError(
            f"{where}: `name` must be a short name of letters, digits, - and _ (not base or round-…), got {name!r}."
        )
    own = {key: value for key, value in values.items() if key != "name"}
    if gate := [key for key in FOR_ALL if key in own]:
        raise ConfigError(f"{where}: `{gate[0]}` is one for all rounds.", hint="Set it above `stages`.")
    places = {key: own.pop(key) for key in _StageFile.__struct_fields__ if key in own}
    place = resolve(_StageFile, [Layer(where, places)]).value
    keys = resolve(ImproveKeys, [*layers, Layer(where, own)]).value
    training_data = Path(place.training_data) if place.training_data else None
    stage = ImproveStage(
        name=str(name),
        keys=keys,
        method=place.method,
        training_data=training_data,
        solutions=tuple(map(Path, place.solutions)),
        examples=tuple(map(Path, place.examples)),
        prompt_config=place.prompt_config,
        code_tags=place.code_tags,
        code_executions=place.code_executions,
    )
    if not stage.can_train:
        raise ConfigError(
            f"{where}: nothing to train on: it has no samples, solutions or examples.",
            hint="Set one of them, or method: grpo.",
        )
    return stage
