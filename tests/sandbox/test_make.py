# SPDX-License-Identifier: Apache-2.0
"""Which sandbox settings and the environment ask for."""

from __future__ import annotations

import pytest

from newskills.base.errors import ConfigError
from newskills.sandbox.client import HttpSandbox
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.host import LocalSandbox
from newskills.sandbox.make import make_sandbox, port_of, with_environ_settings
from newskills_sandbox.replay import ReplayingSandbox


@pytest.mark.parametrize(
    ("config", "environ", "address"),
    [
        (SandboxConfig(host="box"), {}, "http://box:6000"),
        (SandboxConfig(port=7000), {}, "http://127.0.0.1:7000"),
        (SandboxConfig(host="::1", port=7000), {}, "http://[::1]:7000"),
        (SandboxConfig(), {"NEMO_SKILLS_SANDBOX_HOST": "node1"}, "http://node1:6000"),
        (SandboxConfig(), {"NEMO_SKILLS_SANDBOX_PORT": "6001"}, "http://127.0.0.1:6001"),
        (
            SandboxConfig(host="box", port=7000),
            {"NEMO_SKILLS_SANDBOX_HOST": "node1", "NEMO_SKILLS_SANDBOX_PORT": "6001"},
            "http://box:7000",
        ),
    ],
)
def test_a_server_is_named(config: SandboxConfig, environ: dict[str, str], address: str) -> None:
    sandbox = make_sandbox(config, environ | {"NEMO_SKILLS_DISABLE_SESSION_RESTORE": "1"})
    assert isinstance(sandbox, HttpSandbox)
    assert sandbox.address == address


def test_without_a_server_code_runs_here() -> None:
    assert isinstance(make_sandbox(SandboxConfig(disable_session_restore=True), {}), LocalSandbox)


@pytest.mark.parametrize(
    ("value", "restores"), [("", True), ("0", True), ("false", True), ("1", False), ("True", False)]
)
def test_restoring_can_be_switched_off(value: str, restores: bool) -> None:
    sandbox = make_sandbox(SandboxConfig(), {"NEMO_SKILLS_DISABLE_SESSION_RESTORE": value})
    assert isinstance(sandbox, ReplayingSandbox) == restores


def test_the_session_timeout_of_the_environment() -> None:
    environ = {"NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT": "90"}
    assert with_environ_settings(SandboxConfig(), environ).session_timeout == 90
    assert with_environ_settings(SandboxConfig(session_timeout=5), environ).session_timeout == 5
    for wrong in ("soon", "-1", "nan", "inf"):
        with pytest.raises(ConfigError, match="NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT"):
            with_environ_settings(SandboxConfig(), {"NEMO_SKILLS_SANDBOX_SESSION_TIMEOUT": wrong})


@pytest.mark.parametrize("wrong", ["x", "0", "65536", "-1", "6000.0", "9" * 5000, "٦٠٠٠"])
def test_a_wrong_port_in_the_environment(wrong: str) -> None:
    with pytest.raises(ConfigError, match="NEMO_SKILLS_SANDBOX_PORT: expected a port"):
        port_of(None, {"NEMO_SKILLS_SANDBOX_PORT": wrong})
