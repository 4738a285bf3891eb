# SPDX-License-Identifier: Apache-2.0
"""LiveBench (arXiv:2406.19314): tasks with answers, each with a scorer of its own."""

from __future__ import annotations

import ast
import importlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from newskills.base.records import Row
from tests.agreement.cases import livebench_tables as tables
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.data import mirrored

_DATA = "raw.githubusercontent.com/LiveBench/LiveBench/*/livebench/data/live_bench/*/{task}/question.jsonl"
_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_THOUGHT = "Let me think step by step.\nFirst we look at what is given.\n"
ROWS = {
    "cta": 40,
    "tablejoin": 30,
    "tablereformat": 30,
    "math_comp": 60,
    "olympiad": 36,
    "spatial": 50,
    "web_of_lies_v2": 40,
    "zebra_puzzle": 60,
}
_KEPT = ("task", "ground_truth", "livebench_release_date")


def rows() -> Iterator[Row]:
    """The first rows of each task, with what the scorers read of them."""
    for task, count in ROWS.items():
        questions = [
            raw
            for raw in mirrored(_DATA.format(task=task))
            if task != "tablereformat" or len(str(raw["ground_truth"])) < tables.LONGEST
        ]
        draw = random.Random(task)
        for raw in draw.sample(questions, min(count, len(questions))):
            truth = raw["ground_truth"]
            row = {key: raw[key] for key in _KEPT if key in raw}
            row["ground_truth"] = truth if isinstance(truth, str) else json.dumps(truth)
            row["subtask"] = raw.get("subtask", "")
            row["question"] = _essential(task, raw["turns"][0])
            yield row


def _essential(task: str, question: str) -> str:
    """What a scorer reads of a question: the options, or the forms of two tables."""
    if task == "math_comp":
        return "$" + " \\qquad".join(re.findall(r"\\textbf{\([A-E]\)\s?}.*?(?=\\qquad|\$)", question)) + "$"
    if task == "tablereformat":
        return re.findall(r"Please convert the Input Table from .*? format to .*? format", question)[0]
    return ""


def forms(row: Row) -> Mapping[str, str]:
    return _FORMS[row["task"]](row)


def _spatial(row: Row) -> dict[str, str]:
    gold = row["ground_truth"]
    wrong = str(int(gold) + 1) if gold.isdigit() else "circle"
    word = _WORDS[int(gold)] if gold.isdigit() and int(gold) < len(_WORDS) else gold
    made: dict[str, str] = {}
    for kind, answer in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} bold": f"{_THOUGHT}So there are **{answer}**.",
            f"{kind} bare": answer,
            f"{kind} box": f"{_THOUGHT}\\boxed{{{answer}}}",
            f"{kind} box in a formula": f"{_THOUGHT}The answer is $\\boxed{{{answer}}}$.",
            f"{kind} box with text": f"{_THOUGHT}$\\boxed{{\\text{{{answer}}}}}$",
            f"{kind} box in upright letters": f"{_THOUGHT}$\\boxed{{\\mathrm{{{answer}}}}}$",
            f"{kind} bold in a box": f"{_THOUGHT}$\\boxed{{\\mathbf{{{answer}}}}}$",
            f"{kind} sentence": f"{_THOUGHT}The answer is {answer}.",
            f"{kind} bold label": f"{_THOUGHT}**Answer: {answer}**",
            f"{kind} tag": f"{_THOUGHT}<solution>{answer}</solution>",
            f"{kind} bold upper": f"{_THOUGHT}**{answer.upper()}**",
            f"{kind} bold with a point": f"{_THOUGHT}**{answer}.**",
            f"{kind} line": f"{_THOUGHT}{answer}",
        }
    return made | {
        "word": f"{_THOUGHT}There are **{word}** of them.",
        "right then three bold": f"**{gold}** is a guess.\n**a** **b** **c**",
        "right, then wrong": f"It is **{gold}**, or **{wrong}**.",
        "wrong, then right": f"It is **{wrong}**, no, **{gold}**.",
        "bold step, box": f"**Step 1**: count.\n**Step 2**: add.\n\\boxed{{{gold}}}",
        "bold kind": f"an **equilateral {gold}**" if not gold.isdigit() else f"**{gold} pieces**",
        "nothing": "I cannot tell.",
    }


