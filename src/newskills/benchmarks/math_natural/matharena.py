# SPDX-License-Identifier: Apache-2.0
"""Contests of 2025 and 2026 as MathArena collected them (Balunović et al. 2025, arXiv:2505.23281)."""

from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(name: str, raw: Row, index: int) -> Row:
    kept = {key: value for key, value in raw.items() if key != "answer"}
    return {"id": f"{name}-{raw['problem_idx']}", **kept, "expected_answer": str(raw["answer"])}


def _contest(
    name: str,
    title: str,
    dataset: str,
    *,
    items: int = 0,
    aliases: tuple[str, ...] = (),
    traps: tuple[str, ...] = (),
) -> Benchmark:
    few = (f"Only {items} problems: look at the interval.",) if items else ()
    return Benchmark(
        name=name,
        category="math-natural",
        title=title,
        aliases=aliases,
        sources=(Source(hf=f"MathArena/{dataset}", hf_split="train"),),
        row=partial(row, name),
        prompt="generic/math",
        items={"test": items} if items else {},
        licence="CC-BY-NC-SA-4.0",
        homepage="https://matharena.ai",
        citation="arXiv:2505.23281",
        traps=(*few, *traps),
    )


BENCHMARKS = (
    _contest("aime26", "AIME 2026", "aime_2026", items=30, aliases=("aime2026", "ns_aime2026")),
    _contest(
        "apex-shortlist",
        "MathArena Apex shortlist: problems that models rarely solve",
        "apex-shortlist",
        traps=("Chosen because models of 2025 failed: scores say little about easier problems.",),
    ),
    _contest(
        "apex_2025",
        "MathArena Apex 2025: problems that no model solved reliably",
        "apex_2025",
        items=12,
        aliases=("apex-2025",),
        traps=("Chosen because models of 2025 failed: scores near zero are common.",),
    ),
    _contest("brumo25", "Brown University Math Olympiad 2025", "brumo_2025", items=30),
    _contest(
        "hmmt_feb25",
        "Harvard-MIT Mathematics Tournament, February 2025",
        "hmmt_feb_2025",
        items=30,
        aliases=("hmmt-feb25", "hmmt_feb2025", "ns_hmmt_feb2025"),
    ),
    _contest("hmmt_nov25", "Harvard-MIT Mathematics Tournament, November 2025", "hmmt_nov_2025", items=30),
)
