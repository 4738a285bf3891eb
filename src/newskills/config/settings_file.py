# SPDX-License-Identifier: Apache-2.0
"""A YAML file of settings that a user wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from newskills.base.errors import ConfigError
from newskills.config.values import Text


def read_settings(path: Path, hint: str) -> dict[str, Any]:
    """Read nested settings by name; texts are read as those of a command line are, since YAML takes 2e-5 for one.

    `hint`: where a good file is. Raises ConfigError.
    """
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", hint=hint) from error
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: expected settings, got {type(settings).__name__}.", hint=hint)
    return {str(key): _as_typed(value) for key, value in settings.items()}


def _as_typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_typed(inner) for key, inner in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return [_as_typed(item) for item in value]
    if isinstance(value, str):
        return Text(value)
    return value
