# SPDX-License-Identifier: Apache-2.0
"""Questions about sound, music and speech: choices, open answers, instructions (Kumar et al., arXiv:2508.13992)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Group, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.media import audio_messages
from newskills.benchmarks.scores import weighted
from newskills.benchmarks.text import choices

_PARTS = {"open": "open_ended", "instruction following": "instruction_following"}
_LETTER = '\n\nThe last line of your reply must be "Answer: X", where X is the letter of one of the options.'


def row(part: str, raw: Row, index: int) -> Row | Drop:
    category = raw["category"]
    if _PARTS.get(category, "closed_form") != part:
        return OTHER_SPLIT
    sounds = [raw["audio_path"]] if isinstance(raw["audio_path"], str) else list(raw["audio_path"])
    question, options = raw["question"], list(raw["choices"] or [])
    shared: Row = {
        "id": str(raw.get("id", index)),
        "question": question,
        "audios": sounds,
        "category": category,
        "subset_for_metrics": category,
    }
    if part == "closed_form":
        fields = choices(question, options)
        letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[options.index(raw["answer"])]
        return {
            **shared,
            **fields,
            "messages": audio_messages(fields["problem"] + _LETTER, *sounds),
            "expected_answer": letter,
        }
    made = {**shared, "messages": audio_messages(question, *sounds)}
    if part == "open_ended":
        return {**made, "expected_answer": raw["answer"]}
    return {**made, **instruction_fields(raw["task_identifier"], raw["kwargs"] or {})}


def instruction_fields(name: str, arguments: Mapping[str, Any]) -> Row:
    """Return the instruction under its name in IFEval. Raises KeyError for one that is not known."""
    return {"instruction_id_list": [_KINDS[name]], "kwargs": [dict(arguments)]}


_KINDS = {
    "Include Keywords": "keywords:existence",
    "Keyword Frequency": "keywords:frequency",
    "Forbidden Words": "keywords:forbidden_words",
    "Number Paragraphs": "length_constraints:number_paragraphs",
    "Number Words": "length_constraints:number_words",
    "Number Sentences": "length_constraints:number_sentences",
    "Postscript": "detectable_content:postscript",
    "Number Bullets": "detectable_format:number_bullet_lists",
    "Minimum Number Highlighted Section": "detectable_format:number_highlighted_sections",
    "Multiple Sections": "detectable_format:multiple_sections",
    "JSON Format": "detectable_format:json_format",
    "Two Responses": "combination:two_responses",
    "Repeat Prompt": "combination:repeat_prompt",
    "End Checker": "startend:end_checker",
    "Quotation": "startend:quotation",
    "No Commas": "punctuation:no_comma",
    "All Uppercase": "change_case:english_capital",
    "All Lowercase": "change_case:english_lowercase",
}


def _benchmark(part: str, title: str, requires: str = "newskills[media]", **more: Any) -> Benchmark:
    return Benchmark(
        name=f"mmau-pro.{part}",
        category="speech-audio",
        title=f"MMAU-Pro: {title}",
        sources=(Source(hf="gamma-lab-umd/MMAU-Pro"),),
        row=partial(row, part),
        prompt="",
        defaults={"prompt_format": "openai"},
        metric=f"mmau_pro_{part}",
        licence="unstated",
        homepage="https://huggingface.co/datasets/gamma-lab-umd/MMAU-Pro",
        citation="arXiv:2508.13992",
        requires=requires,
        unverified=True,
        traps=(
            f"The sound comes apart: unpack data.zip of the data set in <data_dir>/mmau-pro/{part}.",
            "Choices are answered by letter; the authors let an embedding model find the nearest option "
            "(--judge_type=nvembed).",
        ),
        **more,
    )


BENCHMARKS = (
    _benchmark("closed_form", "choices", grader="multichoice"),
    _benchmark(
        "open_ended",
        "open questions",
        grader="",
        judge=Judge(
            prompt="judge/mmau-pro", grader="mmau-pro", model="qwen/qwen2.5-7b-instruct", server_type="openai"
        ),
    ),
    _benchmark("instruction_following", "instructions", "newskills[media,instructions]", grader="if"),
)


def score(members: Mapping[str, Mapping[str, Row]]) -> Row:
    """Average the success rates, each member counted by its problems."""
    return {"success_rate": weighted(members.values(), "success_rate")}


GROUP = Group(
    name="mmau-pro",
    category="speech-audio",
    title="MMAU-Pro: sound, music and speech",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    score=score,
    columns=("success_rate",),
    homepage="https://sonalkum.github.io/mmau-pro/",
    citation="arXiv:2508.13992",
)