def _math_comp(row: Row) -> dict[str, str]:
    gold = row["ground_truth"]
    if gold.isdigit():
        return _aime(gold)
    wrong = "ABCDE"[("ABCDE".index(gold) + 1) % 5]
    values = dict(re.findall(r"\\textbf{\(([A-E])\)\s?}(.*?)(?:\\qquad|\$)", row["question"]))
    made: dict[str, str] = {}
    for kind, letter in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} five times": f"{_THOUGHT}{letter * 5}",
            f"{kind} four times": f"{_THOUGHT}{letter * 4}",
            f"{kind} box": f"{_THOUGHT}$\\boxed{{{letter}}}$",
            f"{kind} box of five": f"{_THOUGHT}$\\boxed{{{letter * 5}}}$",
            f"{kind} box with text": f"{_THOUGHT}\\boxed{{\\text{{{letter}}}}}",
            f"{kind} box in bold": f"{_THOUGHT}\\boxed{{\\textbf{{({letter})}}}}",
            f"{kind} box of a bold letter": f"{_THOUGHT}$\\boxed{{\\mathbf{{{letter}}}}}$",
            f"{kind} last line": f"{_THOUGHT}{letter}",
            f"{kind} last line small": f"{_THOUGHT}{letter.lower()}",
            f"{kind} last line bold": f"{_THOUGHT}**{letter}**",
            f"{kind} last line in brackets": f"{_THOUGHT}**({letter})**",
            f"{kind} last line with value": f"{_THOUGHT}({letter}) {values.get(letter, '')}",
            f"{kind} sentence": f"{_THOUGHT}The answer is ({letter}).",
            f"{kind} plain sentence": f"{_THOUGHT}The answer is {letter}.",
            f"{kind} tag": f"{_THOUGHT}<solution>{letter}</solution>",
            f"{kind} tag of five": f"{_THOUGHT}<solution>{letter * 5}</solution>",
            f"{kind} label": f"{_THOUGHT}Answer: {letter}",
            f"{kind} value": f"{_THOUGHT}Hence the answer is {values.get(letter, '?').strip(' $~')}.",
        }
    return made | {
        "wrong, then right": f"{wrong * 5}? No, it must be {gold * 5}",
        "right, then wrong": f"{gold * 5}? No, it must be {wrong * 5}",
        "nothing": "I do not know.",
    }


def _aime(gold: str) -> dict[str, str]:
    wrong = f"{(int(gold) + 7) % 1000:03}"
    made: dict[str, str] = {}
    for kind, answer in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} last": f"{_THOUGHT}Hence {answer}",
            f"{kind} box": f"{_THOUGHT}$\\boxed{{{answer}}}$",
            f"{kind} tag": f"{_THOUGHT}<solution>{answer}</solution>",
            f"{kind} bold": f"{_THOUGHT}**{answer}**",
            f"{kind} without zeros": f"{_THOUGHT}The answer is {int(answer)}.",
            f"{kind} early": f"The answer is {answer}. {'That follows from what was shown above. ' * 2}",
        }
    return made | {"nothing": "I do not know."}


def _cta(row: Row) -> dict[str, str]:
    gold, wrong = row["ground_truth"], "latitude" if row["ground_truth"] != "latitude" else "id"
    made: dict[str, str] = {}
    for kind, name in (("right", gold), ("wrong", wrong)):
        made |= {
            f"{kind} bare": name,
            f"{kind} box": f"\\boxed{{{name}}}",
            f"{kind} box with text": f"The class is $\\boxed{{\\text{{{name}}}}}$.",
            f"{kind} bold": f"**{name}**",
            f"{kind} code": f"The column is `{name}`.",
            f"{kind} label": f"Output: {name}",
            f"{kind} small": name.lower(),
            f"{kind} without marks": re.sub(r"\W", "", name),
            f"{kind} label, then why": f"Answer: {name}\nThe values look like it.",
            f"{kind} phrase, then why": f"The answer is {name}. The values look like it.",
        }
    return made | {
        "both": f"{wrong} or {gold}",
        "box, then words": f"\\boxed{{{gold}}}\nI am sure.",
        "wrong box": f"\\boxed{{{wrong}}} {gold}",
    }


