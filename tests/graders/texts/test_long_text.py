# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.graders.reading.rouge import longest_common
from newskills.metrics import make_metric


def _score(measure: str, said: str, *golds: str, **more: object) -> float:
    row = {"measure": measure, "generation": said, "answers": list(golds), "expected_answer": golds[0], **more}
    return float(plain_grader("long_text", {}).grade(row).fields["score"])


@pytest.mark.parametrize(
    ("measure", "said", "gold", "expected"),
    [
        ("f1", "So.\nAnswer: the red house", "red house", 1.0),
        ("f1", "Answer: red", "red house", 2 / 3),
        ("rouge_l", "the cat sat on the mat", "a cat sat on a mat", 2 / 3),
        ("rouge_l", "The left-hand side.", "the left hand side", 1.0),
        ("rouge_l", "cat mat sat", "cat sat mat", 2 / 3),
        ("count", "There are 3 of 10.", "3", 0.5),
        ("count", "Three.", "3", 0.0),
        ("retrieval", "Paragraph 12", "Paragraph 12", 1.0),
        ("code", "```python\n    return x + 1\n```", "    return x + 1", 1.0),
        ("code", "    return x + 1", "return x + 1", 0.86),
        ("code", "return y", "return x", 0.88),
        ("code", "# nothing but a comment", "return x", 0.0),
        ("summary", "The cat sat. It slept.", "It slept. The cat sat.", 1.0),
        ("summary", "cat cat cat", "cat", 1.0),
        ("summary", "cat mat sat", "cat sat mat", 2 / 3),
        ("summary", "A cat", "a cat", 1 / 2),
        ("summary", ".", "a cat", 0.0),
        ("contains", "The key is 71432.", "71432", 1.0),
        ("contains", "The key is 714321.", "71432", 0.0),
        ("contains", "It is 3.5", "5", 0.0),
        ("contains", "ANN   LEE came", "Ann Lee", 1.0),
        ("sequence", "1, 3, 7, 10", "1, 3, 6, 10", 0.5),
        ("sequence", "none", "1, 2", 0.0),
    ],
)
def test_measures(measure: str, said: str, gold: str, expected: float) -> None:
    assert _score(measure, said, gold) == pytest.approx(expected)


def test_classes() -> None:
    classes = ["Animal", "Animal group", "City"]
    assert _score("class", "It is an Animal group.", "Animal group", all_classes=classes) == 1
    assert _score("class", "Animal or City", "City", all_classes=classes) == 0.5
    assert _score("class", "Animal", "City", all_classes=classes) == 0


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("garden", 1),
        ("The most recent location of Mary is garden.", 1),
        ("The most recent location of Mary is kitchen.", 0),
        ("The garden or the kitchen.", 0),
        ("The garden, not the hallway, which was asked for.", 1),
        ("Let me think. The garden.", 0),
    ],
)
def test_the_only_label_of_the_first_sentence(said: str, score: float) -> None:
    row = {"all_classes": ["garden", "kitchen", "hallway"], "asked": "Where was Mary before the hallway?"}
    record = {"measure": "label", "expected_answer": "garden", "generation": said, **row}
    assert plain_grader("long_text", {}).grade(record).fields["score"] == score


def test_chinese_is_compared_by_characters() -> None:
    assert _score("rouge_l", "安娜在罗马", "安娜罗马", language="zh") == pytest.approx(8 / 9)


def test_the_best_answer_counts() -> None:
    assert _score("f1", "Answer: in Rome", "Paris", "in Rome") == 1


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_longest_common_subsequence(first: str, second: str) -> None:
    row = [0] * (len(second) + 1)
    for char in first:
        before = list(row)
        for at, other in enumerate(second, 1):
            row[at] = before[at - 1] + 1 if char == other else max(before[at], row[at - 1])
    assert longest_common(first, second) == row[-1]


def test_what_cannot_be_graded() -> None:
    grader = plain_grader("long_text", {})
    assert grader.grade({"generation": "x", "measure": "f1"}).outcome == "unscored"
    assert grader.grade({"generation": "x", "measure": "bleu", "expected_answer": "x"}).outcome == "unscored"
    assert grader.grade({"generation": "<think>x", "measure": "f1", "expected_answer": "x"}).cause == "truncation"


def test_metric() -> None:
    metric = make_metric("long_text")
    metric.update([{"score": 0.5}])
    metric.update([metric.incorrect({"score": 0.5})])
    assert metric.metrics()["pass@1"]["score"] == 25


def test_tasks_weigh_alike_or_their_groups() -> None:
    scores = (("a", 1.0), ("a", 0.5), ("b", 0.25), ("c", 0.0))
    for groups, mean in ((None, 100 / 3), ({"first": ["a", "b"]}, 25.0)):
        metric = make_metric("long_text", groups=groups)
        for task, score in scores:
            metric.update([{"score": score, "subset_for_metrics": task}])
        row = metric.metrics()["pass@1"]
        assert (row["task_mean"], row["score"]) == (pytest.approx(mean), 43.75)


@pytest.mark.parametrize(
    ("measure", "said", "gold", "expected"),
    [
        ("first_number", "The key is 71432, not 90210.", "71432", 1),
        ("first_number", "It is 90210? No:\n\\boxed{71432}", "71432", 1),
        ("first_number", "88", "88.0", 1),
        ("first_number", "0012", "12", 0),
        ("last_number", "func_3(4) is 9, so f(9) =\n\n**-8**", "-8", 1),
        ("last_number", "It calls func_3(4), which is not there.", "4", 0),
        ("last_number", "The value is 1.5", "5", 0),
        ("choice", "A. old\nlooks fine\nB. new\nlooks broken\nSo it is:\n\nB. `new`", "B", 1),
        ("choice", "I cannot choose from A, B, C or D", "A", 0),
        ("f1_characters", "答案：六岁", "六、七岁", 0.8),
        ("f1_characters", "IBM", "ibm!", 1),
        ("rouge_l_lines", "the dog\na cat sat", "A cat sat.\nThe dog!", 1),
        ("rouge_l_lines", "the dog a cat sat", "A cat sat. The dog!", 3 / 5),
        ("rouge_l_lines", "...", "A cat", 0),
        ("sequence", "[1, 2.0, 4]", "1, 2, 3", 2 / 3),
    ],
)
def test_final_numbers_letters_and_lines(measure: str, said: str, gold: str, expected: float) -> None:
    assert _score(measure, said, gold, A="old", B="new", C="other", D="none") == pytest.approx(expected)
