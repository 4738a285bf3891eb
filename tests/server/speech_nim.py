# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.server.speech_nim`: a double of a speech NIM, on the ports that its variables name.

Its models are loaded a moment after gRPC listens, as `/v1/health/ready` then tells.
"""

from __future__ import annotations

import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.server.riva import RivaServer

LOADING_SECONDS = 0.5


def main() -> None:
    assert os.environ["NIM_DISABLE_MODEL_DOWNLOAD"] == "true"
    began = time.monotonic()
    tags = os.environ["NIM_TAGS_SELECTOR"]

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            loaded = self.path == "/v1/health/ready" and time.monotonic() - began >= LOADING_SECONDS
            self.send_response(200 if loaded else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    def hear(_: object) -> str:
        return tags if time.monotonic() - began >= LOADING_SECONDS else "too early"

    with RivaServer(hear, port=int(os.environ["NIM_GRPC_API_PORT"])):
        HTTPServer(("127.0.0.1", int(os.environ["NIM_HTTP_API_PORT"])), Health).serve_forever()


if __name__ == "__main__":
    main()
