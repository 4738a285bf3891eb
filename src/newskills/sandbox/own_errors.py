# SPDX-License-Identifier: Apache-2.0
"""Errors of the library in the words of newskills."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from newskills.base.errors import ConfigError, ExecutionRefusedError, NewskillsError, SandboxError
from newskills_sandbox import errors


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise what the library raises as errors of newskills, which say whose fault it is and how a command ends."""
    try:
        yield
    except errors.SandboxError as error:
        if isinstance(error, NewskillsError):
            raise
        kind = {errors.SettingsError: ConfigError, errors.ExecutionRefusedError: ExecutionRefusedError}
        raise kind.get(type(error), SandboxError)(error.message, hint=error.hint) from error
