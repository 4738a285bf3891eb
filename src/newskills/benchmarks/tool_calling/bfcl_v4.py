# SPDX-License-Identifier: Apache-2.0
"""The fourth version of the Berkeley Function-Calling Leaderboard: how its categories become one score."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.base.benchmark import Group
from newskills.base.records import Row
from newskills.benchmarks.scores import headline, mean, weighted
from newskills.benchmarks.tool_calling import bfcl

_SCORED = tuple(bfcl.benchmark("v4", category) for category in bfcl.CATEGORIES)
BENCHMARKS = (*_SCORED, bfcl.web_search())


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """0.3 multi-turn + 0.1 live + 0.1 non-live + 0.1 hallucination, over 0.6: the agentic 0.4 is not measured."""
    of = {name.partition(".")[2]: headline(metrics, "accuracy") for name, metrics in members.items()}
    simple = mean(of[f"simple_{language}"] for language in ("python", "java", "javascript"))
    non_live = mean([simple, of["multiple"], of["parallel"], of["parallel_multiple"]])
    tested = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
    live = weighted([members[f"bfcl_v4.{name}"] for name in tested], "accuracy")
    hallucination = mean([of["irrelevance"], of["live_irrelevance"]])
    multi_turn = mean(value for name, value in of.items() if name.startswith("multi_turn_"))
    return {
        "accuracy_without_agentic": (0.3 * multi_turn + 0.1 * (live + non_live + hallucination)) / 0.6,
        "overall_non_live": non_live,
        "overall_live": live,
        "overall_multi_turn": multi_turn,
        "hallucination": hallucination,
        "relevance": of["live_relevance"],
    }


GROUP = Group(
    name="bfcl_v4",
    category="tool-calling",
    title="BFCL v4: function calling in one turn and several, and restraint",
    members={benchmark.name: {} for benchmark in _SCORED},
    score=score,
    columns=(
        "accuracy_without_agentic",
        "overall_non_live",
        "overall_live",
        "overall_multi_turn",
        "hallucination",
    ),
    aliases=("bfcl", "ns_bfcl_v4"),
    homepage="https://gorilla.cs.berkeley.edu/leaderboard.html",
    citation="Patil et al., ICML 2025",
    traps=(
        "Memory is not here and web search no member (40 % of the leaderboard's score): do not compare overall scores.",
    ),
)
