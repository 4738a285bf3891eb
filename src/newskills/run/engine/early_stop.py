# SPDX-License-Identifier: Apache-2.0
"""Whether a benchmark has enough answers: its problems in the random order in which they are asked.

Only an unbroken row of answered problems counts. What comes back first is short, and what is short is more often right:
to count answers as they come in would be no random draw.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Mapping

from newskills.base.anytime import anytime_interval, look_sizes
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.stats import mean_interval
from newskills.metrics import make_metric
from newskills.metrics.counting.base import ScoreMetric, is_lost
from newskills.run.planning.until import StopPlan, UntilRecord, random_order

ACCEPTED_LOSS = 0.01
"""Share of problems without a reply or a verdict above which no rule is met: they may be the hard ones."""
FIRST_PROBLEMS = 20
"""Problems that are asked before anything is known of the benchmark."""
GROWTH_FACTORS = (1.1, 1.2, 1.4, 1.7)
"""So many times the problems that count may be asked, if their answers would then meet the rule; else twice as many."""
MOST_GROWTH = 2.0


class EarlyStop:
    """For `files` outputs (one a seed) of a benchmark with `rows` problems. `met`: no more need be asked; `limit`: so
    many problems of the order may be asked by now; `most`: whatever their answers."""

    def __init__(self, plan: StopPlan, *, files: int, rows: int) -> None:
        self.plan, self.files, self.rows = plan, files, rows
        self.order = random_order(rows)
        self.met = False
        self.counted = 0
        self._metric = score_metric(plan)
        self._answered = array("H", [0]) * rows
        self._scored = array("H", [0]) * rows
        self._sums = array("d", [0.0]) * rows
        self._failed: set[int] = set()
        self._ids: dict[int, str] = {}
        self._values: dict[float, int] = {}
        self._no_reply = self._unscored = self._unpaired = 0
        self.most = rows if plan.rule.rows is None else min(rows, plan.rule.rows)
        self.limit = self.most if plan.rule.rows is not None else min(rows, FIRST_PROBLEMS)
        self._grow_at = FIRST_PROBLEMS // 2
        self._change = asyncio.Event()
        self._looks = frozenset(look_sizes(rows))

    def book(self, position: int, record: Row) -> None:
        """Count a graded answer to the problem at `position`, from one of the files."""
        score = None
        if not is_lost(record):
            scores = self._metric.scores(record)
            score = next((scores[name] for name in self._metric.headline if scores.get(name) is not None), None)
        if score is not None:
            self._scored[position] += 1
            self._sums[position] += score
        if self.plan.baseline:
            self._ids[position] = str(record.get("id"))
        self._settle(position)

    def book_failure(self, position: int) -> None:
        """Book a problem that got no reply; it does not count."""
        self._failed.add(position)
        self._settle(position)

    def waits(self, rank: int) -> bool:
        """Return whether the problem of this place in the order may have to be asked, but not yet."""
        return not self.met and self.limit <= rank < self.most

    def ends(self, rank: int) -> bool:
        """Return whether neither the problem of this place in the order nor a later one is asked."""
        return rank < self.rows and (self.met or rank >= self.most)

    async def await_change(self) -> None:
        """Return when more problems may be asked, or none any more."""
        await self._change.wait()

    def wake(self) -> None:
        """Let all go on that wait for a change."""
        self._change.set()
        self._change = asyncio.Event()

    def count_all(self) -> None:
        """Count all problems once they have their answers, also those under way when the rule was met."""
        for position in self.order[self.counted :]:
            self._count(position)
        self.counted = self.rows

    def positions(self) -> list[int]:
        """Return the positions of the problems that count and have all their answers, in the order of the file."""
        return sorted(position for position in self.order[: self.counted] if position not in self._failed)

    def record(self) -> UntilRecord:
        """Return the record to write down, in points."""
        record = UntilRecord(
            rule=self.plan.rule.text,
            met=self.met,
            rows=self.counted,
            of=self.rows,
            no_reply=self._no_reply,
            unscored=self._unscored,
            unpaired=self._unpaired,
        )
        if scored := sum(self._values.values()):
            if self.plan.rule.rows is None:
                lowest = -1.0 if self.plan.rule.against else 0.0
                interval = anytime_interval(self._values, lowest)
            else:
                interval = mean_interval(self._values)
                record.method = interval.method
            record.value = 100 * sum(value * count for value, count in self._values.items()) / scored
            record.low, record.high = 100 * interval.low, 100 * interval.high
            if self.plan.rule.against:
                if interval.low > 0:
                    record.decision = "better"
                else:
                    record.decision = "worse" if interval.high < 0 else ""
        return record

    def _settle(self, position: int) -> None:
        self._answered[position] += 1
        while not self.met and self.counted < self.rows:
            following = self.order[self.counted]
            if self._answered[following] < self.files:
                return
            self.counted += 1
            self._count(following)
            self.met = self._is_enough()
            if self.met or self.counted >= self._grow_at:
                self._grow()

    def _is_enough(self) -> bool:
        if self.plan.rule.rows is not None:
            return self.counted >= self.plan.rule.rows and not self._no_reply
        lost_much = self._no_reply + self._unscored > ACCEPTED_LOSS * self.counted
        return self.counted in self._looks and not lost_much and self.plan.rule.met(self._values)

    def _grow(self) -> None:
        """Allow as many problems as the rule will need if the next ones are like those so far."""
        if self.plan.rule.rows is None:
            likely = (
                factor for factor in GROWTH_FACTORS if self.plan.rule.met(_scale_counts(self._values, factor))
            )
            self.limit = min(self.rows, math.ceil(next(likely, MOST_GROWTH) * self.counted))
            self._grow_at = math.ceil(GROWTH_FACTORS[0] * self.counted)
        self.wake()

    def _count(self, position: int) -> None:
        if position in self._failed:
            self._no_reply += 1
            return
        if not self._scored[position]:
            self._unscored += 1
            return
        value = self._sums[position] / self._scored[position]
        if self.plan.rule.against:
            other = self.plan.baseline.get(self._ids[position])
            if other is None:
                self._unpaired += 1
                return
            value -= other
        self._values[value] = self._values.get(value, 0) + 1


def _scale_counts(values: Mapping[float, int], factor: float) -> dict[float, float]:
    return {value: count * factor for value, count in values.items()}


def score_metric(plan: StopPlan) -> ScoreMetric:
    """Return the metric of a benchmark that a rule can follow. Raises ConfigError for another kind."""
    metric = make_metric(plan.metric, **plan.metric_options)
    if not isinstance(metric, ScoreMetric):
        raise ConfigError(
            f"--until needs a score for each problem, which the metric '{plan.metric}' does not give."
        )
    return metric
