"""Provider `openrouter` (https://openrouter.ai/docs/api-reference): many models behind OpenAI's wire and one key."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.models.config import ServerConfig
from newskills.models.errors import EndpointIdentity
from newskills.models.kinds import Dialect, ModelProperties
from newskills.models.openai import OpenAIModel
from newskills.models.wire import base_url_of, require_key, require_model

URL = "https://openrouter.ai/api/v1"


class OpenRouter(OpenAIModel):
    """`model` is `vendor/name`. Raises AuthError without a key."""

    properties = ModelProperties(hosted=True, keys=("OPENROUTER_API_KEY",), dialect=Dialect())

    def __init__(self, config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> None:
        key, source = require_key(config, environ, *self.properties.keys)
        endpoint = EndpointIdentity(base_url_of(config, URL), require_model(config), key, source)
        super().__init__(config.server_type, endpoint, concurrency=concurrency, environ=environ)
