# SPDX-License-Identifier: Apache-2.0
"""The third version of the Berkeley Function-Calling Leaderboard: how its categories become one score."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from newskills.base.benchmark import Benchmark, Group
from newskills.base.records import Row
from newskills.benchmarks.scores import headline, mean, weighted
from newskills.benchmarks.tool_calling import bfcl

_TRAPS = ("The files are those that the fourth version re-issued: some questions and answers were fixed.",)
# What NeMo-Skills also calls them.
_OLDER = {"simple_python": "simple", "simple_java": "java", "simple_javascript": "javascript"}


def _benchmark(category: str) -> Benchmark:
    aliases = (f"bfcl_v3.{_OLDER[category]}",) if category in _OLDER else ()
    return structs.replace(bfcl.bfcl_benchmark("v3", category, _TRAPS), aliases=aliases)


BENCHMARKS = tuple(map(_benchmark, bfcl.CATEGORIES))


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Compute mean(non-live, live, multi-turn); live counts each question once, simple is the mean over
    languages."""
    of = {name.partition(".")[2]: headline(metrics, "accuracy") for name, metrics in members.items()}
    simple = mean(of[f"simple_{language}"] for language in ("python", "java", "javascript"))
    non_live = mean([simple, of["multiple"], of["parallel"], of["parallel_multiple"], of["irrelevance"]])
    live = weighted(
        [metrics for name, metrics in members.items() if name.partition(".")[2].startswith("live_")], "accuracy"
    )
    multi_turn = mean(value for name, value in of.items() if name.startswith("multi_turn_"))
    return {
        "overall_accuracy": mean([non_live, live, multi_turn]),
        "overall_non_live": non_live,
        "non_live_ast": mean([simple, of["multiple"], of["parallel"], of["parallel_multiple"]]),
        "simple_ast": simple,
        "irrelevance": of["irrelevance"],
        "overall_live": live,
        "overall_multi_turn": multi_turn,
    }


GROUP = Group(
    name="bfcl_v3",
    category="tool-calling",
    title="BFCL v3: function calling in one turn and several",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    score=score,
    columns=("overall_accuracy", "overall_non_live", "overall_live", "overall_multi_turn"),
    aliases=("ns_bfcl_v3",),
    homepage="https://gorilla.cs.berkeley.edu/leaderboard.html",
    citation="Patil et al., ICML 2025",
    traps=_TRAPS,
)
