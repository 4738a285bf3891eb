# SPDX-License-Identifier: Apache-2.0
"""One session with a resources server of NeMo Gym (https://github.com/NVIDIA-NeMo/Gym): its requests, its cookies.

POST /seed_session (the whole row), POST /TOOL (arguments), POST /verify (the row with `response`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import EnvironmentFailedError, HttpError
from newskills.base.http.client import HttpClient
from newskills.base.http.connection import HttpResponse
from newskills.base.records import Row

JSON = ("Content-Type", "application/json")
TASK = "responses_create_params"
"""Field of a row with what the model is asked, as in OpenAI's Responses."""
IS_ONE = "Is it a resources server of NeMo Gym, and does it still run?"
LONGEST = 500


class GymVerdict(Struct, frozen=True, kw_only=True):
    """What a server says of an answer.

    masked  why the reward is no measurement; empty where it is one
    fields  what the answer has beside the row and the response
    """

    reward: float
    masked: str = ""
    fields: Row = {}


class GymSession:
    """The requests about one attempt at a row; `client` is shared, the cookies are not."""

    def __init__(self, client: HttpClient, row: Row, timeout: float) -> None:
        self._client, self._row, self._timeout = client, row, timeout
        self._cookies: dict[str, str] = {}

    async def seed(self) -> None:
        """Begin. Raises EnvironmentFailedError."""
        self._expect_ok("/seed_session", await self._post("/seed_session", self._row))

    async def call(self, name: str, arguments: Any) -> str:
        """Return what a tool gives back, errors included: the model reads them. Raises EnvironmentFailedError where
        the server does not answer."""
        answer = await self._post(f"/{name}", arguments)
        return answer.body.decode(errors="replace")

    async def verify(self, response: Row) -> GymVerdict:
        """Return the verdict on `response`. Raises EnvironmentFailedError where there is none."""
        value = await self._object("/verify", {**self._row, "response": response})
        reward = value.get("reward")
        if not isinstance(reward, int | float):
            raise self._failed("/verify", f"gave the reward {reward!r}, which is not a number")
        kind, reason = value.get("failure_kind"), value.get("failure_reason")
        masked = ": ".join(str(part) for part in (kind, reason) if part)[:LONGEST]
        left_out = {*self._row, "response", "reward", "mask_sample"}
        own = {name: field for name, field in value.items() if name not in left_out and field is not None}
        return GymVerdict(
            reward=float(reward),
            masked=(masked or "no reason is told") if value.get("mask_sample") is True else "",
            fields=own,
        )

    async def aggregate(self, verdicts: Sequence[Row]) -> Row:
        """Return the server's figures of many verdicts. Raises EnvironmentFailedError."""
        return await self._object("/aggregate_metrics", {"verify_responses": verdicts})

    async def _object(self, path: str, body: Row) -> Row:
        answer = await self._post(path, body)
        self._expect_ok(path, answer)
        try:
            value = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._failed(path, f"answered without valid JSON ({error})") from error
        if not isinstance(value, dict):
            raise self._failed(path, "answered without a JSON object")
        return value

    async def _post(self, path: str, body: Any) -> HttpResponse:
        try:
            data = msgspec.json.encode(body)
        except UnicodeEncodeError:
            data = json.dumps(body).encode()
        headers = [JSON]
        if self._cookies:
            headers.append(("Cookie", "; ".join(f"{name}={value}" for name, value in self._cookies.items())))
        try:
            answer = await self._client.post(path, data, self._timeout, tuple(headers))
        except HttpError as error:
            raise self._failed(path, f"did not answer: {error.message}") from error
        for name, value in answer.headers:
            if name.lower() == b"set-cookie":
                self._keep(value.decode("latin-1"))
        return answer

    def _keep(self, text: str) -> None:
        """Keep a cookie, or drop it where the server says that it is over."""
        try:
            cookie = SimpleCookie(text)
        except CookieError:
            return
        for name, morsel in cookie.items():
            if morsel["max-age"] == "0":
                self._cookies.pop(name, None)
            else:
                self._cookies[name] = morsel.coded_value

    def _expect_ok(self, path: str, answer: HttpResponse) -> None:
        if answer.status != 200:
            text = answer.body[:LONGEST].decode(errors="replace")
            raise self._failed(path, f"answered with status {answer.status}: {text}")

    def _failed(self, path: str, why: str) -> EnvironmentFailedError:
        return EnvironmentFailedError(f"{self._client.base_url}{path} {why}.", hint=IS_ONE)
