# SPDX-License-Identifier: Apache-2.0
"""250 grade-school problems in eleven languages (Shi et al. 2022, arXiv:2210.03057)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text


def row(raw: Row, index: int) -> Row:
    language = raw["_file"].removesuffix(".tsv").rpartition("_")[2]
    return {
        "id": f"mgsm-{language}-{index % 250}",
        "problem": raw["question"],
        "expected_answer": number_text(raw["answer"]),
        "subset_for_metrics": language,
        "target_language": language,
    }


BENCHMARK = Benchmark(
    name="mgsm",
    category="multilingual",
    title="MGSM: grade-school mathematics in eleven languages",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/google-research/url-nlp/main/mgsm/mgsm_{bn,de,en,es,fr,ja,ru,sw,te,th,zh}.tsv",
            format="tsv",
            columns=("question", "answer"),
            revision="452a21ad3dae5668c06ceeac21ff073e1e40f9be",
        ),
    ),
    row=row,
    prompt="generic/math",
    grader="math_multilingual",
    metric="math_multilingual",
    items={"test": 2750},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-research/url-nlp",
    citation="arXiv:2210.03057",
    traps=(
        "The official prompt shows eight worked examples in the language of the problem (native CoT); without it the "
        "instruction is English for all languages.",
        "Thousands commas are removed from the answers.",
    ),
)
