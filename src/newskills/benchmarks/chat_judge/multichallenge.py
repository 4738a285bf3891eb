# SPDX-License-Identifier: Apache-2.0
"""The next turn of long conversations, by one question to a judge (Sirdeshmukh et al. 2025, arXiv:2501.17399).

As the authors' program does (ekwinox117/multi-challenge, src/evaluator.py and src/result_parser.py): the judge sees the
reply and the question, the score is the mean of the four axes.
"""

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    criteria = raw["PASS_CRITERIA"]
    if criteria not in ("YES", "NO"):
        raise ValueError(f"PASS_CRITERIA is {criteria!r}")
    return {
        "id": raw["QUESTION_ID"],
        "messages": [{"role": turn["role"], "content": turn["content"]} for turn in raw["CONVERSATION"]],
        "target_question": raw["TARGET_QUESTION"],
        "right_verdicts": [criteria.lower()],
        "subset_for_metrics": raw["AXIS"].lower().replace("_", "-"),
    }


BENCHMARK = Benchmark(
    name="multichallenge",
    category="chat-judge",
    title="MultiChallenge: the next turn of long conversations",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/ekwinox117/multi-challenge/main/data/benchmark_questions.jsonl",
            revision="5ccefcca6a39020d66c1383c4e6a809cb07afa33",
            sha256="06c72d1ffa387481910d100b146295f28ab68c4ba0032743eac5c9195edb596e",
        ),
    ),
    row=row,
    prompt="",
    defaults={"prompt_format": "openai"},
    grader="",
    judge=Judge(
        prompt="judge/multichallenge",
        grader="verdict",
        grader_config={"verdicts": {"Y": "yes", "N": "no"}, "right": ["yes"], "unanswered": []},
        model="gpt-4o-2024-08-06",
        server_type="openai",
    ),
    metric="macro",
    items={"test": 273},
    licence="unstated",
    homepage="https://github.com/ekwinox117/multi-challenge",
    citation="arXiv:2501.17399",
    traps=(
        "Headline: the mean of the four axes, which have 41 to 113 conversations (macro_accuracy).",
        "The judge's prompt is ours; published scores are those of GPT-4o by the authors' prompt.",
        "The authors count a conversation of which one of several attempts passes: that is pass@k here.",
    ),
)
