# SPDX-License-Identifier: Apache-2.0
"""Charts of papers: what they show, and what follows from it (Wang et al. 2024, arXiv:2406.18521)."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_AXES = "If there is none, answer 'Not Applicable'."
_ASKED = {
    1: f"what is its title? {_AXES}",
    2: f"what is the label of the x-axis? {_AXES}",
    3: f"what is the label of the y-axis? {_AXES}",
    4: "what is the leftmost labeled tick on the x-axis?",
    5: "what is the rightmost labeled tick on the x-axis?",
    6: "what is the lowest labeled tick on the y-axis?",
    7: "what is the highest labeled tick on the y-axis?",
    8: f"by how much do consecutive numerical ticks on the x-axis differ? {_AXES}",
    9: f"by how much do consecutive numerical ticks on the y-axis differ? {_AXES}",
    10: f"how many lines are there? {_AXES}",
    11: f"do any lines intersect? {_AXES}",
    12: f"how many discrete labels does the legend have? {_AXES}",
    13: f"what are the names of the labels in the legend, separated by commas? {_AXES}",
    14: f"by how much do the largest and the smallest tick of the continuous legend (colorbar) differ? {_AXES}",
    15: f"what is the largest tick of the continuous legend (colorbar)? {_AXES}",
    16: f"what is the general trend of the data from left to right? {_AXES}",
    17: "what is the total number of explicitly labeled ticks across all axes?",
    18: "what is the layout of the subplots, as 'rows by columns'?",
    19: "how many subplots are there?",
}
_WHOLE = (18, 19)


def plot_reference(raw: Row, number: int) -> str:
    where = raw["subplot_loc"]
    if number in _WHOLE or where == [0, 0]:
        if number in _WHOLE:
            return "In this figure"
        return "In this plot"
    if isinstance(where, str):
        return f"In {where}"
    return f"In the subplot at row {where[0]}, column {where[1]}"


def figure_questions(raw: Row) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, question, answer)."""
    if "query" in raw:
        yield "reasoning", raw["query"], raw["answer"]
        return
    for number, answer in zip(raw["qids"], raw["answers"], strict=True):
        yield f"descriptive-{number}", f"{plot_reference(raw, number)}, {_ASKED[number]}", answer


def row(raw: Row, index: int) -> Iterator[Row]:
    for turn, (kind, question, answer) in enumerate(figure_questions(raw)):
        yield {
            "id": f"charxiv-{raw['figure_id']}-{kind}-{turn}",
            "question": question,
            "problem": question,
            "expected_answer": str(answer),
            "image_path": f"images/{raw['figure_id']}.jpg",
            "subset_for_metrics": kind.partition("-")[0],
        }


BENCHMARK = Benchmark(
    name="charxiv",
    category="vlm",
    title="CharXiv: 1,000 charts of papers",
    sources=(
        Source(
            split="validation",
            url="https://raw.githubusercontent.com/princeton-nlp/CharXiv/main/data/"
            "{descriptive_val,reasoning_val}.json",
            format="json",
            revision="7ebe88f78dee387691551f071abcb2b9e1a8025b",
        ),
    ),
    row=row,
    prompt="vlm/default",
    grader="",
    judge=Judge(prompt="judge/charxiv"),
    metric="hle",
    headline="`judge_correct`: share of answers that the judge accepts, of `reasoning` and `descriptive` apart",
    split="validation",
    items={"validation": 5000},
    licence="CC-BY-SA-4.0 (questions; charts have licences of their own)",
    homepage="https://charxiv.github.io",
    citation="arXiv:2406.18521",
    requires="newskills[media]",
    traps=(
        "The charts come apart: unpack images.zip of huggingface.co/datasets/princeton-nlp/CharXiv so that "
        "<data_dir>/charxiv/images/0.jpg is there.",
        "2,000 records: each of 1,000 charts has one question for reasoning and a record of four that describe it.",
        "Papers report the subsets reasoning and descriptive apart; the number over both says little.",
        "The files hold numbers of the 19 descriptive questions, not their words: those are ours.",
    ),
)
