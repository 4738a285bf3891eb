# SPDX-License-Identifier: Apache-2.0
"""What judges say in games between two answers, and in marks from 1 to 10."""

from __future__ import annotations

import re

from newskills.base.records import Row, Score
from newskills.graders.reading.replies import decided

GAMES = ("judgement-gen-base", "judgement-base-gen")
_LABEL = re.compile(r"\[\[([AB][<>=]{1,2}[AB])\]\]|\[([AB][<>=]{1,2}[AB])\]")
_LABELS = {"A>>B": 1.0, "A>B": 1.0, "A=B": 0.5, "A<B": 0.0, "A<<B": 0.0}
_TURNED = {"B>>A": "A<<B", "B>A": "A<B", "B=A": "A=B", "B<A": "A>B", "B<<A": "A>>B"}
_OTHER_SIDE = {"A>>B": "A<<B", "A>B": "A<B", "A=B": "A=B", "A<B": "A>B", "A<<B": "A>>B"}
_MARK = re.compile(r"\[\[(\d{1,2}(?:\.\d{1,3})?)\]\]")
_HIGHEST = 10


def arena_label(text: object) -> str | None:
    """The only verdict in the text, from A's side: A>>B, A>B, A=B, A<B, A<<B; None for none, or different ones."""
    if not isinstance(text, str):
        return None
    label_set = {double or single for double, single in _LABEL.findall(text.rpartition("</think>")[2])}
    labels = {_TURNED.get(label, label) for label in label_set}
    label = labels.pop() if len(labels) == 1 else None
    return label if label in _LABELS else None


class ArenaGrader:
    """Fields written: `arena_games`, the verdicts of both games from the answer's side (null: none), `arena_win` (0–1).

    Correct where the answer wins over both games together; without any verdict it is unscored.
    """

    name = "arena"
    version = "1"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        first, second = (arena_label(record.get(game)) for game in GAMES)
        games = [first, None if second is None else _OTHER_SIDE[second]]
        values = [_LABELS[game] for game in games if game is not None]
        if not values:
            fields: Row = {"arena_games": games, "arena_win": None}
            return Score(outcome="unscored", fields=fields, grader=stamp, why="no verdict", cause="judge")
        win = sum(values) / len(values)
        why = " and ".join(str(game) for game in games)
        return decided(stamp, win > 0.5, {"arena_games": games, "arena_win": win}, why, win)


def mark(text: object) -> float | None:
    """The last `[[n]]` from 1 to 10."""
    if not isinstance(text, str) or not (marks := _MARK.findall(text.rpartition("</think>")[2])):
        return None
    value = float(marks[-1])
    return value if 1 <= value <= _HIGHEST else None


class RatingGrader:
    """Fields written: `ratings`, name → mark from 1 to 10 or null; `all` for one judgement, else `turn-1`, `turn-2`, ….

    Correct from a mean of 5.5 on, the middle of the scale; a judgement without a mark leaves it unscored.
    """

    name = "rating"
    version = "1"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        turns = {name: text for name, text in record.items() if name.startswith("judgement-turn-")}
        if turns:
            ratings = {name.removeprefix("judgement-"): mark(text) for name, text in sorted(turns.items())}
        else:
            ratings = {"all": mark(record.get("judgement"))}
        present = [value for value in ratings.values() if value is not None]
        fields: Row = {"ratings": ratings}
        if len(present) < len(ratings):
            return Score(
                outcome="unscored", fields=fields, grader=stamp, why="no mark from 1 to 10", cause="judge"
            )
        mean = sum(present) / len(present)
        return decided(
            stamp, mean >= (1 + _HIGHEST) / 2, fields, f"{mean:g} of {_HIGHEST}", (mean - 1) / (_HIGHEST - 1)
        )
