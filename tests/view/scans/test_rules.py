# SPDX-License-Identifier: Apache-2.0
"""Scanners by rule: what each reports, what it leaves alone, and that 10 MB take no longer than they should."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from newskills.view.diagnosis.groups import GROUPS, group_failure
from newskills.view.scans import SCANNERS
from newskills.view.scans.finding import NO_FINDING, scan_one
from newskills.view.scans.question import render_transcript
from newskills.view.scans.transcript import Transcript


def label(scanner: str, row: dict[str, Any], **verdict: Any) -> str:
    """The label of a transcript; the quotes of a valid one stand in it."""
    line = scan_one(SCANNERS.get(scanner), "q", Transcript(row, **verdict))
    assert line.label is not None, line.invalid
    return line.label


def told(reply: str, **more: Any) -> dict[str, Any]:
    return {"problem": "What is 6 times 7?", "generation": reply, "expected_answer": "42", **more}


def called(command: str, output: str, *after: str) -> dict[str, Any]:
    call = {"id": "1", "function": {"name": "bash", "arguments": command}}
    turns = [
        {"role": "user", "content": "Fix the bug."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "content": output},
        *({"role": "assistant", "content": text} for text in after),
    ]
    return {"conversation": turns, "generation": after[-1] if after else ""}


SPECIAL = """def f(n):
    if n == 3:
        return 9
    elif n == 'a':
        return 'b'
    if n == 5: return 25
"""
RECURSION = """def f(n):
    if n == 0:
        return 0
    if n == 1:
        return 1
    return f(n - 1) + f(n - 2)
