# SPDX-License-Identifier: Apache-2.0
"""The reward server over HTTP. Everything is JSON, errors are `{"error": sentence}`.

GET /health        {"status": "ok"}; needs no token
POST /v1/rewards   a batch in our own form; what could not be graded has the reward null and says why
POST /get_reward   a batch of OpenRLHF; POST /slime: a sample of slime. These have no place for null: where anything
                   could not be graded the answer is 503, which their clients ask again about
GET /v1/stats      how many samples, with what outcome, and why some are unscored

Requests are graded side by side, with common batches for the workers. More than `max_waiting` samples: 429.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.http.access import refusal_response
from newskills.base.http.hosts import own_names_only
from newskills.base.http.messages import (
    HttpRequest,
    Response,
    error_response,
    json_response,
    not_found,
    wrong_method,
)
from newskills.base.http.server import ServerLimits, serve
from newskills.base.http.stopping import close_unless_hurried, stop_signals
from newskills.base.records import Row
from newskills.run.engine.threads import ready_for_threads
from newskills.run.rewarding.graders import Count
from newskills.run.rewarding.reward import RewardConfig, RewardItem
from newskills.run.rewarding.wire import items_answer, openrlhf_answer, read_items, read_openrlhf, read_slime
from newskills.train.loops.samples import Judged

GRACE_SECONDS = 30.0
"""Seconds for requests in work, once the server is asked to stop."""
TOLD_EVERY = 30.0
"""Seconds between two sentences about unscored samples."""
LONGEST_WAIT = 30
MAX_BODY_BYTES = 256 << 20
MODEL = "reward model"
"""How the label of a source begins that is no grader."""
Read = Callable[[bytes], list[RewardItem]]


class Rewards(Protocol):
    """Makes rewards of samples: `graders.Rewarder`, `reward_model.RewardModelSource`."""

    async def judge(self, samples: Sequence[RewardItem]) -> list[Judged]:
        """Judge samples in order. Raises DataError for a sample that cannot be judged as it was sent."""
        ...


class RewardSource(Protocol):
    """What gives the rewards, from the start of a server to its end."""

    @property
    def label(self) -> str: ...

    async def start(self) -> None: ...

    async def rewarder(self, config: RewardConfig, count: Count | None = None) -> Rewards: ...

    async def close(self) -> None: ...


class RewardServerSettings(Struct, frozen=True, kw_only=True):
    """Where the server listens, who may use it (`token`; empty: everybody), how many samples may wait in it."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    max_waiting: int = 16_384


class RewardTally(Struct, kw_only=True):
    """What has happened since the start. `pace`: seconds a sample, over the last requests."""

    waiting: int = 0
    requests: int = 0
    refused: int = 0
    samples: int = 0
    outcomes: Counter[str] = Counter()
    unscored: Counter[str] = Counter()
    pace: float = 0.0


