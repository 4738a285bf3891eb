# SPDX-License-Identifier: Apache-2.0
"""One server per user and run, small limits, canaries around it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox.hostile.arena import Arena, Case
from tests.sandbox.hostile.canaries import Canaries
from tests.sandbox.serving import USERS, Server, why_not


@pytest.fixture(scope="session", params=USERS)
def server_arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
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
        yield place


@pytest.fixture(scope="module")
def arena(server_arena: Arena, request: pytest.FixtureRequest) -> Arena:
    """The slow cases of the file have begun: those of other files may be the work of another process."""
    server_arena.prefetch(_slow_cases(request.session.items, request.path, server_arena.server.user))
    return server_arena


def _slow_cases(items: list[pytest.Item], path: Path, user: str) -> list[Case]:
    cases = []
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        one = params.get("case")
        if item.path == path and isinstance(one, Case) and one.slow and params.get("server_arena") == user:
            cases.append(one)
    return cases
