# SPDX-License-Identifier: Apache-2.0
"""Which proxy leads to a URL: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, in either case, as curl does."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from newskills.base.errors import ConfigError


class Proxy(Struct, frozen=True):
    """An HTTP proxy, `authorization` (the value of Proxy-Authorization, or empty), and the variable that names it."""

    host: str
    port: int
    authorization: str = ""
    variable: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


def proxy_for(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for `url`, or None. Loopback addresses are never proxied. Raises ConfigError for a bad
    setting."""
    target = urlsplit(url)
    host, scheme = target.hostname or "", target.scheme.lower()
    if is_loopback(host) or _is_bypassed(host, target.port, environ.get(_proxy_variable(environ, "no_proxy"), "")):
        return None
    # HTTP_PROXY in capitals is not read where a CGI server could have set it from a request header.
    names = [f"{scheme}_proxy", "all_proxy"]
    for name in names:
        variable = _proxy_variable(environ, name)
        if value := environ.get(variable):
            return parse_proxy(value, variable)
    return None


def parse_proxy(value: str, name: str) -> Proxy:
    """Parse `[http://][user:password@]host[:port]`. Raises ConfigError without repeating the password."""
    address = value
    if "://" not in address:
        address = f"http://{address}"
    parts = urlsplit(address)
    if any(sign.isspace() for sign in value):
        raise ConfigError(f"{name} is not the address of a proxy: it contains a blank.", hint=f"Unset {name}.")
    if parts.scheme != "http" or not parts.hostname:
        raise ConfigError(
            f"{name} must be an http:// proxy, not {parts.scheme}://{parts.hostname or ''}.",
            hint="Set NO_PROXY for this host, or use an http:// proxy.",
        )
    try:
        port = parts.port or 3128
    except ValueError as error:
        raise ConfigError(f"{name} has a port that is not a number from 1 to 65535.") from error
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, port, authorization, name)


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine by name or address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _ip_address(host)
    return address is not None and address.is_loopback


def _proxy_variable(environ: Mapping[str, str], name: str) -> str:
    """Return which variable counts, `name` or the same in capitals."""
    if environ.get(name) or (name == "http_proxy" and "REQUEST_METHOD" in environ):
        return name
    return name.upper()


def _is_bypassed(host: str, port: int | None, no_proxy: str) -> bool:
    return any(_matches_host(host, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches_host(host: str, port: int | None, entry: str) -> bool:
    if entry == "*":
        return True
    if (address := _ip_address(host)) is not None:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            pass
    name, wanted_port = entry, ""
    if entry.count(":") == 1:
        name, _, wanted_port = entry.rpartition(":")
    if wanted_port and wanted_port != str(port or ""):
        return False
    name = name.removeprefix("*").removeprefix(".")
    return host == name or host.endswith(f".{name}")


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
