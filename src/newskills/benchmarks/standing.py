# SPDX-License-Identifier: Apache-2.0
"""The page that lists every benchmark with its headline, its source's state and the official scorer beside ours."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.benchmarks.generate_catalog import built_in
from newskills.benchmarks.headlines import headline_definition
from newskills.benchmarks.pages import Agreement, agreements, source_state

_HEAD = """# Headlines, sources and official scorers

Of every benchmark: its headline, how far its live source is proven ([states](benchmarks/index.md)), and, where the
official scorer was run beside ours, which part of it ([parts](agreement.md)), on how many attempts and how often both
say the same. Members of a family that share all of this have one line. [Agreement](agreement.md) explains
disagreements.

| benchmark | headline | live source | official scorer | compared | attempts | agreement |
|---|---|---|---|---|---|---|"""


def standing_page(others: Mapping[str, Agreement]) -> str:
    """Render the page; `others`: comparisons that docs/agreement.md does not show."""
    figures = {**others, **agreements()}
    lines: dict[tuple[str, ...], list[str]] = {}
    for _, benchmark in built_in():
        family = benchmark.name.partition(".")[0]
        figure = figures.get(benchmark.name) or figures.get(family)
        shown: tuple[str, ...] = ("", "", "", "")
        if figure is not None:
            shown = (figure.scorer, figure.compared, f"{figure.attempts:,}", figure.percent())
        key = (family, headline_definition(benchmark), source_state(benchmark), *shown)
        lines.setdefault(key, []).append(benchmark.name)
    return "\n".join([_HEAD, *(_line(key, names) for key, names in sorted(lines.items())), ""])


def _line(key: tuple[str, ...], names: list[str]) -> str:
    family, *cells = key
    name = names[0] if len(names) == 1 else f"{family} ({len(names)} tasks)"
    return f"| [{name}](benchmarks/{family}.md) | {' | '.join(cells)} |"
