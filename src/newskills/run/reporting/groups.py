# SPDX-License-Identifier: Apache-2.0
"""Reports of members → reports of their groups: the group's own score, or the plain mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from newskills.base.benchmark import Group
from newskills.base.errors import ConfigError
from newskills.base.records import Ledger, Number, Report, Row
from newskills.run.planning.spec import add_ledger

GroupFor = Callable[[str], Group | None]
"""Name → group, None where it is none."""

GROUP_MODE = "score"
"""Row of a group's table, where its score names no modes."""
COUNT_FIELD = "num_benchmarks_in_group"
PROMPTS = ("prompt", "judge_prompt")
"""What metrics.json says of the wording of prompts: `official (source, hash)`, `newskills`, or that of the user."""


def group_reports(
    reports: Sequence[Report], group_for: GroupFor, scored: Collection[str] = ()
) -> tuple[list[Report], list[str]]:
    """Return one report for each dotted prefix that several benchmarks share, or that is a group; and notes.

    A group with a score that lacks members has none, and so has one of `scored`, which have a score of their own, that
    is not known here. Raises ConfigError where the score function fails.
    """
    families: dict[str, list[Report]] = {}
    for report in reports:
        if "." in report.benchmark:
            families.setdefault(report.benchmark.rpartition(".")[0], []).append(report)
    taken = {report.benchmark for report in reports}
    grouped, notes = [], []
    for name, members in families.items():
        if name in taken:
            continue
        group = group_for(name)
        if group is None and name in scored:
            notes.append(f"{name} has its own score, defined in its file: ns summarize_results --group FILE.")
            continue
        if group is None or group.score is None:
            if group is not None and len(members) < len(group.members):
                notes.append(f"{name} is the mean of {len(members)} of its {len(group.members)} members.")
            if len(members) > 1:
                grouped += [_average_report(name, members)]
            continue
        by_name = {report.benchmark: report for report in members}
        keyed = {member: by_name.get(f"{name}.{group.short(member)}") for member in group.members}
        if missing := [member for member, report in keyed.items() if report is None]:
            notes.append(f"{name} has no score yet: there are no results for {', '.join(missing)}.")
        else:
            grouped.append(
                _group_report(group, name, {member: report for member, report in keyed.items() if report})
            )
    return grouped, notes


def _group_report(group: Group, name: str, members: Mapping[str, Report]) -> Report:
    """Report a group's score with intervals: members are independent, so what each one's own interval moves adds
    up in squares."""
    modes = {member: report.modes for member, report in members.items()}
    scores = _group_score(group, modes)
    moved: dict[tuple[str, str], float] = {}
    for member, report in members.items():
        shifted = _group_score(group, {**modes, member: _upper_modes(report)})
        for mode, metrics in scores.items():
            for metric, value in metrics.items():
                if isinstance(value, float):
                    delta = shifted[mode].get(metric, value) - value
                    moved[mode, metric] = moved.get((mode, metric), 0.0) + delta * delta
    problems = sum(_problem_count(report) for report in members.values())
    numbers: dict[str, dict[str, Number]] = {mode: {} for mode in scores}
    for (mode, metric), square in moved.items():
        value, half = scores[mode][metric], math.sqrt(square)
        numbers[mode][metric] = Number(
            value=value, low=value - half, high=value + half, n=problems, method="members"
        )
    ledger = Ledger()
    for report in members.values():
        add_ledger(ledger, report.ledger)
    return Report(
        benchmark=name,
        modes={mode: {COUNT_FIELD: len(members), **metrics} for mode, metrics in scores.items()},
        numbers=numbers,
        ledger=ledger,
        versions=_group_versions(next(iter(members.values()))),
        columns=(
            COUNT_FIELD,
            *(group.columns or dict.fromkeys(metric for metrics in scores.values() for metric in metrics)),
        ),
        plain=_plain_metrics(list(members.values())),
    )


def _group_score(group: Group, modes: Mapping[str, Mapping[str, Row]]) -> dict[str, Row]:
    assert group.score is not None, "this group has no score"
    try:
        made = dict(group.score(modes))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"The score of the group {group.name} cannot be computed: {what}.") from error
    if made and all(isinstance(value, dict) for value in made.values()):
        return made
    return {GROUP_MODE: made}


def _problem_count(report: Report) -> int:
    return max((number.n for numbers in report.numbers.values() for number in numbers.values()), default=0)


def _upper_modes(report: Report) -> dict[str, Row]:
    """Return the modes of a member with its scores at the upper ends of their intervals."""
    return {
        mode: {name: _interval_end(report, mode, name, value) for name, value in metrics.items()}
        for mode, metrics in report.modes.items()
    }


def _interval_end(report: Report, mode: str, name: str, value: object) -> object:
    number = report.numbers.get(mode, {}).get(name)
    if number is not None:
        return number.value + (number.high - number.low) / 2
    return value


def _average_report(name: str, members: Sequence[Report]) -> Report:
    first, *others = members
    modes: dict[str, Row] = {}
    numbers: dict[str, dict[str, Number]] = {}
    for mode in first.modes:
        if all(mode in other.modes for other in others):
            numbers[mode] = _mean_numbers([member.numbers.get(mode, {}) for member in members])
            modes[mode] = _mean_metrics([member.modes[mode] for member in members], numbers[mode])
    ledger = Ledger()
    for member in members:
        add_ledger(ledger, member.ledger)
    return Report(
        benchmark=name,
        modes=modes,
        numbers=numbers,
        ledger=ledger,
        versions=_group_versions(first),
        columns=tuple(COUNT_FIELD if c == "num_entries" else c for c in first.columns),
        shown=first.shown,
        plain=_plain_metrics(members),
    )


def _plain_metrics(members: Sequence[Report]) -> tuple[str, ...]:
    """Return the metrics that are no percentages in some member."""
    return tuple(dict.fromkeys(name for member in members for name in member.plain))


def _group_versions(member: Report) -> dict[str, str]:
    """Return what a member says of versions that holds for its group: prompts are those of each member."""
    return {name: value for name, value in member.versions.items() if name not in PROMPTS}


def _mean_metrics(rows: Sequence[Row], numbers: Mapping[str, Number]) -> Row:
    mean: Row = {COUNT_FIELD: len(rows)}
    for name, value in rows[0].items():
        values = [row.get(name) for row in rows]
        if name != "num_entries" and all(isinstance(v, int | float) for v in values):
            average = math.fsum(v for v in values if v is not None) / len(values)
            mean[name] = int(average) if isinstance(value, int) else average
        elif name.removesuffix("_interval") in numbers:
            number = numbers[name.removesuffix("_interval")]
            mean[name] = [number.low, number.high]
    return mean


def _mean_numbers(members: Sequence[Mapping[str, Number]]) -> dict[str, Number]:
    """Average the numbers of members, which are independent and fixed: their standard errors add in squares."""
    means = {}
    for name in members[0]:
        numbers = [member[name] for member in members if name in member]
        if len(numbers) == len(members):
            value = math.fsum(number.value for number in numbers) / len(numbers)
            half = math.sqrt(math.fsum((number.high - number.low) ** 2 for number in numbers)) / (2 * len(numbers))
            means[name] = Number(
                value=value,
                low=max(0.0, value - half),
                high=min(100.0, value + half),
                n=sum(number.n for number in numbers),
                unscored=sum(number.unscored for number in numbers),
                method="members",
            )
    return means
