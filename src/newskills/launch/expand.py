# SPDX-License-Identifier: Apache-2.0
"""`${VAR}` and `{VAR}` in cluster configs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from newskills.base.errors import ConfigError

_REFERENCE = re.compile(r"\$?\{([A-Za-z_][A-Za-z0-9_]*)\}")


def references(text: str) -> list[str]:
    """Names of the variables in `text`."""
    return _REFERENCE.findall(text)


def expand(text: str, environ: Mapping[str, str], where: str) -> str:
    """`${VAR}` and `{VAR}` replaced. Raises ConfigError for one that is not set."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in environ:
            raise ConfigError(f"{where}: {match[0]} is used, but the variable {match[1]} is not set.")
        return environ[match[1]]

    return _REFERENCE.sub(value, text)


def at_home(path: str, environ: Mapping[str, str]) -> str:
    """`~/x` below the user's home on this machine."""
    if path != "~" and not path.startswith("~/"):
        return path
    return environ.get("HOME", os.path.expanduser("~")) + path[1:]
