# SPDX-License-Identifier: Apache-2.0
"""Questions about medicine: PubMedQA (Jin et al. 2019, arXiv:1909.06146), HEAD-QA (Vilares and Gómez-Rodríguez 2019,
arXiv:1906.04701).

`context` and `continuations` are for the solver `loglikelihood`.
"""

from newskills.base.benchmark import Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.options import sources_with
from newskills.benchmarks.text import BY_LIKELIHOOD, choices

_VERDICTS = ("yes", "no", "maybe")


def pubmedqa_row(raw: Row, index: int) -> Row:
    abstract = "\n".join(raw["CONTEXTS"])
    if raw["final_decision"] not in _VERDICTS:
        raise ValueError(f"final_decision is {raw['final_decision']!r}; yes, no or maybe is expected")
    return {
        **choices(f"{abstract}\n\n{raw['QUESTION']}", _VERDICTS),
        "expected_answer": "ABC"[_VERDICTS.index(raw["final_decision"])],
        "context": f"Abstract: {abstract}\nQuestion: {raw['QUESTION']}\nAnswer:",
        "continuations": [f" {verdict}" for verdict in _VERDICTS],
    }


def headqa_row(raw: Row, index: int) -> Row | Drop:
    if raw.get("image"):
        return Drop("they are about a picture")
    options = [option["atext"].strip() for option in raw["answers"]]
    language = raw["_config"]
    return {
        "id": f"headqa-{language}-{raw['name']}-{raw['qid']}",
        **choices(raw["qtext"], options),
        "expected_answer": "ABCDE"[int(raw["ra"]) - 1],
        "context": f"Question: {raw['qtext']}\nAnswer:",
        "continuations": [f" {option}" for option in options],
        "language": language,
        "subset_for_metrics": [language, raw["category"]],
    }


BENCHMARKS = (
    Benchmark(
        name="pubmedqa",
        category="science",
        title="PubMedQA: what abstracts of studies say, yes, no or maybe",
        sources=(Source(hf="bigbio/pubmed_qa", config="pubmed_qa_labeled_fold0_source"),),
        row=pubmedqa_row,
        prompt="generic/mcq",
        grader="multichoice",
        metric="multichoice",
        items={"test": 500},
        licence="MIT",
        homepage="https://pubmedqa.github.io",
        citation="arXiv:1909.06146",
        chance=1 / 3,
        unverified=True,
        traps=("The abstract is shown without its conclusion.", BY_LIKELIHOOD),
    ),
    Benchmark(
        name="headqa",
        category="science",
        title="HEAD-QA: Spanish examinations for specialists in health",
        sources=(Source(hf="EleutherAI/headqa", config="{en,es}"),),
        options={"languages": sources_with("config", "only these languages", "en", "es", usual="en, es")},
        row=headqa_row,
        prompt="generic/mcq",
        grader="multichoice",
        metric="multichoice",
        licence="MIT",
        homepage="https://aghie.github.io/head-qa/",
        citation="arXiv:1906.04701",
        chance=0.23,
        unverified=True,
        traps=("Questions about pictures are left out.", BY_LIKELIHOOD),
    ),
)
