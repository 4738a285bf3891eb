# SPDX-License-Identifier: Apache-2.0
"""One model at several servers: requests that begin alike go to the same one, whose cache then has their beginning.

Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2018): a server that has more than its share
in flight passes requests on to the next on the ring. A server that fails is left out, for longer each time, and its
requests go to the others; one that comes (back) gets few requests first, and more as it answers.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import time
from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from newskills.base.callbacks import reply_has_begun
from newskills.base.errors import BadRequestError, HttpError, ServerError, TransportError
from newskills.base.protocols import Model
from newskills.base.records import Inference, Reply, Request

POINTS = 64
"""Of each server on the ring."""
BOUND = 1.25
"""A server's requests in flight, against those of an average one."""
DEPTHS = (1_000, 8_000)
"""Characters of a prompt that decide, the fewest first: what most requests have in common decides nothing."""
LATELY = 1_024
"""Requests whose beginnings are remembered."""
FAILURES = 3
"""Failures one after the other that a server is left out for; a connection that fails is enough by itself."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds that it is left out: the first time, and after many."""
OTHERS = 1
"""Servers that are asked in place of one that is gone: a request that ends servers must not meet all of them."""
FEW = 4
"""Requests that a server gets at once before it has answered any."""


class Replica:
    """A server: what it is doing, and whether it is to be asked."""

    def __init__(self, model: Model, *, warm: bool) -> None:
        self.model = model
        self.active = 0
        self.failures = 0
        self.pauses = 0
        self.out_until = 0.0
        self.most = math.inf if warm else float(FEW)

    def is_open(self, now: float) -> bool:
        """Return whether the replica takes a request; after its pause, one at a time finds out whether it is
        back."""
        return self.out_until <= now and (not self.pauses or not self.active)

    def has_room(self, share: float) -> bool:
        return self.active < min(self.most, share)

    def note_answer(self) -> None:
        if self.pauses:
            self.most = float(FEW)
        self.failures = self.pauses = 0
        self.most += 1

    def note_failure(self, now: float, *, gone: bool) -> None:
        self.failures += 1
        if gone or self.failures >= FAILURES:
            self.out_until = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.pauses)
            self.pauses += 1


class RoutedModel:
    """A Model that asks the first server that is right for a request, and another one where that is gone.

    `models`: address → the model there, which is closed with this one.
    """

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.name = next(iter(models.values())).name
        self.replicas = [Replica(model, warm=len(models) == 1) for model in models.values()]
        points = sorted(
            (_ring_position(f"{address}#{number}"), at)
            for at, address in enumerate(models)
            for number in range(POINTS)
        )
        self._points, owners = [point for point, _ in points], [owner for _, owner in points]
        self._orders = [tuple(dict.fromkeys([*owners[at:], *owners[:at]])) for at in range(len(owners))]
        """Of each point: all servers, as they follow it on the ring."""
        self._lately: deque[int] = deque()
        self._often: Counter[int] = Counter()

    def check(self, inference: Inference, *, tools: bool = False) -> None:
        """Raise ConfigError for a setting that the servers cannot honour."""
        if (check := getattr(self.replicas[0].model, "check", None)) is not None:
            check(inference, tools=tools)

    async def complete(self, request: Request) -> Reply:
        """Return the reply of one of the servers. Raises HttpError: the last one, where no server is left to ask."""
        key, gone = self._key(_shared_beginning(request)), set[Replica]()
        while True:
            replica = self._choose_replica(key, gone)
            replica.active += 1
            try:
                reply = await replica.model.complete(request)
            except HttpError as error:
                lost = isinstance(error, TransportError)
                if lost or isinstance(error, ServerError):
                    replica.note_failure(time.monotonic(), gone=lost)
                elif isinstance(error, BadRequestError):
                    replica.note_answer()
                gone.add(replica)
                if not lost or reply_has_begun() or len(gone) > OTHERS or not self._has_others(gone):
                    raise
            else:
                replica.note_answer()
                return reply
            finally:
                replica.active -= 1

    async def close(self) -> None:
        for replica in self.replicas:
            await replica.model.close()

    def _has_others(self, gone: set[Replica]) -> bool:
        now = time.monotonic()
        return any(replica.is_open(now) for replica in self.replicas if replica not in gone)

    def _choose_replica(self, key: int, gone: set[Replica]) -> Replica:
        now = time.monotonic()
        point = bisect.bisect_left(self._points, key) % len(self._points)
        ring = [self.replicas[at] for at in self._orders[point]]
        open_ones = [replica for replica in ring if replica not in gone and replica.is_open(now)]
        if not open_ones:  # all are left out: one whose pause ends soon finds out whether that is still so
            return min((r for r in ring if r not in gone), key=lambda r: r.out_until, default=ring[0])
        share = math.ceil(BOUND * (1 + sum(replica.active for replica in open_ones)) / len(open_ones))
        free = (replica for replica in open_ones if replica.has_room(share))
        return next(free, min(open_ones, key=lambda replica: replica.active / replica.most))

    def _key(self, text: str) -> int:
        """Return the key of the beginning that tells enough: one not common to more requests than a server may
        have."""
        keys = [_ring_position(text[:depth]) for depth in DEPTHS if len(text) > depth]
        most = len(self._lately) / len(self.replicas)
        chosen = next((key for key in keys if self._often[key] <= most), _ring_position(text))
        for key in keys:
            self._often[key] += 1
            self._lately.append(key)
        while len(self._lately) > LATELY * len(DEPTHS):
            old = self._lately.popleft()
            self._often[old] -= 1
            if not self._often[old]:
                del self._often[old]
        return chosen


def _shared_beginning(request: Request) -> str:
    """Return the text that later turns, and other samples of the same row, have in common."""
    if request.messages is None:
        prompt = request.prompt
        if isinstance(prompt, str):
            return prompt
        return msgspec.json.encode(prompt).decode()
    first = next((at for at, m in enumerate(request.messages) if m.role == "user"), 0)
    return "\0".join(
        m.content if isinstance(m.content, str) else msgspec.json.encode(m.content).decode()
        for m in request.messages[: first + 1]
    )


def _ring_position(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
