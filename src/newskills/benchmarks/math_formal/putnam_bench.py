# SPDX-License-Identifier: Apache-2.0
"""Problems of the Putnam competition in Lean 4 (Tsoukalas et al. 2024, arXiv:2407.11214)."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.lean import lean_problem, with_answers

_ANSWER = re.compile(
    r"^(?:noncomputable )?abbrev (\w+)[^\n]*:= *\n? *sorry[ \t]*\n((?:--[^\n]*\n)+)", re.MULTILINE
)


def join_metadata(rows: Iterable[Row]) -> Iterator[Row]:
    """Join Lean files with what `putnam.json` says of them."""
    lean, metadata = {}, {}
    for raw in rows:
        name = raw["_file"].rpartition("/")[2]
        if name == "putnam.json":
            metadata = {entry["problem_name"]: entry for entry in msgspec.json.decode(raw["text"])}
        else:
            lean[name.removesuffix(".lean")] = raw["text"]
    for name in sorted(lean):
        yield {**metadata.get(name, {}), "problem_name": name, "lean": lean[name]}


def row(raw: Row, index: int) -> Row:
    text = raw["lean"]
    answers = {name: _answer_term(comment) for name, comment in _ANSWER.findall(text)}
    text = _ANSWER.sub(lambda match: match[0].removesuffix(match[2]), text)
    problem = lean_problem(with_answers(text, answers))
    return {
        "id": raw["problem_name"],
        "name": raw["problem_name"],
        "split": "test",
        "header": problem.header,
        "informal_prefix": problem.prefix,
        "formal_statement": problem.statement,
        "tags": raw.get("tags", []),
    }


def _answer_term(comment: str) -> str:
    """Return the answer, which stands in the comment behind the placeholder."""
    lines = [line.removeprefix("--").rstrip() for line in comment.splitlines()]
    return "(" + "\n".join(lines).strip() + ")"


BENCHMARK = Benchmark(
    name="putnam-bench",
    category="math-formal",
    title="PutnamBench: problems of the Putnam competition in Lean 4",
    aliases=("putnambench",),
    sources=(
        Source(
            github="trishullab/PutnamBench",
            ref="main",
            revision="3c9b9268ebd132d482938b8e9d242dd71fc1ebc0",
            members="{lean4/src/*.lean,informal/putnam.json}",
            format="text",
            sha256="4db834c814c1143c434f37647c74f960b8e56e8a7129b33465d53026755a6c5f",
        ),
    ),
    join=join_metadata,
    row=row,
    prompt="lean4/formal-proof",
    grader="lean4-proof",
    metric="lean4-proof",
    items={"test": 672},
    licence="Apache-2.0",
    homepage="https://github.com/trishullab/PutnamBench",
    citation="arXiv:2407.11214",
    needs_sandbox=True,
    traps=(
        "Where the problem asks for a value, it is given: the placeholder is filled from the comment behind it.",
        "Statements are corrected from time to time: results hold for the commit that was read.",
        "Needs a Lean 4 project with Mathlib.",
    ),
)
