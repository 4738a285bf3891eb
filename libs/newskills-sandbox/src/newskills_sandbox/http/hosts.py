# SPDX-License-Identifier: Apache-2.0
"""Under which names a server on this machine is reached: what stands between it and a web page."""

from __future__ import annotations

import ipaddress
import socket

LOCAL = "localhost"


def is_loopback(host: str) -> bool:
    """Return whether a server that listens at `host` is reached from this machine alone; False for "" (all
    addresses).

    Raises OSError or UnicodeError for a host that is no address.
    """
    if host in ("", LOCAL):
        return bool(host)
    addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in addresses)


def is_own_name(header: str, host: str) -> bool:
    """Return whether the `Host` header of a request to a loopback server names this machine.

    A page whose name its owner points at 127.0.0.1 (DNS rebinding) sends its own name. Addresses are no names, and
    pass; so does no header at all, which no browser sends.
    """
    name = header.strip().lower()
    if name.startswith("["):
        name = name[1 : name.find("]")]
    else:
        name = name.rpartition(":")[0] or name
    if name in ("", LOCAL, host.lower(), socket.gethostname().lower()) or name.endswith(f".{LOCAL}"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
