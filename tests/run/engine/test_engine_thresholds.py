# SPDX-License-Identifier: Apache-2.0
"""The numbers by which a run judges an endpoint and its own end: each is a promise, and has a test on both sides."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from newskills.base.aio import Gate
from newskills.run.engine import climb as climbing
from newskills.run.engine import load as loading
from newskills.run.engine import pace as pacing
from newskills.run.engine.climb import Climb
from newskills.run.engine.load import Load
from newskills.run.engine.pace import Pace


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (climbing, loading, pacing):
        monkeypatch.setattr(module, "time", clock)
    return clock


# --- the end of a run


def ended(clock: Clock, *seconds: float) -> Pace:
    pace = Pace()
    for duration in seconds:
        number = pace.begin()
        clock.now += duration
        pace.end(number, answered=True)
    return pace


def test_nothing_is_said_of_fewer_than_five_rows(clock: Clock) -> None:
    assert ended(clock, *[10.0] * 4).seconds_left(3) is None
    assert ended(clock, *[10.0] * 5).seconds_left(3) is not None


def test_rows_that_failed_are_no_durations(clock: Clock) -> None:
    pace = ended(clock, *[10.0] * 4)
    pace.end(pace.begin(), answered=False)
    assert (pace.done, pace.under_way) == (4, 0)
    assert pace.seconds_left(3) is None


def test_nothing_is_left_without_rows(clock: Clock) -> None:
    assert ended(clock, *[10.0] * 5).seconds_left(0) is None


@pytest.mark.parametrize(("under_way", "said"), [(5, True), (6, False)])
def test_half_of_the_rows_must_have_ended(clock: Clock, under_way: int, said: bool) -> None:
    pace = ended(clock, *[10.0] * 5)
    for _ in range(under_way):
        pace.begin()
    clock.now += 100
    assert (pace.seconds_left(0) is not None) is said


def test_rows_of_one_length_one_after_another(clock: Clock) -> None:
    """Four wait, and the last of them is waited for: five lengths, in classes that are 10 % wide."""
    left = ended(clock, *[10.0] * 5).seconds_left(4)
    assert left is not None
    assert 50 <= left <= 55


def test_rows_side_by_side(clock: Clock) -> None:
    pace = ended(clock, *[10.0] * 20)
    for _ in range(4):
        pace.begin()
    left = pace.seconds_left(8)
    assert left is not None
    assert 30 <= left <= 33


def test_what_is_left_of_rows_that_are_under_way(clock: Clock) -> None:
    pace = ended(clock, *[10.0] * 20)
    pace.begin()
    clock.now += 4
    left = pace.seconds_left(0)
    assert left is not None
    assert 5 < left < 7


def test_a_row_that_takes_longer_than_any_is_given_as_long_again(clock: Clock) -> None:
    pace = ended(clock, *[10.0] * 20)
    pace.begin()
    clock.now += 40
    left = pace.seconds_left(0)
    assert left is not None
    assert 40 <= left <= 44


def test_the_longest_of_many_rows_is_waited_for(clock: Clock) -> None:
    """Of 20 one took 100 s. Alone a row waits for the usual length; one of 20 at once is likely the long one."""
    durations = [10.0] * 19 + [100.0]
    alone = ended(clock, *durations).seconds_left(1)
    assert alone is not None
    assert 24 <= alone <= 28
    pace = ended(clock, *durations)
    for _ in range(20):
        pace.begin()
    many = pace.seconds_left(1)
    assert many is not None
    assert 100 <= many <= 111


def test_half_of_the_rows_are_shorter_than_what_one_row_waits_for(clock: Clock) -> None:
    """Alone, a row takes the mean, 55 s, and then what half of the rows take at most."""
    left = ended(clock, *[10.0] * 5, *[100.0] * 5).seconds_left(1)
    assert left is not None
    assert 65 <= left <= 72


def test_twice_the_longest_is_waited_for_where_the_tail_is_not_known(clock: Clock) -> None:
    """A third takes longer than 40 s, and so 80 s: 10 s + a third of 30 s + a third of 40 s are 33 s on average."""
    pace = ended(clock, *[10.0] * 20)
    for _ in range(10):
        pace.begin()
    clock.now += 40
    left = pace.seconds_left(1)
    assert left is not None
    assert 80 + 3.3 <= left <= 88 + 3.7


def test_times_shorter_than_a_millisecond_are_one(clock: Clock) -> None:
    left = ended(clock, *[0.0] * 5).seconds_left(999)
    assert left == pytest.approx(1.0)


# --- how many requests at once


class Climber:
    """A gate whose limit climbs, and a server that answers so many requests a second."""

    def __init__(self, clock: Clock, most: int = 1000, limit: int = 10) -> None:
        self.gate = Gate(limit)
        self.active = float(limit)
        self.clock = clock
        self.climb = Climb(self._gate(), most)

    def _gate(self) -> Gate:
        outer = self

        class Full(SimpleNamespace):
            limit = self.gate.limit

            @property
            def active(self) -> float:
                return min(outer.active, self.limit)

        self.shown = Full()
        return self.shown  # type: ignore[return-value]

    def answers(self, count: int, rate: float) -> float:
        for _ in range(count):
            self.clock.now += 1 / rate
            self.climb.note_answer()
        return float(self.shown.limit)


def test_a_larger_limit_is_tried_after_two_turns_of_all_requests_and_two_to_settle(clock: Clock) -> None:
    climber = Climber(clock)
    assert climber.answers(39, 10) == 10
    assert climber.answers(1, 10) == 15


@pytest.mark.parametrize(("rate", "limit"), [(10.9, 10), (11.1, 22.5)])
def test_it_must_bring_a_tenth_more(clock: Clock, rate: float, limit: float) -> None:
    climber = Climber(clock)
    climber.answers(40, 10)
    climber.active = 15
    assert climber.answers(59, rate) == 15
    assert climber.answers(1, rate) == limit


def test_a_try_in_vain_is_repeated_after_sixteen_rates(clock: Clock) -> None:
    climber = Climber(clock)
    climber.answers(40, 10)
    climber.active = 15
    assert climber.answers(60, 10) == 10
    climber.active = 10
    assert climber.answers(20 + 16 * 20 + 19, 10) == 10
    assert climber.answers(1, 10) == 15


@pytest.mark.parametrize(("active", "limit"), [(9, 15), (8.9, 10)])
def test_nine_tenths_of_the_limit_must_be_in_flight(clock: Clock, active: float, limit: float) -> None:
    climber = Climber(clock)
    climber.active = active
    assert climber.answers(40, 10) == limit


def test_the_limit_stays_below_the_most(clock: Clock) -> None:
    climber = Climber(clock, most=12)
    assert climber.answers(40, 10) == 12


def test_what_was_counted_before_says_nothing_about_a_new_begin(clock: Clock) -> None:
    climber = Climber(clock)
    climber.answers(39, 10)
    climber.climb.begin()
    assert climber.answers(39, 10) == 10
    assert climber.answers(1, 10) == 15


# --- refusals


class Asked:
    """An endpoint that was asked `load.note_…`, with a gate that anyone can set."""

    def __init__(self, clock: Clock, limit: float = 100, rate: float | None = None, epoch: float = 10.0) -> None:
        self.clock = clock
        self.gate = SimpleNamespace(limit=limit, rate=rate, active=20)
        self.load = Load(self.gate, epoch=epoch)

    def asks(self, answered: int, refused: int, *, seconds: float = 10.0) -> bool:
        """Whether the endpoint is asked less after so many answers and then refusals, the last one after `seconds`."""
        before = self.gate.limit, self.gate.rate
        for _ in range(answered + refused):
            self.load.note_start()
        begun = self.clock.now
        self.clock.now += 0.001
        for number in range(answered + refused):
            if number == answered + refused - 1:
                self.clock.now = begun + seconds
            if number < refused - 1 or (number == answered + refused - 1 and refused):
                self.load.note_refusal(self.clock.now)
            else:
                self.load.note_answer(self.clock.now)
        return (self.gate.limit, self.gate.rate) != before


@pytest.mark.parametrize(
    ("answered", "refused", "cut"),
    [
        (85, 15, False),  # 15 %
        (84, 16, True),
        (33, 7, False),  # fewer than eight refusals
        (32, 8, True),
        (31, 8, False),  # fewer than forty requests
    ],
)
def test_how_many_refusals_tell_of_a_limit(clock: Clock, answered: int, refused: int, cut: bool) -> None:
    assert Asked(clock).asks(answered, refused) is cut


def test_an_epoch_must_have_passed(clock: Clock) -> None:
    assert not Asked(clock).asks(60, 40, seconds=9.9)
    assert Asked(clock).asks(60, 40, seconds=10.0)


@pytest.mark.parametrize(
    ("answered", "refused", "seconds", "cut"),
    [
        (15, 16, 2.0, True),
        (15, 16, 1.9, False),  # a fifth of an epoch
        (14, 15, 2.0, False),  # fewer than sixteen refusals
        (16, 16, 2.0, False),  # not more than half
    ],
)
def test_a_flood_is_seen_in_a_fifth_of_an_epoch(
    clock: Clock, answered: int, refused: int, seconds: float, cut: bool
) -> None:
    assert Asked(clock).asks(answered, refused, seconds=seconds) is cut


@pytest.mark.parametrize(
    ("answered", "refused", "cut"),
    [
        (27, 3, False),  # 10 %
        (26, 3, True),
        (6, 2, False),  # fewer than three refusals
        (5, 3, True),
        (4, 3, None),  # fewer than eight requests: nothing is judged
    ],
)
def test_at_a_limit_fewer_refusals_are_many(clock: Clock, answered: int, refused: int, cut: bool | None) -> None:
    asked = Asked(clock, rate=50.0)
    asked.asks(answered, refused)
    assert asked.gate.rate is not None
    assert {True: asked.gate.rate < 50, False: asked.gate.rate > 50, None: asked.gate.rate == 50}[cut]


def test_what_was_in_flight_and_what_was_taken_become_the_limits(clock: Clock) -> None:
    asked = Asked(clock)
    assert asked.asks(60, 40)
    assert (asked.gate.limit, asked.gate.rate) == (20, pytest.approx(6.0))


def test_no_epoch_cuts_the_rate_to_less_than_a_tenth(clock: Clock) -> None:
    asked = Asked(clock)
    assert asked.asks(0, 100)
    assert (asked.gate.limit, asked.gate.rate) == (pytest.approx(70.0), pytest.approx(1.0))


def test_ten_epochs_pass_between_two_requests_at_most(clock: Clock) -> None:
    asked = Asked(clock, epoch=1.0)
    assert asked.asks(0, 50, seconds=1000)
    assert asked.gate.rate == pytest.approx(0.1)


def test_a_wait_that_the_endpoint_asks_for_cuts_the_limit_once(clock: Clock) -> None:
    asked = Asked(clock, limit=10)
    asked.load.note_wait(clock.now)
    clock.now += 1
    asked.load.note_wait(clock.now - 2)
    assert asked.gate.limit == pytest.approx(7.0)
    asked.gate.limit = 1.2
    asked.load.note_wait(clock.now)
    assert asked.gate.limit == 1.0


def test_growth_is_three_percent_and_doubles_after_twenty_four_calm_answers(clock: Clock) -> None:
    asked = Asked(clock, rate=1.0)
    asked.asks(23, 0)
    assert asked.gate.rate == pytest.approx(1.03)
    asked.asks(8, 0)
    assert asked.gate.rate == pytest.approx(1.03 * 1.06)
    asked.asks(24, 0)
    assert asked.gate.rate == pytest.approx(1.03 * 1.06 * 1.12)


@pytest.mark.parametrize(("answered", "growth"), [(97, 1.06), (96, 1.03)])
def test_three_refusals_of_a_hundred_are_hardly_any(clock: Clock, answered: int, growth: float) -> None:
    asked = Asked(clock, rate=1.0)
    asked.asks(answered, 3)
    assert asked.gate.rate == pytest.approx(growth)


def test_a_rate_that_is_not_used_is_given_up(clock: Clock) -> None:
    asked = Asked(clock, rate=5.0)
    asked.asks(26, 0)
    assert asked.gate.rate is not None
    slow = Asked(clock, rate=5.0)
    slow.asks(24, 0)
    assert slow.gate.rate is None


def test_the_limit_returns_to_where_it_was(clock: Clock) -> None:
    asked = Asked(clock, limit=100)
    asked.gate.limit = 50.0
    asked.asks(8, 0)
    assert asked.gate.limit == pytest.approx(51.5)
    asked.gate.limit = 10.0
    asked.asks(8, 0)
    assert asked.gate.limit == 11.0
    asked.gate.limit = 99.9
    asked.asks(8, 0)
    assert asked.gate.limit == 100


def test_refusals_that_asking_less_does_not_change_are_borne(clock: Clock) -> None:
    """Asked less, it refuses as many: the old pace returns, and a third more is borne for sixty epochs."""
    asked = Asked(clock)
    assert asked.asks(60, 40)
    assert asked.asks(72, 28)
    assert (asked.gate.limit, asked.gate.rate) == (100, None)
    for _ in range(59):
        assert not asked.asks(64, 36)
    assert asked.asks(64, 36)


def test_refusals_that_become_rarer_were_the_load(clock: Clock) -> None:
    asked = Asked(clock)
    asked.asks(60, 40)
    rate = asked.gate.rate
    asked.asks(73, 27)
    assert asked.gate.rate is not None
    assert asked.gate.rate <= rate


def test_counts_are_judged_after_sixty_four_answers_without_a_refusal(clock: Clock) -> None:
    """What came before does not dilute the refusals behind it."""
    asked = Asked(clock)
    assert not asked.asks(64, 0, seconds=10)
    assert asked.asks(32, 8)
    diluted = Asked(clock)
    assert not diluted.asks(63, 0, seconds=10)
    assert not diluted.asks(32, 8)


def test_nothing_is_known_before_the_first_request(clock: Clock) -> None:
    asked = Asked(clock)
    assert not asked.load.limited
    asked.load.note_refusal(-math.inf)
    assert asked.gate.limit == 100
