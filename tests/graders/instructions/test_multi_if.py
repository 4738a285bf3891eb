# SPDX-License-Identifier: Apache-2.0
"""Instructions over several turns, and words of languages without blanks; figures worked out by hand."""

from __future__ import annotations

import pycrfsuite  # noqa: F401 - the file is skipped where it is missing
import pytest
import pythainlp  # noqa: F401 - the same

from newskills.base.records import Row
from newskills.graders.instructions.multi_if import MultiIFGrader, sentence_count, word_count
from newskills.metrics import make_metric

QUOTED: Row = {"instruction_id_list": ["startend:quotation"], "kwargs": [{}]}
LONG: Row = {
    "instruction_id_list": ["length_constraints:number_words", "punctuation:no_comma"],
    "kwargs": [{"relation": "at least", "num_words": 4, "keywords": None}, {}],
}


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [
        ("The quick brown fox jumps. It is fast.", 8, 2),
        ("今天天气很好。我们去公园吧！", 12, 2),
        ("ผมชอบกินข้าวผัด", 4, 1),
        ("मैं घर जा रहा हूँ। तुम कहाँ हो?", 9, 2),
    ],
)
def test_counts_by_language(text: str, words: int, sentences: int) -> None:
    assert (word_count(text), sentence_count(text)) == (words, sentences)


@pytest.mark.parametrize(
    ("answers", "followed"),
    [
        (['"Tea."', "four words are here"], [[True], [True, True]]),
        (["「茶」", "four, words are here"], [[True], [True, False]]),
        (["Tea", "<think>four words are here</think>no"], [[False], [False, True]]),
    ],
)
def test_turns(answers: list[str], followed: list[list[bool]]) -> None:
    score = MultiIFGrader().grade({"turn_instructions": [QUOTED, LONG], "turn_answers": answers})
    assert [turn["strict_eval"]["follow_instruction_list"] for turn in score.fields["turn_evals"]] == followed
    assert score.outcome == ("correct" if all(map(all, followed)) else "wrong")


def test_as_many_answers_as_turns_are_needed() -> None:
    assert MultiIFGrader().grade({"turn_instructions": [QUOTED], "turn_answers": []}).outcome == "unscored"


def test_four_accuracies_for_each_turn() -> None:
    def level(*followed: bool) -> Row:
        return {"follow_instruction_list": list(followed), "follow_all_instructions": all(followed)}

    def turn(strict: Row, loose: Row) -> Row:
        return {"strict_eval": strict, "loose_eval": loose}

    metric = make_metric("multi-if")
    first = turn(level(True, False), level(True, True))
    metric.update([{"is_correct": False, "turn_evals": [first, turn(level(True), level(True))]}])
    metric.update([{"is_correct": True, "turn_evals": [turn(level(True), level(True))]}])
    values = {name: number.value for name, number in metric.numbers()["pass@1"].items()}
    # turn 1: prompts 1/2 and 2/2, instructions 2/3 and 3/3; turn 2: all
    assert values["turn_1"] == pytest.approx(100 * (1 / 2 + 1 + 2 / 3 + 1) / 4)
    assert values["turn_2"] == 100.0
    assert "turn_3" not in values
    assert values["average_accuracy"] == pytest.approx((values["turn_1"] + 100) / 2)
    assert values["conversation_accuracy"] == 50.0
