# SPDX-License-Identifier: Apache-2.0
"""Where jobs run: one file per executor.

Add an executor: a file with `make(site) -> Executor`, and a row in `EXECUTORS` of `launch/registry.py` (or the entry
point `newskills.executors` of another distribution). A cluster config may also name it directly:
`executor: my_package.my_module::make`.
"""

from __future__ import annotations

from newskills.base.errors import ConfigError
from newskills.base.protocols import Executor
from newskills.launch.place import Site
from newskills.launch.registry import EXECUTORS


def make_executor(site: Site) -> Executor:
    """Return the executor that `site.cluster` names. Starts nothing.

    Raises UnknownNameError, ConfigError for something that is no executor.
    """
    made = EXECUTORS.get(site.cluster.executor)(site)
    if not isinstance(made, Executor):
        raise ConfigError(f"Executor '{site.cluster.executor}' lacks submit, state, logs or cancel.")
    return made
