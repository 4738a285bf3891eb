# SPDX-License-Identifier: Apache-2.0
"""Which sandbox a configuration and the environment ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.protocols import Sandbox
from newskills.sandbox.config import SandboxConfig
from newskills_sandbox.replay import ReplayingSandbox
from newskills_sandbox.variables import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DISABLE_RESTORE_VARIABLE,
    HOST_VARIABLE,
    PORT_VARIABLE,
    SESSION_TIMEOUT_VARIABLE,
)

OFF = ("", "0", "false", "no", "off")


def make_sandbox(config: SandboxConfig, environ: Mapping[str, str]) -> Sandbox:
    """Return a client of the server that `config` or `environ` names, else a sandbox in this process. Starts nothing.

    Raises ConfigError.
    """
    host = config.host or environ.get(HOST_VARIABLE, "")
    if host or config.port is not None or environ.get(PORT_VARIABLE):
        from newskills.sandbox.client import HttpSandbox

        sandbox: Sandbox = HttpSandbox(host or DEFAULT_HOST, port_of(config.port, environ), environ)
    else:
        from newskills.sandbox.host import LocalSandbox

        sandbox = LocalSandbox(with_environ_settings(config, environ), environ)
    if config.disable_session_restore or environ.get(DISABLE_RESTORE_VARIABLE, "").lower() not in OFF:
        return sandbox
    return ReplayingSandbox(sandbox)


def with_environ_settings(config: SandboxConfig, environ: Mapping[str, str]) -> SandboxConfig:
    """Return `config` with what `environ` says of sessions where it says nothing itself. Raises ConfigError."""
    if config.data_dir and not Path(config.data_dir).is_dir():
        raise ConfigError(f"The sandbox's data_dir is not a folder: {config.data_dir}.")
    text = environ.get(SESSION_TIMEOUT_VARIABLE, "")
    if not text or config.session_timeout:
        return config
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ConfigError(f"{SESSION_TIMEOUT_VARIABLE}: expected a number of seconds from 0, got '{text}'.")
    return msgspec.structs.replace(config, session_timeout=seconds)


def port_of(port: int | None, environ: Mapping[str, str]) -> int:
    """Return `port`, else the variable's, else 6000. Raises ConfigError."""
    text = environ.get(PORT_VARIABLE, "")
    if port is not None or not text:
        if port is None:
            return DEFAULT_PORT
        return port
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 65535):
        raise ConfigError(f"{PORT_VARIABLE}: expected a port from 1 to 65535, got '{text[:20]}'.")
    return int(text)
