# SPDX-License-Identifier: Apache-2.0
"""One benchmark of one run: curves over k, accuracy by subset, length and seed, tokens, problems all or none solve."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress
from typing import Any

from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.base.stats import mean_interval
from newskills.view.files import finite_number, metrics_of, read_description, state_of
from newskills.view.library import Library
from newskills.view.pages.overview import PREFERRED_METRICS, overview_cell, settings_of
from newskills.view.rows import NO_TOKENS, OUTCOME_NAMES
from newskills.view.scans.viewed import label_counts
from newskills.view.tables import CORRECT_CODE, SCORED_CODES, Samples, by_problem, samples_of

BIN_COUNT = 24
_AT = re.compile(r"(?P<kind>pass|majority)@(?P<k>\d+)|pass@1\[avg-of-(?P<n>\d+)\]")


def benchmark_page(library: Library, run: str, benchmark: str) -> Row:
    """Return the page of a benchmark in a run. Raises UnknownNameError, DataError."""
    indexed = library.indexed(run, benchmark)
    samples = samples_of(indexed)
    modes, extended = metrics_of(library.folders, indexed.results)
    states = [state_of(library.folders, file) for file in indexed.results.files]
    return {
        "run": run,
        "benchmark": benchmark,
        "folder": str(indexed.results.folder),
        "cell": overview_cell(library, indexed.run, indexed.results),
        "progress": indexed.progress,
        "damaged": sum(index.head.damaged for index in indexed.indexes),
        "settings": settings_of(library, indexed.results),
        "about": read_description(library.folders, indexed.results),
        "curves": score_curves(object_or_empty(extended.get("numbers")), modes),
        "by_subset": by_subset(samples),
        "by_seed": by_seed(samples, [file.seed for file in indexed.results.files]),
        "by_length": by_length(samples),
        "tokens": token_histogram(samples),
        "outcomes": {OUTCOME_NAMES[code]: count for code, count in sorted(Counter(samples.outcome).items())},
        "causes": {samples.causes[code]: count for code, count in Counter(samples.cause).items() if code},
        "finishes": {samples.finishes[code]: count for code, count in Counter(samples.finish).items() if code},
        "scans": label_counts(library.folders, indexed, samples.sizes),
        "agreement": count_agreement(samples),
        "errors": [str(state["error"]) for state in states if state.get("error")],
    }


def score_curves(numbers: Row, modes: Row) -> list[Row]:
    """Return, per metric, pass@k, majority@k and the average, by k, with intervals; nothing for a single
    sample."""
    points: dict[str, dict[str, list[Row]]] = {}
    for mode in dict.fromkeys([*numbers, *modes]):
        match = _AT.fullmatch(mode)
        if match is None:
            continue
        if match["n"]:
            kind, k = "average", int(match["n"])
        else:
            kind, k = match["kind"], int(match["k"])
        extended = object_or_empty(numbers.get(mode))
        for metric, value in {**object_or_empty(modes.get(mode)), **extended}.items():
            if metric not in PREFERRED_METRICS:
                continue
            interval = value if isinstance(value, dict) else {"value": value}
            if finite_number(interval.get("value")) is not None:
                point = {"k": k, **{name: finite_number(interval.get(name)) for name in ("value", "low", "high")}}
                points.setdefault(metric, {}).setdefault(kind, []).append(point)
    made = []
    for metric, kinds in points.items():
        if max(len(line) for line in kinds.values()) > 1:
            lines = {kind: sorted(line, key=lambda point: point["k"]) for kind, line in kinds.items()}
            made.append({"metric": metric, "lines": lines})
    return made


def by_subset(samples: Samples) -> list[Row]:
    """Return the accuracy of each subset; nothing where there is only one."""
    if len(set(samples.subset)) < 2:
        return []
    groups = [(samples.subsets[code], code) for code in sorted(set(samples.subset))]
    return [
        _chosen_share(name or "(none)", samples, (value == code for value in samples.subset))
        for name, code in groups
    ]


def by_seed(samples: Samples, seeds: Sequence[int | None]) -> list[Row]:
    """Return the accuracy of each seed; nothing for a single file."""
    if len(samples.sizes) < 2:
        return []
    made, start = [], 0
    for seed, size in zip(seeds, samples.sizes, strict=True):
        counts = Counter(samples.outcome[start : start + size])
        label = "greedy" if seed is None else f"seed {seed}"
        made.append(_share_row(label, counts))
        start += size
    return made


def by_length(samples: Samples) -> list[Row]:
    """Return the accuracy in eight groups of the replies, of equal size, from short to long; [from, to] in
    tokens."""
    lengths = sorted(tokens for tokens in samples.tokens if tokens != NO_TOKENS)
    if len(lengths) < 16 or lengths[0] == lengths[-1]:
        return []
    cuts = sorted({lengths[len(lengths) * part // 8] for part in range(1, 8)})
    edges = [lengths[0], *[cut for cut in cuts if cut > lengths[0]], lengths[-1] + 1]
    counts: list[Counter[int]] = [Counter() for _ in edges[1:]]
    pairs = Counter(zip(samples.tokens, samples.outcome, strict=True))
    for (tokens, outcome), count in pairs.items():
        if tokens != NO_TOKENS:
            place = next(place for place, edge in enumerate(edges[1:]) if tokens < edge)
            counts[place][outcome] += count
    rows = []
    for low, after, outcomes in zip(edges, edges[1:], counts, strict=False):
        if outcomes.total():
            high = after - 1
            label = str(low) if low == high else f"{low}–{high}"
            rows.append({**_share_row(label, outcomes), "from": low, "to": high})
    return rows


def token_histogram(samples: Samples) -> Row:
    """Count replies by tokens and outcome, in bins of equal width; the longest 0.5 % share the last one."""
    pairs = Counter(zip(samples.tokens, samples.outcome, strict=True))
    lengths = Counter({tokens: 0 for tokens, _ in pairs if tokens != NO_TOKENS})
    for (tokens, _), count in pairs.items():
        if tokens != NO_TOKENS:
            lengths[tokens] += count
    if not lengths:
        return {"edges": [], "counts": {}}
    total, sums = lengths.total(), list(accumulate(lengths[tokens] for tokens in sorted(lengths)))
    ordered = sorted(lengths)
    high = next(tokens for tokens, upto in zip(ordered, sums, strict=True) if upto >= 0.995 * total)
    low = ordered[0]
    width = max(1, -(-(high - low + 1) // BIN_COUNT))
    bins = (high - low) // width + 1
    counts = {name: [0] * bins for name in OUTCOME_NAMES if name}
    for (tokens, outcome), count in pairs.items():
        if tokens != NO_TOKENS and OUTCOME_NAMES[outcome]:
            counts[OUTCOME_NAMES[outcome]][min(bins - 1, (tokens - low) // width)] += count
    return {
        "edges": [low + width * place for place in range(bins + 1)],
        "counts": {name: column for name, column in counts.items() if any(column)},
        "longest": ordered[-1],
        "mean": sum(tokens * count for tokens, count in lengths.items()) / total,
        "median": next(tokens for tokens, upto in zip(ordered, sums, strict=True) if upto * 2 >= total),
    }


def count_agreement(samples: Samples) -> Row:
    """Count how many problems have how many right samples; which all, none and some solve."""
    corrects, totals = by_problem(samples)
    pairs = Counter(zip(corrects, totals, strict=True))
    scored = {pair: count for pair, count in pairs.items() if pair[1]}
    return {
        "problems": len(samples.ids),
        "all": sum(count for (right, total), count in scored.items() if right == total),
        "none": sum(count for (right, _), count in scored.items() if right == 0),
        "mixed": sum(count for (right, total), count in scored.items() if 0 < right < total),
        "unscored": len(samples.ids) - sum(scored.values()),
        "by_right": [
            {"right": right, "of": total, "problems": count} for (right, total), count in sorted(scored.items())
        ],
    }


def _chosen_share(name: str, samples: Samples, chosen: Iterable[bool]) -> Row:
    return _share_row(name, Counter(compress(samples.outcome, chosen)))


def _share_row(name: str, counts: Counter[int]) -> Row:
    """Return the share of right samples in per cent with its interval, as if all were independent."""
    scored = sum(counts[code] for code in SCORED_CODES)
    made: dict[str, Any] = {
        "name": name,
        "n": scored,
        "of": counts.total(),
        "value": None,
        "low": None,
        "high": None,
    }
    if scored:
        low, high, _ = mean_interval({1.0: counts[CORRECT_CODE], 0.0: scored - counts[CORRECT_CODE]})
        made |= {"value": 100 * counts[CORRECT_CODE] / scored, "low": 100 * low, "high": 100 * high}
    return made
