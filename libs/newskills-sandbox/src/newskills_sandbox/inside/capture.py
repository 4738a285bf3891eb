# SPDX-License-Identifier: Apache-2.0
"""Output of untrusted code, cut while it is read, so that a flood never fills memory."""

from __future__ import annotations

import os

CUT = "<output cut>"
_PIECE = 1 << 16
_LONGEST_CHARACTER = 4


class Capture:
    """One non-blocking pipe; keeps the first `limit` characters of what comes."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.open = True
        self._limit = self._room = 0
        self._kept = bytearray()
        self._cut = False

    def start(self, limit: int, *, discard: bool) -> None:
        """Start a new count; `discard`: drop what is waiting, which was written between two requests and belongs to
        none."""
        if discard:
            self._room = 0
            self.read_all()
        self._limit, self._room = limit, limit * _LONGEST_CHARACTER
        self._kept.clear()
        self._cut = False

    def read(self) -> bool:
        """Read one piece; False where nothing is waiting."""
        try:
            piece = os.read(self.descriptor, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self.open = False
            return False
        if len(piece) > self._room:
            self._cut = True
            piece = piece[: self._room]
        self._room -= len(piece)
        self._kept += piece
        return True

    def read_all(self) -> None:
        """Read what is waiting now: a pipe's worth at most, so that a writer who never stops cannot hold us."""
        for _ in range(64):
            if not self.open or not self.read():
                return

    def text(self) -> str:
        text = self._kept.decode("utf-8", "replace")
        if self._cut or len(text) > self._limit:
            return text[: self._limit] + CUT
        return text

    def close(self) -> None:
        os.close(self.descriptor)
