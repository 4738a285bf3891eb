# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of the Hugging Face hub as far as its client needs it to create repositories and to commit files."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WRITER, READER = "hf_writer", "hf_reader"
LARGE = (".parquet", ".safetensors")


class HubDouble(ThreadingHTTPServer):
    """`repos`: `datasets/me/x` → {"private": …, "files": path → bytes}; `seconds`: how long it waits before an answer.

    `failing`: status of every commit, where it is not 0.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repos: dict[str, dict[str, Any]] = {}
        self.objects: dict[str, bytes] = {}
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.seconds = 0.0
        self.failing = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def hub_double() -> Iterator[HubDouble]:
    with HubDouble() as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: HubDouble
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answered("GET")

    def do_POST(self) -> None:
        self._answered("POST")

    def do_PUT(self) -> None:
        body = self._body()
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(body).hexdigest() == oid:
            self.server.objects[oid] = body
            self._reply(200, {})
        else:
            self._reply(400, {"error": "another sum"})

    def _answered(self, method: str) -> None:
        body, path = self._body(), self.path.partition("?")[0]
        self.server.requests.append(f"{method} {path}")
        time.sleep(self.server.seconds)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if path == "/api/validate-yaml":
            self._reply(200, {"errors": [], "warnings": []})
        elif token not in (WRITER, READER):
            self._reply(401, {"error": "Invalid username or password."})
        elif method == "GET":
            self._info(path)
        elif token == READER:
            self._reply(403, {"error": "You don't have the rights to write."})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif "/preupload/" in path:
            self._modes(json.loads(body))
        elif path.endswith("/info/lfs/objects/batch"):
            self._batch(json.loads(body))
        elif path == "/verify":
            oid = json.loads(body)["oid"]
            self._reply(200 if oid in self.server.objects else 404, {})
        elif "/commit/" in path:
            self._commit(path, body)
        else:
            self._reply(404, {"error": f"no {method} {path}"})

    def _info(self, path: str) -> None:
        name = path.removeprefix("/api/").partition("/revision/")[0]
        repo = self.server.repos.get(name)
        if repo is None:
            self._reply(404, {"error": "Repository not found"}, code="RepoNotFound")
        else:
            identity = name.partition("/")[2]
            self._reply(
                200, {"_id": "1", "id": identity, "private": repo["private"], "sha": "0" * 40, "siblings": []}
            )

    def _create(self, order: dict[str, Any]) -> None:
        kind = order.get("type", "model")
        name = f"{kind}s/{order['organization']}/{order['name']}"
        if name in self.server.repos:
            self._reply(409, {"error": "exists"})
            return
        is_private = order.get("private", order.get("visibility") == "private")
        self.server.repos[name] = {"private": is_private, "files": {}}
        self._reply(200, {"url": f"{self.server.address}/{name.removeprefix('models/')}"})

    def _modes(self, order: dict[str, Any]) -> None:
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
            }
            for file in order["files"]
        ]
        self._reply(200, {"files": files})

    def _batch(self, order: dict[str, Any]) -> None:
        address = self.server.address
        objects = [
            {
                "oid": item["oid"],
                "size": item["size"],
                "actions": {
                    "upload": {"href": f"{address}/lfs/{item['oid']}"},
                    "verify": {"href": f"{address}/verify"},
                },
            }
            for item in order["objects"]
        ]
        self._reply(200, {"transfer": "basic", "objects": objects})

    def _commit(self, path: str, body: bytes) -> None:
        if self.server.failing:
            self._reply(self.server.failing, {"error": "The hub is being repaired."})
            return
        name = path.removeprefix("/api/").partition("/commit/")[0]
        files = self.server.repos[name]["files"]
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                self.server.messages.append(value["summary"])
            elif item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
        url = f"{self.server.address}/{name}/commit/{'1' * 40}"
        self._reply(200, {"commitUrl": url, "commitOid": "1" * 40, "success": True})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _reply(self, status: int, body: object, code: str = "") -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
