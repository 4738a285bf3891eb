# SPDX-License-Identifier: Apache-2.0
"""Optional parts of the installation that a command needs."""

from __future__ import annotations

from importlib.util import find_spec

from newskills.base.errors import ConfigError


def require_train(*modules: str, instead: str = "") -> None:
    """Raise ConfigError where an extra is missing; `instead`: what works without it."""
    if missing := [module for module in modules if find_spec(module) is None]:
        raise ConfigError(
            f"This needs {', '.join(missing)}, which this environment does not have.",
            hint=(
                "Run: pip install 'newskills[train,local]' (without a GPU, install torch from its CPU index "
                f"first). {instead}"
            ).strip(),
        )
