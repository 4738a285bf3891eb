# SPDX-License-Identifier: Apache-2.0
"""`--until`: when a benchmark has enough answers, and what is written down about where it stopped."""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.base.anytime import anytime_interval, excludes_mean
from newskills.base.errors import ConfigError
from newskills.base.stats import Z95

UNTIL_FILE = "until.json"
"""Beside the records of a benchmark: the rule, and where it stopped."""
ORDER_SEED = 0
SURELY_WIDER = 1.5
"""An anytime-valid interval is at least so many times as wide as one for a fixed number: most need not be computed."""
METHOD_TEXT = "anytime-valid, by betting (arXiv:2010.09686)"
_CI = re.compile(r"ci\s*<\s*(\d+(?:\.\d+)?)\s*")
_DECIDED = re.compile(r"decided\s+vs\s+(\S.*)")
_ROWS = re.compile(r"rows\s*=\s*(\d+)\s*")


class UntilRule(Struct, frozen=True, kw_only=True):
    """A condition on the problems so far; `text`: as the user wrote it.

    points   `ci`: the 95 % interval of the score reaches less than so many points to either side
    against  `decided`: folder of the run from which the score differs for sure (at 95 %), in either direction
    rows     `rows`: that many problems have been asked, and have a reply
    """

    text: str
    points: float | None = None
    against: str = ""
    rows: int | None = None

    def met(self, values: Mapping[float, float]) -> bool:
        """Return whether a rule of `ci` or `decided` is met. `values`: score of a problem (its difference from that of
        the other run) → how many problems have it.

        It may be asked again and again as problems come in, in random order: the chance that an interval of `ci` ever
        leaves the true score out is 5 % at most, and so is that of `decided` where there is no difference.
        """
        if not values:
            return False
        if self.points is None:
            return excludes_mean(values, 0.0, -1.0, 1.0)
        if 100 * SURELY_WIDER * _fixed_half_width(values) >= self.points:
            return False
        low, high, _ = anytime_interval(values)
        return 100 * (high - low) / 2 < self.points

    def doubt(self, rows: int, files: int) -> str:
        """Return that, and why, all `rows` problems with so many samples each may not meet the rule; empty where they
        can."""
        if self.rows is not None:
            if self.rows <= rows:
                return ""
            return f"cannot be met: there are only {rows:,} problems."
        if self.points is None:
            if any(self.met({1.0: number}) for number in range(1, rows + 1)):
                return ""
            return f"cannot be met: {rows:,} problems are too few, even if all of them differ."
        points, half = self.points, _half_width(rows // 2, rows)
        if half < points:
            return ""
        narrowest = _half_width(rows, rows)
        if narrowest >= points:
            return f"cannot be met: all {rows:,} problems give ±{narrowest:.1f} points even at a score of 100 %."
        least = bisect_left(range(rows), True, lo=rows // 2, key=lambda right: _half_width(right, rows) < points)
        share = 100 * least / rows
        several = ", or samples of a problem that differ" if files > 1 else ""
        return (
            f"may not be met: at a score of 50 % all {rows:,} problems give ±{half:.1f} points. "
            f"It takes a score of about {share:.1f} % or more (or {100 - share:.1f} % or less){several}."
        )


def _half_width(right: int, rows: int) -> float:
    """Return half the width, in points, of the interval with `right` of `rows` problems right and the others
    wrong."""
    low, high, _ = anytime_interval({1.0: right, 0.0: rows - right})
    return 100 * (high - low) / 2


class StopPlan(Struct, frozen=True, kw_only=True):
    """The rule for one benchmark: its metric, and of `decided` the other run's score (0-1) of each problem by id."""

    rule: UntilRule
    metric: str
    metric_options: dict[str, Any] = {}
    baseline: Mapping[str, float] = {}


class UntilRecord(Struct, kw_only=True):
    """`until.json`. Values in points; those of the rule are a difference where it is `decided vs`.

    met       whether the rule stopped it; else all rows were asked
    rows      problems that count: the first so many of the random order with `order_seed`
    of        problems that the run would have had
    no_reply  of these, problems that are left out because a request failed
    unscored  of these, problems without a verdict
    unpaired  of these, problems that the other run has no score for
    decision  `better` or `worse` than the other run; empty: not decided, or not asked
    """

    rule: str
    met: bool
    rows: int
    of: int
    no_reply: int = 0
    unscored: int = 0
    unpaired: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None
    decision: Literal["", "better", "worse"] = ""
    level: float = 0.95
    method: str = METHOD_TEXT
    order_seed: int = ORDER_SEED

    def sentence(self) -> str:
        """Describe the outcome: `'ci<2' was met after 812 of 1,319 problems: 81.2 [79.3, 83.1], an interval that
        …`."""
        if self.value is None or self.low is None or self.high is None:
            figures = ""
        else:
            what = ""
            if self.rule.startswith("decided"):
                what = f"{self.decision or 'not decided'}, by "
            figures = f": {what}{self.value:.1f} points [{self.low:.1f}, {self.high:.1f}]"
            if self.rule.startswith("ci"):
                figures += f", ±{(self.high - self.low) / 2:.1f}"
        if not self.met and self.rows < self.of:
            return f"--until '{self.rule}' was not met by {self.rows:,} of {self.of:,} problems{figures}."
        if not self.met:
            return f"--until '{self.rule}' was not met by all {self.of:,} problems{figures}."
        return f"--until '{self.rule}' was met after {self.rows:,} of {self.of:,} problems{figures}."

    @property
    def partial(self) -> bool:
        """Whether some problems were not asked, or not counted."""
        return self.rows < self.of


def _fixed_half_width(values: Mapping[float, float]) -> float:
    """Return half the width of the 95 % interval for a number of problems that was fixed before."""
    n = sum(values.values())
    mean = sum(value * count for value, count in values.items()) / n
    return Z95 * math.sqrt(sum((value - mean) ** 2 * count for value, count in values.items())) / n


def parse_until(text: str) -> UntilRule:
    """Parse the rule of `--until`. Raises ConfigError for what is no rule."""
    words = text.strip()
    if match := _CI.fullmatch(words):
        if (points := float(match[1])) > 0:
            return UntilRule(text=words, points=points)
    elif match := _DECIDED.fullmatch(words):
        return UntilRule(text=words, against=match[1])
    elif (match := _ROWS.fullmatch(words)) and int(match[1]) > 0:
        return UntilRule(text=words, rows=int(match[1]))
    raise ConfigError(
        f"--until '{text}' is not a rule.",
        hint="Write 'ci<1.0' (the score is known to ±1.0 points), 'decided vs RUN' (better or worse than the results "
        "in the folder RUN) or 'rows=20' (20 random problems).",
    )


def random_order(rows: int) -> list[int]:
    """Return the order in which positions are asked: always the same, and no relation to the order of the file."""
    order = list(range(rows))
    random.Random(ORDER_SEED).shuffle(order)  # noqa: S311 - repeatable on purpose, no secret
    return order


def load_until(folder: Path) -> UntilRecord | None:
    """Return what a benchmark's folder says; None where it was not stopped by a rule, or the file cannot be read."""
    try:
        return msgspec.json.decode((folder / UNTIL_FILE).read_bytes(), type=UntilRecord)
    except (OSError, msgspec.MsgspecError):
        return None
