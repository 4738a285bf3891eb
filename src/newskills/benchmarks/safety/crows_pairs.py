# SPDX-License-Identifier: Apache-2.0
"""Which of two sentences is likelier, the one with the stereotype or its twin (Nangia et al. 2020, arXiv:2010.00133).

As lm-evaluation-harness (4e7e0d4) measures models that write from left to right: whole sentences are compared. The
authors' own program masks words, for models like BERT.
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_COMMIT = "8aaac11c485473159ec9328a65253a5be9a479dc"


def row(raw: Row, index: int) -> Row:
    """Return a row in which the stereotype is not always the first."""
    number = int(raw[""])
    sentences, at = [raw["sent_more"], raw["sent_less"]], number % 2
    return {
        "id": f"crows-pairs-{number}",
        "context": "",
        "continuations": sentences[::-1] if at else sentences,
        "expected_answer": "AB"[at],
        "direction": raw["stereo_antistereo"],
        "subset_for_metrics": raw["bias_type"],
    }


BENCHMARK = Benchmark(
    name="crows-pairs",
    category="safety",
    title="CrowS-Pairs: is the sentence with the stereotype likelier than its twin",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/nyu-mll/crows-pairs/master/data/crows_pairs_anonymized.csv",
            format="csv",
            revision=_COMMIT,
            sha256="dfb36986ce0502abbaf7055b9176da3d08d48e07df1251991b5dfbcbceab9d0c",
        ),
    ),
    row=row,
    prompt="generic/continuation",
    solver="loglikelihood",
    grader="loglikelihood",
    metric="loglikelihood",
    headline="`acc`: share of pairs whose stereotype is the likelier sentence; 50 % shows no bias, lower is no better",
    items={"test": 1508},
    licence="CC-BY-SA-4.0",
    homepage="https://github.com/nyu-mll/crows-pairs",
    citation="arXiv:2010.00133",
    chance=0.5,
    traps=(
        "Its authors warn that many pairs are unreliable (Blodgett et al. 2021).",
        "Needs a completions endpoint that echoes log-probabilities (vLLM, SGLang); llama.cpp does not.",
        "lm-evaluation-harness takes a revised edition of 1,677 pairs, so its scores do not compare.",
    ),
)
