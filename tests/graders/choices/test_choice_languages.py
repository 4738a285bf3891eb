# SPDX-License-Identifier: Apache-2.0
"""Conclusions of choice questions in the languages of MMLU-ProX, Global-MMLU, INCLUDE, C-Eval and KMMLU."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.graders.reading.conclusions import letter_concluded
from newskills.graders.reading.grammar import make_grammar
from newskills.graders.reading.languages import labels_by_language, language_words, plain_text, split_words

REPLIES = [
    json.loads(line)
    for line in (Path(__file__).parent / "choice_replies.jsonl").read_text(encoding="utf-8").splitlines()
]
OPTIONS = {"A": "alpha stone", "B": "beta river", "C": "gamma cloud", "D": "delta field"}
GRADER = plain_grader("multichoice", {})
INCLUDED = split_words(
    "am|ar|bn|cs|de|el|en|es|fa|fil|fr|ha|he|hi|id|ig|it|ja|ko|ky|lt|mg|ms|ne|nl|ny|pl|pt|ro|ru|si|sn|so|sr|"
    "sv|sw|te|tr|uk|vi|yo|zh|sq|hy|az|eu|be|bg|hr|et|fi|ka|hu|kk|ml|mk|ta|ur|uz|th|af|mr|wo|zu"
)
"""Of Global-MMLU, INCLUDE and MMLU-ProX together."""


def read(reply: str, **options: str) -> str | None:
    record = {"generation": reply, "expected_answer": "B", **(options or OPTIONS)}
    letter = GRADER.grade(record).fields["predicted_answer"]
    assert letter is None or isinstance(letter, str)
    return letter


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: f"{case['language']}-{case['reply'][:40]}")
def test_conclusions_of_many_languages(case: dict[str, str | None]) -> None:
    assert read(str(case["reply"])) == case["answer"]


def test_every_language_of_the_benchmarks_has_replies() -> None:
    tested = {case["language"] for case in REPLIES}
    assert set(INCLUDED) - {"en"} <= tested
    assert set(INCLUDED) <= language_words().keys()
    assert all(language_words()[code].answer for code in INCLUDED)


@pytest.mark.parametrize("code", sorted(language_words()))
def test_every_label_of_every_language_leads_to_a_letter(code: str) -> None:
    for label in split_words(language_words()[code].answer):
        capitals = label.upper() if label.upper().lower() == label else label
        for form in (f"{label}: B", f"{label}: (B)", f"**{label}: B**", f"{capitals}: B"):
            assert read(form) == "B", form


@pytest.mark.parametrize("code", sorted(language_words()))
def test_no_label_is_a_letter_itself(code: str) -> None:
    """A letter of another alphabet is one only where no letter and no combining mark touches it."""
    for label in split_words(language_words()[code].answer):
        for following in ("", " ", f" {label}", f"{label}", " xyz"):
            assert read(f"{label}{following}") is None, label + following
    assert all(
        len(word) < 60
        for words in (language_words()[code].right, language_words()[code].fill)
        for word in split_words(words)
    )


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("คำตอบคือค่าเฉลี่ย", None),
        ("คำตอบคือ กำลังไฟฟ้า", None),
        ("उत्तर के बारे में सोचते हैं", None),
        ("উত্তর কঠিন", None),
        ("Respuesta: Año", None),
        ("Antwort: Ärger", None),
        ("Ответ: Азот", None),
        ("Ответ: Вода", None),
        ("Ответ: В", None),
        ("Б) неверно.\nОтвет: В", "C"),
        ("Ответ: С", "C"),
        ("Απάντηση: Βάρος", None),
        ("תשובה: אור", None),
        ("الإجابة: باريس", None),
        ("Answer: B\u0301", None),
        ("答案：Ⓑ", "B"),
        ("答案：ⓑ", "B"),
        ("答案：🅱", "B"),
        ("答案：⒝", "B"),
        ("Answer: 𝐁", "B"),
        ("Réponse : B", "B"),
        (unicodedata.normalize("NFD", "Réponse : B"), "B"),
        (unicodedata.normalize("NFD", "Đáp án: B"), "B"),
        ("پاسخ:\u200f B", "B"),
        ("گزینه‌ی صحیح: پاسخ B است", "B"),
        ("Válasz: B-t választom", "B"),
        ("A válasz a B.", "B"),
        ("Die Antwort ist A denn", "A"),
        ("La respuesta es a todas luces difícil", None),
    ],
)
def test_letters_and_what_only_looks_like_one(reply: str, letter: str | None) -> None:
    assert read(reply) == letter


def test_marks_that_show_nothing_are_left_out() -> None:
    assert plain_text("B\u200f\u200c") == "B"
    assert plain_text("plain") == "plain"


@given(st.sampled_from(sorted(language_words())), st.text(max_size=80))
def test_any_text_behind_any_language(code: str, text: str) -> None:
    language = language_words()[code]
    words = [
        *split_words(language.answer),
        *split_words(language.so),
        *split_words(language.right),
        *split_words(language.choose),
    ]
    for word in words[:3]:
        assert read(f"{word} {text}") in (None, *OPTIONS)
        assert letter_concluded(f"{word} {text}", 4) in (None, "", *OPTIONS)


@given(st.sampled_from(sorted(labels_by_language())), st.sampled_from("ABCD"), st.sampled_from("ABCD"))
def test_two_letters_behind_one_label_are_no_answer(label: str, first: str, second: str) -> None:
    for joined in (f"{label}: {first}, {second}", f"{label}: {first} / {second}", f"{label}: {first} {second}"):
        assert first == second or read(joined) is None, joined


def test_grammars_compile_for_all_languages() -> None:
    for code in language_words():
        assert make_grammar((code,)).token.match(": ")


@pytest.mark.parametrize(
    "text", ["所以选", "答案是", "Deshalb ", "por lo tanto, ", "따라서 ", "ดังนั้น", "B ist ", "选A"]
)
def test_conclusions_cost_linear_time(text: str) -> None:
    assert read(text * 40_000) in (None, *OPTIONS)
