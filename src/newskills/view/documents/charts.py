# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG whose colours follow the page: they read in print and in dark mode."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

from newskills.base.terminal import printable

WIDTH = 720
COLOURS = ("--one", "--two", "--three", "--four")
_LEFT, _RIGHT, _TOP, _BOTTOM = 190, 20, 12, 36
_ROW = 24


class Estimate(NamedTuple):
    """A value with its interval; `group` chooses the colour."""

    label: str
    value: float
    low: float
    high: float
    group: int = 0


class Series(NamedTuple):
    """Points of a line, in the order of x."""

    label: str
    points: Sequence[tuple[float, float]]


def estimates(items: Sequence[Estimate], unit: str) -> str:
    """Draw values in rows below each other with their intervals as bars."""
    low = min(0.0, *(item.low for item in items))
    high = max(item.high for item in items)
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    height = _TOP + _ROW * len(items) + _BOTTOM

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    parts = [_vertical(x(tick), height - _BOTTOM, _number(tick)) for tick in ticks]
    for row, item in enumerate(items):
        y = _TOP + _ROW * (row + 0.5)
        colour = f"var({COLOURS[item.group % len(COLOURS)]})"
        parts.append(_text(_LEFT - 8, y + 4, item.label[:28], "end"))
        parts.append(
            f'<line x1="{x(item.low):.1f}" y1="{y:.1f}" x2="{x(item.high):.1f}" y2="{y:.1f}" stroke="{colour}" '
            f'stroke-width="2"/><circle cx="{x(item.value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        )
    parts.append(_text((WIDTH + _LEFT) / 2, height - 4, unit, "middle"))
    return _svg(height, parts, "; ".join(f"{item.label}: {item.value:.1f}" for item in items))


def lines(series: Sequence[Series], x_name: str, y_name: str, height: int = 260) -> str:
    """Draw lines over a common x axis, each labelled below. No line without points."""
    drawn = [item for item in series if item.points]
    xs = [point[0] for item in drawn for point in item.points]
    ys = [point[1] for item in drawn for point in item.points]
    ticks = _ticks(min(ys), max(ys))
    bottom, top = min(ticks[0], *ys), max(ticks[-1], *ys)
    left, floor = 70, height - 60
    width = (max(xs) - min(xs)) or 1.0

    def place(point: tuple[float, float]) -> str:
        across = left + (point[0] - min(xs)) / width * (WIDTH - left - _RIGHT)
        return f"{across:.1f},{floor - (point[1] - bottom) / ((top - bottom) or 1.0) * (floor - _TOP):.1f}"

    parts = []
    for tick in ticks:
        y = floor - (tick - bottom) / ((top - bottom) or 1.0) * (floor - _TOP)
        parts.append(
            f'<line x1="{left}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="var(--line)"/>'
            + _text(left - 6, y + 4, _number(tick), "end")
        )
    for number, item in enumerate(drawn):
        colour = f"var({COLOURS[number % len(COLOURS)]})"
        dash = f' stroke-dasharray="{2 + 2 * number} 3"' if number else ""
        points = " ".join(map(place, item.points))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        across = left + number * (WIDTH - left) / max(1, len(drawn))
        parts.append(
            f'<line x1="{across:.0f}" y1="{height - 10}" x2="{across + 24:.0f}" y2="{height - 10}" stroke="{colour}" '
            f'stroke-width="2"{dash}/>' + _text(across + 30, height - 6, item.label[:24], "start")
        )
    parts.append(
        _text(left, floor + 18, _number(min(xs)), "start")
        + _text(WIDTH - _RIGHT, floor + 18, _number(max(xs)), "end")
    )
    parts.append(_text((WIDTH + left) / 2, floor + 18, x_name, "middle"))
    return _svg(height, parts, f"{y_name} over {x_name}: {', '.join(item.label for item in drawn)}")


def histogram(values: Sequence[float], name: str, bins: int = 24) -> str:
    """Draw how many values lie in each of `bins` equal ranges; fewer where fewer whole numbers lie between
    them."""
    low, high = min(values), max(values)
    bins = min(bins, int(high - low) + 1)
    step = (high - low) / bins or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - low) / step))] += 1
    height, left, floor = 200, 70, 160
    bar = (WIDTH - left - _RIGHT) / bins
    parts = [
        f'<rect x="{left + i * bar:.1f}" y="{floor - count / max(counts) * (floor - _TOP):.1f}" '
        f'width="{max(1.0, bar - 1):.1f}" height="{count / max(counts) * (floor - _TOP):.1f}" fill="var(--one)"/>'
        for i, count in enumerate(counts)
    ]
    parts.append(_text(left - 6, _TOP + 8, f"{max(counts):,}", "end"))
    parts.append(
        _text(left, floor + 18, _number(low), "start") + _text(WIDTH - _RIGHT, floor + 18, _number(high), "end")
    )
    parts.append(_text((WIDTH + left) / 2, floor + 18, name, "middle"))
    return _svg(height, parts, f"{name}: {len(values):,} values from {_number(low)} to {_number(high)}")


def _svg(height: float, parts: Sequence[str], description: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
        f'aria-label="{_safe(description)}" font-size="12" font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )


def _vertical(x: float, bottom: float, label: str) -> str:
    line = f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="var(--line)"/>'
    return line + _text(x, bottom + 16, label, "middle")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--ink)">{_safe(text)}</text>'


def _safe(text: str) -> str:
    return html.escape(printable(text))


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.2g}"


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / about))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if span / (size * factor) <= about)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 12) for number in range(first, last + 1)]
