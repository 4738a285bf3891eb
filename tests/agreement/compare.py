# SPDX-License-Identifier: Apache-2.0
"""How two scorers are compared: rows, forms of replies to each, recorded verdicts of the original."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from newskills.base.records import Row
from tests.graders.plain import plain_grader

RECORDED = Path(__file__).parent / "recorded"
CLOSE = 0.005
"""Scores of 0–1 that differ by less agree: originals round to two digits."""

WHOLE = "whole scorer"
EXTRACTION = "reading of the reply"
ANSWERS = "comparison of answers"
CALLS = "comparison of calls"
OUTPUTS = "comparison of outputs"
PROGRAMS = "verdicts on programs"
VERDICTS = "reading of the judge's verdict"
FIGURES = "figures made of verdicts"
JUDGED = f"{VERDICTS}, {FIGURES}"
PARTS = {
    WHOLE: "from the text of a reply to its score",
    EXTRACTION: "the letter or the program that is taken from a reply; not what it is worth",
    ANSWERS: "an answer and the expected one; the original is given the answer, which ours takes from a reply",
    CALLS: "calls of tools and those wanted, as they are",
    OUTPUTS: "what programs or queries give and what was expected; not how they are run",
    PROGRAMS: "programs and their tests, which both run; not how a program is taken from a reply",
    VERDICTS: "what is read in the text of a judge; no judge was asked, and the texts of judges are invented",
    FIGURES: "what is counted from given verdicts, marks or probabilities; not how these are found",
}
"""What of a scorer was compared → what that means."""

Forms = Callable[[Row], Mapping[str, Any]]
"""A row → replies to it, each by the name of its form."""
Verdict = Callable[[Row, Any], float | None]
"""(row, reply) → score, 0–1; None where the scorer gives none."""


class Comparison(Struct, kw_only=True):
    """An official scorer, and ours.

    `compared`: which part of a scorer, of `PARTS`. `original` makes the official scorer out of a folder that holds a
    checkout of `repository`; where it is a package (`package`), it runs in the test itself, and nothing is recorded.
    `known` explains disagreements: `task/form` or `form` → reason. `left_out`: what of the original was not run, and
    why, in a sentence.
    """

    name: str
    benchmarks: tuple[str, ...]
    scorer: str
    compared: str
    forms: Forms
    ours: Verdict
    original: Callable[[Path], Verdict]
    rows: Callable[[], Iterator[Row]]
    repository: str = ""
    package: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    left_out: str = ""

    @property
    def file(self) -> Path:
        return RECORDED / f"{self.name}.jsonl"


class Judged(Struct):
    """A reply with both verdicts."""

    row: Row
    form: str
    reply: Any
    official: float
    ours: float | None

    @property
    def agrees(self) -> bool:
        return abs((self.ours or 0.0) - self.official) < CLOSE

    @property
    def key(self) -> str:
        task = self.row.get("task")
        return f"{task}/{self.form}" if task else self.form


def by_grader(name: str, config: Row | None = None, value: str = "symbolic_correct") -> Verdict:
    """The field `value` of what the grader `name` says; replies are a text, or fields of the record."""
    grader = plain_grader(name, config or {})

    def verdict(row: Row, reply: Any) -> float | None:
        fields = reply if isinstance(reply, dict) else {"generation": reply}
        said = grader.grade({**row, **fields}).fields.get(value)
        return None if said is None else float(said)

    return verdict


def digest(reply: Any) -> str:
    """Eight characters by which a reply is known again."""
    text = reply if isinstance(reply, str) else json.dumps(reply, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def record(comparison: Comparison, folder: Path, commit: str) -> int:
    """Runs the original of `folder` on every reply and writes its verdicts; returns how many there are."""
    original = comparison.original(folder)
    head = {"scorer": comparison.scorer, "repository": comparison.repository, "commit": commit}
    lines: list[Row] = [head]
    count = 0
    for row in comparison.rows():
        verdicts: dict[str, list[Any]] = {}
        for form, reply in comparison.forms(row).items():
            if (score := original(row, reply)) is not None:
                verdicts[form] = [round(float(score), 4), digest(reply)]
        count += len(verdicts)
        lines.append({"row": row, "verdicts": verdicts})
    comparison.file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return count


def judged(comparison: Comparison) -> Iterator[Judged]:
    """Every reply with both verdicts. Raises ValueError where a reply is not the one that was recorded."""
    if comparison.package:
        original = comparison.original(Path())
        for row in comparison.rows():
            for form, reply in comparison.forms(row).items():
                if (score := original(row, reply)) is not None:
                    yield Judged(row, form, reply, score, comparison.ours(row, reply))
        return
    _, *lines = [json.loads(line) for line in comparison.file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        replies = comparison.forms(line["row"])
        for form, (score, known) in line["verdicts"].items():
            if digest(replies[form]) != known:
                raise ValueError(f"{comparison.name}: the reply '{form}' changed; record it again")
            yield Judged(line["row"], form, replies[form], score, comparison.ours(line["row"], replies[form]))


def commit(comparison: Comparison) -> str:
    """The commit of the original whose verdicts are recorded."""
    with comparison.file.open(encoding="utf-8") as lines:
        return str(json.loads(next(lines))["commit"])
