# SPDX-License-Identifier: Apache-2.0
"""Exact texts, short answers, grids of digits."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.records import Score
from newskills.graders.grid import read_grids
from newskills.graders.reading.overlap import (
    anls_score,
    best_pairing,
    drop_score,
    edit_distance,
    squad_score,
    squad_tokens,
)
from newskills.graders.short_answer import contains_gold


def grade(grader: str, generation: str, gold: Any, config: dict[str, Any] | None = None, **record: Any) -> Score:
    return plain_grader(grader, config or {}).grade({"generation": generation, "expected_answer": gold, **record})


LOOSE = {"extract": "answer", "loose": True}


@pytest.mark.parametrize(
    ("generation", "gold"),
    [
        (r"\boxed{A}", "(A)"),
        (r"So \boxed{\text{(b)}}.", "(B)"),
        ("The answer is (C).", "C"),
        ("Answer: (C) a red cube", "(C)"),
        (r"\boxed{Invalid}", "invalid"),
        (r"\boxed{1,000}", "1000"),
        (r"\boxed{-8.0}", "-8"),
        (r"\boxed{] ] )}", "] ] )"),
        (r"\boxed{]])}", "] ] )"),
        (r"\boxed{\text{barn, damp, dot}}", "barn damp dot"),
        (r"\boxed{[3, 1, 2]}", "3, 1, 2"),
        (r"\boxed{2x + \cos(x)}", r"2x+\cos(x)"),
        (r"So \boxed{) ) }}.", ") ) }"),
        (r"\boxed{] \} >}", "] } >"),
        (r"\boxed{\text{) }}}", ") }"),
        ("Answer: ) } >.", ") } >"),
        ("Answer: **B*I*K***", "B*I*K*"),
        ("Answer: p1 & p2; p3 || p4", "p1&p2;p3||p4"),
        (r"\boxed{( -3,0 )}", "(-3, 0)"),
        ("**Yes**", "yes"),
        ('"yes"', "Yes"),
        ("<think>no</think>Answer: yes", "yes"),
    ],
)
def test_the_same_text_in_another_dress(generation: str, gold: str) -> None:
    assert grade("exact", generation, gold, LOOSE).outcome == "correct"


@pytest.mark.parametrize(
    ("generation", "gold"),
    [
        (r"\boxed{B}", "(A)"),
        (r"\boxed{12}", "1, 2"),
        (r"\boxed{1,2}", "12"),
        (r"\boxed{] ] ) )}", "] ] )"),
        (r"\boxed{)]}", "])"),
        (r"\boxed{dot damp barn}", "barn damp dot"),
        (r"\boxed{A or B}", "A"),
        (r"\boxed{A large dog}", "(A)"),
        (r"\boxed{invalid}", "valid"),
        (r"\boxed{nine ten}", "ninet en"),
        (r"\boxed{) )}", ") ) }"),
        (r"\boxed{) ) }}", ") )"),
        (r"\boxed{1 -2}", "1-2"),
        (r"\boxed{1.5}", "15"),
        (r"\boxed{!}", "."),
    ],
)
def test_another_text(generation: str, gold: str) -> None:
    assert grade("exact", generation, gold, LOOSE).outcome == "wrong"


@pytest.mark.parametrize(
    ("generation", "answer"),
    [
        ("The answer is X.\nAnswer: Smith; Jones", "Smith; Jones"),
        ("**Final answer:** no", "no"),
        ("Answer: valid\n#### Note\nThis was easy.", "valid"),
        ("The answer is valid.\n#### Note", "valid"),
        (r"Answer: A, so \boxed{B}", "B"),
        ("<answer>B</answer>", "B"),
        ("one line", "one line"),
        (r"Answer: A, so \boxed{B", None),
        ("two\nlines", None),
        ("answer " * 30_000, "answer " * 29_999 + "answer"),
    ],
)
def test_the_final_answer(generation: str, answer: str | None) -> None:
    assert grade("exact", generation, "?", LOOSE).fields["predicted_answer"] == answer


def test_brackets_behind_a_phrase() -> None:
    grader = plain_grader("exact", {"extract": "answer", "loose": True})
    record = {"expected_answer": "} ) >", "generation": "Closing the rest, so the answer is } ) >."}
    assert grader.grade(record).outcome == "correct"
    assert grader.grade({**record, "expected_answer": "] ) >"}).outcome == "wrong"


def test_the_last_lines() -> None:
    tail = {"extract": "tail"}
    assert grade("exact", "So:\n```\nab\ncd\n```\n", "ab\ncd", tail).outcome == "correct"
    assert grade("exact", "So:\nab\nce", "ab\ncd", tail).outcome == "wrong"
    assert grade("exact", "\\boxed{ab\ncd}\nas I said", "ab\ncd", tail).outcome == "correct"


def test_exact_answers_and_their_absence() -> None:
    assert grade("exact", "several\nlines\nwithout any mark", "mark", LOOSE).outcome == "no_answer"
    assert grade("exact", "<think>yes", "yes", LOOSE).cause == "truncation"
    assert grade("exact", "yes", None, LOOSE).outcome == "unscored"
    assert grade("exact", "rain", "sun", accepted_answers=["snow", "rain"]).outcome == "correct"
    brackets = {"extract": "brackets", "loose": True}
    assert grade("exact", "[[A]] no, [[B]]", "B", brackets).fields["predicted_answer"] == "B"
    assert grade("exact", r"\boxed{B}", "B", brackets).outcome == "correct"
    assert grade("exact", "[" * 50_000, "B", brackets).outcome == "wrong"
    assert grade("exact", "Yes.", "yes").outcome == "wrong", "strict by default"


@pytest.mark.parametrize(
    ("answer", "gold", "scores"),
    [
        ("The Eiffel Tower!", "eiffel tower", (1.0, 1.0)),
        ("Eiffel", "the Eiffel Tower", (0.0, 2 / 3)),
        ("Big Ben", "Eiffel Tower", (0.0, 0.0)),
        ("the", "a", (1.0, 1.0)),
        ("the", "tower", (0.0, 0.0)),
        ("x x y", "x y y", (0.0, 2 / 3)),
    ],
)
def test_squad(answer: str, gold: str, scores: tuple[float, float]) -> None:
    assert squad_score(answer, gold) == pytest.approx(scores)


def test_squad_in_other_languages() -> None:
    assert squad_score("El perro", "perro", "es") == (1.0, 1.0)
    assert squad_score("的 北京", "的北京", "zh") == (1.0, 1.0)
    assert squad_score("北京市", "北京", "zh")[1] == pytest.approx(0.8)
    assert squad_score("القاهرة", "قاهرة", "ar") == (1.0, 1.0)
    assert squad_score("der Hund", "Hund", "en")[0] == 0.0


@pytest.mark.parametrize(
    ("answer", "gold", "scores"),
    [
        (["35"], ["35.0"], (1.0, 1.0)),
        (["36"], ["35"], (0.0, 0.0)),
        (["35 yards"], ["35"], (0.0, 0.67)),
        (["34 yards"], ["35 yards"], (0.0, 0.0)),
        (["1,200"], ["1200"], (1.0, 1.0)),
        (["the Cowboys"], ["Cowboys"], (1.0, 1.0)),
        (["field-goal"], ["field goal"], (1.0, 1.0)),
        (["Smith", "Jones"], ["Jones", "Smith"], (1.0, 1.0)),
        (["Smith"], ["Jones", "Smith"], (0.0, 0.5)),
        (["Tom Smith", "Jones"], ["Jones", "Smith"], (0.0, 0.83)),
    ],
)
def test_drop(answer: list[str], gold: list[str], scores: tuple[float, float]) -> None:
    """Worked out by hand by the rules of the paper's own evaluation."""
    assert drop_score(answer, gold) == pytest.approx(scores, abs=0.004)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=4, max_size=4), min_size=1, max_size=5))
