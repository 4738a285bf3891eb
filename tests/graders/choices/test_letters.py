# SPDX-License-Identifier: Apache-2.0
"""Letters as models write them, in many forms and languages; and texts that only look as if they named one."""

from __future__ import annotations

import random
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.records import Score
from newskills.graders.multichoice import MultichoiceConfig
from newskills.graders.reading.letters import letter_in

WORDS = ("alpha stone", "beta river", "gamma cloud", "delta field")
TEN = tuple(f"thing number {place}" for place in "abcdefghij")
GRADER = plain_grader("multichoice", {})
NAMES_B = r"""
Answer: B | answer: b | **Answer: B** | **Answer:** B | Answer: **B** | Answer: (B) | Answer: [B] | Answer: `B`
Answer: "B" | Answer: “B” | Answer: <B> | <answer>B</answer> | {"answer": "B"} | Answer = B | Answer -> B | Ans: B
Answer: B) beta river | Answer: B - beta river | Answer: B, because A is wrong | Answer: beta river. | answer B
Answer: Option (B) | Answer: choice b | Answer: The letter is B | My answer: B | ANSWER: B | - Answer: B
Answer: $B$ | Answer: \(B\) | Answer: \[B\] | Answer: $\mathbf{B}$ | Answer: \textbf{B} | Answer: $\boxed{\text{B}}$
\boxed{B} | \boxed{b} | \boxed{(B)} | \boxed{\textbf{B}} | \boxed{B) beta river} | \boxed{\text{B. beta river}}
\boxed{\textbf{(B)}\ beta} | \boxed{beta river} | \boxed B | \fbox{B} | \boxed{\text{Option B}} | \boxed{\rm B}
\boxed{\text{The answer is B}} | \boxed{"B"} | \boxed{A} ... no, \boxed{B} | </think>\boxed{B} | \boxed{\;B\;}
The answer is B | The answer is (B). | The correct answer is: B | The correct answer is option B. | Final answer - B
The correct answer is "B". | The final answer is $B$. I hope it is correct. | The final answer is B. Option A fails.
Final answer: The correct option is B | The correct option is B. | Therefore, option (B) is correct.
The answer is B because option A fails | A is wrong. Answer: B | <think>Answer: A</think>Answer: B
[[B]] | My final verdict is: [[B]] | A is longer, but **[[B]]** | First [[A]], on second thoughts [[B]]
B | B. | (B) | **B** | B) beta river | B. beta river | beta river | Option B | Choice B.
答案：B | 答案是 (B) | 正确答案是：B | 答案为B。 | 故选：B | 答え：B | 答えはBです | 正解はB | 정답: B | 정답은 B입니다
Réponse : B | La réponse est B | Die Antwort ist B. | Die richtige Antwort lautet B | La respuesta correcta es la B
A resposta correta é B | Risposta: B | Ответ: (B) | الإجابة: ب | উত্তর: খ | उत्तर: ख | Đáp án: B | Cevap: B | คำตอบ: ข
Odpowiedź: B | Jawaban: B | Jibu: B | Απάντηση: Β | תשובה: ב | 答案：Ｂ | Answer：乙
"""
STATES_B = r"""
So we select option (B). | I'll go with (B) beta river. | We should choose option B: beta river | I'd pick B) beta river
B is the answer. | Option (B) is the answer. | (B) beta river is the correct answer. | So option B is the one.
Thus only B is correct. | Hence, option B. | So, B it is. | Only option B is consistent with this. | Only option B fits.
This corresponds to option B. | This matches option (B). | The closest option is B. | The best choice is **B**.
Selected option: B | Ans. (B) | **Answer (letter only):** B | **Conclusion:** B | Solution: (B) | ### Verdict: B
Therefore, the most accurate response is (B).
✅ **B** | ✅ Option B | → B | It takes two steps. → (B) | It takes two steps => option B
"""
"""Sentences at the end of some thoughts, in which a letter is the answer."""
STATES_NONE = r"""
This does not match option B. | It doesn't correspond to option B. | Only option B is incorrect.
This matches option A. That matches option B. | This matches option B, but only at first sight.
However, this matches option B. | If we select option B the sum is odd | Option B is the answer that many give first
I'll go with (B) gamma cloud. | (B) gamma cloud is the correct answer. | Solution: B cells are counted first.
A is the answer of the first part. | B is the answer. C is the answer. | ✅ A is right | Our plans. B follows.
"""
NAMES_NONE = r"""
Answer: A or B | Answer: A and B | Answer: A/B | Answer: (A), (B) | \boxed{A or B} | \boxed{A, B} | \boxed{A}, \boxed{B}
Answer: E | \boxed{E} | Answer: Z | Answer: none of them | Answer: | \boxed{} | \boxed{?} | \boxed{AB} | Answer: ABCD
Answer: Apple | The answer is a good one | The answer is apparent. | Answer: A dog is the best friend | Answer: A-levels
Answer: C++ | Answer: B-cell lymphoma | To answer a question | Answer choice A is wrong. | the answers are A and B
Let me look at the answer choices: A) this B) that | option A is not correct
I think A is nice | الإجابة: الف | \boxed{بيت}
Both A and B are right. | The answer depends on A and B. | <think>Answer: B
"""
ENUMERATED = ("a) one\nb) two\nc) three", "A) this is wrong.\nB) this is right.", "answer\nA bird came")


