# SPDX-License-Identifier: Apache-2.0
"""What a user said in long histories of chats (Wu et al. 2024, arXiv:2410.10813).

Files, fields, form of the history, the judge's rules by kind of question: README.md, src/generation/run_generation.py
and src/evaluation of xiaowu0162/LongMemEval (9e0b455).
"""

import json

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row

_CONTAINED = (
    "Right is a reply that has the reference answer, or says the same, or has all steps that lead to it. A reply with "
    "only a part of it is wrong."
)
_RULES = {
    **dict.fromkeys(("single-session-user", "single-session-assistant", "multi-session"), _CONTAINED),
    "temporal-reasoning": f"{_CONTAINED} A count of days, weeks or months that is off by one is right.",
    "knowledge-update": (
        "Right is a reply that has the reference answer, which is the newest state; it may tell older states beside it."
    ),
    "single-session-preference": (
        "Right is a reply that recalls what the user told of themselves and makes use of it as described; it need not "
        "reflect every point of the description."
    ),
}
_ABSTAIN = (
    "The chats do not answer the question. Right is a reply that says so: that the information is missing, or "
    "that only something else was told."
)


def row(raw: Row, index: int) -> Row:
    kind = raw["question_type"]
    sessions = sorted(zip(raw["haystack_dates"], raw["haystack_sessions"], strict=True), key=lambda pair: pair[0])
    chats = [
        f"\n### Session {number}:\nSession Date: {date}\nSession Content:\n\n{json.dumps(_unmarked_turns(turns))}\n"
        for number, (date, turns) in enumerate(sessions, 1)
    ]
    subsets = [kind]
    if raw["question_id"].endswith("_abs"):
        rule, reference, judged_as = _ABSTAIN, "Why it cannot be answered", "abstention"
        subsets.append(judged_as)
    else:
        rule, reference, judged_as = _RULES[kind], "Reference answer", kind
        if kind == "single-session-preference":
            reference = "Description"
    return {
        "id": raw["question_id"],
        "question": raw["question"],
        "question_date": raw["question_date"],
        "history": "".join(chats),
        "expected_answer": str(raw["answer"]),
        "rule": rule,
        "reference_name": reference,
        "question_type": kind,
        "judged_as": judged_as,
        "subset_for_metrics": subsets,
    }


def _unmarked_turns(turns: list[Row]) -> list[Row]:
    """Return the turns without the mark of those that hold the answer."""
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns]


def _source(split: str, file: str) -> Source:
    return Source(
        split=split,
        url=f"https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/{file}.json",
        format="json",
    )


BENCHMARK = Benchmark(
    name="longmemeval",
    category="long-context",
    title="LongMemEval: what a user said in long histories of chats",
    sources=(
        _source("s", "longmemeval_s_cleaned"),
        _source("m", "longmemeval_m_cleaned"),
        _source("oracle", "longmemeval_oracle"),
    ),
    split="s",
    row=row,
    prompt="eval/chat-memory",
    grader="",
    judge=Judge(prompt="judge/longmemeval", model="gpt-4o-2024-08-06", server_type="openai"),
    metric="macro",
    metric_config={"section_key": "question_type"},
    headline="`accuracy`: share of answers that the judge accepts; `macro_accuracy`, the mean of the six kinds",
    items={"s": 500, "m": 500, "oracle": 500},
    licence="MIT",
    homepage="https://github.com/xiaowu0162/LongMemEval",
    citation="arXiv:2410.10813",
    unverified=True,
    traps=(
        "accuracy, over all questions, is what the authors' evaluate_qa.py prints and papers report; their second "
        "program prints macro_accuracy, the mean of the six kinds, and the subset abstention, too.",
        "Split s: 115,000 tokens a question; oracle: only the sessions with the answer; m: 500 sessions, for memories.",
        "The cleaned files of September 2025. Without the official prompts the judge's is ours, with the authors' "
        "rules by kind.",
    ),
)