def test_the_best_pairing_is_best(worth: list[list[float]]) -> None:
    table = worth if len(worth) <= 4 else list(map(list, zip(*worth, strict=True)))
    best = max(
        sum(row[column] for row, column in zip(table, chosen, strict=True))
        for chosen in itertools.permutations(range(len(table[0])), len(table))
    )
    assert best_pairing(worth) == pytest.approx(best)


def test_contained() -> None:
    """Case aside; a formula but for blanks, minding case."""
    assert contains_gold("The sign says Coca-Cola.", "COCA-COLA", formula=False) == 1.0
    assert contains_gold("coca cola", "coca  cola", formula=False) == 0.0
    assert contains_gold("So $y_{2}=-1$.", "y _ { 2 } = - 1\n", formula=True) == 1.0
    assert contains_gold("Y_{2}=-1", "y_{2} = -1", formula=True) == 0.0


def test_anls() -> None:
    assert anls_score("Coca  Cola", "coca cola") == 1.0
    assert anls_score("coca cola", "coca colas") == pytest.approx(0.9)
    assert anls_score("cola", "coca cola") == 0.0
    assert anls_score("x" * 1_000_000, "coca") == 0.0
    assert edit_distance("kitten", "sitting") == 3


def test_short_answers() -> None:
    score = grade("short_answer", "I think so.\nAnswer: the year 1912", "1912")
    assert (score.outcome, score.fields["predicted_answer"]) == ("wrong", "the year 1912")
    assert (score.fields["em"], score.fields["f1"]) == (0.0, pytest.approx(2 / 3))
    best = grade("short_answer", "Answer: NYC", "New York City", accepted_answers=["New York", "nyc"])
    assert (best.outcome, best.fields["f1"]) == ("correct", 1.0)
    assert grade("short_answer", "Long thought.\n\n**Paris**", "Paris").outcome == "correct"
    several = {"measure": "drop"}
    spans = grade("short_answer", "Answer: Jones and Smith", ["Smith", "Jones"], several)
    assert spans.fields == {
        "predicted_answer": "Jones and Smith", "symbolic_correct": True, "em": 1.0, "f1": 1.0
    }  # fmt: skip
    read = grade("short_answer", "Answer: ITC Limted", "ITC Limited", {"measure": "anls"})
    assert (read.outcome, read.fields["anls"]) == ("correct", pytest.approx(10 / 11))
    nothing = grade("short_answer", "", "Paris")
    assert (nothing.outcome, nothing.fields["em"]) == ("no_answer", 0.0)
    assert grade("short_answer", "Paris", None).outcome == "unscored"


