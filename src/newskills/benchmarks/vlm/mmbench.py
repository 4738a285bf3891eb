# SPDX-License-Identifier: Apache-2.0
"""Abilities of models that see, each question asked in every order of its options (Liu et al. 2023, arXiv:2307.06281).

Configuration, split, fields, and how orders belong together (`index` modulo a million): mmbench of lmms-eval (75571cf)
and mcq_circular_eval of VLMEvalKit (e8e78f0).
"""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.media import embedded_asset
from newskills.benchmarks.text import choices

_NOTHING = ("", "nan", "none")


def _cell_text(value: object) -> str:
    if str(value).strip().lower() in _NOTHING:
        return ""
    return str(value).strip()


def row(raw: Row, index: int) -> Row:
    options = [text for letter in "ABCD" if (text := _cell_text(raw.get(letter)))]
    if raw["answer"] not in tuple("ABCD"[: len(options)]):
        raise ValueError(f"the answer is {raw['answer']!r}, and there are {len(options)} options")
    hint, question = _cell_text(raw.get("hint")), str(raw["question"]).strip()
    return {
        "id": f"mmbench-{raw['index']}",
        "question": question,
        **choices(f"{hint}\n{question}" if hint else question, options),
        "expected_answer": raw["answer"],
        "question_id": int(raw["index"]) % 1_000_000,
        "image_path": embedded_asset(raw["image"], str(raw["index"])),
        "subset_for_metrics": raw["category"],
    }


def _benchmark(name: str, title: str, config: str) -> Benchmark:
    return Benchmark(
        name=name,
        category="vlm",
        title=title,
        sources=(
            Source(split="dev", hf="lmms-lab-encoder/MMBench", config=config),
            Source(split="dev", hf="lmms-lab/MMBench", config=config),
        ),
        split="dev",
        row=row,
        prompt="vlm/mmmu-pro",
        grader="multichoice",
        metric="circular",
        licence="Apache-2.0",
        homepage="https://github.com/open-compass/MMBench",
        citation="arXiv:2307.06281",
        chance=0.25,
        requires="newskills[media]",
        unverified=True,
        traps=(
            "Headline: circular_accuracy; a question counts when it is right in every order of its options.",
            "The dev split of version 1.0; the answers of its test split are not published.",
            "The authors let GPT match replies that name no letter; here rules read them.",
        ),
    )


BENCHMARKS = (
    _benchmark("mmbench", "MMBench: abilities of models that see (English, dev)", "en"),
    _benchmark("mmbench-cn", "MMBench in Chinese (dev)", "cn"),
)
