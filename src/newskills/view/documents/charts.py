# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG whose colours follow the page: they read in print and in dark mode."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from newskills.base.terminal import printable

CHART_WIDTH = 720
SMALL_SIZE = (340, 190)
"""Width and height of a figure that stands beside others."""
COLOURS = ("--one", "--two", "--three", "--four")
_RIGHT, _TOP = 20, 12
_MAX_BINS = 12


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


def interval_pictures(items: Sequence[Estimate | None]) -> list[str]:
    """Draw each value with its interval as a bar, all on the same scale: pictures for the rows of a table, empty for
    None."""
    low = min([0.0, *(item.low for item in items if item is not None)])
    high = max([0.0, *(item.high for item in items if item is not None)])
    width, height = 160, 18

    def x(value: float) -> float:
        return 6 + (value - low) / ((high - low) or 1.0) * (width - 12)

    pictures = []
    for item in items:
        if item is None:
            pictures.append("")
            continue
        colour = f"var({COLOURS[item.group % len(COLOURS)]})"
        parts = [
            f'<line x1="6" y1="9" x2="{width - 6}" y2="9" stroke="var(--line)"/>',
            f'<line x1="{x(item.low):.1f}" y1="9" x2="{x(item.high):.1f}" y2="9" stroke="{colour}" stroke-width="3"/>',
            f'<circle cx="{x(item.value):.1f}" cy="9" r="4.5" fill="{colour}"/>',
        ]
        pictures.append(_svg_element(width, height, parts, f"{item.label}: {item.value:.1f}"))
    return pictures


def line_chart(
    series: Sequence[Series],
    x_name: str,
    y_name: str,
    size: tuple[int, int] = (CHART_WIDTH, 260),
    *,
    from_zero: bool = False,
) -> str:
    """Draw lines over a common x axis in `size` (width, height), each labelled below; a series without points is left
    out. `from_zero`: y begins at 0."""
    full_width, height = size
    drawn = [item for item in series if item.points]
    xs = [point[0] for item in drawn for point in item.points]
    ys = [point[1] for item in drawn for point in item.points] + [0.0] * from_zero
    ticks = _axis_ticks(min(ys), max(ys))
    bottom, top = min(ticks[0], *ys), max(ticks[-1], *ys)
    left, floor = 46, height - 60
    width = (max(xs) - min(xs)) or 1.0

    def place(point: tuple[float, float]) -> str:
        across = left + (point[0] - min(xs)) / width * (full_width - left - _RIGHT)
        return f"{across:.1f},{floor - (point[1] - bottom) / ((top - bottom) or 1.0) * (floor - _TOP):.1f}"

    parts = []
    for tick in ticks:
        y = floor - (tick - bottom) / ((top - bottom) or 1.0) * (floor - _TOP)
        parts.append(
            f'<line x1="{left}" y1="{y:.1f}" x2="{full_width - _RIGHT}" y2="{y:.1f}" stroke="var(--line)"/>'
            + _text_element(left - 6, y + 4, _format_number(tick), "end")
        )
    letters = int(((full_width - left) / max(1, len(drawn)) - 36) / 6.5)
    for number, item in enumerate(drawn):
        colour = f"var({COLOURS[number % len(COLOURS)]})"
        dash = f' stroke-dasharray="{2 + 2 * number} 3"' if number else ""
        points = " ".join(map(place, item.points))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        across = left + number * (full_width - left) / max(1, len(drawn))
        parts.append(
            f'<line x1="{across:.0f}" y1="{height - 10}" x2="{across + 24:.0f}" y2="{height - 10}" stroke="{colour}" '
            f'stroke-width="2"{dash}/>' + _text_element(across + 30, height - 6, item.label[:letters], "start")
        )
    parts.append(
        _text_element(left, floor + 18, _format_number(min(xs)), "start")
        + _text_element(full_width - _RIGHT, floor + 18, _format_number(max(xs)), "end")
    )
    parts.append(_text_element((full_width + left) / 2, floor + 18, x_name, "middle"))
    return _svg_element(
        full_width, height, parts, f"{y_name} over {x_name}: {', '.join(item.label for item in drawn)}"
    )


def distribution_chart(samples: Sequence[tuple[str, Sequence[float]]], name: str, size: tuple[int, int]) -> str:
    """Draw for each label which share of its values lies in each of at most twelve equal ranges."""
    low = min(min(values) for _, values in samples)
    high = max(max(values) for _, values in samples)
    bins = min(_MAX_BINS, int(high - low) + 1)
    step = (high - low) / bins or 1.0
    series = []
    for label, values in samples:
        counts = Counter(min(bins - 1, int((value - low) / step)) for value in values)
        points = [(low + (place + 0.5) * step, 100 * counts[place] / len(values)) for place in range(bins)]
        series.append(Series(label, points))
    return line_chart(series, name, "percent", size, from_zero=True)


def _svg_element(width: float, height: float, parts: Sequence[str], description: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{_safe_text(description)}" font-size="12" font-family="system-ui, sans-serif">'
        f"{''.join(parts)}</svg>"
    )


def _text_element(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="var(--ink)">{_safe_text(text)}</text>'


def _safe_text(text: str) -> str:
    return html.escape(printable(text))


def _format_number(value: float) -> str:
    if abs(value) < 1e6:
        return f"{value:,.4g}"
    return f"{value:.2g}"


def _axis_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / about))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if span / (size * factor) <= about)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 12) for number in range(first, last + 1)]
