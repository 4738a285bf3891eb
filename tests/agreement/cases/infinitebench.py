# SPDX-License-Identifier: Apache-2.0
"""InfiniteBench (arXiv:2402.13718): twelve tasks, each with a measure of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from newskills.base.records import Row
from newskills.benchmarks.long_context.question_sets import infinitebench_row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_SUMMARY = "Ned sails to the island.\nHe finds the old chest.\nAda, his sister, knew it all along; she laughs."
_BOOK = ["She fell ill", "He sold the farm", "Both A and B", "Nobody knows"]
_CODE = ["Reader.open", "_parse_line", "Reader.close", "flush"]
_GOLDS: Mapping[str, tuple[Any, ...]] = {
    "passkey": ("71432", "08310"),
    "number_string": (["3000077442"], ["0044551122"]),
    "kv_retrieval": ("c14cb8ba-002b-43be-bdc7-8a83f0fe1ac8", "5ca8e9de-1001-455c-95a6-03b44b072aa9"),
    "math_find": (88, 47.5, 13.0),
    "code_run": (9, -8, 120),
    "math_calc": ([5, 12, 8, 9], [0, 0, 7]),
    "longbook_qa_eng": (["Bag End"], ["He was a captain", "captain"]),
    "longbook_qa_chn": (["六、七岁", "6-7岁"], ["《山海经》"], ["IBM公司的张三"]),
    "longbook_choice_eng": (_BOOK[0], [_BOOK[1]]),
    "code_debug": ([_CODE[0], "A"], [_CODE[2], "C"]),
    "longdialogue_qa_eng": (["ACE"], ["GAGGI", "REMO GAGGI"], ["DR. WU"]),
    "longbook_sum_eng": (_SUMMARY, "The war ends. Ann goes home."),
}
_OTHERS = {
    "passkey": "90210",
    "number_string": "1",
    "math_find": "4",
    "code_run": "3",
    "longdialogue_qa_eng": "NED",
}
_OPTIONS = {"longbook_choice_eng": _BOOK, "code_debug": _CODE}


def rows() -> Iterator[Row]:
    for task, golds in _GOLDS.items():
        for gold in golds:
            yield {"task": task, "gold": gold}


def _gold_text(row: Row) -> str:
    gold = row["gold"]
    return (
        ", ".join(map(str, gold))
        if row["task"] == "math_calc"
        else str(gold[0] if isinstance(gold, list) else gold)
    )


def forms(row: Row) -> Mapping[str, str]:
    task, gold = row["task"], _gold_text(row)
    if task in _OPTIONS:
        return _letter_forms(_OPTIONS[task], gold)
    other = _OTHERS.get(task, "something else")
    texts = {
        "alone": gold,
        "blanks around": f"\n {gold} \n",
        "point": f"{gold}.",
        "bold": f"**{gold}**",
        "code": f"`{gold}`",
        "quotes": f'"{gold}"',
        "sentence": f"It is {gold}.",
        "label": f"Answer: {gold}",
        "after another": f"First it is {other}.\nThen it is {gold}",
        "before another": f"It is {gold}.\nIt was {other}",
        "box": f"So it is {other}, and more:\n\n$\\boxed{{{gold}}}$",
        "a word more": f"{gold} indeed",
        "another": other,
        "nothing": "I cannot tell.",
    }
    if task in ("code_run", "math_find", "math_calc"):
        texts |= {
            "one more": str(float(gold) + 1) if task == "math_find" else f"{gold}1",
            "as a call": f"func_12({other}) is:\n\n",
            "in brackets": f"[{gold}]",
            "with decimals": f"{gold}.0",
        }
    if task.startswith("longbook"):
        words = gold.split("\n") if "sum" in task else gold.split()
        texts |= {
            "first part": words[0],
            "turned round": "\n".join(reversed(words)),
            "every other letter": gold[::2],
            "small letters": gold.lower(),
            "twice": f"{gold}\n{gold}",
        }
    return texts


def _letter_forms(options: Sequence[str], gold: str) -> Mapping[str, str]:
    at = options.index(gold)
    letter, other = "ABCD"[at], "ABCD"[at - 1]
    wrong = options[at - 1]
    listing = "".join(f"\n{mark}. {option}\n- looks plain" for mark, option in zip("ABCD", options, strict=True))
    texts: dict[str, str] = {}
    for kind, mark, text, rest in (("right", letter, gold, other), ("wrong", other, wrong, letter)):
        texts |= {
            f"{kind} letter": mark,
            f"{kind} letter, point": f"{mark}.",
            f"{kind} letter with text": f"{mark}. {text}",
            f"{kind} letter, colon": f"{mark}: {text}",
            f"{kind} in brackets": f"({mark})",
            f"{kind} bold": f"**{mark}**",
            f"{kind} label": f"Answer: {mark}",
            f"{kind} sentence": f"The answer is {mark}.",
            f"{kind} sentence, colon": f"The correct answer is:\n\n{mark}. {text}",
            f"{kind} option": f"Based on this, the correct option is {mark}.",
            f"{kind} text": text,
            f"{kind} after all options": f"I go through them.{listing}\n\nThe answer is:\n\n{mark}. {text}",
            f"{kind} after another": f"{rest} seems likely at first. The answer is: {mark}",
        }
    return texts | {"no letter": "I cannot choose from A, B, C, or D.", "nothing": "Unfortunately I cannot tell."}


def _raw(row: Row) -> Row:
    return {
        "_split": row["task"],
        "id": 0,
        "context": "",
        "input": "",
        "answer": row["gold"],
        "options": _OPTIONS.get(row["task"], []),
    }


def ours(row: Row, reply: Any) -> float | None:
    return _GRADED(infinitebench_row(_raw(row), 0), reply)


_GRADED = by_grader("long_text", value="score")


def original(folder: Path) -> Verdict:
    """Needs tqdm and rouge-score, which Hugging Face's evaluate hands texts to."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeLsum"], use_stemmer=False)

    def compute(predictions: list[str], references: list[str], use_aggregator: bool) -> dict[str, list[float]]:
        return {"rougeLsum": [scorer.score(references[0], predictions[0])["rougeLsum"].fmeasure]}

    rouge = SimpleNamespace(load=lambda name: SimpleNamespace(compute=compute))
    with mock.patch.dict(sys.modules, {"evaluate": rouge, "args": SimpleNamespace(parse_args=None)}):
        script: Any = loaded(folder / "src" / "compute_scores.py")

    def verdict(row: Row, reply: Any) -> float:
        label = row["gold"]
        if row["task"] in _OPTIONS:
            text = _gold_text(row)
            label = [text, "ABCD"[_OPTIONS[row["task"]].index(text)]]
        if row["task"] == "longbook_qa_eng" and isinstance(label, str):
            label = [label]
        try:
            return float(script.get_score_one(reply, label, row["task"], "claude2"))
        except ValueError:  # of a whole number, it cannot read one with decimals
            return 0.0

    return verdict


