# SPDX-License-Identifier: Apache-2.0
"""Yes or no about a picture: HallusionBench (arXiv:2310.14566) and POPE (arXiv:2305.10355)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import yes_no


def hallusionbench_row(raw: Row, index: int) -> Row:
    """Map a row; without a picture on purpose: figure 0 of the questions that a picture supplements."""
    names = ("category", "subcategory", "visual_input", "set_id", "figure_id", "question_id")
    file = raw["filename"]
    kind, section, hard, topic, figure, question = (str(raw[name]) for name in names)
    return {
        "id": "-".join(["hallusionbench", kind, section, hard, topic, figure, question]),
        **yes_no(raw["question"], {"0": False, "1": True}[raw["gt_answer"]]),
        "image_path": None if file is None else f"images/{file.removeprefix('./')}",
        "pair_id": f"{kind}-{section}-{topic}-{question}",
        "figure_id": None if kind == "VS" and figure == "0" else f"{kind}-{section}-{topic}-{figure}",
        "is_hard": hard == "2",
        "subset_for_metrics": f"{kind}-{section}",
    }


def pope_row(raw: Row, index: int) -> Row:
    return {
        "id": f"pope-{raw['question_id']}",
        **yes_no(raw["text"], {"no": False, "yes": True}[raw["label"]]),
        "image_path": f"images/{raw['image']}",
        "subset_for_metrics": raw["label"],
    }


_POPE = "https://raw.githubusercontent.com/RUCAIBox/POPE/main/output/coco/coco_pope_{}.json"
BENCHMARKS = (
    Benchmark(
        name="hallusionbench",
        category="vlm",
        title="HallusionBench: questions that mislead about pictures",
        sources=(
            Source(
                url="https://raw.githubusercontent.com/tianyi-lab/HallusionBench/main/HallusionBench.json",
                format="json",
                revision="744007c232c292942c7f80eb61edb2465482da31",
                sha256="ca6e0fb677dd56e5fb0e2700d06c58d01f8a6ae66e0f1773b2ac48c0a095d051",
            ),
        ),
        row=hallusionbench_row,
        prompt="vlm/yes-no",
        grader="multichoice",
        metric="hallusionbench",
        items={"test": 1129},
        chance=0.5,
        licence="BSD-3-Clause (questions)",
        homepage="https://github.com/tianyi-lab/HallusionBench",
        citation="arXiv:2310.14566",
        requires="newskills[media]",
        traps=(
            "The pictures come apart: unpack hallusion_bench.zip so that <data_dir>/hallusionbench/images/VS is there.",
            "178 questions have no picture on purpose: a reply that does not answer them is right, as for the authors.",
            "Headline: questions that are right with each of their pictures (the authors' qAcc); figure_accuracy is "
            "fAcc, accuracy aAcc. The authors let GPT-4 read replies.",
        ),
    ),
    Benchmark(
        name="pope",
        category="vlm",
        title="POPE: is this object in the picture?",
        sources=(
            Source(
                url=_POPE.format("adversarial"),
                revision="3df3ba1b110ecce25696989577fad583b67d4239",
                sha256="420b3407db1fa9f1187a805dca41cb7b97fd91504e6c2179706188c107fb8ef8",
            ),
            Source(split="popular", url=_POPE.format("popular")),
            Source(split="random", url=_POPE.format("random")),
        ),
        row=pope_row,
        prompt="vlm/yes-no",
        grader="multichoice",
        metric="yes_no",
        items={"test": 3000, "popular": 3000, "random": 3000},
        chance=0.5,
        licence="MIT (questions)",
        homepage="https://github.com/RUCAIBox/POPE",
        citation="arXiv:2305.10355",
        requires="newskills[media]",
        traps=(
            "The pictures are those of COCO val2014: put them into <data_dir>/pope/images.",
            "The split test asks for objects that often stand together (adversarial); popular and random are easier.",
        ),
    ),
)
