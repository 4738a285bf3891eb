# SPDX-License-Identifier: Apache-2.0
"""Batches as OpenAI and Azure OpenAI have them."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from tests.batches.providers import Batch, Provider, Refused, Row


class OpenAIProvider(Provider):
    """https://platform.openai.com/docs/api-reference/batch."""

    base = "/v1"
    key: tuple[str, str] = ("authorization", "Bearer sk-1234567")
    endpoints: tuple[str, ...] = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
    reads_files = 0

    def __init__(self) -> None:
        super().__init__()
        self.file_looks: dict[str, int] = {}

    def reply(self, text: str, body: Row) -> Row:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }

    def refusal(self, error: Refused) -> Row:
        return {"error": {"message": error.message, "type": error.code, "param": None, "code": None}}

    def handle(self, method: str, path: str, query: Row, headers: Row, body: bytes) -> tuple[Any, Row]:
        if headers.get(self.key[0]) != self.key[1]:
            raise Refused(401, "Incorrect API key provided.")
        match [method, *path.strip("/").split("/")]:
            case ["POST", "files"]:
                return self._take_file(headers, body), {}
            case ["GET", "files", chosen]:
                self.file_looks[chosen] += 1
                return self._file(chosen), {}
            case ["GET", "files", chosen, "content"]:
                if chosen not in self.files:
                    raise Refused(404, f"No such File object: {chosen}")
                return self.files[chosen], {}
            case ["POST", "batches"]:
                return self._shown(self._create(json.loads(body))), {}
            case ["GET", "batches"]:
                return self._page(query), {}
            case ["GET", "batches", chosen]:
                batch = self.batch(chosen)
                batch.looks += 1
                return self._shown(batch), {}
        raise Refused(404, f"Unknown request URL: {method} {path}.")

    def _take_file(self, headers: Row, body: bytes) -> Row:
        boundary = headers["content-type"].partition("multipart/form-data; boundary=")[2].strip('"').encode()
        assert boundary, headers
        head, *parts, end = body.split(b"--" + boundary)
        assert (head, end) == (b"", b"--\r\n"), body[:80]
        fields = {}
        for part in parts:
            about, content = part.removeprefix(b"\r\n").split(b"\r\n\r\n", 1)
            fields[re.search(rb'name="([a-z]+)"', about)[1].decode()] = content.removesuffix(b"\r\n")
        if fields["purpose"] != b"batch":
            raise Refused(400, "Invalid purpose")
        chosen = f"file-{len(self.files)}"
        self.files[chosen], self.file_looks[chosen] = fields["file"], 0
        return self._file(chosen)

    def _file(self, chosen: str) -> Row:
        status = "pending" if self.file_looks[chosen] < self.reads_files else "processed"
        return {
            "id": chosen,
            "object": "file",
            "bytes": len(self.files[chosen]),
            "created_at": int(time.time()),
            "filename": f"{chosen}.jsonl",
            "purpose": "batch",
            "status": status,
        }

    def _create(self, asked: Row) -> Batch:
        if asked["completion_window"] != "24h" or asked["endpoint"] not in self.endpoints:
            raise Refused(400, f"Invalid value: {asked}")
        if self._file(asked["input_file_id"])["status"] != "processed":
            raise Refused(400, "The file is not processed yet.")
        rows = []
        for line in self.files[asked["input_file_id"]].decode().splitlines():
            row = json.loads(line)
            assert (row["method"], row["url"]) == ("POST", asked["endpoint"]), row
            rows.append((row["custom_id"], row["body"]))
        return self.begin(
            "batch_", (asked.get("metadata") or {}).get("newskills_batch", ""), rows, asked["endpoint"]
        )

    def _page(self, query: Row) -> Row:
        newest = list(reversed(self.batches))
        ids = [batch.id for batch in newest]
        first = ids.index(query["after"]) + 1 if "after" in query else 0
        shown = newest[first : first + int(query.get("limit", 20))]
        return {
            "object": "list",
            "data": [self._shown(batch) for batch in shown],
            "first_id": shown[0].id if shown else None,
            "last_id": shown[-1].id if shown else None,
            "has_more": first + len(shown) < len(newest),
        }

    def _shown(self, batch: Batch) -> Row:
        fate, ended = batch.fate, batch.ended
        shown: Row = {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.endpoint,
            "input_file_id": "file-0",
            "completion_window": "24h",
            "status": fate.state if ended else "in_progress" if batch.looks else "validating",
            "created_at": int(batch.created),
            "expires_at": int(batch.created) + 86400,
            "metadata": {"newskills_batch": batch.name},
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": len(batch.rows), "completed": 0, "failed": 0},
        }
        if ended and fate.state == "failed":
            shown["errors"] = {"object": "list", "data": fate.errors}
        elif ended:
            self._write_results(batch, shown)
        return shown

    def _write_results(self, batch: Batch, shown: Row) -> None:
        lines: dict[str, list[bytes]] = {"output": [], "error": []}
        for key, status, body in self.outcomes(batch):
            row: Row = {"id": f"batch_req_{key}", "custom_id": key, "response": None, "error": None}
            if status:
                row["response"] = {"status_code": status, "request_id": "req_1", "body": body}
            else:
                row["error"] = {"code": f"batch_{body}", "message": f"This request could not be executed: {body}."}
            lines["output" if status == 200 else "error"].append(json.dumps(row).encode() + b"\n")
        lines["output"].append(batch.fate.damaged)
        for kind, written in lines.items():
            if data := b"".join(written):
                chosen = f"file-{kind}-{batch.id}"
                self.files[chosen] = data
                shown[f"{kind}_file_id"] = chosen
        shown["request_counts"] |= {"completed": len(lines["output"]) - 1, "failed": len(lines["error"])}


class AzureProvider(OpenAIProvider):
    """https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch: files are read before they can be used."""

    base = "/openai"
    key = ("api-key", "az-1234567")
    endpoints = ("/chat/completions", "/v1/responses")
    reads_files = 1

    def handle(self, method: str, path: str, query: Row, headers: Row, body: bytes) -> tuple[Any, Row]:
        if "api-version" not in query:
            raise Refused(404, "Resource not found")
        return super().handle(method, path, query, headers, body)
