# SPDX-License-Identifier: Apache-2.0
"""Batches and files as the Gemini API has them."""

from __future__ import annotations

import json
from typing import Any

from tests.batches.providers import Batch, Outcome, Provider, Refused, Row

STATES = {"completed": "SUCCEEDED"}


class GeminiProvider(Provider):
    """https://ai.google.dev/api/batch-api, https://ai.google.dev/api/files."""

    def reply(self, text: str, body: Row) -> Row:
        return {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
            "modelVersion": "gemini-2.5-flash",
        }

    def refusal(self, error: Refused) -> Row:
        return {"error": {"code": error.status, "message": error.message, "status": "INVALID_ARGUMENT"}}

    def handle(self, method: str, path: str, query: Row, headers: Row, body: bytes) -> tuple[Any, Row]:
        if headers.get("x-goog-api-key") != "AIza-1234" and "upload_id" not in query:
            raise Refused(401, "API key not valid.")
        match [method, *path.strip("/").split("/")]:
            case ["POST", "upload", "v1beta", "files"] if "upload_id" not in query:
                assert headers["x-goog-upload-protocol"] == "resumable"
                assert headers["x-goog-upload-command"] == "start"
                chosen = f"f{len(self.files)}"
                self.files[chosen] = b"?" * int(headers["x-goog-upload-header-content-length"])
                address = f"{self.url}/upload/v1beta/files?upload_id={chosen}&upload_protocol=resumable"
                return {}, {"X-Goog-Upload-URL": address, "X-Goog-Upload-Status": "active"}
            case ["POST", "upload", "v1beta", "files"]:
                chosen = query["upload_id"]
                assert headers["x-goog-upload-command"] == "upload, finalize"
                assert (headers["x-goog-upload-offset"], len(body)) == ("0", len(self.files[chosen]))
                self.files[chosen] = body
                file = {"name": f"files/{chosen}", "mimeType": "application/jsonl", "sizeBytes": str(len(body))}
                return {"file": {**file, "state": "ACTIVE"}}, {"X-Goog-Upload-Status": "final"}
            case ["POST", "v1beta", "models", "gemini-2.5-flash:batchGenerateContent"]:
                return self._shown(self._create(json.loads(body)["batch"])), {}
            case ["GET", "v1beta", "batches"]:
                newest = list(reversed(self.batches))
                first, size = int(query.get("pageToken") or 0), int(query.get("pageSize") or 50)
                page: Row = {"operations": [self._shown(batch) for batch in newest[first : first + size]]}
                if first + size < len(newest):
                    page["nextPageToken"] = str(first + size)
                return page, {}
            case ["GET", "v1beta", "batches", chosen]:
                batch = self.batch(f"batches/{chosen}")
                batch.looks += 1
                return self._shown(batch), {}
            case ["GET", *_, "v1beta", "files", file] if query.get("alt") == "media":
                chosen = file.removesuffix(":download")
                if chosen not in self.files:
                    raise Refused(404, f"files/{chosen} is not found")
                return self.files[chosen], {}
        raise Refused(404, f"{method} {path}")

    def _create(self, batch: Row) -> Batch:
        chosen = batch["inputConfig" if "inputConfig" in batch else "input_config"]
        lines = (
            self.files[chosen.get("fileName", chosen.get("file_name")).removeprefix("files/")]
            .decode()
            .splitlines()
        )
        rows = [(row["key"], row["request"]) for row in map(json.loads, lines)]
        assert all("contents" in request for _, request in rows), rows
        return self.begin("batches/b", batch.get("displayName", batch.get("display_name")), rows)

    def _shown(self, batch: Batch) -> Row:
        fate, ended = batch.fate, batch.ended
        state = STATES.get(fate.state, fate.state.upper()) if ended else "RUNNING" if batch.looks else "PENDING"
        about: Row = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": "models/gemini-2.5-flash",
            "displayName": batch.name,
            "state": f"BATCH_STATE_{state}",
            "createTime": "2026-11-29T10:00:00Z",
            "name": batch.id,
            "batchStats": {"requestCount": str(len(batch.rows)), "pendingRequestCount": str(len(batch.rows))},
        }
        shown: Row = {"name": batch.id, "metadata": about}
        if not ended:
            return shown
        shown["done"] = True
        if fate.state == "failed":
            return shown | {"error": fate.errors[0]}
        if fate.state == "completed":
            chosen = f"batch-{batch.id.removeprefix('batches/')}"
            self.files[chosen] = b"".join(map(self._line, self.outcomes(batch))) + fate.damaged
            about["batchStats"] = {
                "requestCount": str(len(batch.rows)),
                "successfulRequestCount": str(len(batch.rows)),
            }
            about["output"] = {"responsesFile": f"files/{chosen}"}
            shown["response"] = {"@type": "…GenerateContentBatchOutput", "responsesFile": f"files/{chosen}"}
        return shown

    def _line(self, outcome: Outcome) -> bytes:
        key, status, body = outcome
        result = (
            {"response": body} if status == 200 else {"error": body if status else {"code": 14, "message": body}}
        )
        return json.dumps({"key": key, **result}).encode() + b"\n"