"""
TRACEBACK = "Traceback (most recent call last):\n  x\nKeyError: 1"
COLOURS = {"problem": "Red or blue?", "expected_answer": "blue", "options": ["red", "blue"]}
TOTAL = {"problem": "The total is 1234. What is it?", "expected_answer": "1234"}
BOXED = {"template": "Put the answer in \\boxed{}.\n{problem}"}


@pytest.mark.parametrize(
    ("scanner", "row", "verdict", "expected"),
    [
        ("refusal", told("I’m sorry, but I can’t help with that."), {}, "refused"),
        ("refusal", told("As an AI, I have no opinion."), {}, "refused"),
        ("refusal", told("You can't divide by zero, so it is 42."), {}, NO_FINDING),
        ("refusal", told("So it is 42. " * 60 + "I cannot help it."), {}, NO_FINDING),
        ("loop", told("First 6. " + "Wait, let me check once more. " * 40 + "Wait, let"), {}, "loop"),
        ("loop", told("\n".join(f"{n}\nThen we add the next number." for n in range(30))), {}, "loop"),
        ("loop", told("\n".join(f"Step {n}: the sum is {n * n}." for n in range(300))), {}, NO_FINDING),
        ("language_switch", told("Also 42. 因此答案是四十二，因为六乘七等于四十二。"), {}, "Han"),
        ("language_switch", {"problem": "Сколько будет шесть на семь?", "generation": "x = 42"}, {}, NO_FINDING),
        ("language_switch", {"problem": "Translate into Russian: six", "generation": "шесть " * 9}, {}, NO_FINDING),
        ("truncated", told("So 6 * 7", finish_reason="length"), {}, "token limit"),
        ("truncated", told("<think>So 6 * 7 is"), {}, "within reasoning"),
        ("truncated", told("So 6 * 7 is 42.", finish_reason="stop"), {}, NO_FINDING),
        ("empty_tool_output", called("ls", " \n", "Empty."), {}, "empty"),
        ("empty_tool_output", called("ls", "a.py", "Empty."), {}, NO_FINDING),
        ("empty_tool_output", told("```python\nx\n```\n```output\n\n```\nSo 42."), {}, "empty"),
        ("tool_error_ignored", called("x", TRACEBACK, "It is done: 42."), {}, "ignored"),
        ("tool_error_ignored", called("x", "KeyError: 'a'", "That failed; the key is b."), {}, NO_FINDING),
        ("tool_error_ignored", called("x", "no errors", "It is done."), {}, NO_FINDING),
        ("special_cased_tests", told(f"```python\n{SPECIAL}```"), {}, "literal cases"),
        ("special_cased_tests", told(f"```python\n{RECURSION}```"), {}, NO_FINDING),
        ("special_cased_tests", told("import os\ndef f():\n    os._exit(0)"), {}, "ends the process"),
        ("reads_gold", called("cat /data/expected_output.txt", "42"), {}, "reads gold"),
        ("reads_gold", called("sed -n 1,9p tests/test_a.py", "…"), {}, "reads tests"),
        ("reads_gold", called("pytest tests/test_a.py", "…"), {}, NO_FINDING),
        ("answer_in_prompt", told("42", **TOTAL), {}, "given"),
        ("answer_in_prompt", told("42", problem="Add 40 and 2", expected_answer="2"), {}, NO_FINDING),
        ("answer_in_prompt", told("x", **COLOURS), {}, NO_FINDING),
        ("not_extracted", told("Hence we get 42."), {"outcome": "no_answer"}, "none extracted"),
        ("not_extracted", told("It is 42.", predicted_answer="7"), {"outcome": "wrong"}, "another extracted"),
        ("not_extracted", told("24 + 42 = 66.", predicted_answer="66"), {"outcome": "wrong"}, NO_FINDING),
        ("not_extracted", told("It is 42.", predicted_answer="42"), {"outcome": "correct"}, NO_FINDING),
        ("format_lost", told("It is 42."), BOXED, "no \\boxed{}"),
        ("format_lost", told("It is \\boxed{42}."), BOXED, NO_FINDING),
        ("format_lost", told("It is 42."), {}, NO_FINDING),
        ("format_lost", told("4"), BOXED, "no \\boxed{}"),
        ("format_lost", told("<think>Hm.</think>It is\n4"), BOXED, "no \\boxed{}"),
        ("not_extracted", told("So:\n7", expected_answer="7"), {"outcome": "no_answer"}, "none extracted"),
    ],
)  # fmt: skip
def test_what_is_reported(scanner: str, row: dict[str, Any], verdict: dict[str, Any], expected: str) -> None:
    assert label(scanner, row, **verdict) == expected


@pytest.mark.parametrize("scanner", SCANNERS.built_in())
@pytest.mark.parametrize("row", [{}, {"generation": None}, {"messages": "no list", "steps": 3, "generation": [1]}])
def test_records_of_any_form_are_read(scanner: str, row: dict[str, Any]) -> None:
    assert label(scanner, row) == NO_FINDING


TEXTS = (
    "",
    "a",
    "4",
    "length",
    "I can't help",
    "\\boxed{42}",
    "<think>x",
    "```output\nError: x\n```y",
    "1 + 1 = 3",
)
KEYS = ("generation", "problem", "expected_answer", "predicted_answer", "finish_reason", "reasoning_content", "steps",
        "conversation", "messages", "tool_metrics", "options", "rendered_prompt", "instruction_id_list")  # fmt: skip
INNER = ("role", "content", "tool_calls", "function", "arguments", "type", "text", "command", "num_tool_errors")


def anything(draw: random.Random, depth: int = 0) -> Any:
    kind = draw.randrange(4 if depth > 3 else 7)
    if kind < 2:
        return draw.choice(TEXTS)
    if kind == 2:
        return draw.choice((None, True, 0, -5, 3.5, "x " * 99))
    if kind < 5:
        return [anything(draw, depth + 1) for _ in range(draw.randrange(4))]
    roles = ("assistant", "user", "tool", 3)
    made = {key: anything(draw, depth + 1) for key in INNER if draw.random() < 0.4}
    return {**made, "role": draw.choice(roles)}


def test_whatever_a_record_holds_quotes_of_rules_stand_in_it() -> None:
    draw = random.Random(1)
    for _ in range(1_000):
        row = {key: anything(draw) for key in KEYS if draw.random() < 0.5}
        verdict = {
            "outcome": draw.choice(("wrong", "no_answer", "unscored")),
            "cause": draw.choice((None, "tool")),
        }
        transcript = Transcript(row, template="\\boxed{}", **verdict)
        for scanner in SCANNERS.built_in():
            line = scan_one(SCANNERS.get(scanner), "q", transcript)
            assert line.invalid == "", (scanner, row)
        assert group_failure(transcript).group in GROUPS
        assert isinstance(render_transcript(transcript), str)


def test_a_quote_stands_in_one_text_and_is_longer_than_a_letter() -> None:
    transcript = Transcript(told("It is\n  42, a fine number."))
    assert transcript.holds("is 42, a fine")
    assert transcript.holds("What is 6 times")
    assert not transcript.holds("7? It is")  # over two messages
    assert not transcript.holds("a")
    assert not transcript.holds(" \n ")
    assert not transcript.holds("42, a Fine")
    assert Transcript(told("B")).holds("B")


HOSTILE = {
    "one letter": "a",
    "open conditions": "if x == ",
    "definitions": "def __eq__(",
    "blanks": " ",
    "digits": "42",
    "lines": "return 1\n",
    "thoughts": "<think>",
    "fences": "```output\n",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [400_000, pytest.param(10_000_000, marks=pytest.mark.nightly)])
def test_long_transcripts_take_linear_time(name: str, size: int) -> None:
    """Twenty times as much text takes less than sixty times as long, where it takes long at all."""
    text = "if a ==" + HOSTILE[name] * (size // len(HOSTILE[name]))

    def seconds(reply: str) -> float:
        began = time.process_time()
        call = {"function": {"name": "bash", "arguments": f"cat {reply}"}}
        turns = [
            {"role": "user", "content": reply},
            {"role": "assistant", "content": f"def f():\n{reply}", "tool_calls": [call]},
            {"role": "tool", "content": reply},
            {"role": "assistant", "content": "Done."},
        ]
        row = {"conversation": turns, "generation": reply, "expected_answer": "4242"}
        transcript = Transcript(row, outcome="wrong")
        for scanner in SCANNERS.built_in():
            scan_one(SCANNERS.get(scanner), "q", transcript)
        return time.process_time() - began

    whole = seconds(text)
    assert whole < 2.0 or whole < 60 * seconds(text[: len(text) // 20])
