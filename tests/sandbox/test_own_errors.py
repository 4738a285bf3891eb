# SPDX-License-Identifier: Apache-2.0
"""What the library raises, as newskills says it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newskills.base.errors import ConfigError, ExecutionRefusedError, SandboxError, boundary, suggest
from newskills.base.protocols import Execution
from newskills.sandbox.config import Limits, SandboxConfig
from newskills.sandbox.host import LocalSandbox, settings_of
from newskills.sandbox.own_errors import own_errors
from newskills_sandbox import errors
from newskills_sandbox.languages import LANGUAGES, language
from newskills_sandbox.settings import SandboxSettings, SessionLimits
from newskills_sandbox.variables import BLOCK_NETWORK_VARIABLE


def raised(config: SandboxConfig, execution: Execution, environ: dict[str, str] | None = None) -> BaseException:
    async def play() -> None:
        sandbox = LocalSandbox(config, environ or {})
        try:
            await sandbox.execute(execution)
        finally:
            await sandbox.close()

    with pytest.raises((ConfigError, SandboxError)) as caught:
        asyncio.run(play())
    return caught.value


@pytest.mark.parametrize(
    ("settings", "fields", "kind", "text"),
    [
        ({"packages": ("nope",)}, {}, ConfigError, "++sandbox.packages names nope, which"),
        ({"preload": ("nope",)}, {}, ConfigError, "++sandbox.preload names nope, which"),
        ({"lean": "/nowhere"}, {}, ConfigError, "++sandbox.lean is /nowhere, which is not a Lean program"),
        (
            {"lean": "/no"},
            {"language": "lean4"},
            ExecutionRefusedError,
            "++sandbox.lean is /no, which is not a Lean",
        ),
        ({}, {"language": "pyhton"}, ExecutionRefusedError, "Unknown language 'pyhton'; did you mean"),
        ({}, {"timeout": 0.0}, ExecutionRefusedError, "The timeout must be above 0"),
        ({"python": "/bin/true"}, {}, SandboxError, "/bin/true is not a working Python interpreter"),
    ],
)
def test_messages_name_what_users_of_newskills_type(
    settings: dict[str, Any], fields: dict[str, Any], kind: type[Exception], text: str
) -> None:
    error = raised(SandboxConfig(**settings), Execution(code="1", **fields))
    assert type(error) is kind
    assert str(error).startswith(text)


def test_a_network_that_is_blocked_is_a_setting_that_contradicts() -> None:
    error = raised(SandboxConfig(network=True), Execution(code="1"), {BLOCK_NETWORK_VARIABLE: "1"})
    assert isinstance(error, ConfigError)
    assert error.exit_code == 2


def test_where_code_cannot_be_isolated_the_options_of_the_command_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object) -> None:
        raise errors.SandboxError("no name spaces")

    monkeypatch.setattr("newskills_sandbox.launch.Zygote.start", refuse)
    error = raised(SandboxConfig(preload=()), Execution(code="1"))
    assert type(error) is SandboxError
    assert error.message == (
        "Code cannot be isolated on this machine (isolation level a: no name spaces isolation level b: no name spaces)"
    )
    assert error.hint == (
        "`ns sandbox doctor` shows what is missing; --sandbox=none runs code without isolation, at your own risk."
    )
    assert boundary(error).cause == "sandbox"


def test_own_errors_pass_and_others_get_their_twins() -> None:
    own = ExecutionRefusedError("mine")
    with pytest.raises(ExecutionRefusedError) as caught, own_errors():
        raise own
    assert caught.value is own
    with pytest.raises(ConfigError, match="theirs") as twin, own_errors():
        raise errors.SettingsError("theirs", hint="do it")
    assert twin.value.hint == "do it"
    assert issubclass(ExecutionRefusedError, errors.ExecutionRefusedError)
    with pytest.raises(KeyError), own_errors():
        raise KeyError("x")


OF_PROGRAMS = ("words", "folders", "address_space")
"""What no user sets: names of keys in messages, and what sessions with programs of agents need."""


def test_every_setting_of_the_library_is_a_key_and_means_the_same() -> None:
    assert settings_of(SandboxConfig()).limits == SessionLimits()
    usual, other = SandboxSettings(), settings_of(SandboxConfig())
    names = [name for name in SandboxSettings.__dataclass_fields__ if name not in OF_PROGRAMS]
    assert [getattr(usual, name) for name in names] == [getattr(other, name) for name in names]
    keys = set(SandboxConfig.__struct_fields__) - {"type", "host", "port", "disable_session_restore"}
    assert set(names) == keys
    assert set(Limits.__struct_fields__) == set(SessionLimits.__dataclass_fields__)
    changed = settings_of(SandboxConfig(lean="x", packages=("numpy",), limits=Limits(files=100, timeout=7.0)))
    assert (changed.lean, changed.packages, changed.limits.files, changed.limits.timeout) == (
        "x",
        ("numpy",),
        100,
        7.0,
    )


@pytest.mark.parametrize("name", ["pyhton", "lean", "Python", "c++", "bash", "x", "", "python-3", "pypy"])
def test_both_suggest_the_same_languages(name: str) -> None:
    assert errors.suggest(name, LANGUAGES) == suggest(name, LANGUAGES)
    with pytest.raises(errors.ExecutionRefusedError):
        language(name)