_BOXED = ("passkey", "number_string", "math_find", "code_run", "longbook_qa_eng", "longbook_qa_chn")
_DRESSED = ("kv_retrieval", "longdialogue_qa_eng")
_NAMED = (
    *("alone", "blanks around", "point", "quotes", "sentence", "label", "after another", "before another", "box"),
    "a word more",
)
_BOOK_FORMS = (
    *("right in brackets", "right bold", "right option", "right label", "right after another"),
    *("wrong label", "wrong option", "wrong after another"),
)
_CODE_FORMS = ("letter", "in brackets", "bold", "label", "sentence", "option", "text")
_MARKED = "ours reads an answer that is marked (a box, `Answer:`); the original the first number, or all words"
_DRESS = "the original does not know these marks around an answer"
_LETTERS = "the original reads a letter that begins the reply, or follows few of the words before it"
COMPARISON = Comparison(
    name="infinitebench",
    benchmarks=("infinitebench",),
    scorer="InfiniteBench `compute_scores.py`",
    compared=WHOLE,
    repository="OpenBMB/InfiniteBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        **dict.fromkeys((f"{task}/box" for task in _BOXED), _MARKED),
        **dict.fromkeys(("longbook_qa_eng/label", "longbook_qa_chn/label"), _MARKED),
        **dict.fromkeys((f"{task}/{mark}" for task in _DRESSED for mark in ("bold", "code")), _DRESS),
        **dict.fromkeys(("code_run/bold", "code_run/in brackets"), _DRESS),
        "math_find/with decimals": "the original fails on 88.0 where 88 is right",
        **dict.fromkeys(
            (f"longdialogue_qa_eng/{form}" for form in _NAMED),
            "the original looks for the first right name among single words, so that a name of two is never found",
        ),
        **dict.fromkeys((f"longbook_choice_eng/{form}" for form in _BOOK_FORMS), _LETTERS),
        **dict.fromkeys((f"code_debug/right {form}" for form in _CODE_FORMS), _LETTERS),
        "longbook_choice_eng/no letter": "the original takes the first letter that it finds",
    },
)
