# SPDX-License-Identifier: Apache-2.0
"""LongBench (arXiv:2308.14508): a measure for each task; its English ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.long_context.question_sets import longbench_row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_SUMMARY = (
    "The council met on Monday. It agreed to repair the old bridge by June. The mayor thanked all of the engineers. "
    "Costs rise to 2.5 million."
)
_GOLDS: Mapping[str, tuple[str, ...]] = {
    "hotpotqa": ("Richard of Bordeaux", "the 1962 election", "yes"),
    "narrativeqa": ("He wants to save his brother's farm.", "In a small house by the sea"),
    "gov_report": (_SUMMARY, "The audit finds three gaps. None of them was closed in 2024."),
    "qmsum": ("The team chose the blue remote because it was cheaper. They will meet again.",),
    "samsum": ("Anna will be late, so Tom takes the kids. They meet at 6.",),
    "trec": ("Individual", "Other location", "Expression abbreviated"),
    "passage_count": ("7", "12"),
    "passage_retrieval_en": ("Paragraph 7", "Paragraph 21"),
    "lcc": ("        return self._items[index] + 1", "    for name in sorted(names):"),
    "repobench-p": ("    public void close() throws IOException {",),
}
_FENCED = ("trec/a comment before", "trec/a fence")
_CLASSES = ["Individual", "Other location", "Expression abbreviated", "Date", "Group or organization of person"]


def rows() -> Iterator[Row]:
    for task, golds in _GOLDS.items():
        for gold in golds:
            raw = {
                "dataset": task,
                "_id": "",
                "input": "",
                "context": "",
                "answers": [gold, gold],
                "language": "en",
            }
            row = longbench_row({**raw, "all_classes": _CLASSES if task == "trec" else None}, 0)
            yield {"task": task, **{key: row[key] for key in ("answers", "all_classes", "measure", "language")}}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["answers"][0]
    words = gold.split()
    return {
        "the same": gold,
        "small letters": gold.lower(),
        "point": f"{gold}.",
        "first half": " ".join(words[: max(1, len(words) // 2)]),
        "second half": " ".join(words[len(words) // 2 :]),
        "every other word": " ".join(words[::2]),
        "reversed": " ".join(words[::-1]),
        "twice": f"{gold} {gold}",
        "a word more": f"{gold} indeed",
        "a sentence": f"It is {gold}",
        "sentences swapped": ". ".join(reversed(gold.rstrip(".").split(". "))),
        "a comment before": f"# the next line\n{gold}",
        "a fence": f"```\n{gold}\n```",
        "another": "Nobody knows",
        "another number": "There are 3 of 7",
        "two classes": f"{gold} or Date",
        "no blanks": gold.replace(" ", ""),
        "a letter less": gold[:-1],
        "lines": gold.replace(" ", "\n", 2),
    }


def original(folder: Path) -> Verdict:
    """Needs rouge. Its `fuzz.ratio`, without C code, is difflib's in percent; Chinese is not compared."""

    def ratio(first: str, second: str) -> int:
        return round(100 * SequenceMatcher(None, first, second).ratio())

    for name in ("jieba", "fuzzywuzzy"):
        sys.modules[name] = ModuleType(name)
    sys.modules["fuzzywuzzy"].fuzz = SimpleNamespace(ratio=ratio)  # type: ignore[attr-defined]
    sys.modules["metrics"] = loaded(folder / "LongBench" / "metrics.py")
    import_module("numpy")
    script = loaded(folder / "LongBench" / "eval.py")

    def verdict(row: Row, reply: Any) -> float:
        return float(script.scorer(row["task"], [reply], [row["answers"]], row["all_classes"])) / 100

    return verdict


COMPARISON = Comparison(
    name="longbench",
    benchmarks=("longbench",),
    scorer="LongBench `eval.py`, English tasks",
    compared=WHOLE,
    repository="THUDM/LongBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("long_text", value="score"),
    known=dict.fromkeys(
        (*(f"samsum/{form}" for form in ("a comment before", "a fence", "lines")), *_FENCED),
        "of these tasks the original reads the first line only, where base models go on with examples",
    ),
)
