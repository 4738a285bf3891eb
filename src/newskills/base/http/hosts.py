# SPDX-License-Identifier: Apache-2.0
"""Who can reach a server, and under which names: what stands between a web page and a server on this machine."""

from __future__ import annotations

import socket

from newskills.base.errors import ConfigError
from newskills.base.http.messages import ChunkedResponse, Handler, HttpRequest, Response, error_response
from newskills_sandbox.http import hosts


def own_names_only(handler: Handler, host: str) -> Handler:
    """Accept, at a loopback address, only requests whose `Host` names this machine: 421 for others.

    Raises ConfigError for a host that is no address.
    """
    if not is_loopback(host):
        return handler

    async def answer(request: HttpRequest) -> Response | ChunkedResponse:
        name = request.headers.get("host", "")
        if hosts.is_own_name(name, host):
            return await handler(request)
        return error_response(421, f"This server is not {name}: use localhost, or its address.")

    return answer


def is_loopback(host: str) -> bool:
    """Return whether a server that listens at `host` is reached from this machine alone; False for "" (all
    addresses).

    Raises ConfigError for a host that is no address.
    """
    try:
        return hosts.is_loopback(host)
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(f"'{host}' is not an address of this machine ({error}).") from error
