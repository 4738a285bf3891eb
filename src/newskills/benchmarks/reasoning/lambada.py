# SPDX-License-Identifier: Apache-2.0
"""The last word of a passage, from its whole context (Paperno et al. 2016, arXiv:1606.06031; OpenAI's version)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    context, blank, word = raw["text"].rpartition(" ")
    if not blank or not word:
        raise ValueError("the text has no last word")
    return {"context": context, "continuations": [f" {word}"], "expected_answer": word}


BENCHMARK = Benchmark(
    name="lambada",
    category="reasoning",
    title="LAMBADA: the last word, by likelihood",
    aliases=("lambada_openai",),
    sources=(Source(hf="EleutherAI/lambada_openai"),),
    row=row,
    prompt="generic/continuation",
    solver="loglikelihood",
    grader="loglikelihood",
    metric="loglikelihood",
    items={"test": 5153},
    licence="CC-BY-4.0",
    homepage="https://zenodo.org/record/2630551",
    citation="arXiv:1606.06031",
    unverified=True,
    traps=(
        "Needs a completions endpoint that echoes log-probabilities (vLLM, SGLang); llama.cpp does not.",
        "acc: the last word is what greedy decoding would write; perplexity is that of the last word.",
    ),
)
