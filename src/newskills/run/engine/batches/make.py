# SPDX-License-Identifier: Apache-2.0
"""From the settings of a server to an endpoint that asks it in batches."""

from __future__ import annotations

from collections.abc import Callable

from newskills.base.errors import NewskillsError
from newskills.models.batch_apis import batch_properties, make_batch_service
from newskills.models.config import ServerConfig
from newskills.run.engine.asking.retries import RetryPolicy
from newskills.run.engine.batches.endpoint import BatchEndpoint
from newskills.run.engine.batches.ledger import BatchLedger
from newskills.run.engine.build import RunBuilder
from newskills.run.engine.endpoint import ContextStrategy
from newskills.run.planning.config import GenerationConfig

MAX_WAITING_REQUESTS = 100_000
"""Requests that may wait at once, for memory's sake: about 1 GB of them."""


def batch_window(config: GenerationConfig) -> int:
    """Return how many requests may wait at once: each may need a session of the sandbox."""
    return min(MAX_WAITING_REQUESTS, config.sandbox_window or MAX_WAITING_REQUESTS)


def make_batch_endpoint(
    builder: RunBuilder,
    server: ServerConfig,
    policy: RetryPolicy,
    context: ContextStrategy | None,
    say: Callable[[str], None],
    stop: Callable[[NewskillsError], None],
) -> BatchEndpoint:
    """Return the endpoint. Raises ConfigError, UnknownNameError, AuthError (no key)."""
    folder = builder.batch_folder
    service = make_batch_service(server, folder=folder, environ=builder.environ)
    ledger = BatchLedger(folder, server, service.address)
    return BatchEndpoint(
        service, ledger, batch_properties(server), policy, say=say, on_fatal=stop, context=context
    )
