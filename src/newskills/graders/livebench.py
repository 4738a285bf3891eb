# SPDX-License-Identifier: Apache-2.0
"""Tasks of LiveBench (arXiv:2406.19314) that rules can score, each by the form that its question asks for.

Code has a grader of its own. A reply may be worth a part: tables that are joined, proofs that are put in order,
puzzles and instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from newskills.base.errors import ConfigError
from newskills.base.protocols import Grader
from newskills.base.records import Row, Score
from newskills.graders.exact import final_answer
from newskills.graders.math.extraction.extract import ExtractionPolicy, extract
from newskills.graders.reading import tables
from newskills.graders.reading.overlap import edit_distance
from newskills.graders.reading.replies import decided, unanswered, unscored, visible

if TYPE_CHECKING:
    from newskills.graders.instructions.grader import IFEvalGrader

Scorer = Callable[[str, str, Row], float | None]
"""(reply, right answer, record) → worth, 0–1; None where there is no answer."""

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_FIGURES = {word: str(number) for number, word in enumerate(_NUMBERS.split())}
_SHAPES = ("tetrahedra", "tetrahedron", "triangle", "square")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_TRIPLE = re.compile(r"\*\*\*([^*\n]{1,200})\*\*\*")
_REPEATED = re.compile(r"([A-F])\1{3,}")
_OPTION = re.compile(r"\\textbf\{\(([A-E])\)\s?\}(.{1,200}?)(?:\\qquad|\$)")
_INTEGER = re.compile(r"\d{1,9}")
_YES_NO = re.compile(r"\b(?:yes|no|unknown)\b")
_WORD = re.compile(r"\w+")
_SAID = {
    "AMPS_Hard": "\\boxed{{{}}}",
    "spatial": "**{}**",
    "web_of_lies_v2": "**{}**",
    "olympiad": "Answer: {}",
}
_TAIL = 50
_PARTIAL_SINCE = "2024-11-25"


class LiveBenchGrader:
    """Records have `task`, `ground_truth`, `question`. Fields written: `symbolic_correct` (0–1), `predicted_answer`."""

    name = "livebench"
    version = "2"

    def gold_reply(self, record: Row) -> str | None:
        """In the form that the task asks for; None for instructions, which have no right answer."""
        truth, task = record.get("ground_truth"), str(record.get("task"))
        if truth is None or task not in SCORERS.keys() | {"AMPS_Hard"}:
            return None
        if task == "zebra_puzzle":
            return (
                f"<solution>{truth}</solution>"
                if "<solution>" in str(record.get("question"))
                else f"***{truth}***"
            )
        repeated = task == "math_comp" and not truth.isdigit()
        return _SAID.get(task, "{}").format(truth * 5 if repeated else truth)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        task = str(record.get("task"))
        text = visible(str(record.get("generation") or ""))
        if task == "AMPS_Hard":
            return self._mathematics(record, stamp)
        if task == "paraphrase":
            return self._instructions(record, stamp)
        scorer, gold = SCORERS.get(task), record.get("ground_truth")
        if scorer is None or gold is None:
            why = f"the task '{task}' is not known" if scorer is None else "the record has no ground_truth"
            return unscored(stamp, why, {"predicted_answer": None, "symbolic_correct": None})
        worth = scorer(text, str(gold), record) if text else None
        if worth is None:
            return unanswered(stamp, record, {"predicted_answer": None, "symbolic_correct": 0.0})
        fields: Row = {"predicted_answer": text[-_TAIL:] if text else None, "symbolic_correct": worth}
        return decided(stamp, worth == 1.0, fields, f"worth {worth:.2f}", worth)

    def _mathematics(self, record: Row, stamp: str) -> Score:
        score = self._math.grade({**record, "expected_answer": record.get("ground_truth")})
        score.grader = stamp
        return score

    def _instructions(self, record: Row, stamp: str) -> Score:
        """Half for each instruction, half for all of them."""
        score = self._checks.grade(record)
        strict = score.fields.get("strict_eval")
        score.grader = stamp
        if not strict:
            score.fields = {"predicted_answer": None, "symbolic_correct": None}
            return score
        followed: Sequence[bool] = strict["follow_instruction_list"]
        worth = (sum(followed) / len(followed) + all(followed)) / 2
        answered = score.outcome != "no_answer"
        score.value = worth
        score.fields |= {"predicted_answer": "" if answered else None, "symbolic_correct": worth}
        return score

    @cached_property
    def _math(self) -> Grader:
        from newskills.graders.math.grader import MathGrader

        return MathGrader()

    @cached_property
    def _checks(self) -> IFEvalGrader:
        from newskills.graders.instructions.grader import IFEvalGrader

        return IFEvalGrader()


def _column_class(text: str, gold: str, record: Row) -> float | None:
    """The name of a class, at the end of the reply."""
    answer, wanted = _letters(final_answer(text) or text), _letters(gold)
    return float(answer == wanted or _letters(text).endswith(wanted))


def _letters(text: str) -> str:
    return "".join(_WORD.findall(text.lower()))


def _join(text: str, gold: str, record: Row) -> float | None:
    """F1 of the pairs of columns."""
    wanted, columns = tables.mapping(gold), tables.mapping(text)
    if columns is None or wanted is None:
        return None
    right = sum(wanted.get(column) == other for column, other in columns.items())
    false, missing = len(columns) - right, sum(columns.get(column) != other for column, other in wanted.items())
    return round(2 * right / (2 * right + false + missing), 2) if right else 0.0


def _contest(text: str, gold: str, record: Row) -> float | None:
    """Three digits at the end (AIME), or a letter written five times, in a box, or as its value at the end (AMC)."""
    if gold.isdigit():
        return float(gold in text[-_TAIL:])
    if letters := _REPEATED.findall(text):
        return float(letters[-1] == gold)
    extracted = extract(text, ExtractionPolicy())
    if extracted.how in ("box", "phrase") and extracted.answer is not None:
        bare = re.sub(r"\\text(?:bf)?|[{}()\s.]", "", extracted.answer)
        if len(bare) == 1 and bare.isalpha():
            return float(bare.upper() == gold)
    values = dict(_OPTION.findall(str(record.get("question"))))
    value = str(values.get(gold, "")).strip(" $~")
    return float(bool(value) and value in text[-20 - len(value) :])


def _proof_order(text: str, gold: str, record: Row) -> float | None:
    """One minus the edit distance of the two sequences of formulas, as a share of the longer."""
    ending = final_answer(text) or text.rsplit("\n", 1)[-1]
    order, wanted = _INTEGER.findall(ending), [str(int(number)) for number in gold.split(",")]
    order = [str(int(number)) for number in order][: 4 * len(wanted)]
    return 1.0 - edit_distance(order, wanted) / max(len(order), len(wanted)) if order else None


def _spatial(text: str, gold: str, record: Row) -> float | None:
    """One of the last three texts in bold: the number, in figures or words, or the shape."""
    bold = [word.strip().lower().rstrip(".") for word in _BOLD.findall(text)][-3:]
    wanted = gold.strip().lower()
    for word in bold:
        near = wanted in _SHAPES and wanted in word and len(word) < 2 * len(wanted) + 5
        if word == wanted or _FIGURES.get(word) == wanted or near:
            return 1.0
    return 0.0 if bold else None


def _web_of_lies(text: str, gold: str, record: Row) -> float | None:
    """The last three of yes, no and unknown in bold, in the tag or the box; else of the last line."""
    marked = tables.tagged(text) or " ".join(_BOLD.findall(text)) or extract(text, ExtractionPolicy()).answer
    answers = _YES_NO.findall((marked or text.rsplit("\n", 1)[-1]).lower())[-3:]
    return float(", ".join(answers) == gold.strip().lower()) if answers else None


def _zebra(text: str, gold: str, record: Row) -> float | None:
    """Several answers in the tag: half for each, half for all. In the older form one word between three stars."""
    if str(record.get("livebench_release_date", _PARTIAL_SINCE))[:10] < _PARTIAL_SINCE:
        marked = _TRIPLE.findall(text) or _WORD.findall(text)[-1:]
        answer = marked[-1].strip().lower() if marked else ""
        wanted = gold.strip().lower()
        return float(wanted in (answer, _FIGURES.get(answer), f"{answer} movies")) if answer else None
    golds = [_plain(part) for part in gold.split(",")]
    solution = tables.tagged(text) or extract(text, ExtractionPolicy()).answer or text.rsplit("\n", 1)[-1]
    parts = [_plain(part) for part in solution.split(",")]
    right = sum(_contains(part, wanted) for part, wanted in zip(parts, golds, strict=False))
    return ((right == len(golds)) + right / len(golds)) / 2


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("-", " ").replace("position", "").split())


def _contains(answer: str, wanted: str) -> bool:
    return answer == wanted or re.search(rf"\b{re.escape(wanted)}\b", answer) is not None


def _reformat(text: str, gold: str, record: Row) -> float | None:
    form = re.search(r"format to (\w{2,10}) format", str(record.get("question")))
    if form is None:
        raise ConfigError("The question does not say the format of the table.")
    wanted = tables.read(form[1].lower(), gold)
    if wanted is None:
        raise ConfigError("The right table cannot be read.")
    rows = tables.read(form[1].lower(), text, list(wanted[0]))
    return float(rows is not None and tables.same(rows, wanted))


SCORERS: Mapping[str, Scorer] = {
    "cta": _column_class,
    "tablejoin": _join,
    "tablereformat": _reformat,
    "math_comp": _contest,
    "olympiad": _proof_order,
    "spatial": _spatial,
    "web_of_lies_v2": _web_of_lies,
    "zebra_puzzle": _zebra,
}
