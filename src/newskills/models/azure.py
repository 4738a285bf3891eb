# SPDX-License-Identifier: Apache-2.0
"""Azure OpenAI: the OpenAI wire behind deployments, a key in `api-key`, and an API version in the query.

https://learn.microsoft.com/azure/ai-services/openai/reference. A base URL that ends in `/openai/v1` is the newer
API without versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from newskills.base.errors import ConfigError
from newskills.models.config import ServerConfig
from newskills.models.errors import EndpointIdentity
from newskills.models.openai import OpenAIModel
from newskills.models.wire import require_key, require_model

API_VERSION = "2024-12-01-preview"


def make(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> OpenAIModel:
    """`model` is the deployment's name. Raises ConfigError without an address, AuthError without a key."""
    url = (config.base_url or environ.get("AZURE_OPENAI_ENDPOINT", "")).rstrip("/")
    if not url:
        raise ConfigError(
            "azureopenai needs the address of your resource.",
            hint="Set ++server.base_url=https://NAME.openai.azure.com, or AZURE_OPENAI_ENDPOINT.",
        )
    model = require_model(config)
    key, source = require_key(config, environ, "AZURE_OPENAI_API_KEY")
    query = ""
    if not url.endswith("/openai/v1"):
        url = f"{url.removesuffix('/openai')}/openai/deployments/{quote(model, safe='')}"
        query = f"?api-version={API_VERSION}"
    return OpenAIModel(
        "azureopenai",
        EndpointIdentity(url, model, key, source),
        concurrency=concurrency,
        environ=environ,
        headers=(("api-key", key),),
        query=query,
        max_tokens_name=config.max_tokens_name,
    )
