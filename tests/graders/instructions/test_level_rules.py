# SPDX-License-Identifier: Apache-2.0
"""FollowBench's rules, level by level: a text that keeps all of them, and its nearest that breaks the last one."""

from __future__ import annotations

import pytest

from newskills.graders.instructions.followbench import is_satisfied


def words(count: int, text: str) -> str:
    """`text` with more words in front, so that it has `count` of them between single blanks."""
    return " ".join(["x"] * (count - len(text.split(" "))) + [text])


NEWS = "Potter has won. The actor has left. The films have ended."
LONG = "Potter {}won. The actor has left. The films have ended."
SCENE = "an operation is running"
CHAT = "We do some stuff."
PAPER = "We look at activations."


def points(first: int, second: int) -> str:
    """Two sentences of so many words."""
    return f"**1st:** {'x ' * (first - 2)}end. **2nd:** x **3rd:** x **4th:** x **5th:**{' x' * (second - 7)}"


CASES: list[tuple[str, int, str, bool]] = [
    ("cnn_dailymail", 1, NEWS, True),
    ("cnn_dailymail", 1, "Potter. The actor.", False),
    ("cnn_dailymail", 1, f"{NEWS} More.", False),
    ("cnn_dailymail", 2, LONG.format("x " * 12), True),
    ("cnn_dailymail", 2, LONG.format("x " * 13), False),
    ("cnn_dailymail", 3, NEWS, True),
    ("cnn_dailymail", 3, NEWS.replace("Potter", "Potters"), False),
    ("cnn_dailymail", 3, NEWS.replace("actor", "man"), False),
    ("cnn_dailymail", 3, NEWS.replace("films", "film"), False),
    ("cnn_dailymail", 4, NEWS.replace("has left", "was lavish"), False),
    ("cnn_dailymail", 4, NEWS.replace("won", "a lavish one"), True),
    ("cnn_dailymail", 5, NEWS, True),
    ("cnn_dailymail", 5, NEWS.replace("have ended", "ended"), False),
    ("xsum", 1, SCENE, True),
    ("xsum", 1, f"{SCENE}. Yes.", False),
    ("xsum", 2, words(19, SCENE), True),
    ("xsum", 2, words(20, SCENE), False),
    ("xsum", 3, f"Newton Stewart: {SCENE}", False),
    ("xsum", 4, SCENE.replace("running", "over"), False),
    ("xsum", 5, SCENE, True),
    ("xsum", 5, SCENE.replace("operation", "operations"), False),
    ("samsum", 1, f"{CHAT} Yes.", False),
    ("samsum", 2, words(14, CHAT), True),
    ("samsum", 2, words(15, CHAT), False),
    ("samsum", 3, "We do some stuffs.", False),
    ("samsum", 4, "We Procrastinate with stuff.", False),
    ("samsum", 5, CHAT, True),
    ("samsum", 5, CHAT.replace(".", ""), False),
    ("samsum", 5, CHAT.replace("do", "do,"), False),
    ("gigaword", 1, words(8, "in town"), True),
    ("gigaword", 1, words(7, "in town"), False),
    ("gigaword", 1, words(9, "in town"), False),
    ("gigaword", 2, words(8, "in town!"), False),
    ("gigaword", 3, words(8, "in Town"), False),
    ("gigaword", 4, words(8, "in a bus"), False),
    ("gigaword", 5, words(8, "in town"), True),
    ("gigaword", 5, words(8, "to town"), False),
    ("arxiv", 2, "We " + words(19, "see activations"), True),
    ("arxiv", 2, "We " + words(20, "see activations"), False),
    ("arxiv", 3, f"So {PAPER}", False),
    ("arxiv", 4, "We look at activation.", False),
    ("arxiv", 5, PAPER, True),
    ("arxiv", 5, "We look at activations of a transformer.", False),
    ("format-30", 1, "**", True),
    ("format-30", 1, "*", False),
    ("format-30", 2, points(10, 15), True),
    ("format-30", 2, points(10, 15).replace("**5th:**", "5th:"), False),
    ("format-30", 2, points(10, 15) + " **6th: more**", False),
    ("format-30", 3, points(10, 15) + " 1.a.b", False),
    ("format-30", 4, points(10, 15), True),
    ("format-30", 4, points(9, 15), False),
    ("format-30", 4, points(10, 16), False),
    ("format-30", 5, points(10, 15), True),
    ("format-30", 5, points(10, 14) + " quick-ly", False),
]


@pytest.mark.parametrize(("rule", "level", "text", "kept"), CASES)
def test_the_rule_of_a_level(rule: str, level: int, text: str, kept: bool) -> None:
    assert is_satisfied(rule, level, text, "") is kept
    if not kept and level > 1:
        assert is_satisfied(rule, level - 1, text, "") is True, "the rules before it are kept"


def paragraphs(count: int, sentences: int = 1, length: int = 21) -> str:
    return "\n\n".join(
        f"{number}. " + f"{'word ' * length}ends. " * sentences for number in range(1, count + 1)
    ).strip()


@pytest.mark.parametrize(("count", "kept"), [(2, False), (3, True), (4, False)])
def test_suggestions_are_three_paragraphs_and_at_last_four(count: int, kept: bool) -> None:
    assert is_satisfied("format-22", 1, paragraphs(count), "") is kept
    closed = f"{paragraphs(count - 1)}\n\n4. {'word ' * 21}so. Those are suggestions"
    assert is_satisfied("format-22", 5, closed, "") is False
