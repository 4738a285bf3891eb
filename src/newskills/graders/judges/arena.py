# SPDX-License-Identifier: Apache-2.0
"""What judges say in games between two answers, and in marks from 1 to 10."""

from __future__ import annotations

import re
from collections.abc import Sequence

from newskills.base.reading.offered_verdicts import own_words
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import verdict_score

GAMES = ("judgement-gen-base", "judgement-base-gen")
_LABELLED = tuple(
    re.compile(pattern) for pattern in (r"\[\[([AB][<>=]{1,2}[AB])\]\]", r"\[([AB][<>=]{1,2}[AB])\]")
)
_LABELS = {"A>>B": 1.0, "A>B": 1.0, "A=B": 0.5, "A<B": 0.0, "A<<B": 0.0}
_TURNED = {"B>>A": "A<<B", "B>A": "A<B", "B=A": "A=B", "B<A": "A>B", "B<<A": "A>>B"}
_OTHER_SIDE = {"A>>B": "A<<B", "A>B": "A<B", "A=B": "A=B", "A<B": "A>B", "A<<B": "A>>B"}
_MARKED = tuple(
    re.compile(rf"{left}(\d{{1,2}}(?:\.\d{{1,3}})?){right}")
    for left, right in ((r"\[\[", r"\]\]"), (r"\[", r"\]"))
)
_SCORED = re.compile(
    r"\"score\"[ \t]{0,4}:[ \t]{0,4}\"?(\d{1,2}(?:\.\d{1,3})?)(?:/10)?\"?\s{0,9},?\s{0,9}\}\s{0,9}(?:`{3}\s{0,9})?\Z"
)
_LONGEST_OBJECT = 200
_HIGHEST = 10


def arena_label(text: object) -> str | None:
    """Return the last verdict in the text, from A's side: A>>B, A>B, A=B, A<B, A<<B; None for none.

    In double brackets, or else in single ones.
    """
    last = _last_match(_LABELLED, text, capitals=True)
    label = _TURNED.get(str(last), last)
    if label in _LABELS:
        return label
    return None


_LABEL = r"\[{1,2}[AB][<>=]{1,2}[AB]\]{1,2}"
_OFFERED = re.compile(rf"(?:{_LABEL}(?:[^\[\]\n]{{0,60}}\n\s{{0,8}}|\s?[,/|]\s?(?:or\s)?)){{2,6}}{_LABEL}")
_EXAMPLE = re.compile(
    r"(?:\blike this|\bfor example|\be\.g\.|\bsuch as)\W{0,3}(?:[\"'`]?rating\W{0,3})?\[{1,2}[\d.]{1,4}\]{1,2}",
    re.IGNORECASE,
)
"""What prompts offer, where a judge repeats it."""


def _last_match(patterns: Sequence[re.Pattern[str]], text: object, *, capitals: bool = False) -> str | None:
    """Return the last match of the first pattern that has one, behind the judge's thinking; None for none."""
    if not isinstance(text, str):
        return None
    answer = without_thinking(text)
    if capitals:
        answer = answer.upper()
    reply = own_words(_EXAMPLE.sub("", _without_offered(answer)))
    for pattern in patterns:
        if matches := pattern.findall(reply):
            return str(matches[-1])
    return None


def _without_offered(text: str) -> str:
    """Remove lists of three or more different verdicts."""

    def chosen(match: re.Match[str]) -> str:
        labels = re.findall(r"[AB][<>=]{1,2}[AB]", match.group())
        if len(set(labels)) == len(labels) > 2:
            return ""
        return match.group()

    return _OFFERED.sub(chosen, text)


class ArenaGrader:
    """Fields written: `arena_games`, the verdicts of both games from the answer's side (null: none), `arena_win` (0–1).

    Correct where the answer wins over both games together; without any verdict it is unscored.
    """

    name = "arena"
    version = "4"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        first, second = (arena_label(record.get(game)) for game in GAMES)
        second_game = None if second is None else _OTHER_SIDE[second]
        games = [first, second_game]
        values = [_LABELS[game] for game in games if game is not None]
        if not values:
            fields: Row = {"arena_games": games, "arena_win": None}
            return Score(outcome="unscored", fields=fields, grader=stamp, why="no verdict", cause="judge")
        win = sum(values) / len(values)
        why = " and ".join(str(game) for game in games)
        return verdict_score(stamp, win > 0.5, {"arena_games": games, "arena_win": win}, why, win)


def read_mark(text: object) -> float | None:
    """Return the number of `"score": "n"` in a JSON object that ends the text, or else of the last `[[n]]`, or else
    `[n]`, from 1 to 10; None for any other number or none."""
    last = _score_in_object(text) or _last_match(_MARKED, text)
    if last is not None and 1 <= float(last) <= _HIGHEST:
        return float(last)
    return None


def _score_in_object(text: object) -> str | None:
    """Return the `score` of the JSON object at the end of the text, fenced or not; None where there is none."""
    if not isinstance(text, str):
        return None
    matches = _SCORED.findall(without_thinking(text)[-_LONGEST_OBJECT:])
    if matches:
        return str(matches[-1])
    return None


class RatingGrader:
    """Fields written: `ratings`, name → mark from 1 to 10 or null; `all` for one judgement, else `turn-1`, `turn-2`, ….

    Correct from a mean of 5.5 on, the middle of the scale; a judgement without a mark leaves it unscored.
    """

    name = "rating"
    version = "5"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        turns = {name: text for name, text in record.items() if name.startswith("judgement-turn-")}
        if turns:
            ratings = {name.removeprefix("judgement-"): read_mark(text) for name, text in sorted(turns.items())}
        else:
            ratings = {"all": read_mark(record.get("judgement"))}
        present = [value for value in ratings.values() if value is not None]
        fields: Row = {"ratings": ratings}
        if len(present) < len(ratings):
            return Score(
                outcome="unscored", fields=fields, grader=stamp, why="no mark from 1 to 10", cause="judge"
            )
        mean = sum(present) / len(present)
        return verdict_score(
            stamp, mean >= (1 + _HIGHEST) / 2, fields, f"{mean:g} of {_HIGHEST}", (mean - 1) / (_HIGHEST - 1)
        )