def cases(block: str) -> list[str]:
    return [text for line in block.strip().splitlines() for text in line.split(" | ")]


def grade(generation: str, options: tuple[str, ...] = WORDS, **record: Any) -> Score:
    lettered = dict(zip(ascii_uppercase, options, strict=False))
    return GRADER.grade({"generation": generation, "expected_answer": "B", **lettered, **record})


@pytest.mark.parametrize("statement", cases(STATES_B))
def test_the_letter_of_a_statement_after_thoughts(statement: str) -> None:
    assert grade(f"Let us see. Option A is too long, and option D too short.\n{statement}").outcome == "correct"
    assert (
        grade(f"Let us see. Option A is too long.\n{statement}", WORDS[:2], expected_answer="A").outcome == "wrong"
    )


@pytest.mark.parametrize("statement", cases(STATES_NONE))
def test_statements_that_name_no_answer(statement: str) -> None:
    assert grade(f"Let us see what the four are.\n{statement}").fields["predicted_answer"] is None


@pytest.mark.parametrize("text", cases(NAMES_B))
def test_what_names_b(text: str) -> None:
    score = grade(text)
    assert (score.fields["predicted_answer"], score.outcome) == ("B", "correct")


@pytest.mark.parametrize(
    "text",
    [
        "I'm unable to see the picture.",
        "I’d need the picture",
        "**I'll have to ask**",
        "I can't.",
        "(a) The eye must be at the focal point of the eyepiece, which is 4 cm",
        "a) The melting point is the temperature at which",
        "Plugging in the values, we get:\n\n$G_{",
    ],
)
def test_refusals_and_parts_of_a_solution_name_no_option(text: str) -> None:
    assert grade(text, TEN).fields["predicted_answer"] is None


@pytest.mark.parametrize("text", [*cases(NAMES_NONE), *ENUMERATED])
def test_what_names_none(text: str) -> None:
    assert grade(text).outcome == "no_answer"


@pytest.mark.parametrize(
    "text", ["Answer: I don't know", "\\boxed{\\text{I am not sure}}", "The answer is I think no"]
)
def test_a_pronoun_is_no_ninth_option(text: str) -> None:
    assert grade(text, TEN).outcome == "no_answer"
    assert grade("Answer: I", TEN, expected_answer="I").outcome == "correct"


def test_letters_inside_options_do_not_count() -> None:
    options = ("Vitamin A", "Vitamin C", "Hepatitis B", "A and B")
    for text in ("\\boxed{B. Vitamin C}", "Answer: B) Vitamin C", "\\boxed{\\text{B: Vitamin C}}", "Vitamin C"):
        assert grade(text, options).outcome == "correct", text
    assert grade("Answer: A and B", options).fields["predicted_answer"] == "D"
    for option in ("was never built", "<1 km", "#1: Young", "“重农抑商”的政策", '"so" he said'):
        assert grade(f"Answer: {option}", ("is old", option)).outcome == "correct", option
    assert grade("答案：四", ("三", "四")).outcome == "correct"
    assert grade("Answer: 4", ("3", "4")).outcome == "correct"


