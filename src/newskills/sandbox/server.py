# SPDX-License-Identifier: Apache-2.0
"""The library's HTTP API, carried by our own server."""

from __future__ import annotations

from newskills.base.http.hosts import own_names_only
from newskills.base.http.messages import HttpRequest, Response
from newskills.base.http.server import Server, serve
from newskills.sandbox.codec import FAST_JSON
from newskills_sandbox.http.application import HostedSandbox, SandboxApplication


class SandboxServer:
    """Answers requests with the sandbox it is given, whose life belongs to the caller."""

    def __init__(self, sandbox: HostedSandbox, *, token: str = "") -> None:
        self._application = SandboxApplication(sandbox, token=token, codec=FAST_JSON)
        self.run_id = self._application.run_id

    async def serve(self, host: str, port: int) -> Server:
        """Serve requests at `host` and `port`. Raises ConfigError, ServerStartError."""
        return await serve(own_names_only(self.answer, host), host, port)

    async def answer(self, request: HttpRequest) -> Response:
        reply = await self._application.answer(request)
        return Response(reply.status, reply.body, headers=reply.headers)

    async def close(self) -> None:
        await self._application.close()
