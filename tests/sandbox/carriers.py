# SPDX-License-Identifier: Apache-2.0
"""What carries the sandbox's HTTP API: our own HTTP and JSON, or the library's, of the standard library alone."""

from __future__ import annotations

from newskills.base.http.server import Server
from newskills.sandbox.client import HttpSandbox
from newskills.sandbox.server import SandboxServer
from newskills_sandbox.http.application import HostedSandbox, SandboxApplication
from newskills_sandbox.http.client import SandboxClient
from newskills_sandbox.http.exchange import PlainExchange
from newskills_sandbox.http.server import ApiServer
from newskills_sandbox.http.server import serve as serve_plainly
from newskills_sandbox.variables import TOKEN_VARIABLE

CARRIERS = ("ours", "the library's")


class Carried:
    """An application and what carries it."""

    def __init__(self, carrier: str, sandbox: HostedSandbox, token: str = "") -> None:
        self._app: SandboxServer | SandboxApplication
        if carrier == CARRIERS[0]:
            self._app = SandboxServer(sandbox, token=token)
        else:
            self._app = SandboxApplication(sandbox, token=token)
        self.run_id = self._app.run_id

    async def serve(self, host: str, port: int) -> Server | ApiServer:
        if isinstance(self._app, SandboxServer):
            return await self._app.serve(host, port)
        return await serve_plainly(self._app, host, port)

    async def close(self) -> None:
        await self._app.close()


def client(carrier: str, host: str, port: int, environ: dict[str, str]) -> HttpSandbox | SandboxClient:
    if carrier == CARRIERS[0]:
        return HttpSandbox(host, port, environ)
    address = f"http://{host}:{port}"
    return SandboxClient(address, PlainExchange(address, environ.get(TOKEN_VARIABLE, "")))
