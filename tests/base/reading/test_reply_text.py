# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.reading.reply_text import (
    after_first_thinking,
    after_thinking,
    has_ended_thinking,
    join_turns,
    split_thinking,
    without_thinking,
)

HARMONY = "<|channel|>analysis<|message|>"
HARMONY_END = "<|end|><|start|>assistant<|channel|>final<|message|>"
MARKS = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<Thinking>", "</Thinking>"),
    ("◁think▷", "◁/think▷"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<think:opensource>", "</think:opensource>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
    ("<|think:start|>", "<|think:end|>"),
    ("<|message_model|><|content_thinking|>", "<|end_message|><|message_model|><|content_text|>"),
    ("<unused94>thought\n", "<unused95>"),
    (HARMONY, HARMONY_END),
    ("analysis", "assistantfinal"),
]
STOPS = [
    "<|im_end|>\n<|im_start|>user\n",
    "<|endoftext|>",
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
    "</s>[INST] ",
    "[INST] ",
    "<end_of_turn>\n<start_of_turn>user\n",
    "<turn|>\n<|turn>user\n",
    "<｜end▁of▁sentence｜><｜User｜>",
    "<|end|>\n<|user|>\n",
    "<|user|>\n",
    "<|return|>",
    "<|eot|><|header_start|>user",
    "<|END_OF_TURN_TOKEN|>",
    "[|endofturn|]\n[|user|]",
    "[e~[\n]~b]user\n",
    "<|end|><|start|>user<|message|>",
    "<seed:eos>",
    "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>",
    "<|role_end|><role>HUMAN</role>",
    "<|end_message|><|message_user|>",
]


@pytest.mark.parametrize(("opening", "closing"), MARKS)
def test_reasoning_in_the_marks_of_every_known_model(opening: str, closing: str) -> None:
    draft = r"Maybe \boxed{2}, but"
    assert after_thinking(f"{opening}{draft}") is None
    assert without_thinking(f"{opening}{draft} 3.{closing}So it is 3.") == "So it is 3."
    assert has_ended_thinking(f"{opening}{draft}{closing}3")
    assert not has_ended_thinking(f"{opening}{draft}")
    assert draft not in join_and_read([f"{opening}{draft}", "So it is 3."])


def join_and_read(turns: list[str]) -> str:
    return without_thinking(join_turns(turns, "\n"))


@pytest.mark.parametrize(("opening", "closing"), MARKS[:-1])
def test_reasoning_ends_with_its_turn(opening: str, closing: str) -> None:
    assert join_and_read([f"{opening}I call the tool", "So it is 3."]) == "So it is 3."
    assert after_thinking(join_turns(["So it is 2.", f"{opening}or is it"], "\n")) is None
    assert join_and_read([f"{opening}I call{closing}Calling.", f"{opening}Good.{closing}3"]).split("\n")[-1] == "3"


@pytest.mark.parametrize("stop", STOPS)
def test_marks_of_chat_templates_end_a_reply(stop: str) -> None:
    assert after_thinking(f"The answer is 18.{stop}And another? The answer is 4.") == "The answer is 18."
    assert after_thinking(f"<think>18?</think>18{stop}<think>4?</think>4") == "18"
    assert after_thinking(f"It is 18{stop}<think>hm") == "It is 18"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", ""),
        ("no mark, a < b and c[0]", "no mark, a < b and c[0]"),
        ("a</think>b</think>c", "c"),
        ("Well. <think>b</think>c", "c"),
        ("5 <think>hm", None),
        ("<think>a</think> 5 <think>but", None),
        ("<answer>5</answer><reasoning>since</reasoning>", "<answer>5</answer>"),
        ("prefilled</reasoning><answer>5</answer>", "<answer>5</answer>"),
        ("He said <thought>no</thought> and left.", "He said  and left."),
        ("<s>old</s> new", "<s>old</s> new"),
        ("new</s> <s>[INST]", "new"),
        ("<|im_start|>assistant\n5<|im_end|>", "<|im_start|>assistant\n5"),
        ("The token `<|im_end|>` ends a turn, `<think>` begins a thought.",) * 2,
        ('text.split("</think>")',) * 2,
        ("The token <|endoftext|> ends texts.</think>5", "5"),
        ("<think>tokens like <|im_end|> count</think>5", "5"),
        (f"{HARMONY}a<|end|><|start|>assistant<|channel|>commentary<|message|>I call", None),
        ("Here is my thought process: 2 + 2 Here is my response: 4", " 4"),
        ("Here is my thought process: 2 + 2 = 4",) * 2,
        ("analysis of the data: 4",) * 2,
    ],
)
def test_what_a_reply_answers(text: str, answer: str | None) -> None:
    assert after_thinking(text) == answer


def test_the_viewer_sees_the_marks_of_no_reasoning() -> None:
    assert split_thinking("[THINK]\n2 + 2\n[/THINK]\n4") == ("2 + 2", "4")
    assert split_thinking("<|START_THINKING|>2 + 2<|END_THINKING|><|START_RESPONSE|>4") == ("2 + 2", "4")
    assert split_thinking("2 + 2</think>4<|im_end|>5") == ("2 + 2", "4<|im_end|>5")
    assert split_thinking("[THINK]2 + 2") == ("2 + 2", "")
    assert split_thinking("a < b") == ("", "a < b")


def test_a_program_may_hold_the_marks() -> None:
    program = "```python\nx = text.split('</think>')[-1]\n```"
    assert after_first_thinking(f"<think>a</think>{program}", "```") == program
    assert after_first_thinking("```html\n<reasoning>\n```", "```") == "```html\n<reasoning>\n```"
    assert after_first_thinking("<think>```\n1\n```", "```") is None
    assert after_first_thinking("```\n1\n```<|im_end|>\n```\n2\n```", "```") == "```\n1\n```"


PIECES = [*(mark for pair in MARKS for mark in pair), *STOPS, "a", " ", "\n", "`", "<", "[", "<s>", "</s>", "5"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text(text: str) -> None:
    """What is read stands in the text, and a reading of it changes nothing more."""
    answer = after_thinking(text)
    assert answer is None or all(piece in text for piece in answer.split())
    assert without_thinking(text) == (answer or "").strip()
    assert text.startswith(split_thinking(text)[0][:1]) or split_thinking(text)[0] in text
    if not has_ended_thinking(text) and answer is not None:
        assert text.startswith(answer)


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), st.sampled_from(MARKS))
def test_reasoning_without_an_end_hides_all_drafts(before: str, marks: tuple[str, str]) -> None:
    """Whatever stands before it: no text behind an opening mark counts until reasoning ends."""
    draft = r"so \boxed{2}"
    answer = after_thinking(f"{before}\n{marks[0]}{draft}")
    assert answer is None or draft not in answer or marks[0] == "analysis"
