# SPDX-License-Identifier: Apache-2.0
"""Arena-Hard (arXiv:2406.11939): the verdict in the text of a judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.judges.arena import arena_label
from tests.agreement.compare import VERDICTS, Comparison, Verdict
from tests.agreement.originals import defined

_WHY = "Assistant A is concise. Assistant B cites [A=B] nowhere, but explains more.\n\n"
_PLAIN = "Assistant A is concise, B explains more.\n\n"
_VERDICTS = ("A>>B", "A>B", "A=B", "B>A", "B>>A", "A<B", "A<<B", "B=A", "B<A", "B<<A")
_WORTH = {
    "A>>B": 1.0,
    "A>B": 0.8,
    "A=B": 0.5,
    "B>A": 0.2,
    "B>>A": 0.0,
    "A<B": 0.2,
    "A<<B": 0.0,
    "B<<A": 1.0,
    "B<A": 0.8,
    "B=A": 0.5,
}


def rows() -> Iterator[Row]:
    for verdict in _VERDICTS:
        yield {"verdict": verdict}


def forms(row: Row) -> Mapping[str, str]:
    verdict = row["verdict"]
    return {
        "as wanted": f"{_PLAIN}My final verdict is: [[{verdict}]]",
        "alone": f"[[{verdict}]]",
        "bold": f"{_PLAIN}My final verdict is: **[[{verdict}]]**",
        "bold sentence": f"{_PLAIN}**My final verdict is: [[{verdict}]]**",
        "heading": f"{_PLAIN}### Final verdict\n\n[[{verdict}]]",
        "single brackets": f"{_PLAIN}My final verdict is: [{verdict}]",
        "single in bold": f"{_PLAIN}**[{verdict}]**",
        "in words": f"{_PLAIN}Assistant A is significantly better: [[{verdict}]]",
        "words after": f"{_PLAIN}[[{verdict}]]: one of them is better.",
        "small letters": f"{_PLAIN}My final verdict is: [[{verdict.lower()}]]",
        "twice": f"[[{verdict}]]\n{_PLAIN}[[{verdict}]]",
        "first": f"[[{verdict}]]\n\n{_PLAIN}",
        "single elsewhere": f"{_WHY}My final verdict is: [[{verdict}]]",
        "changed": f"First I thought [[A=B]].\n{_PLAIN}My final verdict is: [[{verdict}]]",
        "offered": f"Output one of [[A>>B]], [[A>B]], [[A=B]].\nMy final verdict is: [[{verdict}]]",
        "thought before": f"<think>Maybe [[A>B]].</think>\n{_PLAIN}[[{verdict}]]",
        "code": f"{_PLAIN}`[[{verdict}]]`",
        "box": f"{_PLAIN}\\boxed{{[[{verdict}]]}}",
        "blanks within": f"{_PLAIN}[[ {verdict} ]]",
        "no brackets": f"{_PLAIN}My final verdict is: {verdict}",
        "nothing": _PLAIN,
        "cut off": f"{_PLAIN}My final verdict is: [[{verdict[:2]}",
        "Chinese brackets": f"{_PLAIN}【【{verdict}】】",
        "line break": f"{_PLAIN}My final verdict is:\n[[{verdict}]]\n",
        "tie in words": f"{_PLAIN}It is a tie, relatively the same: [[{verdict}]].",
        "JSON": f'{{"verdict": "[[{verdict}]]"}}',
        "stars within": f"{_PLAIN}[[**{verdict}**]]",
        "quoted": f'{_PLAIN}"[[{verdict}]]"',
        "list": f"{_PLAIN}- Verdict: [[{verdict}]]",
        "table": f"{_PLAIN}| verdict |\n|---|\n| [[{verdict}]] |",
    }


def ours(row: Row, reply: Any) -> float:
    return _WORTH.get(str(arena_label(reply)), -1.0)


def original(folder: Path) -> Verdict:
    score = defined(folder / "gen_judgment.py", "get_score", re=re).get_score
    config = (folder / "config" / "arena-hard-v2.0.yaml").read_text(encoding="utf-8")
    patterns = re.findall(r"- (\\\[.+)", config.partition("regex_patterns:")[2])[:2]

    def verdict(row: Row, reply: Any) -> float:
        return _WORTH.get(str(score(reply, patterns)), -1.0)

    return verdict


COMPARISON = Comparison(
    name="arena-hard",
    benchmarks=("arena-hard", "arena-hard-v2"),
    scorer="Arena-Hard-Auto `gen_judgment.py`, reading of the judge",
    compared=VERDICTS,
    repository="lmarena/arena-hard-auto",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