def test_the_last_line_behind_a_colon() -> None:
    options = ("Reader.open", "flush", "close")
    listing = "A. Reader.open\nlooks fine\nB. flush\nlooks fine\nC. close\nis missing\n\n"
    for end in ("B. `flush`", "**B**", "(B) flush", "B"):
        assert (
            grade(f"{listing}**The function with the error is:**\n\n{end}", options).fields["predicted_answer"]
            == "B"
        )
    for end in ("B. close", "B. flush and C", "D. flush", "flush B"):
        assert grade(f"{listing}The function with the error is:\n\n{end}", options).outcome == "no_answer", end
    assert grade(f"{listing}I am not sure.\nB. flush", options).outcome == "no_answer"
    assert grade(": B. flush\n\nIt is never called.", options).fields["predicted_answer"] == "B"


FORMS = (
    *("Answer: {letter}", "\\boxed{{{letter}}}", "\\boxed{{\\text{{{letter}) {option}}}}}", "Answer: {option}"),
    *("{other} is wrong.\n\nAnswer: ({letter}) {option}", "<think>Answer: {other}</think>**{letter}. {option}**"),
    *(
        "Answer: {other}\n\nNo.\n\nAnswer: {letter}",
        "The final answer is {letter}, not {other}.",
        "答案是{letter}",
    ),
)


@given(st.integers(0, 10**9))
def test_any_option_in_any_form(seed: int) -> None:
    draw = random.Random(seed)
    pool = [
        "Vitamin C",
        "Type B",
        "I and II only",
        "3/4",
        "x = 2",
        "A and B",
        "Yes",
        "the U.S.",
        "$\\frac12$",
        "A dog",
    ]
    options = draw.sample(pool, draw.randint(2, 10))
    right, other = draw.sample(range(len(options)), 2)
    letter = ascii_uppercase[right]
    text = draw.choice(FORMS).format(letter=letter, option=options[right], other=ascii_uppercase[other])
    score = grade(text, tuple(options), expected_answer=letter)
    assert (score.fields["predicted_answer"], score.outcome) == (letter, "correct"), text
    assert grade(text, tuple(options), expected_answer=ascii_uppercase[other]).outcome == "wrong"


@given(st.text(max_size=300), st.integers(2, 26))
def test_any_text_is_read(text: str, count: int) -> None:
    assert grade(text).outcome in ("correct", "wrong", "no_answer")
    found = letter_in(text, count)
    assert not found or found in ascii_uppercase[:count]


CODE = ("not in", "**", "is", "//")
QUOTED = ("“选择性传播模式”", "“选择性守门模式”", "“辐射性传播模式”")
TURKISH = ("İp atladı.", "Koştu.", "ışık")


@pytest.mark.parametrize(
    ("options", "reply", "letter"),
    [
        (CODE, "The answer is (A).", "A"),
        (CODE, "The answer is **D**.", "D"),
        (CODE, "The answer is `**`", "B"),
        (CODE, "The answer is is.", "C"),
        (CODE, "Answer: is", "C"),
        (CODE, "is", "C"),
        (CODE, "The answer is", None),
        (CODE, "Answer: `//`", "D"),
        (CODE, "Answer: **", "B"),
        (CODE, "Reasons.\n\nAnswer:\n**\n", "B"),
        (CODE, "**Answer:**", None),
        (CODE, "**Answer: **", None),
        (CODE, "**Answer:**\nC", "C"),
        (CODE, "Answer: **C**", "C"),
        (CODE, "Answer: **\nC", "C"),
        (CODE, "The answer is `not in`.", "A"),
        (QUOTED, "Answer: “选择性守门模式”", "B"),
        (QUOTED, "答案：选择性传播模式。", "A"),
        (QUOTED, "答案：选B", "B"),
        (QUOTED, "答案：选择性模式", None),
        (TURKISH, "İp atladı.", "A"),
        (TURKISH, "Cevap: İp atladı.", "A"),
        (TURKISH, "İyi düşündüm. Cevap: Koştu.", "B"),
        (TURKISH, "İyi düşündüm. Cevap: C", "C"),
        (TURKISH, "Cevap: İp atlamadı.", None),
        (WORDS, "Therefore, B is correct.", "B"),
        (WORDS, "Therefore, B is not correct.", None),
        (WORDS, "So C.", "C"),
        (WORDS, "So C is wrong.", None),
        (WORDS, "So (D)", "D"),
        (WORDS, "So A and B are correct.", None),
        (WORDS, "So a.", None),
        (WORDS, "A is wrong. **B** is the correct answer.", "B"),
        (WORDS, "If B is correct, A is, too.", None),
        (WORDS, "B is correct. C is correct.", None),
        (WORDS, "B is correct. C is correct. Hence C.", "C"),
        (WORDS, "It must be option (B), as the picture shows.", "B"),
        (WORDS, "It must be A because of the weight.", "A"),
        (WORDS, "It must be I think option B.", None),
        (WORDS, "It is not (A), it is (B).", "B"),
        (WORDS, "It is (A) or (B).", None),
        (WORDS, "It is (A) wrong to say so.", None),
        (WORDS, "It's (D).", "D"),
        (WORDS, "So, I'd say C.", "C"),
        (WORDS, "I think it's B", "B"),
        (WORDS, "I would choose option D.", "D"),
        (WORDS, "I say A dog barks.", None),
        (WORDS, "My final choice: c", "C"),
        (CODE, "I choose (B), since it binds first.", "B"),
    ],
)
def test_options_that_are_words_of_the_sentence_and_conclusions(
    options: tuple[str, ...], reply: str, letter: str | None
) -> None:
    assert grade(reply, options).fields["predicted_answer"] == letter


