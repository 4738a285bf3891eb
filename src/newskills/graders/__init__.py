# SPDX-License-Identifier: Apache-2.0
"""(record) → Score. Names of graders, and how one is made from its settings."""

from __future__ import annotations

from typing import Any

import msgspec

from newskills.base.errors import ConfigError, suggest
from newskills.base.protocols import Grader
from newskills.base.records import Row
from newskills.base.registry import Registry

GRADERS = Registry(
    "grader",
    {
        "math": "newskills.graders.math.grader:MathGrader",
        "multichoice": "newskills.graders.multichoice:MultichoiceGrader",
        "reasoning_gym": "newskills.graders.reasoning_gym:ReasoningGymGrader",
        "exact": "newskills.graders.exact:ExactGrader",
    },
    group="newskills.graders",
)


def make_grader(name: str, config: Row) -> Grader:
    """The grader called `name` with its settings.

    A grader is a class with a frozen struct `Config` beside it, made with that struct; a class or function without
    one takes no settings. Raises UnknownNameError, ConfigError for a key or a value that does not fit.
    """
    found = GRADERS.get(name)
    settings = getattr(found, "Config", None)
    if settings is None:
        if config:
            raise ConfigError(f"Grader '{name}' has no settings, but {', '.join(sorted(config))} was given.")
        grader: Grader = found()
        return grader
    made: Grader = found(read_config(settings, config, f"eval_config of grader '{name}'"))
    return made


def read_config(kind: type[Any], config: Row, where: str) -> Any:
    """`config` as a struct of `kind`. Raises ConfigError with did-you-mean."""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in config:
        if key not in known:
            raise ConfigError(f"{where} has no key '{key}'{suggest(key, known)}")
    try:
        return msgspec.convert(config, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}.") from error
