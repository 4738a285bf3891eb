# SPDX-License-Identifier: Apache-2.0
"""Questions about conversations over months (Maharana et al. 2024, arXiv:2402.17753).

Fields: README.md of snap-research/locomo; score: its task_eval/evaluation.py (9228632); the form of the history, and
locomo10.json: locomo of evalscope (fde259d).
"""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.graders.reading.memories import ADVERSARIAL, NOTHING

_KINDS = {1: "multi-hop", 2: "temporal", 3: "commonsense", 4: "single-hop", 5: ADVERSARIAL}
_ADVICE = {
    "temporal": "Give an approximate date, by the dates of the conversation.",
    ADVERSARIAL: f'If the conversation does not say it, answer "{NOTHING}".',
}


def rows(raw: Row, index: int) -> Iterator[Row]:
    """Yield the questions of a conversation."""
    conversation = raw["conversation"]
    text = history_text(conversation)
    speakers = f"{conversation['speaker_a']} and {conversation['speaker_b']}"
    for number, question in enumerate(raw["qa"]):
        kind = _KINDS[question["category"]]
        answer = NOTHING if kind == ADVERSARIAL else str(question["answer"])
        yield {
            "id": f"{raw['sample_id']}-{number}",
            "question": question["question"],
            "speakers": speakers,
            "conversation": text,
            "advice": _ADVICE.get(kind, ""),
            "expected_answer": answer,
            "question_type": kind,
            "evidence": question.get("evidence") or [],
            "subset_for_metrics": kind,
        }


def history_text(conversation: Row) -> str:
    """Join sessions in order, each with its date; pictures by their captions."""
    numbers = sorted(
        int(name.removeprefix("session_"))
        for name in conversation
        if name.startswith("session_") and name.removeprefix("session_").isdigit()
    )
    parts = []
    for number in numbers:
        turns = [_turn_text(turn) for turn in conversation[f"session_{number}"]]
        parts.append("\n".join([f"Date: {conversation[f'session_{number}_date_time']}", *turns]))
    return "\n\n".join(parts)


def _turn_text(turn: Row) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [shares a picture: {caption}]" if caption else "")


BENCHMARK = Benchmark(
    name="locomo",
    category="long-context",
    title="LoCoMo: questions about conversations over months",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
            format="json",
        ),
    ),
    row=rows,
    prompt="eval/conversation-memory",
    grader="memory",
    metric="macro",
    metric_config={"section_key": "question_type", "answer_key": "generation"},
    headline="`accuracy`: mean F1 over all questions; `macro_accuracy`, the mean of the kinds of questions",
    hedgeable="of questions with several answers, the part of a reply that fits best counts for each, as the authors "
    "score it",
    items={"test": 1986},
    licence="CC-BY-NC-4.0",
    homepage="https://github.com/snap-research/locomo",
    citation="arXiv:2402.17753",
    unverified=True,
    traps=(
        "accuracy is the mean F1 over all questions, as by the authors' program; macro_accuracy is that of the kinds.",
        "The whole conversation is in the prompt, up to 26,000 tokens; memories that are searched are not tried.",
        "Memory products often report a judge's verdict without the adversarial questions: another score.",
    ),
)
