# SPDX-License-Identifier: Apache-2.0
"""Errors of the library in the words of newskills."""

from __future__ import annotations

from types import TracebackType

from newskills.base.errors import ConfigError, ExecutionRefusedError, NewskillsError, SandboxError
from newskills_sandbox import errors

_TWINS: dict[type[errors.SandboxError], type[NewskillsError]] = {
    errors.SettingsError: ConfigError,
    errors.ExecutionRefusedError: ExecutionRefusedError,
}


class _OwnErrors:
    """Entered for every cell, so no generator."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, errors.SandboxError) and not isinstance(error, NewskillsError):
            raise _TWINS.get(type(error), SandboxError)(error.message, hint=error.hint) from error


_OWN_ERRORS = _OwnErrors()


def own_errors() -> _OwnErrors:
    """Raise, in a `with`, what the library raises as errors of newskills: they say whose fault it is and how a command
    ends."""
    return _OWN_ERRORS
