# SPDX-License-Identifier: Apache-2.0
"""`server_type=custom`: a class of the user's own, named by `++server.model_class`."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.base.errors import ConfigError
from newskills.base.protocols import Model
from newskills.base.registry import load_attr
from newskills.models.config import ServerConfig


def make(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> Model:
    """Call the class with `(config, concurrency=…, environ=…)`. Raises ConfigError where the result is not a model."""
    spec = config.model_class
    if not spec or "::" not in spec:
        raise ConfigError(
            "server_type=custom needs a class.", hint="Set ++server.model_class=module::Class or /file.py::Class."
        )
    made = load_attr(spec, "model class")(config, concurrency=concurrency, environ=environ)
    if not isinstance(made, Model):
        raise ConfigError(f"{spec} makes no model: it lacks `name`, `complete(request)` or `close()`.")
    return made
