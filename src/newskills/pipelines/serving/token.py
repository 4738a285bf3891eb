# SPDX-License-Identifier: Apache-2.0
"""The token that clients of a server must send: from a variable or a file, never from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from newskills.base.errors import AuthError, ConfigError
from newskills.base.http.hosts import is_loopback
from newskills.pipelines.options import doc

TokenFile = Annotated[str | None, doc("file with the token that clients must send")]
Open = Annotated[bool, doc("accept clients from other machines although no token is set")]


def token_of(variable: str, file: str | None, environ: Mapping[str, str], *, usual: str) -> str:
    """Return the token; empty where none is set. `usual`: the variable that need not be set. Raises AuthError
    where another one is not, ConfigError for a file that cannot be read.

    Raises AuthError where a token was asked for and is not there, ConfigError for a file that cannot be read.
    """
    if file is None:
        if variable != usual and not environ.get(variable):
            raise AuthError(f"--token_env: the variable {variable} is not set or empty.")
        return environ.get(variable, "").strip()
    try:
        token = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token_file: {file} cannot be read ({error}).") from error
    if not token:
        raise AuthError(f"--token_file: {file} is empty.")
    return token


def check_reach(host: str, token: str, *, open_to_all: bool, takes_token: bool = True) -> None:
    """Raise ConfigError for a server that every machine of the network could use."""
    give = "--token_file=FILE, or --open" if takes_token else "--open"
    if not token and not open_to_all and not is_loopback(host):
        raise ConfigError(
            f"--host={host or chr(39) * 2}: no token is set, so anyone who can reach this machine could use "
            "the server.",
            hint=f"Give {give} to serve everybody; --host=127.0.0.1 serves only this machine.",
        )


def describe_access(token: str) -> str:
    """Return the sentence about who may use a server."""
    if token:
        return "Clients need the token."
    return "No token is set: anyone who can reach this port can use it."
