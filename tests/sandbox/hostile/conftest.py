# SPDX-License-Identifier: Apache-2.0
"""One server per user and run, small limits, canaries around it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.sandbox.hostile.arena import Arena, Case
from tests.sandbox.hostile.canaries import Canaries
from tests.sandbox.serving import USERS, Server, why_not


@pytest.fixture(scope="session", params=USERS)
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    user: str = request.param
    if reason := why_not(user):
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        canaries = Canaries(user)
        stack.callback(canaries.close)
        server = Server(user, canaries.cwd, environ=canaries.environ)
        stack.callback(server.stop)
        server.start()
        place = Arena(server, canaries)
        stack.callback(place.close)
        place.prefetch(_slow_cases(request.session.items, user))
        yield place


def _slow_cases(items: list[pytest.Item], user: str) -> list[Case]:
    found = []
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        one = params.get("case")
        if isinstance(one, Case) and one.slow and params.get("arena") == user:
            found.append(one)
    return found