PLANETS = ("Mercury", "Venus", "Mars", "Jupiter")


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("C - Mars", "C"),
        ("C, because iron makes it red.", "C"),
        ("A - since it is closest to the Sun", "A"),
        ("It's C.", "C"),
        ("A, C and D are wrong. That leaves B.", "B"),
        ("I'd eliminate B, C and D. A it is.", "A"),
        ("Probably B", "B"),
        ("I think the answer might be B, though I am not certain.", "B"),
        ("The answer could be A or C.", None),
        ("The answer may be found in the text.", None),
        ("I pick option (B), Venus.", "B"),
        ("Correct: A", "A"),
        ("Selected: [B]", "B"),
        ("Correct: A and B", None),
        ("Therefore the right letter is A", "A"),
        ('{"choice": "B", "reason": "clouds"}', "B"),
        ("The planet in question is **Venus**.", "B"),
        ("It's Venus.", "B"),
        ("It isn't Venus.", None),
        ("Mars is not Venus.", None),
        ("Venus is hotter than Mars.", None),
        ("The red planet is Mars (C).", "C"),
        ("The red planet is Mars (D).", None),
        ("The planets are Mars (C) and Venus (B).", None),
        ("Jupiter is the answer, i.e. option D", "D"),
        ("The rate is set by the slow step, i.e. B.\n\nC", "C"),
        ("It is A.\nNo, wait. It is not.\n\nSo the answer is D.", "D"),
        ("A - B = C", None),
        ("B - A is positive.", None),
        ("I, because of that, cannot say.", None),
        ("A Mercury thermometer is what I use.", None),
        ("Perhaps a planet.", None),
        ("That leaves B and C.", None),
    ],
)
def test_short_replies_that_name_an_option_in_passing(reply: str, letter: str | None) -> None:
    assert grade(reply, PLANETS).fields["predicted_answer"] == letter


def test_conclusions_cost_linear_time() -> None:
    assert grade("So (" * 50_000).outcome == "no_answer"
    assert grade("It is " * 30_000).outcome == "no_answer"
    assert grade(" - " * 50_000).outcome == "no_answer"
    assert grade("Therefore, " * 20_000 + "B is correct" * 20_000).outcome == "no_answer"


def test_an_empty_box_means_no_letter() -> None:
    assert letter_in("", 4) is None
    assert letter_in(" $ ", 4) is None


def test_strict_and_lenient_readings() -> None:
    strict, lenient = (
        plain_grader("multichoice", MultichoiceConfig.READINGS[name]) for name in ("strict", "lenient")
    )
    record = {"expected_answer": "B", "num_choices": 4}
    boxed, told = ({**record, "generation": text} for text in (r"So \boxed{B}.", "The final answer is B"))
    assert [strict.grade(row).outcome for row in (boxed, told)] == ["correct", "no_answer"]
    assert [lenient.grade(row).outcome for row in (boxed, told)] == ["correct", "correct"]
