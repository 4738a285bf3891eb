# SPDX-License-Identifier: Apache-2.0
"""Which problems a step gets: shuffled epochs, of several sources by weight, without those that are put aside.

A problem that all samples of its group solve, or none, teaches nothing: it is put aside for some steps, twice as many
each further time in a row, and comes back. All of it follows from the seed and from what samples.jsonl records, so that
a run that goes on draws what one that was never stopped does.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, groupby

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.train.loops.samples import Problem


class DrawConfig(Struct, frozen=True, kw_only=True):
    """size: problems of a step; put_aside: steps for which a problem without spread rests, 0 = never; weights: how
    often each source is drawn, where there are several.
    """

    size: int
    seed: int = 0
    put_aside: int = 0
    weights: Mapping[str, float] = {}


class Rest(Struct, frozen=True):
    """A problem put aside: it comes back with step `until`; `times` in a row it had no spread."""

    until: int
    times: int


class ProblemDraws:
    """Places of problems, step by step from the first; each step is drawn once."""

    def __init__(self, problems: Sequence[Problem], config: DrawConfig) -> None:
        """Prepare the draws of problems. Raises ConfigError for weights that name no source."""
        self._config = config
        places: dict[str, list[int]] = {}
        for place, problem in enumerate(problems):
            places.setdefault(problem.source, []).append(place)
        if unknown := set(config.weights) - set(places):
            raise ConfigError(f"There are no problems of {', '.join(sorted(unknown))} to give a weight to.")
        self._sources = [problem.source for problem in problems]
        several = len(places) > 1
        size = min(config.size, len(problems))
        self._size = size
        self._streams = {
            source: _Stream(members, 1 if several else size, config.seed, f"-{source}" if several else "")
            for source, members in places.items()
        }
        self._resting: dict[int, Rest] = {}
        self._taken: set[int] = set()
        self._returned = 0
        self._step = -1

    def batch(self, step: int) -> list[int]:
        """Draw the problems of a step; no problem twice."""
        self._step, self._taken, self._returned = step, set(), 0
        if len(self._streams) == 1:
            return self._next([*self._streams] * self._size)
        return self._next(self._sources_of(step))

    def further(self, places: Sequence[int]) -> list[int]:
        """Return others for the same step, of the same sources as `places`; fewer where there are no more."""
        return self._next([self._sources[place] for place in places])

    def note(self, place: int, spread: bool | None) -> None:
        """Note whether the rewards of a group of this step differ; None: too few were graded to say so."""
        if not self._config.put_aside or spread is None:
            return
        times = self._resting[place].times if place in self._resting else 0
        self._resting.pop(place, None)
        if not spread:
            self._resting[place] = Rest(self._step + 1 + self._config.put_aside * 2**times, times + 1)

    def measured(self) -> dict[str, float]:
        """Return, after a step, how many problems rest, and how many of its problems had come back."""
        if not self._config.put_aside:
            return {}
        resting = sum(rest.until > self._step + 1 for rest in self._resting.values())
        return {"put_aside": float(resting), "came_back": float(self._returned)}

    def catch_up(self, step: int, samples: Iterable[Row]) -> None:
        """Draw the steps before `step` again, with what `samples` (rows of samples.jsonl) say of them, in order.

        Raises DataError where they hold other problems: those of the run have changed.
        """
        if self._step + 1 >= step:
            return
        by_step = groupby(samples, lambda row: int(row["step"]) - 1)
        recorded = {number: list(rows) for number, rows in by_step if self._step < number < step}
        for earlier in range(self._step + 1, step):
            for number, rows in groupby(recorded.get(earlier, ()), lambda row: int(row.get("round", 0))):
                drawn_rows = list(rows)
                places = [row.get("place", -1) for row in drawn_rows]
                drawn = self.further(places) if number and min(places) >= 0 else self.batch(earlier)
                if drawn != places:
                    raise DataError(
                        f"Step {earlier + 1} was on other problems than those that are here now.",
                        hint="Use the same problems to resume the run, or another output folder.",
                    )
                for row in drawn_rows:
                    self.note(row["place"], differ([response["reward"] for response in row["responses"]]))
            if self._step < earlier:
                self.batch(earlier)

    def _next(self, sources: Sequence[str]) -> list[int]:
        drawn = []
        for source in sources:
            place = self._streams[source].next(self._rests, self._taken)
            if place is not None:
                self._taken.add(place)
                self._returned += place in self._resting
                drawn.append(place)
        return drawn

    def _rests(self, place: int) -> int:
        """Return the step with which a problem comes back, 0 for one that is not put aside."""
        rest = self._resting.get(place)
        if rest is not None and rest.until > self._step:
            return rest.until
        return 0

    def _sources_of(self, step: int) -> list[str]:
        """Return as many of each source as its weight wants, to within one; over many steps exactly."""
        names = list(self._streams)
        bounds = list(accumulate(self._config.weights.get(name, 1.0) for name in names))
        offset = random.Random(f"{self._config.seed}-mix-{step}").random()  # noqa: S311 - no secret
        points = [(number + offset) / self._size * bounds[-1] for number in range(self._size)]
        return [names[min(bisect(bounds, point), len(names) - 1)] for point in points]


class _Stream:
    """The problems of a source, epoch after epoch: each is a shuffle of its own, as `batch_at` has it."""

    def __init__(self, members: Sequence[int], multiple: int, seed: int, name: str) -> None:
        """Leave out what an epoch has left beyond a `multiple` of problems."""
        self._members, self._seed, self._name = members, seed, name
        self._length = len(members) // multiple * multiple
        self._order: list[int] = []
        self._epoch = self._at = 0

    def next(self, rests: Callable[[int], int], taken: set[int]) -> int | None:
        """Return the next one that neither rests nor is taken; if all that are not taken rest, the first to come back.

        None, and nothing has changed, where all are taken.
        """
        if taken.issuperset(self._members):
            return None
        for _ in range(2 * self._length):
            place = self._following()
            if place not in taken and not rests(place):
                return place
        return min(
            (place for place in self._members if place not in taken), key=lambda place: (rests(place), place)
        )

    def _following(self) -> int:
        if self._at == len(self._order):
            order = list(range(len(self._members)))
            random.Random(f"{self._seed}-{self._epoch}{self._name}").shuffle(order)  # noqa: S311 - no secret
            self._order = [self._members[index] for index in order[: self._length]]
            self._epoch, self._at = self._epoch + 1, 0
        self._at += 1
        return self._order[self._at - 1]


def differ(rewards: Sequence[float | None]) -> bool | None:
    """Return whether the rewards of a group differ; None where fewer than two of its samples were graded."""
    graded = [reward for reward in rewards if reward is not None]
    if len(graded) < 2:
        return None
    return len(set(graded)) > 1
