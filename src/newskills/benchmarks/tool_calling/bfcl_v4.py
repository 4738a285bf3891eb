# SPDX-License-Identifier: Apache-2.0
"""The fourth version of the Berkeley Function-Calling Leaderboard: how its categories become one score."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.base.benchmark import Group
from newskills.base.records import Row
from newskills.benchmarks.scores import headline, mean, weighted
from newskills.benchmarks.tool_calling import bfcl, bfcl_agents

BENCHMARKS = (
    *(bfcl.bfcl_benchmark("v4", category) for category in bfcl.CATEGORIES),
    *map(bfcl_agents.web_search, bfcl_agents.SEARCHES),
    *map(bfcl_agents.memory_benchmark, bfcl_agents.MEMORIES),
)


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Compute 0.4 agents + 0.3 multi-turn + 0.1 live + 0.1 non-live + 0.1 hallucination."""
    of = {name.partition(".")[2]: headline(metrics, "accuracy") for name, metrics in members.items()}
    simple = mean(of[f"simple_{language}"] for language in ("python", "java", "javascript"))
    non_live = mean([simple, of["multiple"], of["parallel"], of["parallel_multiple"]])
    tested = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
    live = weighted([members[f"bfcl_v4.{name}"] for name in tested], "accuracy")
    hallucination = mean([of["irrelevance"], of["live_irrelevance"]])
    multi_turn = mean(value for name, value in of.items() if name.startswith("multi_turn_"))
    memory = mean(of[f"memory_{kind}"] for kind in bfcl_agents.MEMORIES)
    web_search = mean(of[f"web_search_{kind}"] for kind in bfcl_agents.SEARCHES)
    agentic = mean([memory, web_search])
    return {
        "overall_accuracy": 0.4 * agentic + 0.3 * multi_turn + 0.1 * (live + non_live + hallucination),
        "overall_agentic": agentic,
        "overall_multi_turn": multi_turn,
        "overall_live": live,
        "overall_non_live": non_live,
        "hallucination": hallucination,
        "relevance": of["live_relevance"],
        "memory": memory,
        "web_search": web_search,
    }


GROUP = Group(
    name="bfcl_v4",
    category="tool-calling",
    title="BFCL v4: function calling in one turn and several, restraint, memory, web search",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    score=score,
    columns=(
        "overall_accuracy",
        "overall_agentic",
        "overall_multi_turn",
        "overall_live",
        "overall_non_live",
        "hallucination",
    ),
    aliases=("bfcl", "ns_bfcl_v4"),
    homepage="https://gorilla.cs.berkeley.edu/leaderboard.html",
    citation="Patil et al., ICML 2025",
    traps=(
        "Web searches need TAVILY_API_KEY, the memory by vectors newskills[embeddings]; without them, name the members "
        "(or take bfcl_v3, which has neither).",
        "Searches are not the leaderboard's own: compare the other parts only.",
        "Format sensitivity, which has no weight in the score, is not measured.",
    ),
)
