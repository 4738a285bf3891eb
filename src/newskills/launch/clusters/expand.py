# SPDX-License-Identifier: Apache-2.0
"""`${VAR}` and `{VAR}` in cluster configs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from newskills.base.errors import ConfigError

_ACCOUNT = ("USER", "LOGNAME", "HOME")
_REFERENCE = re.compile(r"\$?\{([A-Za-z_][A-Za-z0-9_]*)\}")


def variable_names(text: str) -> list[str]:
    """Return the names of the variables in `text`."""
    return _REFERENCE.findall(text)


def expand_variables(text: str, environ: Mapping[str, str], where: str) -> str:
    """Replace `${VAR}` and `{VAR}` in `text`. Raises ConfigError for one that is not set.

    What cron, containers and services leave unset, the user's name and home, the system knows.
    """

    def value(match: re.Match[str]) -> str:
        value = environ.get(match[1]) or _account_value(match[1])
        if value is None and match[1] not in environ:
            raise ConfigError(
                f"{where}: {match[0]} is used, but the variable {match[1]} is not set.",
                hint=f"export {match[1]}=…, or write the value there.",
            )
        return value or ""

    return _REFERENCE.sub(value, text)


def _account_value(variable: str) -> str | None:
    """Return the user's name or home from the system's list of users; None for other variables and unknown users."""
    if variable not in _ACCOUNT:
        return None
    import pwd

    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        return None
    if variable == "HOME":
        return entry.pw_dir
    return entry.pw_name


def at_home(path: str, environ: Mapping[str, str]) -> str:
    """Expand `~/x` to a path below the user's home on this machine."""
    if path != "~" and not path.startswith("~/"):
        return path
    return environ.get("HOME", os.path.expanduser("~")) + path[1:]
