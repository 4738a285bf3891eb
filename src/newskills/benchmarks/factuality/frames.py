# SPDX-License-Identifier: Apache-2.0
"""Questions that need two to fifteen articles of Wikipedia (Krishna et al. 2024, arXiv:2409.12941).

Columns: test.tsv of google/frames-benchmark, as the data set's card and public programs read it ("Prompt", "Answer",
"reasoning_types", "wiki_links").
"""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    kinds = [kind.strip().lower().replace(" ", "-") for kind in str(raw["reasoning_types"]).split("|")]
    return {
        "id": f"frames-{index}",
        "question": raw["Prompt"],
        "problem": raw["Prompt"],
        "expected_answer": str(raw["Answer"]),
        "wiki_links": raw["wiki_links"],
        "subset_for_metrics": [kind for kind in dict.fromkeys(kinds) if kind],
    }


BENCHMARK = Benchmark(
    name="frames",
    category="factuality",
    title="FRAMES: questions over several articles of Wikipedia",
    sources=(Source(hf="google/frames-benchmark"),),
    row=row,
    prompt="generic/default",
    grader="",
    judge=Judge(prompt="judge/general-judge"),
    metric="math",
    items={"test": 824},
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/google/frames-benchmark",
    citation="arXiv:2409.12941",
    unverified=True,
    traps=(
        "Asked from memory, as the paper's naive prompt does; with a search: ++tool_modules=[tavily].",
        "The articles are named in wiki_links, and not fetched: the paper's oracle prompt shows their texts.",
        "The judge's prompt is ours; the paper's judge is a Gemini model, and its authors published no program. The "
        "verdict that their prompt asks for (Decision: TRUE) is read, too.",
    ),
)
