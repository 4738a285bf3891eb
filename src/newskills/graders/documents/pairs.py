# SPDX-License-Identifier: Apache-2.0
"""Which parts of a reply stand for which parts of the page: the "quick match" of OmniDocBench (arXiv:2412.07626, §4.2).

Neighbours in the reply that together are one part of the page are joined; parts of the page that a part of the reply
holds are joined, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from newskills.graders.reading.overlap import assign_columns, edit_distance

_SURE = 0.25
"""Parts at a smaller distance are left as they are."""
_JOINED = 0.6
_APART = 0.7
"""Pairs at a larger distance are no pairs."""
_HELD = 0.4
_MOST_OPEN, _LONGEST_RUN = 2_000, 40
"""Pairs of parts that may be joined, and parts in a row; beyond, as after 30 seconds in the original, none is."""
Pair = tuple[list[int], list[int]]
"""(parts of the page, parts of the reply); either may be empty."""


def edit_share(first: str, second: str) -> float:
    """Return the edit distance as a share of the longer text, 0–1."""
    longest = max(len(first), len(second))
    if longest:
        return _count_edits(first, second) / longest
    return 0.0


@lru_cache(maxsize=50_000)
def _count_edits(first: str, second: str) -> int:
    """Count the edits, and remember the number: parts are compared several times, alone and among others."""
    return edit_distance(first, second)


def nearest_parts(golds: Sequence[str], replies: Sequence[str]) -> list[int | None]:
    """Return, for each part of the page, its own part of the reply, so that the sum of distances is least."""
    if not golds or not replies:
        return [None] * len(golds)
    columns = assign_columns([[-edit_share(gold, reply) for reply in replies] for gold in golds])
    return [columns.get(row) for row in range(len(golds))]


def pair_parts(golds: Sequence[str], replies: Sequence[str]) -> list[Pair]:
    """Pair the parts of the page with those of the reply; each occurs once, those that stand for none as well."""
    if not replies:
        return [([gold], []) for gold in range(len(golds))]
    if not golds:
        return [([], [reply]) for reply in range(len(replies))]
    if len(golds) == len(replies) == 1:
        return [([0], [0])]
    runs = _joined_runs(golds, replies)
    lines = [" ".join(replies[at] for at in run) for run in runs]
    owners: dict[tuple[int, ...], list[int]] = {}
    lonely: list[int] = []
    for gold, column in enumerate(nearest_parts(golds, lines)):
        if column is None or edit_share(golds[gold], lines[column]) > _APART:
            lonely.append(gold)
        else:
            owners.setdefault(tuple(runs[column]), []).append(gold)
    for at, reply in enumerate(replies):
        held = [gold for gold in lonely if _contains_part(reply, golds[gold], _HELD)]
        if held:
            matched = {gold for some in owners.values() for gold in some}
            owners.setdefault((at,), []).extend(gold for gold in held if gold not in matched)
    return _complete_pairs(golds, replies, owners)


def _complete_pairs(
    golds: Sequence[str], replies: Sequence[str], owners: dict[tuple[int, ...], list[int]]
) -> list[Pair]:
    """Add the pairs of what is left, by distance; where the reply has nothing left, the rest of the page counts twice.

    So it does in the original, whose figures depend on it; and parts of the reply are dropped where more of them than
    of the page are left.
    """
    result: list[Pair] = [(sorted(set(some)), list(run)) for run, some in owners.items() if some]
    matched = {gold for some in owners.values() for gold in some}
    used = {at for run in owners for at in run}
    golds_left = [gold for gold in range(len(golds)) if gold not in matched]
    replies_left = [at for at in range(len(replies)) if at not in used]
    if not replies_left:
        return result + [([gold], []) for gold in golds_left] * 2
    if not golds_left:
        return [*result, ([], replies_left)]
    worth = [[-float(_count_edits(golds[gold], replies[at])) for at in replies_left] for gold in golds_left]
    columns = assign_columns(worth)
    result += [([golds_left[row]], [replies_left[column]]) for row, column in sorted(columns.items())]
    return result + [([gold], []) for row, gold in enumerate(golds_left) if row not in columns]


def _joined_runs(golds: Sequence[str], replies: Sequence[str]) -> list[list[int]]:
    """Return runs of positions in the reply: neighbours that make one part of the page together, every other part
    alone."""
    costs = [[edit_share(gold, reply) for reply in replies] for gold in golds]
    open_golds = [row for row, line in enumerate(costs) if min(line) >= _SURE]
    open_replies = [at for at in range(len(replies)) if all(line[at] >= _SURE for line in costs)]
    if len(open_golds) * len(open_replies) > _MOST_OPEN:
        return [[at] for at in range(len(replies))]
    best: list[tuple[list[int], float]] = []
    usable = set(open_replies)
    for gold in open_golds:
        runs = [_run_from(golds[gold], replies, at, usable) for at in open_replies]
        if runs:
            lengths = [edit_share(golds[gold], " ".join(replies[at] for at in run)) for run in runs]
            best.append((runs[lengths.index(min(lengths))], min(lengths)))
    chosen = _choose_disjoint_runs(best)
    inside = {at for run in chosen for at in run}
    first = {run[0]: run for run in chosen}
    return [first.get(at, [at]) for at in range(len(replies)) if at not in inside or at in first]


def _run_from(gold: str, replies: Sequence[str], start: int, usable: set[int]) -> list[int]:
    """Return the parts of the reply from `start` on, as long as what is added belongs to `gold`."""
    run, joined = [start], replies[start]
    if not _contains_part(gold, joined, _JOINED, inclusive=True):
        return run
    apart = edit_share(gold, joined)
    while (following := run[-1] + 1) in usable and len(run) < _LONGEST_RUN:
        more = f"{joined} {replies[following]}"
        then = edit_share(gold, more)
        if then > apart or not _contains_part(gold, replies[following], _JOINED):
            break
        run.append(following)
        joined, apart = more, then
        if len(joined) > len(gold):
            break
    return run


def _contains_part(text: str, part: str, limit: float, *, inclusive: bool = False) -> bool:
    """Return whether some piece of `text` as long as `part` is at a distance below `limit` (`inclusive`: or at it) of
    its length.

    A step to the right changes the distance by two at most, so that most pieces need no look.
    """
    size, at = len(part), 0
    if not 0 < size <= len(text):
        return False
    while at <= len(text) - size:
        changes = edit_distance(text[at : at + size], part)
        if changes / size < limit or (inclusive and changes / size <= limit):
            return True
        at += max(1, int((changes - limit * size) / 2))
    return False


def _choose_disjoint_runs(best: list[tuple[list[int], float]]) -> list[list[int]]:
    """Choose, of runs that overlap, those that do not and cost least on average."""
    best = sorted(best, key=lambda choice: choice[0][0])
    groups: list[list[tuple[list[int], float]]] = []
    for choice in best:
        if groups and any(set(choice[0]) & set(other) for other, _ in groups[-1]):
            groups[-1].append(choice)
        else:
            groups.append([choice])
    chosen: list[list[int]] = []
    for group in groups:
        paths: list[list[tuple[list[int], float]]] = [group[:1]]
        for run, cost in group[1:]:
            _extend_paths(paths, run, cost)
        costs = [sum(cost for _, cost in path) / len(path) for path in paths]
        chosen += [run for run, _ in paths[costs.index(min(costs))]]
    return chosen


def _extend_paths(paths: list[list[tuple[list[int], float]]], run: list[int], cost: float) -> None:
    new = True
    for path in paths:
        same = [at for at, (other, _) in enumerate(path) if other == run]
        for at in same:
            path[at] = (run, min(cost, path[at][1]))
        if not any(set(run) & set(other) for other, _ in path):
            path.append((run, cost))
            new = False
        new = new and not same
    if new:
        paths.append([(run, cost)])
