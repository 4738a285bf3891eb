# SPDX-License-Identifier: Apache-2.0
"""Rules that nobody has learnt before, and questions about them (Ma et al. 2024, arXiv:2410.06526)."""

from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def join_rules(raw: Iterable[Row]) -> Iterator[Row]:
    """Join each sample with the text of its rule."""
    samples: list[Row] = []
    rules: dict[tuple[str, str], str] = {}
    for line in raw:
        category, _, file = line["_file"].removeprefix("data/").partition("/")
        if file == "rule.jsonl":
            rules[category, str(line["idx"])] = line["rule_content"]
        else:
            samples.append({**line, "category": category})
    for sample in samples:
        yield {**sample, "rule_content": rules[sample["category"], str(sample["rule_id"])]}


def row(raw: Row, index: int) -> Row:
    answer = raw["answer"].strip().removeprefix("[[").removesuffix("]]")
    return {
        "id": f"kor-{raw['category']}-{raw['idx']}",
        "problem": f"Rule:\n{raw['rule_content']}\n\nQuestion:\n{raw['question']}",
        "expected_answer": answer,
        "raw_answer": raw["answer"],
        "rule_id": raw["rule_id"],
        "subset_for_metrics": raw["category"],
    }


BENCHMARK = Benchmark(
    name="kor-bench",
    category="reasoning",
    title="KOR-Bench: new rules in five fields",
    aliases=("korbench",),
    sources=(
        Source(
            github="KOR-Bench/KOR-Bench",
            ref="main",
            revision="bb8194dff8e51e2e2247cf62aa9932c3d57d53d7",
            members="data/*/{sample,rule}.jsonl",
            sha256="8f5a47e6ae1f274324fd40786600bcf0012947ed39ee0ae123327c07e1429acf",
        ),
    ),
    join=join_rules,
    row=row,
    prompt="generic/general-boxed",
    grader="new_rules",
    metric="generic",
    items={"test": 1250},
    licence="Apache-2.0",
    homepage="https://github.com/KOR-Bench/KOR-Bench",
    citation="arXiv:2410.06526",
    misprints={"kor-puzzle-84": "the right answer lacks brackets: 2+2+3*4 is not 28"},
    traps=(
        "Questions ask for [[…]], the prompt for a box: the last [[…]] counts, else the box.",
        "Each rule has a comparison of its own, as the authors' program has; formulas are compared by value.",
    ),
)
