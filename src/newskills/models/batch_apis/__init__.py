# SPDX-License-Identifier: Apache-2.0
"""Batches of requests: one file per protocol, with what submits them, looks after them and reads what came of them.

Add a provider: a file with `make(config, *, folder, environ) -> BatchService`, and the property `batch` in its row of
`MODELS` (`kinds.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.records import Inference
from newskills.base.registry import load_function
from newskills.models.batch_apis.service import BatchService
from newskills.models.config import ServerConfig
from newskills.models.kinds import MODELS, BatchProperties


def batch_properties(config: ServerConfig) -> BatchProperties:
    """Return how such a model is asked in batches. Raises ConfigError where it has none."""
    properties = MODELS.properties(config.server_type).batch
    if properties is None:
        having = [name for name, row in MODELS.built_in().items() if row.batch is not None]
        raise ConfigError(
            f"{config.server_type} has no batch API.",
            hint=f"Leave out --batch_api. It is for: {', '.join(having)}.",
        )
    return properties


def check_batch(config: ServerConfig, inference: Inference) -> None:
    """Raise ConfigError for what cannot be asked in batches."""
    properties = batch_properties(config)
    if inference.stream:
        raise ConfigError("Batches are not streamed.", hint="Leave out ++inference.stream or --batch_api.")
    if config.more_base_urls:
        raise ConfigError("--batch_api takes one address.", hint="Leave out ++server.more_base_urls.")
    if inference.endpoint_type not in properties.endpoints:
        raise ConfigError(
            f"The batches of {config.server_type} take no inference.endpoint_type={inference.endpoint_type}.",
            hint=f"Set one of {', '.join(properties.endpoints)}.",
        )


def make_batch_service(config: ServerConfig, *, folder: Path, environ: Mapping[str, str]) -> BatchService:
    """Return what submits batches for `config`; `folder`: of the files of batches. Sends nothing.

    Raises ConfigError, UnknownNameError, AuthError (no key).
    """
    config = msgspec.structs.replace(config, server_type=MODELS.resolve(config.server_type))
    service: BatchService = load_function(batch_properties(config).service)(config, folder=folder, environ=environ)
    return service
