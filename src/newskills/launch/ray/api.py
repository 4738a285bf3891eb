# SPDX-License-Identifier: Apache-2.0
"""Ray's REST interfaces, by plain HTTP: the submitting machine needs no Ray of its own.

Jobs: https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html. Nodes: `GET /api/v0/nodes`
of the state API. Both are served by the dashboard.
"""

from __future__ import annotations

import json
import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, RemoteError, TransportError
from newskills.base.http.blocking import open_url
from newskills.launch.machines.shell import Shell
from newskills.launch.machines.ssh import RemoteMachine

TIMEOUT_SECONDS = 60.0
"""An answer may take so long: the dashboard of a busy head is slow."""
TOKEN, TOKEN_FILE = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
RESOURCE_SLACK = 1e-4
"""Ray keeps amounts of resources in ten-thousandths."""


class RayNode(Struct, frozen=True):
    """A node that is alive: its address, and all that it has, used or not."""

    address: str
    resources: dict[str, float]

    def has(self, wanted: Mapping[str, float]) -> bool:
        return all(
            self.resources.get(name, 0.0) + RESOURCE_SLACK > amount for name, amount in wanted.items() if amount
        )


class RayApi:
    """The cluster whose dashboard is at `address`, as `shell` sees it. Raises ConfigError for what is no address."""

    def __init__(self, address: str, environ: Mapping[str, str], shell: Shell) -> None:
        full_address = address if "://" in address else f"http://{address}"
        url = urllib.parse.urlsplit(full_address)
        try:
            port = url.port
        except ValueError:
            port = -1
        if url.scheme not in ("http", "https") or not url.hostname or port == -1:
            raise ConfigError(
                f"ray.address '{address}' is not the address of a Ray dashboard.",
                hint="Expected http://HOST:8265 (ray:// and the port of the head, 6379, are others).",
            )
        self.address = address
        self._tls, self._host, self._path = url.scheme == "https", url.hostname, url.path.rstrip("/")
        self._port = port or (443 if self._tls else 8265)
        self._environ, self._shell = environ, shell

    def submit(self, request: Mapping[str, Any]) -> None:
        """Submit a job. Raises RemoteError, also for a request that Ray refuses."""
        self._request_json("POST", "/api/jobs/", request)

    def job(self, submission: str) -> dict[str, Any] | None:
        """Return the details that Ray has of a job; None: nothing. Raises RemoteError."""
        details = self._request_json("GET", f"/api/jobs/{urllib.parse.quote(submission, safe='')}")
        if isinstance(details, dict):
            return details
        return None

    def stop(self, submission: str) -> None:
        """Stop a job. Raises RemoteError."""
        self._request_json("POST", f"/api/jobs/{urllib.parse.quote(submission, safe='')}/stop")

    def version(self) -> str:
        """Return the version of Ray. Raises RemoteError."""
        return str((self._request_json("GET", "/api/version") or {}).get("ray_version", ""))

    def nodes(self) -> list[RayNode]:
        """Return the nodes that are alive. Raises RemoteError."""
        answer = self._request_json("GET", "/api/v0/nodes?detail=True&limit=10000") or {}
        rows = answer.get("data", {}).get("result", {}).get("result", [])
        return [
            RayNode(str(row.get("node_ip", "")), row.get("resources_total") or {})
            for row in rows
            if row.get("state") == "ALIVE"
        ]

    def _request_json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of the answer; None where Ray answers that it does not exist."""
        text = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **self._token()}
        try:
            with self._dashboard_address() as (host, port):
                protocol = "https" if self._tls else "http"
                host_text = f"[{host}]" if ":" in host else host
                address = f"{protocol}://{host_text}:{port}"
                with open_url(
                    f"{address}{self._path}{path}",
                    method=method,
                    body=text,
                    private=headers,
                    timeout=TIMEOUT_SECONDS,
                    environ={},
                    redirects=0,
                ) as answer:
                    content = answer.read().decode("utf-8", "replace")
        except (OSError, TransportError) as error:
            why = getattr(error.__cause__ or error, "strerror", None) or str(error)
            raise RemoteError(
                f"No Ray cluster answers at {self.address}: {why}.",
                hint="Start one (pip install 'ray[default]'; ray start --head), or correct ray.address in the cluster "
                "config. It is the address of the dashboard, which serves the Jobs API.",
            ) from error
        return self._read_answer(answer.status, content)

    def _read_answer(self, status: int, content: str) -> Any:
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise RemoteError(
                f"The Ray cluster at {self.address} refuses to answer without its token ({status}).",
                hint=f"Set {TOKEN}, or {TOKEN_FILE} to a file with it; without both ~/.ray/auth_token is read.",
            )
        if status >= HTTPStatus.BAD_REQUEST:
            lines = [line.strip() for line in content.splitlines() if line.strip()]
            raise RemoteError(f"Ray at {self.address} says ({status}): {(lines or ['nothing'])[-1][:500]}")
        try:
            if content.strip():
                return json.loads(content)
            return {}
        except ValueError as error:
            raise RemoteError(f"What answers at {self.address} is not a Ray dashboard.") from error

    def _token(self) -> dict[str, str]:
        """Return the authorization header, with the token as Ray's own clients find it."""
        token = self._environ.get(TOKEN, "")
        if not token:
            usual = Path(self._environ.get("HOME") or Path.home(), ".ray", "auth_token")
            try:
                token = Path(self._environ.get(TOKEN_FILE) or usual).read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                return {}
        token = token.strip()
        if token.isascii() and token.isprintable() and token:
            return {"Authorization": f"Bearer {token}"}
        return {}

    @contextmanager
    def _dashboard_address(self) -> Iterator[tuple[str, int]]:
        """Yield a host and port of this machine that lead to the dashboard."""
        if not isinstance(self._shell, RemoteMachine):
            yield self._host, self._port
            return
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            local = probe.getsockname()[1]
        with self._shell.forward_port(local, self._host, self._port):
            yield "127.0.0.1", local
