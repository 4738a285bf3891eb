# SPDX-License-Identifier: Apache-2.0
"""A resources server of NeMo Gym whose verdicts are those of our graders. Everything is JSON.

GET  /reverify_mode      "stateless": a verdict depends on the row and the response alone
POST /seed_session       {}, and a cookie for tools with a state
POST /TOOL               arguments → the tool's result, as text
POST /verify             a row with `response` → the same with `reward`, `mask_sample`, `failure_kind`, …
POST /aggregate_metrics  `{"verify_responses": […]}` → metrics over them
POST /close_session      answers what it is sent

An error would end the whole run of `gym eval run`: what cannot be graded is answered with 200 and `mask_sample`.
Addresses may begin with `/ng-rollout/ID`, which Gym does where it observes rollouts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError, SandboxError, boundary
from newskills.base.http.access import refusal_response
from newskills.base.http.hosts import own_names_only
from newskills.base.http.messages import HttpRequest, Response, json_response, wrong_method
from newskills.base.http.server import ServerLimits, serve
from newskills.base.http.stopping import close_unless_hurried, stop_signals
from newskills.base.records import Row
from newskills.run.engine.threads import ready_for_threads
from newskills.run.rewarding.gym_tools import COOKIE_NAME, GymTools, session_of
from newskills.run.rewarding.gym_wire import aggregate_metrics, masked_verdict, read_body, read_verify, verdict_of
from newskills.run.rewarding.questions import QuestionFormat
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.rewarding.server import (
    GRACE_SECONDS,
    MAX_BODY_BYTES,
    Rewards,
    RewardServerSettings,
    RewardSource,
)

_PREFIX = re.compile(r"^/ng-rollout/[^/]+(?:/training-token-capture)?(?=/)")
LIVENESS_PATHS = frozenset({"/", "/health", "/healthz", "/livez", "/readyz"})


class GymServer:
    """Answers Gym's requests with the rewards it is given, whose life belongs to the caller."""

    def __init__(self, rewarder: Rewards, asking: QuestionFormat | None, tools: GymTools | None = None) -> None:
        self.outcomes: Counter[str] = Counter()
        self.last_reason = ""
        self._rewarder, self._asking, self._tools = rewarder, asking, tools
        self._routes: dict[str, Callable[[bytes], Awaitable[Row]]] = {
            "/aggregate_metrics": self._aggregate,
            "/close_session": self._close,
        }

    async def answer(self, request: HttpRequest) -> Response:
        path = _PREFIX.sub("", request.path)
        if path in LIVENESS_PATHS:
            return wrong_method(request, "GET") or json_response({"status": "ok"})
        if (stranger := refusal_response(request, "", "resources server")) is not None:
            return stranger
        if path == "/reverify_mode":
            return wrong_method(request, "GET") or json_response("stateless")
        session = session_of(request.headers.get("cookie", ""))
        if path == "/seed_session":
            cookie = ("Set-Cookie", f"{COOKIE_NAME}={session}; Path=/; HttpOnly")
            return wrong_method(request, "POST") or Response(body=b"{}", headers=(cookie,))
        if path == "/verify":
            return wrong_method(request, "POST") or json_response(await self._verify(request.body, session))
        if self._tools is not None and self._tools.has(path[1:]):
            result = await self._tools.call(path[1:], _or_empty(request.body), session)
            return Response(body=result.encode("utf-8", "replace"), content_type="text/plain; charset=utf-8")
        route = self._routes.get(path)
        if route is None:
            return json_response({"detail": "Not Found"}, 404)
        return wrong_method(request, "POST") or json_response(await route(request.body))

    async def _close(self, body: bytes) -> Row:
        identity = _or_empty(body).get("resources_session_id")
        if identity is None:
            return {}
        return {"resources_session_id": identity}

    async def _verify(self, body: bytes, session: str) -> Row:
        row = _or_empty(body)
        try:
            row = read_body(body)
            if self._tools is not None and (lost := await self._tools.end(session)):
                raise SandboxError(lost)
            (judged,) = await self._rewarder.judge([read_verify(row, self._asking)])
            verdict = verdict_of(judged)
        except Exception as error:  # noqa: BLE001 - whatever it is: an error would end the whole run of the client
            verdict = masked_verdict(boundary(error).message)
        self.outcomes[verdict["outcome"]] += 1
        self.last_reason = verdict["failure_reason"] or self.last_reason
        return {**row, **verdict}

    async def _aggregate(self, body: bytes) -> Row:
        responses = _or_empty(body).get("verify_responses")
        response_list = responses if isinstance(responses, list) else []
        return aggregate_metrics(response_list)


def _or_empty(body: bytes) -> Row:
    try:
        return read_body(body)
    except DataError:
        return {}


async def serve_gym(
    grader: RewardSource,
    config: RewardConfig,
    asking: QuestionFormat | None,
    listening: RewardServerSettings,
    *,
    say: PrintLine,
    tools: GymTools | None = None,
) -> str:
    """Serve until SIGINT or SIGTERM; then requests in work may finish, for 30 s, and a second signal ends them at
    once. Return the address.

    Raises ConfigError, UnknownNameError, AuthError (judge), SandboxError, ServerStartError.
    """
    ready_for_threads()
    stop, hurry = stop_signals()
    try:
        await grader.start()
        if tools is not None:
            await tools.start()
        app = GymServer(await grader.rewarder(config), asking, tools)
        handler = own_names_only(app.answer, listening.host)
        server = await serve(handler, listening.host, listening.port, limits=ServerLimits(body=MAX_BODY_BYTES))
        say(f"NeMo Gym resources server at {server.url}, grader {grader.label}; Ctrl-C stops it.")
        await stop.wait()
        await close_unless_hurried(server.close, GRACE_SECONDS, hurry)
        counts = ", ".join(f"{outcome} {number:,}" for outcome, number in sorted(app.outcomes.items()))
        tally = f" ({counts})" if counts else ""
        say(f"Stopped after {app.outcomes.total():,} answers{tally}.")
        if app.last_reason:
            say(f"The last one that could not be graded: {app.last_reason}")
        return server.url
    finally:
        if tools is not None:
            await tools.close()
        await grader.close()