class RewardServer:
    """Answers requests with the rewards it is given, whose life belongs to the caller."""

    def __init__(self, rewarder: Rewards, grader: str, listening: RewardServerSettings) -> None:
        self.tally = RewardTally(outcomes=Counter(), unscored=Counter())
        self.last_reason = ""
        self._rewarder, self._grader, self._listening = rewarder, grader, listening
        self._routes: dict[str, Callable[[HttpRequest], Awaitable[Response]]] = {
            "/v1/rewards": self._ours,
            "/get_reward": self._openrlhf,
            "/slime": self._slime,
        }

    async def answer(self, request: HttpRequest) -> Response:
        if request.path == "/health":
            return wrong_method(request, "GET") or json_response({"status": "ok", "grader": self._grader})
        if (stranger := refusal_response(request, self._listening.token, "reward server")) is not None:
            return stranger
        if request.path == "/v1/stats":
            return wrong_method(request, "GET") or json_response(self._stats())
        route = self._routes.get(request.path.rstrip("/"))
        if route is None:
            return not_found(request)
        if (wrong := wrong_method(request, "POST")) is not None:
            return wrong
        self.tally.requests += 1
        try:
            return await route(request)
        except DataError as error:
            return error_response(400, str(error))

    async def _ours(self, request: HttpRequest) -> Response:
        judged = await self._judge(read_items(request.body))
        if isinstance(judged, Response):
            return judged
        return json_response(items_answer(self._grader, judged))

    async def _openrlhf(self, request: HttpRequest) -> Response:
        judged = await self._judge(read_openrlhf(request.body))
        if isinstance(judged, Response):
            return judged
        return _lost_response(judged) or json_response(openrlhf_answer(judged))

    async def _slime(self, request: HttpRequest) -> Response:
        judged = await self._judge(read_slime(request.body))
        if isinstance(judged, Response):
            return judged
        return _lost_response(judged) or json_response(judged[0].reward)

    async def _judge(self, samples: Sequence[RewardItem]) -> list[Judged] | Response:
        tally, most = self.tally, self._listening.max_waiting
        if len(samples) > most:
            return error_response(413, f"The request has {len(samples):,} samples; at most {most:,} are accepted.")
        if tally.waiting + len(samples) > most:
            tally.refused += 1
            wait = min(LONGEST_WAIT, max(1, math.ceil(tally.waiting * tally.pace)))
            sentence = f"{tally.waiting:,} samples are waiting; at most {most:,} are accepted."
            return error_response(429, sentence, (("Retry-After", str(wait)),))
        began = time.monotonic()
        tally.waiting += len(samples)
        try:
            judged = await self._rewarder.judge(samples)
        finally:
            tally.waiting -= len(samples)
        self._count(judged, time.monotonic() - began)
        return judged

    def _count(self, judged: Sequence[Judged], seconds: float) -> None:
        tally = self.tally
        tally.samples += len(judged)
        if judged:
            pace = seconds / (len(judged) + tally.waiting)
            tally.pace = pace if not tally.pace else 0.9 * tally.pace + 0.1 * pace
        for item in judged:
            tally.outcomes[item.outcome] += 1
            if item.reward is None:
                tally.unscored[item.why.partition(":")[0]] += 1
                self.last_reason = item.why

    def _stats(self) -> Row:
        tally = self.tally
        return {
            "grader": self._grader,
            "waiting": tally.waiting,
            "requests": tally.requests,
            "refused": tally.refused,
            "samples": tally.samples,
            "outcomes": tally.outcomes,
            "unscored": tally.unscored,
        }


def _lost_response(judged: Sequence[Judged]) -> Response | None:
    lost = [item for item in judged if item.reward is None]
    if not lost:
        return None
    sentence = f"{len(lost)} of {len(judged)} samples could not be graded. {lost[0].why}"
    return error_response(503, sentence, (("Retry-After", "1"),))


async def serve_rewards(
    grader: RewardSource,
    config: RewardConfig,
    listening: RewardServerSettings,
    *,
    say: PrintLine,
    count: Count | None = None,
) -> str:
    """Serve until SIGINT or SIGTERM; then requests in work may finish, for 30 s, and a second signal ends them at
    once. Return where it was.

    Raises ConfigError, UnknownNameError, AuthError (judge), SandboxError, ServerStartError.
    """
    ready_for_threads()
    stop, hurry = stop_signals()
    try:
        await grader.start()
        app = RewardServer(await grader.rewarder(config, count), grader.label, listening)
        limits = ServerLimits(body=MAX_BODY_BYTES)
        server = await serve(
            own_names_only(app.answer, listening.host), listening.host, listening.port, limits=limits
        )
        if grader.label.startswith(MODEL):
            what = grader.label
        else:
            what = f"grader {grader.label}"
        say(f"Reward server at {server.url}, {what}; Ctrl-C stops it.")
        await _report_failures(app, stop, say)
        say("Stopping: requests in progress may finish (again: stop now).")
        await close_unless_hurried(server.close, GRACE_SECONDS, hurry)
        say(_tally_summary(app.tally))
    finally:
        await grader.close()
    return server.url


async def _report_failures(app: RewardServer, stop: asyncio.Event, say: PrintLine) -> None:
    """Report now and then, until `stop`, the samples that could not be graded."""
    reported = 0
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), TOLD_EVERY)
        except TimeoutError:
            lost = app.tally.unscored.total()
            if lost > reported:
                say(f"{lost - reported:,} samples could not be graded, the last one because: {app.last_reason}")
            reported = lost


def _tally_summary(tally: RewardTally) -> str:
    counts = ", ".join(f"{outcome} {number:,}" for outcome, number in sorted(tally.outcomes.items()))
    return f"Stopped after {tally.samples:,} samples{f' ({counts})' if counts else ''}."