def _tablejoin(row: Row) -> dict[str, str]:
    gold = ast.literal_eval(row["ground_truth"])
    keys = list(gold)
    part = {key: gold[key] for key in keys[: max(1, len(keys) // 2)]}
    swapped = dict(zip(keys, [*list(gold.values())[1:], gold[keys[0]]], strict=True))
    more = gold | {"no such column": "x"}
    made: dict[str, str] = {}
    for kind, pairs in (("all", gold), ("part", part), ("swapped", swapped), ("more", more)):
        made |= {
            f"{kind} json": json.dumps(pairs),
            f"{kind} python": repr(pairs),
            f"{kind} fenced": f"Here it is:\n```python\n{json.dumps(pairs, indent=2)}\n```\nDone.",
            f"{kind} fenced json": f"```json\n{json.dumps(pairs)}\n```",
            f"{kind} tag": f"Here it is: <solution>{pairs!r}</solution>",
            f"{kind} prose before": f"Here is the mapping: {json.dumps(pairs)}",
        }
    fence = json.dumps(gold)
    texts = ", ".join(f"\\text{{{key!r}}}: \\text{{{value!r}}}" for key, value in gold.items())
    return made | {
        "box of texts": f"\\boxed{{\\{{{texts}\\}}}}",
        "null values": json.dumps(gold | {"other": None}),
        "assigned": f"```python\nmapping = {fence}\n```",
        "two fences": f"```python\n{json.dumps(swapped)}\n```\nBetter:\n```python\n{fence}\n```",
        "list of pairs": json.dumps([list(pair) for pair in gold.items()]),
        "nested": json.dumps({"mapping": gold}),
        "numbers": json.dumps(dict.fromkeys(gold, 1)),
        "cut short": fence[: len(fence) // 2],
        "box": f"\\boxed{{{fence}}}",
        "empty": "{}",
        "comment": "```python\n{\n" + "".join(f"  {k!r}: {v!r},  # fits\n" for k, v in gold.items()) + "}\n```",
    }


def _olympiad(row: Row) -> dict[str, str]:
    order = row["ground_truth"].split(",")
    swapped = [*order[1:2], *order[:1], *order[2:]]
    made: dict[str, str] = {}
    for kind, numbers in (("right", order), ("swapped", swapped), ("short", order[:-1] or ["0"])):
        text = ",".join(numbers)
        made |= {
            f"{kind} label": f"{_THOUGHT}Answer: {text}",
            f"{kind} blanks": f"{_THOUGHT}Answer: {', '.join(numbers)}",
            f"{kind} bold": f"{_THOUGHT}**Answer:** {', '.join(numbers)}",
            f"{kind} bold line": f"{_THOUGHT}**Answer: {', '.join(numbers)}**",
            f"{kind} point": f"{_THOUGHT}Answer: {text}.",
            f"{kind} next line": f"{_THOUGHT}Answer:\n{text}",
            f"{kind} box": f"{_THOUGHT}$\\boxed{{{text}}}$",
            f"{kind} last line": f"{_THOUGHT}{text}",
            f"{kind} in brackets": f"{_THOUGHT}Answer: <{text}>",
            f"{kind} label, box": f"{_THOUGHT}Answer: $\\boxed{{{text}}}$",
            f"{kind} expressions": f"{_THOUGHT}Answer: {', '.join(f'expression {n}' for n in numbers)}",
            f"{kind} first, then why": f"{text}\n\nThe others follow from these.",
            f"{kind} bold, then why": f"**{text}**\n\nThe others follow from these.",
            f"{kind} label, rule, remark": f"{_THOUGHT}**Answer:** {text}\n\n---\nTell me if that helps!",
        }
    return made | {"nothing": "I do not know.", "then words": f"Answer: {','.join(order)}\nThis is the order."}


def _web_of_lies(row: Row) -> dict[str, str]:
    gold = row["ground_truth"].split(", ")
    flipped = [{"yes": "no", "no": "yes"}.get(gold[0], "yes"), *gold[1:]]
    made: dict[str, str] = {}
    for kind, words in (("right", gold), ("wrong", flipped)):
        text = ", ".join(words)
        made |= {
            f"{kind} bold": f"{_THOUGHT}**{text}**",
            f"{kind} bold apart": f"{_THOUGHT}**{'**, **'.join(words)}**",
            f"{kind} bold upper": f"{_THOUGHT}**{', '.join(map(str.capitalize, words))}**",
            f"{kind} box": f"{_THOUGHT}$\\boxed{{{text}}}$",
            f"{kind} box with text": f"{_THOUGHT}$\\boxed{{\\text{{{text}}}}}$",
            f"{kind} tag": f"{_THOUGHT}<solution>{text}</solution>",
            f"{kind} plain": f"{_THOUGHT}{text}",
            f"{kind} sentence": f"{_THOUGHT}So the answer is: {text}.",
            f"{kind} lines": f"{_THOUGHT}" + "\n".join(f"{n}. **{word}**" for n, word in enumerate(words, 1)),
            f"{kind} without commas": f"{_THOUGHT}**{' '.join(words)}**",
        }
    return made | {"two": f"**{', '.join(gold[:2])}**", "nothing": "I cannot tell."}


def _zebra(row: Row) -> dict[str, str]:
    gold = row["ground_truth"]
    parts = [part.strip() for part in gold.split(",")]
    wrong = ", ".join(["nobody", *parts[1:]])
    made: dict[str, str] = {}
    for kind, text in (("right", ", ".join(parts)), ("wrong", wrong), ("upper", gold.title())):
        made |= {
            f"{kind} tag": f"{_THOUGHT}<solution>{text}</solution>",
            f"{kind} stars": f"{_THOUGHT}***{text}***",
            f"{kind} box": f"{_THOUGHT}$\\boxed{{{text}}}$",
            f"{kind} box with text": f"{_THOUGHT}$\\boxed{{\\text{{{text}}}}}$",
            f"{kind} last line": f"{_THOUGHT}{text}",
            f"{kind} last words": f"{_THOUGHT}The answer is {text}.",
            f"{kind} bold in the tag": f"{_THOUGHT}<solution>**{text}**</solution>",
        }
    blanks, longer = gold.replace("-", " "), re.sub(r"(\d)", r"1\1", ", ".join(parts))
    return made | {
        "without hyphens": f"<solution>{blanks}</solution>",
        "a digit more": f"<solution>{longer}</solution>",
        "position": f"<solution>position {', '.join(parts)}</solution>",
        "too few": f"<solution>{', '.join(parts[:-1]) or 'x'}</solution>",
        "two tags": f"<solution>{wrong}</solution> No: <solution>{', '.join(parts)}</solution>",
        "empty": "I cannot tell.",
    }


_FORMS: Mapping[str, Callable[[Row], dict[str, str]]] = {
    "spatial": _spatial,
    "math_comp": _math_comp,
    "cta": _cta,
    "tablejoin": _tablejoin,
    "tablereformat": tables.forms,
    "olympiad": _olympiad,
    "web_of_lies_v2": _web_of_lies,
    "zebra_puzzle": _zebra,
}


def original(folder: Path) -> Verdict:
    """Needs pandas and lxml."""
    sys.path.insert(0, str(folder))

    def scorer(path: str) -> ModuleType:
        return importlib.import_module(f"livebench.process_results.{path}.utils")

    contests, puzzles = scorer("math.math_competitions"), scorer("reasoning.zebra_puzzle")
    proofs = scorer("math.olympiad").proof_rearrangement_process_results
    by_task: Mapping[str, Callable[[Row, str], Any]] = {
        "spatial": lambda row, reply: scorer("reasoning.spatial").spatial_process_results(
            row["ground_truth"], reply
        ),
        "math_comp": lambda row, reply: (
            contests.aime_process_results(row["ground_truth"], reply)
            if row["subtask"].startswith("aime")
            else contests.mathcontest_process_results(row["ground_truth"], reply, row["question"])
        ),
        "cta": lambda row, reply: scorer("data_analysis.cta").cta_process_results(row["ground_truth"], reply),
        "tablejoin": lambda row, reply: scorer("data_analysis.tablejoin").joinmap_process_results(
            "", row["ground_truth"], reply
        ),
        "tablereformat": lambda row, reply: scorer("data_analysis.tablereformat").table_process_results(
            row["question"], row["ground_truth"], reply
        ),
        "olympiad": lambda row, reply: proofs(row["ground_truth"], reply, edit_distance=True),
        "web_of_lies_v2": lambda row, reply: scorer("reasoning.web_of_lies_v2").web_of_lies_process_results(
            row["ground_truth"], reply
        ),
        "zebra_puzzle": lambda row, reply: puzzles.get_zebra_puzzle_evaluator(row["livebench_release_date"])(
            row["ground_truth"], reply
        ),
    }

    def verdict(row: Row, reply: str) -> float | None:
        with redirect_stdout(StringIO()):
            try:
                return float(by_task[row["task"]](row, reply))
            except Exception:
                return 0.0

    return verdict


_STARS = (
    "of the questions of 2024-06, some have answers with a hyphen or a blank; the original reads one word only"
)
_FONTS = "the original takes some commands of fonts out of a box, ours all"
COMPARISON = Comparison(
    name="livebench",
    benchmarks=("livebench",),
    scorer="LiveBench `process_results`",
    compared=WHOLE,
    repository="LiveBench/LiveBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("livebench"),
    known={
        "math_comp/right, then wrong": "the original counts a letter that is written four times anywhere, "
        "whatever follows; ours takes the last",
        "zebra_puzzle/right stars": _STARS,
        "zebra_puzzle/upper stars": _STARS,
        "math_comp/right box of a bold letter": _FONTS,
        "spatial/right box in upright letters": _FONTS,
        "spatial/right, then wrong": "the original takes any of the last three in bold, so a reply that names three "
        "numbers is mostly right; ours the last",
        "zebra_puzzle/a digit more": "the original finds `1` in `11`; ours takes whole numbers",
    },
)
