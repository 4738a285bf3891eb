# SPDX-License-Identifier: Apache-2.0
"""What messages of the library say."""

from __future__ import annotations

import pytest

from newskills_sandbox.errors import ExecutionRefusedError, SandboxError, SettingsError, suggest
from newskills_sandbox.languages import language
from newskills_sandbox.settings import SandboxSettings, SessionLimits, SettingWords


def test_an_error_says_what_to_do_next() -> None:
    assert str(SandboxError("It failed.", hint="Try again.")) == "It failed. Try again."
    assert str(SettingsError("It cannot be.")) == "It cannot be."


def test_a_name_that_is_close_is_suggested() -> None:
    assert suggest("Pyton", ["python", "shell"]) == "; did you mean 'python'?"
    assert suggest("x", ["b", "a"]) == "; the choices are a, b."
    with pytest.raises(ExecutionRefusedError, match="Unknown language 'lean'; did you mean 'lean4'"):
        language("lean")


@pytest.mark.parametrize(
    "settings",
    [{"isolation": "c"}, {"concurrency": -1}, {"session_timeout": float("nan")}, {"max_sessions": 0}],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        SandboxSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("memory_mb", 63), ("files", 0), ("timeout", 0.0), ("processes", 3)])
def test_limits_that_cannot_be_are_refused(name: str, value: float) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be"):
        SessionLimits(**{name: value})  # type: ignore[arg-type]


def test_a_program_has_its_own_names_for_settings() -> None:
    assert SandboxSettings().words.name("lean") == "lean"
    assert SettingWords(setting="--{}").name("lean") == "--lean"
