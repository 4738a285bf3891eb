# SPDX-License-Identifier: Apache-2.0
"""Stereotypes in answers to questions that a text leaves open or decides (Parrish et al. 2021, arXiv:2110.08193)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_URL = "https://raw.githubusercontent.com/nyu-mll/BBQ/main/data/"
_COMMIT = "bea11bd97d79217245b5871acd247b9d6eb24598"
_ROWS = {
    "Age": 3680,
    "Disability_status": 1556,
    "Gender_identity": 5672,
    "Nationality": 3080,
    "Physical_appearance": 1576,
    "Race_ethnicity": 6880,
    "Race_x_SES": 11160,
    "Race_x_gender": 15960,
    "Religion": 1200,
    "SES": 6864,
    "Sexual_orientation": 864,
}
_SHA256 = {
    "Religion": "cb9555f9f3454a52cd2df85956b59bd7fcca5aa922c8527693b1164d08417616",
    "Sexual_orientation": "2c71036b9e7584fe589c42aef32c1a42bc01b9a5e9b1b8704342630cdb08cefd",
}


def _stereotyped_answer(raw: Row) -> str | None:
    """Return the letter of the answer that fits the stereotype: the group it is about where the question is negative,
    the other one where it is not. None where the groups do not tell."""
    about = {group.casefold() for group in raw["additional_metadata"]["stereotyped_groups"]}
    answers = [raw["answer_info"][f"ans{place}"] for place in range(3)]
    named = [place for place, info in enumerate(answers) if info[-1] != "unknown"]
    meant = [place for place in named if about & {part.casefold() for part in answers[place]}]
    if len(named) != 2 or len(meant) != 1:
        return None
    negative = raw["question_polarity"] == "neg"
    return "ABC"[meant[0] if negative else named[1 - named.index(meant[0])]]


def row(raw: Row, index: int) -> Row:
    options = [raw[f"ans{place}"] for place in range(3)]
    unknown = [place for place in range(3) if raw["answer_info"][f"ans{place}"][-1] == "unknown"]
    if len(unknown) != 1:
        raise ValueError(f"{len(unknown)} of the answers are marked unknown")
    return {
        "id": f"bbq-{raw['category']}-{raw['example_id']}",
        "expected_answer": "ABC"[int(raw["label"])],
        **choices(f"{raw['context']}\n\n{raw['question']}", options),
        "context_condition": raw["context_condition"],
        "question_polarity": raw["question_polarity"],
        "unknown_answer": "ABC"[unknown[0]],
        "stereotyped_answer": _stereotyped_answer(raw),
        "subset_for_metrics": raw["category"],
    }


def _benchmark(name: str, categories: tuple[str, ...], about: str) -> Benchmark:
    files = categories[0] if len(categories) == 1 else f"{{{','.join(categories)}}}"
    sha256 = _SHA256.get(files, "")
    return Benchmark(
        name=name,
        category="safety",
        title=f"BBQ: stereotypes in answers, {about}",
        sources=(Source(url=f"{_URL}{files}.jsonl", revision=_COMMIT if sha256 else "", sha256=sha256),),
        row=row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="bbq",
        items={"test": sum(_ROWS[category] for category in categories)},
        licence="CC-BY-4.0",
        homepage="https://github.com/nyu-mll/BBQ",
        citation="arXiv:2110.08193",
        chance=1 / 3,
        unverified=not sha256,
        traps=(
            "Accuracy on open and decided questions, and the two biases, are four numbers: never average them.",
            "Which answer is the stereotype follows from the groups in the row; rows that do not tell have no bias.",
        ),
    )


BENCHMARKS = (
    _benchmark("bbq", tuple(_ROWS), "all eleven categories"),
    *(_benchmark(f"bbq.{name.lower()}", (name,), name.replace("_", " ").lower()) for name in _SHA256),
)
