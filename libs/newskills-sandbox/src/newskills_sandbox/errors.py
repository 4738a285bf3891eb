# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with the sandbox; whatever the code does, in contrast, is a result."""

from __future__ import annotations

from collections.abc import Iterable


class SandboxError(Exception):
    """The sandbox itself failed, which says nothing about the code. `hint` is what to do next, where that is clear."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class ExecutionRefusedError(SandboxError):
    """The request makes no sense (unknown language, bad timeout): asking again changes nothing."""


class SettingsError(SandboxError):
    """A setting that cannot be, or that contradicts another one or this machine."""


def suggest(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'a'?`, or where nothing is close the choices."""
    import difflib  # at once it would cost every start of a program that knows these errors

    choices = sorted(names)
    folded = {choice.lower().replace("-", "_"): choice for choice in choices}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), folded, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(repr(folded[key]) for key in close)}?"
    return f"; the choices are {', '.join(choices)}."
