# SPDX-License-Identifier: Apache-2.0
"""Contests of 2024 to 2026 as MathArena collected them (Balunović et al. 2025, arXiv:2505.23281).

From its data sets on the hub, or from its repository: a text file per problem, and the answers in a table.
"""

import csv
from collections.abc import Iterable, Iterator
from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_COMMIT = "81f103e38b1df076afa65ee0a3ffbe148d42e6d2"
_ANSWERS = "answers.csv"


def join_problem_files(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of a data set as they are; files of the repository as rows of the same kind."""
    files: dict[str, str] = {}
    for row in raw:
        if "text" in row:
            files[row["_file"]] = row["text"]
        else:
            yield row
    number = 0
    for folder in [name.removesuffix(_ANSWERS) for name in files if name.endswith(_ANSWERS)]:
        for line in csv.DictReader(files[folder + _ANSWERS].splitlines()):
            number += 1
            problem = files[f"{folder}problems/{line['id']}.tex"]
            yield {"problem_idx": number, "problem": problem.strip(), "answer": line["answer"]}


def contest_row(name: str, raw: Row, index: int) -> Row:
    kept = {key: value for key, value in raw.items() if key != "answer"}
    return {"id": f"{name}-{raw['problem_idx']}", **kept, "expected_answer": str(raw["answer"])}


def _hub_source(dataset: str) -> Source:
    return Source(hf=f"MathArena/{dataset}", hf_split="train")


def _repository_source(folder: str, sha256: str) -> Source:
    return Source(
        github="eth-sri/matharena",
        ref="main",
        revision=_COMMIT,
        members=f"data/{folder}/{{{_ANSWERS},problems/*.tex}}",
        format="text",
        sha256=sha256,
    )


def _benchmark(
    name: str,
    title: str,
    *sources: Source,
    items: int = 0,
    aliases: tuple[str, ...] = (),
    traps: tuple[str, ...] = (),
) -> Benchmark:
    few = (f"Only {items} problems: look at the interval.",) if items else ()
    verified = any(source.github for source in sources)
    return Benchmark(
        name=name,
        category="math-natural",
        title=title,
        aliases=aliases,
        sources=sources,
        join=join_problem_files,
        row=partial(contest_row, name),
        prompt="generic/math",
        items={"test": items} if items else {},
        licence="MIT (repository); contest problems" if verified else "CC-BY-NC-SA-4.0",
        homepage="https://matharena.ai",
        citation="arXiv:2505.23281",
        unverified=not verified,
        traps=(*few, *traps),
    )


BENCHMARKS = (
    _benchmark(
        "aime25-matharena",
        "AIME 2025 as written by MathArena",
        _repository_source(
            "aime/aime_2025_{I,II}", "4d9ac00bb5dc1e6797603bb373f0e0a729a2e41ec0bde0d3a376f41ec5de73ea"
        ),
        items=30,
        traps=("The problems of aime25, with other LaTeX.",),
    ),
    _benchmark("aime26", "AIME 2026", _hub_source("aime_2026"), items=30, aliases=("aime2026", "ns_aime2026")),
    _benchmark(
        "apex-shortlist",
        "MathArena Apex shortlist: problems that models rarely solve",
        _hub_source("apex-shortlist"),
        traps=("Chosen because models of 2025 failed: scores say little about easier problems.",),
    ),
    _benchmark(
        "apex_2025",
        "MathArena Apex 2025: problems that no model solved reliably",
        _hub_source("apex_2025"),
        items=12,
        aliases=("apex-2025",),
        traps=("Chosen because models of 2025 failed: scores near zero are common.",),
    ),
    _benchmark("brumo25", "Brown University Math Olympiad 2025", _hub_source("brumo_2025"), items=30),
    _benchmark(
        "cmimc24",
        "Carnegie Mellon Informatics and Mathematics Competition 2024",
        _repository_source("cmimc/cmimc_2024", "c4782823f92a04f8a5169468d294359d62785789091f2ca57dafc41cab4b7610"),
        items=30,
    ),
    _benchmark(
        "hmmt_feb24",
        "Harvard-MIT Mathematics Tournament, February 2024",
        _repository_source(
            "hmmt/hmmt_feb_2024", "f7d4693270d55a727251fb4e1f33e3561578ea552dded98281e03bae43a5cfcf"
        ),
        items=30,
        traps=("Nearly all of its problems are in comp-math-24-25, too.",),
    ),
    _benchmark(
        "hmmt_feb25",
        "Harvard-MIT Mathematics Tournament, February 2025",
        _hub_source("hmmt_feb_2025"),
        _repository_source(
            "hmmt/hmmt_feb_2025", "ee089f22661d80f85285c8df38c5978e10f78b95a01f4d7f89289a3732fdbe80"
        ),
        items=30,
        aliases=("hmmt-feb25", "hmmt_feb2025", "ns_hmmt_feb2025"),
        traps=("Nearly all of its problems are in comp-math-24-25, too.",),
    ),
    _benchmark(
        "hmmt_nov25", "Harvard-MIT Mathematics Tournament, November 2025", _hub_source("hmmt_nov_2025"), items=30
    ),
)
