# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills_sandbox.errors import SandboxError
from newskills_sandbox.launch import FIRST_SESSION_USER, NOBODY, session_users

HOST = "         0          0 4294967295\n"
ROOTLESS = "         0       1001          1\n         1     100000      65536\n"


def test_users_of_sessions_are_nobody_elses() -> None:
    assert session_users(HOST).start == FIRST_SESSION_USER


def test_in_a_container_they_are_among_the_users_that_it_maps() -> None:
    users = session_users(ROOTLESS)
    assert (users.start, users.stop) == (32769, NOBODY)


def test_a_container_with_one_user_has_none_to_give() -> None:
    with pytest.raises(SandboxError, match="maps only one user"):
        session_users("0 1001 1\n")
