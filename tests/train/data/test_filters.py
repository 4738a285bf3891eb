# SPDX-License-Identifier: Apache-2.0
"""Each filter by its own: what it keeps, changes, drops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import DataError
from newskills.base.records import Message
from newskills.train.data.filters.answers import DropNoneAnswers, MajorityFilter
from newskills.train.data.filters.arithmetic import DropIncorrectArithmetic, SplitArithmetic
from newskills.train.data.filters.base import FilterVerdict
from newskills.train.data.filters.contamination import RemoveContaminated, read_contaminated, text_digest
from newskills.train.data.filters.executions import AddCodeExecutionCounts
from newskills.train.data.filters.lengths import RemoveLenOutliers
from newskills.train.data.filters.solutions import (
    DropIncorrectCodeBlocks,
    DropMultiBoxed,
    TrimPrefix,
    TrimSolutions,
    boxed_answer,
)
from newskills.train.data.filters.words import (
    CODE,
    CODE_ERRORS,
    PLOTS,
    VERIFICATION,
    DropWith,
    DropWithout,
    DropWithoutThinking,
)
from newskills.train.data.overlap import OverlapIndex

KEPT, CHANGED, DROPPED = FilterVerdict.KEPT, FilterVerdict.CHANGED, FilterVerdict.DROPPED


def judged(step: Any, text: str, **more: Any) -> tuple[FilterVerdict, str]:
    """(verdict, the solution afterwards)."""
    row = {"generation": text, **more}
    return step.apply(row), row["generation"]


@pytest.mark.parametrize(
    ("step", "text", "verdict", "after"),
    [
        (DropMultiBoxed(key="generation"), r"\boxed{3} and \boxed{2}", DROPPED, None),
        (DropMultiBoxed(key="generation"), r"\boxed{6} 4090s", KEPT, None),
        (DropMultiBoxed(key="generation"), r"\boxed{6} then \boxed{7", KEPT, None),
        (DropMultiBoxed(key="generation"), "boxed boxed 42", KEPT, None),
        (TrimPrefix(key="generation"), "My solution:\nIt is 3.", CHANGED, "It is 3."),
        (TrimPrefix(key="generation"), "Here: My solution:\nIt is 3.", KEPT, None),
        (TrimSolutions(key="generation"), "Ends \\boxed{0}\nUseless.", CHANGED, "Ends \\boxed{0}"),
        (TrimSolutions(key="generation"), "Goes on \\boxed{7} here", KEPT, None),
        (TrimSolutions(key="generation"), "\\boxed{7\n5} and\ncut", CHANGED, "\\boxed{7\n5} and"),
        (TrimSolutions(key="generation"), "\\boxed{\\frac{1}{2}}.\nx", CHANGED, "\\boxed{\\frac{1}{2}}."),
        (TrimSolutions(key="generation"), "\\boxed{1}\n\\boxed{2}\nx", CHANGED, "\\boxed{1}\n\\boxed{2}"),
        (TrimSolutions(key="generation"), "\\boxed{1\nnever closed", KEPT, None),
        (DropIncorrectCodeBlocks(key="generation"), "```python\nx``` ```Python\n", DROPPED, None),
        (DropIncorrectCodeBlocks(key="generation"), "```python\nx```", KEPT, None),
        (DropIncorrectCodeBlocks(key="generation"), "python\nx```", DROPPED, None),
        (DropIncorrectArithmetic(key="generation"), "1 + 2 + 3 + 4 = 10", KEPT, None),
        (DropIncorrectArithmetic(key="generation"), "3 * (1 + 7) / 4 = 3 * 8 / 4 = 100", DROPPED, None),
        (
            SplitArithmetic(key="generation"),
            "First 1 + 2 + 3 = 6, then 2 * 3 * 4 = 24.",
            CHANGED,
            "First 1 + 2 + 3 = 3 + 3 = 6, then 2 * 3 * 4 = 6 * 4 = 24.",
        ),
        (SplitArithmetic(key="generation"), "First 1 + 2 + 3 = 7.", KEPT, None),
    ],
)
def test_forms_of_solutions(step: Any, text: str, verdict: FilterVerdict, after: str | None) -> None:
    assert judged(step, text) == (verdict, text if after is None else after)


@pytest.mark.parametrize("words", [CODE_ERRORS, PLOTS, VERIFICATION])
def test_each_given_word_drops(words: tuple[str, ...]) -> None:
    step = DropWith(name="x", key="generation", words=words)
    for word in words:
        assert judged(step, f"before {word} after")[0] is DROPPED
        assert judged(step, f"before {word.swapcase()} after")[0] is KEPT
    assert judged(step, "A solution without any of them.")[0] is KEPT


@pytest.mark.parametrize("words", [CODE])
def test_every_given_word_is_needed(words: tuple[str, ...]) -> None:
    step = DropWithout(name="x", key="generation", words=words)
    assert judged(step, " ".join(words))[0] is KEPT
    for word in words:
        assert judged(step, " ".join(words).replace(word, ""))[0] is DROPPED


@pytest.mark.parametrize(
    ("votes", "total", "verdict"),
    [(3, 8, DROPPED), (4, 8, KEPT), (4, 9, DROPPED), (None, 8, KEPT), (1, None, KEPT)],
)
def test_majority(votes: int | None, total: int | None, verdict: FilterVerdict) -> None:
    step = MajorityFilter(votes=4, share=0.5)
    assert step.apply({"majority_votes": votes, "total_votes": total}) is verdict


@pytest.mark.parametrize(("row", "verdict"), [({"expected_answer": 0}, KEPT), ({"expected_answer": ""}, DROPPED)])
def test_answers_that_are_none(row: dict[str, Any], verdict: FilterVerdict) -> None:
    assert DropNoneAnswers().apply(row) is verdict
    assert DropNoneAnswers().apply({"expected_answer": None}) is DROPPED
    assert DropNoneAnswers().apply({}) is DROPPED


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Remaining code executions: 4 … Remaining code executions: 3", 5),
        ("You have run out of code executions", 1),
        ("no code", 0),
    ],
)
def test_code_executions(text: str, count: int) -> None:
    row = {"generation": text}
    assert AddCodeExecutionCounts(key="generation").apply(row) is CHANGED
    assert row["total_code_executions"] == count


class Letters:
    """One token for each character."""

    def encode(self, text: str) -> list[int]:
        return list(map(ord, text))

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def render(self, messages: Sequence[Message], **template_kwargs: Any) -> str:
        raise AssertionError


@given(st.text(max_size=60), st.integers(0, 30), st.integers(0, 60), st.booleans())
def test_lengths(text: str, least: int, most: int, chars: bool) -> None:
    step = RemoveLenOutliers(name="x", key="generation", least=least, most=most, chars=chars, tokenizer=Letters())
    assert (judged(step, text)[0] is KEPT) == (least <= len(text) <= most)


def test_tokens_are_counted_where_characters_cannot_tell() -> None:
    class Double(Letters):
        def encode(self, text: str) -> list[int]:
            return [0] * (2 * len(text))

    step = RemoveLenOutliers(name="x", key="generation", least=0, most=30, chars=False, tokenizer=Double())
    assert judged(step, "ä" * 16)[0] is DROPPED
    assert judged(step, "ä" * 15)[0] is KEPT


@given(st.text(alphabet="ab{}\\boxed", max_size=60))
def test_boxed_answers_have_matched_braces(text: str) -> None:
    answer = boxed_answer(text)
    assert answer is None or answer.count("{") == answer.count("}")


def test_contaminated_problems(tmp_path: Path) -> None:
    file = tmp_path / "checked.jsonl"
    file.write_text(
        '{"problem": "A", "contaminated": true}\n{"problem": "B", "contaminated": false}\n\n'
        '{"problem": "C", "contaminated": null}\n'
    )
    found, unknown = read_contaminated(file)
    assert (found, unknown) == ({text_digest("A")}, 1)
    step = RemoveContaminated(key="problem", found=found)
    assert [step.apply({"problem": text}) for text in "ABC"] == [DROPPED, KEPT, KEPT]
    file.write_text('{"problem": "A", "verdict": true}\n')
    with pytest.raises(DataError, match=r"checked\.jsonl, line 1: .*'contaminated'; the fields are problem"):
        read_contaminated(file)


ASKED = "A farmer has 12 cows and 7 sheep; how many legs do all of his animals have together?"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (ASKED, True),
        (ASKED.upper().replace(",", " ").replace(";", " –"), True),
        (f"Please solve this with care. {ASKED} Put the answer into a box and explain each step you take.", True),
        (ASKED.replace("sheep", "goats"), True),
        ("How many legs do all of his animals have together?", False),
        ("What is 2 + 2? And what is the sum of all that this gives when it is done ten times?", False),
        ("A farmer has 12 cows and sells 5 of them at the market; how many does he keep?", False),
        ("Find the number of legs.", False),
        ("What is 2 + 2?", True),
        ("What is 2 + 3?", False),
        ("", False),
    ],
)
def test_problems_that_share_their_words(text: str, same: bool) -> None:
    index = OverlapIndex(
        [ASKED, "What is 2 + 2?", "", "Compute the sum of the first ten odd primes and then halve it."]
    )
    assert index.holds(text) is same


@given(st.lists(st.text(alphabet="abc ", min_size=1, max_size=60), max_size=6), st.integers(1, 9))
def test_every_problem_of_the_index_is_found(texts: list[str], ngram: int) -> None:
    index = OverlapIndex(texts, ngram=ngram, share=1.0)
    assert all(index.holds(text) for text in texts if text.strip())


def test_wording_that_many_problems_have_still_tells_each_of_them() -> None:
    index = OverlapIndex(
        f"Find the remainder when {n} to the power of {n} is divided by seven." for n in range(500)
    )
    assert index.holds("Find the remainder when 499 to the power of 499 is divided by seven.")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        *(("<think>2 + 2</think> 4", True), ("2 + 2</think> 4", True), ("[THINK]2[/THINK]4", True), ("4", False)),
        *(("<think>2 + 2", False), ("[THINK]2 + 2", False), ("<think>2</think> <think>3", False)),
    ],
)
def test_solutions_without_reasoning_that_ended_are_dropped(text: str, kept: bool) -> None:
    step = DropWithoutThinking(name="x", key="generation")
    assert judged(step, text)[0] is (KEPT if kept else DROPPED)
