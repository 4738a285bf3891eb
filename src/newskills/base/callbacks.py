# SPDX-License-Identifier: Apache-2.0
"""Types of functions and objects that are handed down so that work can tell of itself."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from newskills.base.records import ReplyPiece

PrintLine = Callable[[str], None]
"""Shows one line of text to the person who waits, wherever that is."""

HearPiece = Callable[["ReplyPiece"], None]
"""Gets a part of a reply as soon as the model has written it."""


class ReplyListener(Protocol):
    """Gets the parts of a reply while it is written; once it has `begun`, the request cannot be sent again."""

    begun: bool

    def hear(self, piece: ReplyPiece) -> None: ...


REPLY_LISTENER: ContextVar[ReplyListener | None] = ContextVar("reply listener", default=None)
"""Who listens to the reply that a task asks for. Backends that cannot stream tell nothing: the reply comes whole."""


def reply_has_begun() -> bool:
    """Return whether a listener has got a part of the reply that this task asks for."""
    listener = REPLY_LISTENER.get()
    return listener is not None and listener.begun
