# SPDX-License-Identifier: Apache-2.0
"""One short question to an endpoint, without the engine: which models it serves."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import msgspec

from newskills.base.errors import AuthError, ModelError, ServerError, TransportError
from newskills.base.http.blocking import open_url
from newskills.base.records import Row
from newskills.models.kinds import key_for_host


def served_models(address: str, *, timeout: float = 5.0) -> list[str]:
    """Return the ids of `GET /v1/models` at `address` (with or without `/v1`).

    Raises TransportError (nobody answers), AuthError, ServerError (the answer is no model list).
    """
    base = address.rstrip("/")
    if not base.endswith("/v1"):
        base += "/v1"
    url = f"{base}/models"
    if not url.startswith(("http://", "https://")):
        raise TransportError(f"{address} is not an http(s) address.")
    variable, _ = key_for_host("openai", urlsplit(url).hostname or "")
    key = os.environ.get(variable)
    private = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with open_url(url, private=private, timeout=timeout) as reply:
            if not 200 <= reply.status < 300:
                raise _refusal_error(url, reply.status, variable)
            listing = msgspec.json.decode(reply.read(1 << 22), type=Row)
    except TransportError as error:
        raise TransportError(f"No server answers at {url} ({error}).") from error
    except msgspec.DecodeError as error:
        raise ServerError(f"{url} does not answer with a list of models.") from error
    models = listing.get("data")
    if isinstance(models, list):
        return [str(m.get("id")) for m in models if isinstance(m, dict)]
    return []


def _refusal_error(url: str, status: int, variable: str) -> ModelError:
    if status in (401, 403):
        return AuthError(f"{url} refuses the key in {variable}.", status=status)
    return ServerError(f"{url} answers with status {status}.", status=status)
