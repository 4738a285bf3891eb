# SPDX-License-Identifier: Apache-2.0
"""KOR-Bench (arXiv:2410.06526): answers of every rule of its five fields."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.reasoning.kor_bench import row as prepared
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.data import mirrored

_SAMPLES = "raw.githubusercontent.com/KOR-Bench/KOR-Bench/*/data/{}/sample.jsonl"
_LONGEST = 160
_BOTH = 10


def rows() -> Iterator[Row]:
    """The first and the last question of each rule whose answer is not long."""
    for category in ("cipher", "counterfactual", "logic", "operation", "puzzle"):
        by_rule: dict[str, list[Row]] = {}
        for line in mirrored(_SAMPLES.format(category)):
            if len(line["answer"]) <= _LONGEST:
                by_rule.setdefault(str(line["rule_id"]), []).append(line)
        for rule, lines in by_rule.items():
            few = category in ("cipher", "counterfactual") and int(rule) > _BOTH
            for line in lines[:1] if few else [lines[0], lines[-1]]:
                made = prepared({**line, "category": category, "rule_content": ""}, 0)
                kept = ("id", "rule_id", "expected_answer", "raw_answer")
                yield {"task": category, **{name: made[name] for name in kept}}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    changed = re.sub(r"[A-Za-z0-9]", lambda match: _NEXT.get(match[0], match[0]), gold, count=1)
    parts = re.split(r"([;,])", gold)
    turned = "".join(reversed(parts))
    return {
        "right": f"[[{gold}]]",
        "in a sentence": f"Let us apply the rule step by step.\n\nSo the answer is [[{gold}]].",
        "in bold": f"**[[{gold}]]**",
        "blanks around": f"[[ {gold} ]]",
        "blanks within": f"[[{gold.replace(',', ', ').replace(';', '; ')}]]",
        "without blanks": f"[[{re.sub(chr(92) + 's', '', gold)}]]",
        "quotation marks": f'[["{gold}"]]',
        "small letters": f"[[{gold.lower()}]]",
        "changed": f"[[{changed}]]",
        "one more": f"[[{gold}1]]",
        "parts turned": f"[[{turned}]]",
        "half of it": f"[[{gold[: len(gold) // 2] or '?'}]]",
        "box": f"$\\boxed{{{gold}}}$",
        "nothing": "I do not know.",
    }


_NEXT = dict(zip("ABCDEFGHIJ0123456789abcdef", "BCDEFGHIJA1234567890bcdefa", strict=True))


def original(folder: Path) -> Verdict:
    """Needs sympy with antlr4-python3-runtime 4.11."""
    sys.path.insert(0, str(folder))
    utils: Any = importlib.import_module("eval.eval_utils")

    def verdict(row: Row, reply: Any) -> float:
        _, category, number = row["id"].split("-")
        return float(
            utils.evaluate_response_vs_answer(reply, row["raw_answer"], category, str(row["rule_id"]), number)
        )

    return verdict


COMPARISON = Comparison(
    name="kor-bench",
    benchmarks=("kor-bench",),
    scorer="KOR-Bench `eval_utils.py`",
    compared=WHOLE,
    repository="KOR-Bench/KOR-Bench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("new_rules"),
    known={
        "puzzle/box": "of puzzles the original reads `[[…]]` only; ours a box, too, which the prompt asks for",
        "puzzle/quotation marks": "the original drops quotation marks in all fields but puzzles; ours everywhere",
        "puzzle/half of it": "the original takes any part of the right words, a single letter, too; ours a word",
        "operation/small letters": "the original compares the name of a variable; ours the bounds",
    },
)
