# SPDX-License-Identifier: Apache-2.0
"""Is a model trained on what it is measured by? Questions are compared, wherever they stand in what is learnt from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from newskills.base.errors import DataError
from newskills.base.records import Row

FIELDS = ("problem", "question", "prompt", "text", "instruction")
"""Fields of rows with what is asked, the first that is there."""
SHOWN = 80
"""Characters of a question in a message."""
REMEDY = (
    "Use another split or other data, remove them (ns prepare_training_data --decontaminate=NAME), or add "
    "--allow_overlap."
)
_MARK = re.compile(r"\n|<[^<>\s]{1,40}>|\[/?[A-Z_]{2,20}\]")
"""What stands around a question in the text of a conversation: ends of lines, special tokens."""


def question_of(row: Row) -> str | None:
    """Return the question of a row; None where none of the fields holds it."""
    if isinstance(messages := row.get("messages"), list):
        questions = [
            turn.get("content") for turn in messages if isinstance(turn, dict) and turn.get("role") == "user"
        ]
        return next((text for text in reversed(questions) if isinstance(text, str) and text), None)
    return next((row[name] for name in FIELDS if isinstance(row.get(name), str) and row[name]), None)


def texts_of(row: Row) -> Iterator[str]:
    """Yield all texts that a row of training data shows to the model before an answer."""
    for turn in row.get("messages") or ():
        if isinstance(turn, dict) and turn.get("role") != "assistant" and isinstance(turn.get("content"), str):
            yield turn["content"]
    for name in ("input", *FIELDS):
        if isinstance(row.get(name), str):
            yield row[name]


class Questions:
    """Questions that are looked for in texts, line by line, whatever their case and blanks."""

    def __init__(self, questions: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        self._texts: dict[tuple[str, ...], str] = {}
        for text in questions:
            parts = _normalized_parts(text)
            if parts and parts not in self._texts:
                self._texts[parts] = text
                self._by_first.setdefault(parts[0], []).append(parts)

    def __len__(self) -> int:
        return len(self._texts)

    def found_in(self, texts: Iterable[str]) -> list[str]:
        """Return the questions that occur in one of the texts."""
        questions: dict[tuple[str, ...], None] = {}
        for text in texts:
            parts = _normalized_parts(text)
            for place, part in enumerate(parts):
                for question in self._by_first.get(part, ()):
                    if parts[place : place + len(question)] == question:
                        questions[question] = None
        return [self._texts[question] for question in questions]


def check_overlap(
    learnt: Callable[[], Iterable[str]],
    measured: Mapping[str, Sequence[str]],
    *,
    allowed: bool,
    say: Callable[[str], Any],
    remedy: str = REMEDY,
) -> None:
    """Report how many of the questions of each name are in the training data.

    Raises DataError where one is, unless it is `allowed`.
    """
    for name, texts in measured.items():
        questions = Questions(texts)
        overlap = questions.found_in(learnt())
        say(f"overlap: {len(overlap)} of {len(questions)} questions of {name} are in the training data")
        if overlap and not allowed:
            first = " ".join(overlap[0].split())
            if len(first) > SHOWN:
                first = f"{first[: SHOWN - 1]}…"
            raise DataError(
                f"{len(overlap)} of {len(questions)} questions of {name} are in the training data and in the "
                f"evaluation, so the score would measure memorisation. The first: {first}",
                hint=remedy,
            )


def _normalized_parts(text: str) -> tuple[str, ...]:
    parts = (" ".join(part.casefold().split()) for part in _MARK.split(text))
    return tuple(part for part in parts if part)
