# SPDX-License-Identifier: Apache-2.0
"""Replies in the forms that official instructions ask for are read as they are meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.judgement import parse_confidence, parse_judgement
from newskills.graders.exact import ExactConfig, ExactGrader
from newskills.graders.judges.arena import ArenaGrader, RatingGrader
from newskills.graders.judges.verdict import VerdictConfig, VerdictGrader
from newskills.graders.math.grader import MathGrader
from newskills.graders.multichoice import MultichoiceGrader

HLE = """extracted_final_answer: {answer}

[correct_answer]: 42

{reasoning}: The extracted answer {how} the [correct_answer]; yes or no is asked for, and no more.

{verdict_name}: {verdict}

{confidence}: 85%"""
"""`Judgement` in the wording of NeMo-Skills, `correct` in that of the authors, which BrowseComp uses, too."""


@pytest.mark.parametrize(
    "names", [("Reasoning", "Judgement", "Confidence"), ("reasoning", "correct", "confidence")]
)
@pytest.mark.parametrize("dress", ["{}", "'{}'", "**{}**", "{}."])
@pytest.mark.parametrize("verdict", ["yes", "no"])
def test_humanitys_last_exam(names: tuple[str, str, str], dress: str, verdict: str) -> None:
    text = HLE.format(
        answer="42" if verdict == "yes" else "None",
        how="is" if verdict == "yes" else "is not",
        reasoning=names[0],
        verdict_name=names[1],
        verdict=dress.format(verdict),
        confidence=names[2],
    )
    assert parse_judgement(text) is (verdict == "yes")
    assert parse_confidence(text) == 85
    bold = text.replace(f"{names[1]}:", f"**{names[1]}:**")
    assert parse_judgement(bold) is (verdict == "yes")


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("A", "correct"),
        ("B", "incorrect"),
        ("C", "not_attempted"),
        ("**C**", "not_attempted"),
        ("A: CORRECT", "correct"),
        ("CORRECT", "correct"),
        ("INCORRECT", "incorrect"),
        ("NOT_ATTEMPTED", "not_attempted"),
        ("NOT ATTEMPTED", "not_attempted"),
        ("<think>A would be too kind.</think>B", "incorrect"),
    ],
)
def test_simpleqa(reply: str, verdict: str) -> None:
    score = VerdictGrader().grade({"judgement": reply})
    assert score.fields["verdict"] == verdict


@pytest.mark.parametrize(("reply", "verdict"), [("CORRECT", "correct"), ("INCORRECT", "incorrect")])
def test_long_context_reasoning(reply: str, verdict: str) -> None:
    grader = VerdictGrader(VerdictConfig(verdicts={"A": "correct", "B": "incorrect"}))
    assert grader.grade({"judgement": reply}).fields["verdict"] == verdict


@given(
    met=st.booleans(), fenced=st.booleans(), why=st.sampled_from(["It says so.", 'He wrote "criteria_met": true.'])
)
def test_healthbench(met: bool, fenced: bool, why: str) -> None:
    text = json.dumps({"explanation": why, "criteria_met": met}, indent=2)
    assert parse_judgement(f"```json\n{text}\n```" if fenced else text) is met


def test_arena_hard() -> None:
    games: dict[str, Any] = {
        "judgement-gen-base": "My own answer: 4.\n\nBoth are right. My final verdict is tie: [[A=B]].",
        "judgement-base-gen": "My final verdict is: Assistant B is slightly better: [[B>A]]",
    }
    assert ArenaGrader().grade(games).fields["arena_games"] == ["A=B", "A>B"]


def test_mt_bench() -> None:
    marks = {"judgement-turn-1": "It is short, but right.\n\nRating: [[7]]", "judgement-turn-2": "Rating: [[4.5]]"}
    assert RatingGrader().grade(marks).fields["ratings"] == {"turn-1": 7.0, "turn-2": 4.5}


@pytest.mark.parametrize(
    "reply",
    [
        "We double one arm, so half the force is enough. The answer is (C).",
        "the answer is C.",
        "The correct answer is (C)",
        '"The correct answer is (C)"',
        "**The correct answer is (C) Paris**",
    ],
)
def test_choices_of_mmlu_pro_and_longbench(reply: str) -> None:
    options = "A) Rome\nB) Bern\nC) Paris\nD) Oslo"
    record = {"generation": reply, "expected_answer": "C", "options": options}
    grader = MultichoiceGrader()
    assert grader.grade(record).outcome == "correct"
    assert grader.grade({**record, "expected_answer": "B"}).outcome == "wrong"


@pytest.mark.parametrize(
    "reply",
    [
        "Two and two are four. So the answer is 1,200.",
        "Zwei und zwei. Die Antwort ist 1200.",
        "Deux et deux. La réponse est 1200.",
        "Dos y dos. La respuesta es 1200.",
        "Два и два. Ответ — 1200.",
        "二加二。答案是 1200。",
        "2+2です。答えは1200です。",
        "Mbili na mbili. Jibu ni 1200.",
        "দুই আর দুই। উত্তর হল 1200।",
        "దుని రెండు. సమాధానం 1200.",
        "สองกับสอง คำตอบคือ 1200",
    ],
)
def test_mathematics_in_the_languages_of_mgsm(reply: str) -> None:
    """The examples of its official prompt end so."""
    assert MathGrader().grade({"generation": reply, "expected_answer": "1200"}).outcome == "correct"
    assert MathGrader().grade({"generation": reply, "expected_answer": "200"}).outcome == "wrong"


@pytest.mark.parametrize("right", ["(C)", "True", "valid", "yes", "24", "] ] }", "apple berry cherry"])
def test_big_bench_hard(right: str) -> None:
    """The examples of its official prompts end so."""
    grader = ExactGrader(ExactConfig(extract="answer", loose=True))
    reply = f"First this [(, then that.\nSo it goes on. So the answer is {right}."
    assert grader.grade({"generation": reply, "expected_answer": right}).outcome == "correct"
    assert grader.grade({"generation": reply, "expected_answer": "(B)"}).outcome == "wrong"


@pytest.mark.parametrize(("reply", "verdict"), [("yes", True), ("No.", False), ("**Yes**", True)])
def test_long_memories(reply: str, verdict: bool) -> None:
    assert parse_judgement(reply) is verdict


def test_wildbench() -> None:
    fields = {"strengths": "It says [1] why.", "weaknesses": "none", "score": "7"}
    text = f"Here is my analysis.\n```json\n{json.dumps(fields, indent=4)}\n```"
    assert RatingGrader().grade({"judgement": text}).fields["ratings"] == {"all": 7.0}