REVENUES = ["73,260 thousand", "57,768 thousand"]
DATES = ["January 1, 2018", "December 31, 2018"]
ASSETS = ["Property, plant, and equipment", "Other"]


@pytest.mark.parametrize(
    ("answer", "spans", "outcome"),
    [
        ("73,260 thousand, 57,768 thousand", REVENUES, "correct"),
        ("57,768 thousand and 73,260 thousand", REVENUES, "correct"),
        ("1,2", ["1", "2"], "correct"),
        ("100,200", ["100", "200"], "correct"),
        ("January 1, 2018, December 31, 2018", DATES, "correct"),
        ("December 31, 2018 and january 1, 2018", DATES, "correct"),
        ("Other, property, plant, and equipment", ASSETS, "correct"),
        ("73,260 thousand", REVENUES, "wrong"),
        ("73,260 thousand, 57,768 thousand, 1", REVENUES, "wrong"),
        ("73 thousand, 260, 57,768 thousand", REVENUES, "wrong"),
        ("January 1, 2018, December 31, 2019", DATES, "wrong"),
        ("January 11, 2018, December 31, 2018", DATES, "wrong"),
        ("Property and equipment, other", ASSETS, "wrong"),
        ("Leased property, plant, and equipment, other", ASSETS, "wrong"),
    ],
)
def test_several_spans_with_commas(answer: str, spans: list[str], outcome: str) -> None:
    assert grade("short_answer", f"Answer: {answer}", spans, {"measure": "drop"}).outcome == outcome


GRID = [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "generation",
    [
        "```json\n[[0, 1],\n [2, 3]]\n```",
        "First [[9]], then [[0,1],[2,3]]",
        "[[[0,1],[2,3]]]",
        "The grid:\n0 1\n2 3\n",
        "01\n23",
        "| 0 | 1 |\n| 2 | 3 |",
        "[" * 1000 + "\n[[0,1],[2,3]]",
        "[0, 1]\n[2, 3]",
        "[[0 1]\n [2 3]]",
        "The output:\n[0,1],\n[2,3]\nIt took 2 steps.",
    ],
)
def test_grids_are_found(generation: str) -> None:
    score = grade("grid_match", generation, GRID)
    expected = "no_answer" if generation.startswith("[[[[") else "correct"
    assert score.outcome == expected, score


def test_grids_must_be_the_same() -> None:
    assert grade("grid_match", "[[0,1],[2,4]]", GRID).outcome == "wrong"
    assert grade("grid_match", "[[0,1],[2,3]] or rather [[0,1]]", GRID).outcome == "wrong"
    assert grade("grid_match", "[[0,1],[2]]", GRID).outcome == "no_answer"
    assert grade("grid_match", "[[0,1],[2,13]]", GRID).outcome == "no_answer"
    assert grade("grid_match", "[[0,1],[2,3]]", None).outcome == "unscored"
    assert grade("grid_match", "[[0,1],[2,3]]", "text").outcome == "unscored"


def test_several_grids_and_attempts() -> None:
    golds = [GRID, [[5]]]
    assert grade("grid_match", "[[0,1],[2,3]] and [[5]]", golds).outcome == "correct"
    assert grade("grid_match", "[[5]] and [[0,1],[2,3]]", golds).outcome == "wrong"
    assert grade("grid_match", "[[5]]", golds).outcome == "no_answer"
    assert grade("grid_match", "[[7]] [[0,1],[2,3]]", GRID, attempts=2).outcome == "correct"
    assert grade("grid_match", "[[0,1],[2,3]] [[7]]", GRID).outcome == "wrong"
    assert grade("grid_match", "[[0,1],[2,3]] [[7]]", GRID, attempts=2).outcome == "correct"


def test_hostile_grids() -> None:
    for text in ("[" * 200_000, "[]" * 100_000, "[[1]," * 50_000, "1 \n" * 100_000, "[[" + "1," * 100_000 + "1]]"):
        assert read_grids(text, 1) == [] or len(read_grids(text, 1)[0]) <= 64


def test_the_article_of_arabic_is_taken_off_in_arabic_only() -> None:
    assert squad_tokens("\u0627\u0644\u0643\u062a\u0627\u0628", "ar") == ["\u0643\u062a\u0627\u0628"]
    assert squad_tokens("\u0627\u0644\u0643\u062a\u0627\u0628", "fa") == ["\u0627\u0644\u0643\u062a\u0627\u0628"]


def test_an_answer_without_words_has_nothing_in_common_with_one() -> None:
    assert drop_score(["the"], ["dog"]) == (0.0, 0.0)
    assert drop_score(["dog"], ["the"]) == (0.0, 0.0)
    assert drop_score(["the"], ["a"]) == (1.0, 1.0)
