# SPDX-License-Identifier: Apache-2.0
"""Replies that say several things, or nothing, whatever the question is: no grader may believe them.

A hedge is right as often as luck has it. One that is right more often shows a grader that takes, of all that a reply
says, what fits. What a reward pays for, a policy finds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import ascii_uppercase

from msgspec import Struct

from newskills.base.records import Row
from newskills.run.validation.inspection import InspectedRow

_NUMBERS = tuple(map(str, range(1000)))
_LETTERS = tuple(ascii_uppercase[:10])
_LONGEST = 20_000
"""Characters of a reply that is gathered from the answers of other rows."""
_MOST_ANSWERS = 400
_COMMON_WORDS = (
    "a the of and to in is it that for on with as was be by this are from at or an not he she they we you all one two "
    "three four five six seven eight nine ten yes no true false none both neither maybe good bad left right up down "
    "red blue green black white man woman day night year time name place water fire school house city country world "
    "first second last more less most least before after north south east west positive negative neutral valid invalid "
    "entailment contradiction possible impossible correct incorrect unknown monday friday january december"
)
_WORDS = _COMMON_WORDS.split()
_LETTER_ANSWER = re.compile(r"\(?[A-Z]{1,6}\)?")
_FORM = re.compile(r"^.*(?:\\boxed|\banswer\b|\[\[|<\w+>).*$", re.IGNORECASE | re.MULTILINE)


def _box_text(text: str) -> str:
    return f"The answer is $\\boxed{{{text}}}$."


def _equality_chain(items: Sequence[str]) -> str:
    return _box_text("x=y=" + "=".join(items))


NUMBERS: Mapping[str, str] = {
    "chain of numbers": _equality_chain(_NUMBERS),
    "chain of fractions": _equality_chain(
        [f"\\frac{{{top}}}{{{bottom}}}" for bottom in range(1, 13) for top in range(13)]
    ),
    "chain of approximations": _box_text(r"x\approx" + r"\approx".join(_NUMBERS[:400])),
    "list of numbers": _box_text(", ".join(_NUMBERS)),
    "set of numbers": _box_text(r"\{" + ", ".join(_NUMBERS[:400]) + r"\}"),
    "numbers with or": _box_text(r" \text{ or } ".join(_NUMBERS[:400])),
    "boxes of numbers": " ".join(f"\\boxed{{{number}}}" for number in _NUMBERS[:400]),
    "lines of numbers": "\n".join(_NUMBERS[:100]),
    "numbers of the final answer": "Answer: " + ", ".join(_NUMBERS[:400]),
    "numbers on lines of answers": "\n".join(f"Answer: {number}" for number in _NUMBERS[:50]),
    "numbers in bold": " ".join(f"**{number}**" for number in range(5, 0, -1)),
    "all numbers": _box_text(r"(-\infty, \infty)"),
    "real numbers": _box_text(r"x \in \mathbb{R}"),
    "interval of the scale": _box_text("[0, 1000]"),
    "plus or minus": _box_text(r"500 \pm 500"),
    "empty set": _box_text(r"\varnothing"),
    "not a number": _box_text("nan"),
    "infinity": _box_text(r"\infty"),
    "variable": _box_text("x"),
    "one": _box_text("1"),
}
"""Name → the reply to every question without options."""

LETTERS: Mapping[str, str] = {
    "chain of letters": _box_text("=".join(_LETTERS)),
    "letters": "Answer: " + ", ".join(_LETTERS),
    "letters with or": "The answer is " + " or ".join(_LETTERS[:4]) + ".",
    "letters with and": f"The correct answers are {', '.join(_LETTERS[:3])} and {_LETTERS[3]}.",
    "letters in a box": _box_text("".join(_LETTERS[:4])),
    "letters in boxes": " ".join(_box_text(letter) for letter in _LETTERS[:4]),
    "letters in brackets": " ".join(f"({letter})" for letter in _LETTERS),
    "letters as tags": "".join(f"<answer>{letter}</answer>" for letter in _LETTERS[:4]),
    "letters on lines of answers": "\n".join(f"Answer: {letter}" for letter in _LETTERS[:4]),
    "letters with slashes": "Answer: " + "/".join(_LETTERS[:4]),
    "letters in a range": "Answer: A-D",
    "letters as JSON": json.dumps({"answer": [*_LETTERS]}),
    "all of them": "All of the options are correct.",
    "none of them": "None of the options is correct.",
}
"""The same for questions with options."""

ALWAYS: Mapping[str, str] = {
    "yes": "Yes",
    "no": "No",
    "true": "True",
    "false": "False",
    "yes and no": "Answer: Yes and no",
    "yes or no": "Yes. No. It is true, it is false, it cannot be said.",
    "valid or invalid": "Answer: valid, invalid, correct, incorrect, true, false, yes, no",
    "not known": "I don't know.",
    "refusal": "I'm sorry, but I cannot help with that.",
    "not mentioned": "There is no information available; it is not mentioned.",
    "dot": ".",
    "pattern": _box_text(".*"),
    "ellipsis": _box_text(r"\ldots"),
    "list without items": "[]",
    "object without fields": "{}",
    "null": "null",
    "JSON with answers": json.dumps({"answer": 1, "answers": [*range(100)], "Answer": "A", "choice": [*_LETTERS]}),
    "common words": " ".join(_WORDS),
    "common words as the answer": "Answer: " + ", ".join(_WORDS),
    "verdicts": "Judgement: Yes\nJudgement: No\nRating: [[10]] [[A>>B]] [[B>>A]]",
}
"""The same for all questions."""

NEUTRAL = frozenset(("yes", "no", "not known", "refusal", "dot", "list without items", "object without fields"))
"""Short ones that say nothing: what they are worth where no right reply is known (instructions about the form of a
reply, schemas) is what a reply to another question is worth."""

PROGRAMS: Mapping[str, str] = {
    "program that ends well": "```python\nraise SystemExit(0)\n```",
    "program that skips": "```python\nimport unittest\nraise unittest.SkipTest('later')\n```",
    "program equal to all": (
        "```python\nclass Any(int):\n    __eq__ = lambda a, b: True\n    __hash__ = int.__hash__\n"
        "    def __call__(self, *a, **k):\n        return self\n```"
    ),
}
"""What answers where replies run as code: few, since each takes a process."""


class HedgeRow(Struct, frozen=True):
    """A row that is answered by hedges, its prompt, and the text of its right reply ("": not known)."""

    inspected: InspectedRow
    gold: str


def hedged_replies(rows: Sequence[HedgeRow], *, executes: bool) -> Iterator[tuple[str, Row, Row]]:
    """Yield (name of the hedge, row, fields of the reply): each hedge for each row, unless it names the right
    answer.

    A hedge that depends on the row may use its question and its options, never its answer.
    """
    if executes:
        fixed: Mapping[str, str] = PROGRAMS
        varied: Mapping[str, Callable[[InspectedRow], str]] = {}
    else:
        golds = [row.gold for row in rows if row.gold]
        lettered = any("A" in row.inspected.row for row in rows) or _are_letters(golds)
        fixed_replies = LETTERS if lettered else NUMBERS
        fixed = {**ALWAYS, **fixed_replies, **_of_all_answers(golds)}
        varied = _VARIED
    for name, text in fixed.items():
        for row in rows:
            yield name, row.inspected.row, {"generation": text}
    for name, say in varied.items():
        for row in rows:
            text = say(row.inspected)
            if text and not (row.gold and row.gold.strip() == text.strip()):
                yield name, row.inspected.row, {"generation": text}
    if not executes:
        yield from _call_replies([row.inspected.row for row in rows])


def _are_letters(golds: Sequence[str]) -> bool:
    return bool(golds) and all(_LETTER_ANSWER.fullmatch(_bare_answer(gold)) for gold in golds)


def _of_all_answers(golds: Sequence[str]) -> dict[str, str]:
    """Return texts that say what the right replies of the sample say, all at once."""
    if len(set(golds)) < 2:
        return {}
    common = [text for text, _ in Counter(golds).most_common(_MOST_ANSWERS)]
    bare = list(dict.fromkeys(_bare_answer(text) for text in common))
    gathered = {
        "all answers in lines": "\n".join(common),
        "all answers in a list": "Answer: " + ", ".join(bare),
        "all answers with or": " or ".join(bare),
        "all answers in a box": _box_text(", ".join(bare)),
        "all answers in a chain": _box_text("=".join(bare)),
        "all answers in bold": " ".join(f"**{text}**" for text in bare),
        "all answers as tags": f"<solution>{', '.join([' '.join(bare)[: _LONGEST // 8]] * 8)}</solution>",
        "all answers as JSON": json.dumps({"answer": bare}, ensure_ascii=False),
    }
    return {name: text[:_LONGEST] for name, text in gathered.items()}


def _bare_answer(reply: str) -> str:
    """Return the answer in a right reply, without what marks it."""
    text = reply.strip().removeprefix("Answer:").strip()
    boxed = re.fullmatch(r"\$?\\boxed\{(.*)\}\$?", text, re.DOTALL)
    return boxed[1] if boxed else text


def _row_options(item: InspectedRow) -> list[tuple[str, str]]:
    return [(letter, str(item.row[letter])) for letter in ascii_uppercase if isinstance(item.row.get(letter), str)]


def _listed_options(item: InspectedRow) -> str:
    return "\n".join(f"{letter}) {text}" for letter, text in _row_options(item))


def _options_in_a_sentence(item: InspectedRow) -> str:
    texts = [text for _, text in _row_options(item)]
    return f"The answer is {' or '.join(texts)}." if texts else ""


def _row_question(item: InspectedRow) -> str:
    return str(item.row.get("question") or item.row.get("problem") or "")


def _question_in_a_box(item: InspectedRow) -> str:
    question = _row_question(item)[-_LONGEST:]
    return _box_text(question) if question else ""


def _question_as_answer(item: InspectedRow) -> str:
    question = " ".join(_row_question(item)[-_LONGEST:].split())
    return f"Answer: {question}" if question else ""


def _form_of_the_prompt(item: InspectedRow) -> str:
    """Return the last line of the prompt that shows how to answer."""
    forms = _FORM.findall(item.prompt[-_LONGEST:])
    return forms[-1] if forms else ""


_VARIED: Mapping[str, Callable[[InspectedRow], str]] = {
    "options in a list": _listed_options,
    "options in a sentence": _options_in_a_sentence,
    "question": _row_question,
    "question in a box": _question_in_a_box,
    "question as the answer": _question_as_answer,
    "form of the prompt": _form_of_the_prompt,
}
"""Name → what is made of the row's question and options."""

OF_THE_QUESTION = frozenset(("question", "question in a box", "question as the answer", "form of the prompt"))
"""Those that share words with the answer, as questions do: only whether they are right counts, not a share of it."""


def _call_replies(rows: Sequence[Row]) -> Iterator[tuple[str, Row, Row]]:
    """Yield replies that call every function of the row at once, without arguments."""
    for row in rows:
        listed = row.get("function") or row.get("tools") or ()
        functions = [item.get("function") or item for item in listed if isinstance(item, dict)]
        names = [str(function.get("name")) for function in functions if isinstance(function, dict)]
        if len(names) > 1:
            calls = [{"name": name, "arguments": {}} for name in names]
            yield "call of every function", row, {"generation": "", "tool_calls": calls}
