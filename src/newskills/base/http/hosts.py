# SPDX-License-Identifier: Apache-2.0
"""Who can reach a server, and under which names: what stands between a web page and a server on this machine."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable

from newskills.base.errors import ConfigError
from newskills.base.http.messages import HttpRequest, Response, error_response

LOCAL = "localhost"
Handler = Callable[[HttpRequest], Awaitable[Response]]


def own_names_only(handler: Handler, host: str) -> Handler:
    """Accept, at a loopback address, only requests whose `Host` names this machine: 421 for others.

    Raises ConfigError for a host that is no address.
    """
    if not is_loopback(host):
        return handler

    async def answer(request: HttpRequest) -> Response:
        name = request.headers.get("host", "")
        if is_own_name(name, host):
            return await handler(request)
        return error_response(421, f"This server is not {name}: use localhost, or its address.")

    return answer


def is_loopback(host: str) -> bool:
    """Return whether a server that listens at `host` is reached from this machine alone; False for "" (all
    addresses).

    Raises ConfigError for a host that is no address.
    """
    if host in ("", LOCAL):
        return bool(host)
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(f"'{host}' is not an address of this machine ({error}).") from error
    return all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in addresses)


def is_own_name(header: str, host: str) -> bool:
    """Return whether the `Host` header of a request to a loopback server names this machine.

    A page whose name its owner points at 127.0.0.1 (DNS rebinding) sends its own name. Addresses are no names, and
    pass; so does no header at all, which no browser sends.
    """
    name = header.strip().lower()
    name = name[1 : name.find("]")] if name.startswith("[") else name.rpartition(":")[0] or name
    if name in ("", LOCAL, host.lower(), socket.gethostname().lower()) or name.endswith(f".{LOCAL}"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
