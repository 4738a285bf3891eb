# SPDX-License-Identifier: Apache-2.0
"""Does a reply say what its sources do not? Marked by people, word by word (Niu et al. 2024, arXiv:2401.00396)."""

from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import yes_no


def join_sources(raw: Iterable[Row]) -> Iterator[Row]:
    """Join replies of the test split with their sources; those with faults of their own are left out, as by the
    authors' program."""
    replies: list[Row] = []
    sources: dict[str, Row] = {}
    for row in raw:
        if "prompt" in row:
            sources[row["source_id"]] = row
        elif row["split"] == "test" and row["quality"] == "good":
            replies.append(row)
    for row in replies:
        yield {
            **row,
            "prompt": sources[row["source_id"]]["prompt"],
            "task": sources[row["source_id"]]["task_type"],
        }


def row(raw: Row, index: int) -> Row:
    question = (
        "Does the reply state anything that contradicts the request's sources, or that they do not say?\n\n"
        f"Request:\n{raw['prompt']}\n\nReply:\n{raw['response']}"
    )
    return {
        **yes_no(question, bool(raw["labels"])),
        "id": f"ragtruth-{raw['id']}",
        "subset_for_metrics": raw["task"].lower(),
        "hallucination_spans": [span["text"] for span in raw["labels"]],
        "label_types": sorted({span["label_type"] for span in raw["labels"]}),
        "answered_by": raw["model"],
    }


BENCHMARK = Benchmark(
    name="ragtruth",
    category="factuality",
    title="RAGTruth: find what the sources of a reply do not say",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/ParticleMedia/RAGTruth/main/dataset/"
            "{response.jsonl,source_info.jsonl}",
            revision="c103204b9ce28d6bbad859304bf30de72b8ed8fe",
        ),
    ),
    join=join_sources,
    row=row,
    prompt="generic/yes-no",
    grader="multichoice",
    metric="multichoice",
    licence="MIT",
    homepage="https://github.com/ParticleMedia/RAGTruth",
    citation="arXiv:2401.00396",
    chance=0.5,
    unverified=True,
    traps=("Whole replies are judged, not words; the authors report precision, recall and F1 of yes.",),
)
