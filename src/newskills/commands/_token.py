# SPDX-License-Identifier: Apache-2.0
"""The token that clients of a server must send: from a variable or a file, never from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from newskills.base.errors import AuthError, ConfigError


def token_of(variable: str, file: str | None, environ: Mapping[str, str], *, usual: str) -> str:
    """Empty where none is set. `usual`: the variable that need not be there.

    Raises AuthError where a token was asked for and is not there, ConfigError for a file that cannot be read.
    """
    if file is None:
        if variable != usual and not environ.get(variable):
            raise AuthError(f"--token_env: there is no variable {variable}, or it is empty.")
        return environ.get(variable, "").strip()
    try:
        token = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token_file: {file} cannot be read ({error}).") from error
    if not token:
        raise AuthError(f"--token_file: {file} is empty.")
    return token


def who(token: str) -> str:
    """The sentence about who may use a server."""
    return "Clients need the token." if token else "No token is set: whoever reaches this port may use it."
