# SPDX-License-Identifier: Apache-2.0
"""The token stream that the parser reads, and what every level of the grammar may call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from newskills_math.syntax.lexer import Token
from newskills_math.syntax.nodes import Node, TooBig, Unreadable

MAX_DEPTH = 40


class Cursor(ABC):
    """A place in a list of tokens; the levels of the grammar are its subclasses."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._bars = 0
        self._in_set = 0

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _ahead(self, n: int = 1) -> Token:
        return self._tokens[min(self._at + n, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._now.kind in ("op", "cmd") and self._now.text in texts

    def _accept(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise Unreadable(f"'{text}' is missing before '{self._now.text}'")

    @contextmanager
    def _nested(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooBig("deeper nesting than is read")
        bars, self._bars = self._bars, 0
        in_set, self._in_set = self._in_set, 0
        yield
        self._depth -= 1
        self._bars, self._in_set = bars, in_set

    def _raw_group(self) -> str:
        """Return the text of a group or one token, without blanks (for names)."""
        if not self._is("{"):
            token = self._take()
            return token.text
        parts: list[str] = []
        depth = 0
        while True:
            token = self._take()
            if token.kind == "end":
                raise Unreadable("a group without end")
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return "".join(parts[1:])
            parts.append(token.text)

    # --- levels of the grammar that lower ones come back to

    @abstractmethod
    def _list(self, *, stop: str = "") -> Node: ...

    @abstractmethod
    def _statement(self) -> Node: ...

    @abstractmethod
    def _sum(self) -> Node: ...

    @abstractmethod
    def _term(self) -> Node: ...

    @abstractmethod
    def _power(self) -> Node: ...

    @abstractmethod
    def _signed_power(self) -> Node: ...

    @abstractmethod
    def _implicit(self, node: Node) -> Node: ...

    @abstractmethod
    def _starts_factor(self) -> bool: ...
