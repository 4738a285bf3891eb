# SPDX-License-Identifier: Apache-2.0
"""Whether a benchmark has enough answers: its problems in the random order in which they are asked.

Only an unbroken row of answered problems counts. What comes back first is short, and what is short is more often right:
to count answers as they come in would be no random draw.
"""

from __future__ import annotations

from array import array

from newskills.base.anytime import anytime_interval, looks
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.stats import mean_interval
from newskills.metrics import make_metric
from newskills.metrics.counting.base import ScoreMetric, is_lost
from newskills.run.planning.until import StopPlan, UntilRecord, random_order

ACCEPTED_LOSS = 0.01
"""Share of problems without a reply or a verdict above which no rule is met: they may be the hard ones."""


class EarlyStop:
    """For `files` outputs (one a seed) of a benchmark with `rows` problems. `met`: no more need be asked."""

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
        self._looks = frozenset(range(rows + 1)) if plan.rule.rows is not None else frozenset(looks(rows))

    def book(self, position: int, record: Row) -> None:
        """A graded answer to the problem at `position`, from one of the files."""
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
        """No reply could be had; the problem does not count."""
        self._failed.add(position)
        self._settle(position)

    def count_all(self) -> None:
        """All problems have their answers, those too that were under way when the rule was met."""
        for position in self.order[self.counted :]:
            self._count(position)
        self.counted = self.rows

    def positions(self) -> list[int]:
        """Of the problems that count and have all their answers, in the order of the file."""
        return sorted(position for position in self.order[: self.counted] if position not in self._failed)

    def record(self) -> UntilRecord:
        """What to write down, in points."""
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
                interval = anytime_interval(self._values, -1.0 if self.plan.rule.against else 0.0)
            else:
                interval = mean_interval(self._values)
                record.method = interval.method
            record.value = 100 * sum(value * count for value, count in self._values.items()) / scored
            record.low, record.high = 100 * interval.low, 100 * interval.high
            if self.plan.rule.against:
                record.decision = "better" if interval.low > 0 else "worse" if interval.high < 0 else ""
        return record

    def _settle(self, position: int) -> None:
        self._answered[position] += 1
        while not self.met and self.counted < self.rows:
            following = self.order[self.counted]
            if self._answered[following] < self.files:
                return
            self.counted += 1
            self._count(following)
            lost_much = self._no_reply + self._unscored > ACCEPTED_LOSS * self.counted
            self.met = self.counted in self._looks and not lost_much and self.plan.rule.met(self._values)

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


def score_metric(plan: StopPlan) -> ScoreMetric:
    """The metric of a benchmark that a rule can follow. Raises ConfigError for another kind."""
    metric = make_metric(plan.metric, **plan.metric_options)
    if not isinstance(metric, ScoreMetric):
        raise ConfigError(
            f"--until needs a score for each problem, which the metric '{plan.metric}' does not give."
        )
    return metric
