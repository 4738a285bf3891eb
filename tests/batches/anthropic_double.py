# SPDX-License-Identifier: Apache-2.0
"""Message Batches as Anthropic has them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from tests.batches.providers import Batch, Outcome, Provider, Refused, Row

VERSIONS = ("2023-06-01", "2026-10-21")
"""Ours, and that of the current client."""


class AnthropicProvider(Provider):
    """https://docs.claude.com/en/api/creating-message-batches."""

    base = "/v1"

    def reply(self, text: str, body: Row) -> Row:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    def refusal(self, error: Refused) -> Row:
        return {"type": "error", "error": {"type": error.code, "message": error.message}}

    def handle(self, method: str, path: str, query: Row, headers: Row, body: bytes) -> tuple[Any, Row]:
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if key != "sk-ant-1234" or headers.get("anthropic-version") not in VERSIONS:
            raise Refused(401, "invalid x-api-key", "authentication_error")
        match [method, *path.strip("/").split("/")[2:]]:
            case ["POST"]:
                rows = [(row["custom_id"], row["params"]) for row in json.loads(body)["requests"]]
                for key, params in rows:
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", key), key
                    assert {"model", "max_tokens", "messages"} <= params.keys(), params
                return self._shown(self.begin("msgbatch_", "", rows)), {}
            case ["GET"]:
                return self._page(query), {}
            case ["GET", chosen]:
                batch = self.batch(chosen)
                batch.looks += 1
                return self._shown(batch), {}
            case ["GET", chosen, "results"]:
                batch = self.batch(chosen)
                if not batch.ended:
                    raise Refused(400, "The batch has not ended.")
                return b"".join(map(self._line, self.outcomes(batch))) + batch.fate.damaged, {}
        raise Refused(404, f"{method} {path}", "not_found_error")

    def _line(self, outcome: Outcome) -> bytes:
        key, status, body = outcome
        result: Row = {"type": {"cancelled": "canceled"}.get(body, body)} if not status else {}
        if status == 200:
            result = {"type": "succeeded", "message": body}
        elif status:
            result = {"type": "errored", "error": body}
        return json.dumps({"custom_id": key, "result": result}).encode() + b"\n"

    def _page(self, query: Row) -> Row:
        newest = list(reversed(self.batches))
        ids = [batch.id for batch in newest]
        first = ids.index(query["after_id"]) + 1 if "after_id" in query else 0
        shown = newest[first : first + int(query.get("limit", 20))]
        return {
            "data": [self._shown(batch) for batch in shown],
            "first_id": shown[0].id if shown else None,
            "last_id": shown[-1].id if shown else None,
            "has_more": first + len(shown) < len(newest),
        }

    def _shown(self, batch: Batch) -> Row:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        if batch.ended:
            for _, status, body in self.outcomes(batch):
                name = {200: "succeeded", 0: {"cancelled": "canceled"}.get(str(body), str(body))}.get(
                    status, "errored"
                )
                counts[name] = counts.get(name, 0) + 1
        else:
            counts["processing"] = len(batch.rows)
        made = datetime.fromtimestamp(batch.created, UTC).isoformat()
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.ended else "in_progress",
            "request_counts": counts,
            "created_at": made,
            "expires_at": made,
            "ended_at": made if batch.ended else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if batch.ended else None,
        }
