# SPDX-License-Identifier: Apache-2.0
"""Forms in which models name an option, for comparisons of choice questions."""

from __future__ import annotations

from collections.abc import Mapping

from newskills.base.records import Row

_THOUGHT = "Let me go through the options one by one.\n\n"


def letter_forms(row: Row) -> Mapping[str, str]:
    """Replies to a row with its options as fields `A`, `B`, …, right and wrong ones."""
    gold = row["expected_answer"]
    letters = [letter for letter in "ABCDEFGHIJ" if letter in row]
    wrong = letters[letters.index(gold) - 1]
    replies: dict[str, str] = {}
    for kind, letter, other in (("right", gold, wrong), ("wrong", wrong, gold)):
        text = row[letter]
        replies |= {
            f"{kind} letter": letter,
            f"{kind} letter in brackets": f"({letter})",
            f"{kind} letter with text": f"{letter}. {text}",
            f"{kind} label": f"{_THOUGHT}Answer: {letter}",
            f"{kind} label in bold": f"{_THOUGHT}**Answer: {letter}**",
            f"{kind} label, bold letter": f"{_THOUGHT}**Answer:** **{letter}**",
            f"{kind} label with text": f"{_THOUGHT}Answer: {letter}) {text}",
            f"{kind} dollars": f"{_THOUGHT}Answer: ${letter}$",
            f"{kind} sentence": f"{_THOUGHT}The correct answer is ({letter}).",
            f"{kind} sentence, bold": f"{_THOUGHT}The correct answer is **{letter}**.",
            f"{kind} sentence with text": f"{_THOUGHT}The correct answer is {letter}: {text}",
            f"{kind} heading": f"{_THOUGHT}### Final Answer\n\n**{letter}**",
            f"{kind} box": f"{_THOUGHT}$\\boxed{{{letter}}}$",
            f"{kind} box of text": f"{_THOUGHT}The answer is $\\boxed{{\\text{{{letter}}}}}$.",
            f"{kind} after thinking": f"<think>It could be {other}. Answer: {other}?</think>\n\nAnswer: {letter}",
            f"{kind}, then a remark": f"The correct answer is {letter}.\n\nTell me if I should explain more!",
            f"{kind} as JSON": f'{{"answer": "{letter}"}}',
        }
    return replies | {
        "nothing": f"{_THOUGHT}I cannot say.",
        "cut off": f"{_THOUGHT}Option {gold} says that",
        "changed": f"Answer: {wrong}\n\nWait, that is wrong.\n\nAnswer: {gold}",
        "two letters": f"{_THOUGHT}Answer: {wrong} or {gold}",
    }
