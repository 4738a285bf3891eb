# SPDX-License-Identifier: Apache-2.0
"""Where the model's code runs: what the sandbox options of `generate` and `eval` mean."""

from __future__ import annotations

import os
from collections.abc import Sequence

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.config.layers import Layer, explain
from newskills.config.values import Text
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import WorkOptions
from newskills.run.engine.build import grades_by_running
from newskills.run.planning.plan import PlannedUnit
from newskills_sandbox.variables import (
    BLOCK_NETWORK_VARIABLE,
    DISABLE_RESTORE_VARIABLE,
    HOST_VARIABLE,
    PORT_VARIABLE,
    SESSION_TIMEOUT_VARIABLE,
)

SETTINGS = {
    HOST_VARIABLE: "host",
    PORT_VARIABLE: "port",
    SESSION_TIMEOUT_VARIABLE: "session_timeout",
    DISABLE_RESTORE_VARIABLE: "disable_session_restore",
}
"""Variables of the sandbox → keys of `++sandbox.*` that mean the same."""

TRUE = frozenset({"1", "true", "yes", "on"})


def sandbox_layer(options: WorkOptions) -> Layer:
    """Return `--sandbox_env_overrides` as settings. Raises ConfigError, UnknownNameError for a variable that none
    reads."""
    values: dict[str, object] = {}
    for word in options.sandbox_env_overrides:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"--sandbox_env_overrides {word}: expected KEY=VALUE.")
        if name == BLOCK_NETWORK_VARIABLE:
            values["sandbox.network"] = value.lower() not in TRUE
        elif name in SETTINGS:
            values[f"sandbox.{SETTINGS[name]}"] = Text(value)
        else:
            raise UnknownNameError(
                "variable in --sandbox_env_overrides:",
                name,
                [*SETTINGS, BLOCK_NETWORK_VARIABLE],
                hint="Code in the sandbox does not see your environment variables.",
            )
    return Layer("--sandbox_env_overrides", values)


def check_sandbox(options: WorkOptions, planned: Sequence[PlannedUnit]) -> None:
    """Check that code of a model runs only where somebody has said so. Raises ConfigError; says which settings do
    nothing."""
    configs = [unit.unit.config for unit in planned]
    if not any(config.needs_sandbox or grades_by_running(config) for config in configs):
        _notice_idle(options, planned)
    if options.with_sandbox or os.environ.get(HOST_VARIABLE) or os.environ.get(PORT_VARIABLE):
        return
    for unit in planned:
        config = unit.unit.config
        if config.needs_sandbox and not config.sandbox.host and config.sandbox.port is None:
            raise ConfigError(
                f"{unit.unit.label} runs the model's code, but no sandbox is given.",
                hint="Give --with_sandbox to run it in an isolated process of this machine, or "
                "++sandbox.host=HOST (and ++sandbox.port=PORT) of a running `ns sandbox serve`.",
            )


def _notice_idle(options: WorkOptions, planned: Sequence[PlannedUnit]) -> None:
    resolved = planned[0].resolved
    values = {path: value for path, value, _ in explain(resolved)}
    idle = [f"++{key}={values.get(key, '…')}" for key in resolved.origin if key.startswith("sandbox.")]
    if options.with_sandbox:
        idle.append("--with_sandbox")
    for setting in idle:
        print_note(f"{setting} has no effect: no code is run here")
