# SPDX-License-Identifier: Apache-2.0
"""Tasks of LiveBench (arXiv:2406.19314) that rules can score, each by the form that its question asks for.

Code has a grader of its own. A reply may be worth a part: tables that are joined, proofs that are put in order,
puzzles and instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from newskills.base.errors import ConfigError
from newskills.base.protocols import Grader
from newskills.base.records import Row, Score
from newskills.graders.reading import tables
from newskills.graders.reading.overlap import edit_distance
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply

if TYPE_CHECKING:
    from newskills.graders.instructions.grader import IFEvalGrader

Scorer = Callable[[str, str, Row], float | None]
"""(reply, right answer, record) → worth, 0–1; None where there is no answer."""

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_FIGURES = {word: str(number) for number, word in enumerate(_NUMBERS.split())}
_NAMES = {figure: word for word, figure in _FIGURES.items()}
_SHAPES = ("tetrahedra", "tetrahedron", "triangle", "square")
_BOLD = re.compile(r"\*\*([^*]{1,2000})\*\*")
_BOLD_LINE = re.compile(r"\*\*([^\n]*?)\*\*")
_TRIPLE = re.compile(r"\*\*\*([^*\n]{1,200})\*\*\*")
_REPEATED = re.compile(r"([A-F])\1{3,}")
_OPTION = re.compile(r"\\textbf\{\(([A-E])\)\s?\}(.{1,200}?)(?:\\qquad|\$)")
_DIGITS = re.compile(r"\d+")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_WRAPPERS = re.compile(r"\\(?:text(?:bf)?|math(?:bf|rm))\{")
_ORDER = "answer:"
_ORDER_MARKS = re.compile(r"[${}\\<>]|boxed")
_TRUTHS = ("yes", "no", "unknown")
_LISTS = re.compile(r"(?=((?:yes|no|unknown), (?:yes|no|unknown), (?:yes|no|unknown)))")
_WORD = re.compile(r"\w+")
_SAID = {
    "AMPS_Hard": "\\boxed{{{}}}",
    "spatial": "**{}**",
    "web_of_lies_v2": "**{}**",
    "olympiad": "Answer: {}",
}
_CONSTANT = re.compile(r"\+\s?[Cc](?![a-zA-Z])")
_LETTER_C = re.compile(r"(?<![a-zA-Z])[Cc](?![a-zA-Z])")
_LAST_FORMULA = re.compile(r"\$([^$]{1,2000})\$\$?[^$]*\Z")
_INSTRUCTIONS = ("paraphrase", "simplify", "story_generation", "summarize")
_TAIL = 50
_THREE_DIGITS = re.compile(r"(?<!\d)\d{3}(?!\d)")
_MOST_NUMBERS = 4
_WORDS_BESIDE = 5
"""Words that may stand beside a right answer to a part of a puzzle ("the person at position 3")."""
_LONGEST_NUMBER = 19
_PARTIAL_SINCE = "2024-11-25"


class LiveBenchGrader:
    """Records have `task`, `ground_truth`, `question`. Fields written: `symbolic_correct` (0–1), `predicted_answer`."""

    name = "livebench"
    version = "9"
    answer_keys = ("generation",)

    def gold_reply(self, record: Row) -> str | None:
        """Return the right answer in the form that the task asks for; None for instructions, which have none."""
        truth, task = record.get("ground_truth"), str(record.get("task"))
        if truth is None or task not in SCORERS.keys() | {"AMPS_Hard"}:
            return None
        if task == "zebra_puzzle":
            if "<solution>" in str(record.get("question")):
                return f"<solution>{truth}</solution>"
            return f"***{truth}***"
        if task == "math_comp" and not truth.isdigit():
            truth *= 5
        return _SAID.get(task, "{}").format(truth)

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        task = str(record.get("task"))
        text = visible_reply(str(record.get("generation") or ""))
        if task == "AMPS_Hard":
            return self._grade_mathematics(record, stamp)
        if task in _INSTRUCTIONS:
            return self._grade_instructions(record, stamp)
        scorer, gold = SCORERS.get(task), record.get("ground_truth")
        if scorer is None or gold is None:
            why = "the record has no ground_truth"
            if scorer is None:
                why = f"the task '{task}' is not known"
            return ungradable_score(stamp, why, {"predicted_answer": None, "symbolic_correct": None})
        value = None
        if text:
            value = scorer(text, str(gold), record)
        if not text or value is None:
            return no_answer_score(stamp, record, {"predicted_answer": None, "symbolic_correct": 0.0})
        fields: Row = {"predicted_answer": text[-_TAIL:], "symbolic_correct": value}
        return verdict_score(stamp, value == 1.0, fields, f"worth {value:.2f}", value)

    def _grade_mathematics(self, record: Row, stamp: str) -> Score:
        truth = record.get("ground_truth")
        reply = _with_formula(visible_reply(str(record.get("generation") or "")) or "", str(truth))
        score = self._math_grader.grade({**record, "generation": reply, "expected_answer": truth})
        score.grader = stamp
        return score

    def _grade_instructions(self, record: Row, stamp: str) -> Score:
        """Grade instructions: half by the share that is followed, half for following all of them."""
        score = self._ifeval_grader.grade(record)
        strict = score.fields.get("strict_eval")
        score.grader = stamp
        if not strict:
            score.fields = {"predicted_answer": None, "symbolic_correct": None}
            return score
        followed: Sequence[bool] = strict["follow_instruction_list"]
        score.value = (sum(followed) / len(followed) + all(followed)) / 2
        predicted_answer = None if score.outcome == "no_answer" else ""
        score.fields |= {"predicted_answer": predicted_answer, "symbolic_correct": score.value}
        return score

    @cached_property
    def _math_grader(self) -> Grader:
        from newskills.graders.math.grader import MathGrader

        return MathGrader()

    @cached_property
    def _ifeval_grader(self) -> IFEvalGrader:
        from newskills.graders.instructions.grader import IFEvalGrader

        return IFEvalGrader()


def _with_formula(text: str, gold: str) -> str:
    """Return the reply without a constant of integration that `gold` lacks; where it has no box, its last formula in
    one."""
    if _LETTER_C.search(gold) is None:
        text = _CONSTANT.sub("", text)
    if "\\boxed" in text or "\\fbox" in text or (formula := _LAST_FORMULA.search(text)) is None:
        return text
    return f"\\boxed{{{formula[1].rpartition('=')[2].strip()}}}"


def _last_box(text: str) -> str | None:
    """Return the content of the last box, without dollars; None where there is none."""
    if "\\boxed " in text:
        return text.rsplit("\\boxed ", 1)[1].split("$", 1)[0]
    name = "\\boxed" if "\\boxed" in text else "\\fbox"
    start = text.rfind(name)
    first, depth = text.find("{", start), 0
    ends = range(max(first, 0), len(text)) if start >= 0 <= first else ()
    for end in ends:
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[first + 1 : end].replace("$", "")
    return None


def _without_fonts(box: str) -> str:
    """Remove the commands of fonts around the answer."""
    return _WRAPPERS.sub("", box).replace("}", "").replace("\\", "")


def _last_line(text: str) -> str:
    return text.rsplit("\n", 1)[-1]


def _column_class(text: str, gold: str, record: Row) -> float | None:
    """Return 1.0 where the box, or the reply if it has none, ends with the name of the class, else 0.0."""
    box = _last_box(text)
    class_text = text if box is None else _without_fonts(box)
    return float(_plain_letters(class_text).endswith(_plain_letters(gold)))


def _plain_letters(text: str) -> str:
    return "".join(_WORD.findall(text.lower()))


def _score_table_join(text: str, gold: str, record: Row) -> float | None:
    """Return the F1 of the pairs of columns."""
    wanted, columns = tables.read_mapping(gold), tables.read_mapping(text)
    if columns is None or wanted is None:
        return None
    right = sum(wanted.get(column) == other for column, other in columns.items())
    false, missing = len(columns) - right, sum(columns.get(column) != other for column, other in wanted.items())
    return round(2 * right / (2 * right + false + missing), 2) if right else 0.0


def _score_contest(text: str, gold: str, record: Row) -> float | None:
    """Judge three digits near the end (AIME), where not many such numbers stand; or a letter (AMC).

    A letter is written four times or more, in the tag, in a box, alone or in brackets in the last line; or its value
    stands at the end. Two letters that are repeated are one answer, the last.
    """
    if gold.isdigit():
        numbers = set(_THREE_DIGITS.findall(text[-_TAIL:]))
        return float(gold in text[-_TAIL:] and len(numbers) <= _MOST_NUMBERS)
    if letters := _REPEATED.findall(text):
        return float(letters[-1] == gold)
    tag, box, last = tables.last_solution(text), _last_box(text), _last_line(text)
    written = [_without_fonts(box or ""), last.strip().replace("*", "")]
    if tag and len(set(tag)) == 1:
        written += [tag[:1]]
    if "(" in last and ")" in last:
        written += [last.split("(")[1].split(")")[0]]
    if gold.lower() in map(str.lower, written):
        return 1.0
    value = str(dict(_OPTION.findall(str(record.get("question")))).get(gold, "")).strip().strip("$").strip("~")
    return float(bool(value) and value in text[-20 - len(value) :])


def _proof_order(text: str, gold: str, record: Row) -> float | None:
    """Return one minus the edit distance of the two sequences of formulas, as a share of the longer."""
    wanted = [str(int(number)) for number in gold.split(",")]
    order = _proof_steps(text)[: 4 * len(wanted)]
    if order:
        return 1.0 - edit_distance(order, wanted) / max(len(order), len(wanted))
    return None


def _proof_steps(text: str) -> list[str]:
    """Return the numbers behind the last "Answer:", in the box, or in the last line; a part that is no number is "?".

    Where the last line has none, those that the reply begins with.
    """
    lines = text.lower().split("\n")
    for place in (at for at in reversed(range(len(lines))) if _ORDER in lines[at]):
        behind = _without_bold(lines[place].split(_ORDER)[1])
        if not behind and place + 1 < len(lines):
            behind = _without_bold(lines[place + 1].replace(_ORDER, ""))
        if order := _number_parts(
            _ORDER_MARKS.sub("", (part.split(" ") or [""])[-1]) for part in _split_parts(behind)
        ):
            return order
        break
    if (box := _last_box(text)) is not None and (order := _number_parts(_split_parts(_without_fonts(box)))):
        return order
    digits = (_DIGITS.search(part) for part in lines[-1].split(","))
    order = [str(int(match[0])) for match in digits if match is not None and len(match[0]) < _LONGEST_NUMBER]
    return order or _leading_numbers(text.rpartition(_ORDER)[2])


def _leading_numbers(text: str) -> list[str]:
    """Return the numbers with commas between them, up to the first with anything else beside it."""
    numbers: list[str] = []
    for part in _split_parts(text):
        match = _DIGITS.search(part)
        if match is not None and len(match[0]) < _LONGEST_NUMBER:
            numbers.append(str(int(match[0])))
        if numbers[1:] and (match is None or match[0] != part):
            break
    return numbers


def _without_bold(text: str) -> str:
    return text.replace("**", "").replace(".", "").strip()


def _split_parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _number_parts(parts: Iterable[str]) -> list[str]:
    """Return the numbers, `?` for other parts; empty where none is a number."""
    numbers = [str(int(part)) if _INTEGER.fullmatch(part) else "?" for part in parts]
    return numbers if set(numbers) - {"?"} else []


def _score_spatial(text: str, gold: str, record: Row) -> float | None:
    """Return 1.0 for the right number, in figures or words, or shape: the whole reply, the last of three in bold, or
    the box. Else 0.0; None for several lines without bold text or a box.

    The authors take any of the three, and so every reply that names three numbers.
    """
    bold = [word.strip().lower() for word in _BOLD.findall(text)][-3:]
    wanted = gold.strip().lower()
    answers = [word for word in bold if word.isdecimal() or word in _FIGURES or any(map(word.count, _SHAPES))]
    for word in answers[-1:] or bold:
        near = wanted in _SHAPES and wanted in word and len(word) < 2 * len(wanted) + 5
        if word == wanted or _FIGURES.get(word) == wanted or near:
            return 1.0
    box = _last_box(text)
    if text == gold or (box is not None and _without_fonts(box) == gold):
        return 1.0
    return None if not bold and box is None and "\n" in text else 0.0


def _web_of_lies(text: str, gold: str, record: Row) -> float | None:
    """Judge three of yes, no and unknown: in the tag, the last three in bold, in the box, else the last such list."""
    bold = [word.lower().strip(".,") for part in _BOLD_LINE.findall(text) for word in part.split()]
    answers = ", ".join([word for word in bold if word in _TRUTHS][-3:])
    box = _last_box(text.replace("\\textbf{", "\\boxed{"))
    marked = tables.last_solution(text) or answers or box
    if marked is None:
        lists = _LISTS.findall(text.lower())
        marked = lists[-1] if lists else None
    if marked is None:
        return None
    three = sum(map(marked.count, _TRUTHS)) == 3
    return float(marked == gold.lower() or (three and gold.lower() in marked))


def _score_zebra(text: str, gold: str, record: Row) -> float | None:
    """Judge several answers in the tag, the box or the last line: half by the share that is right, half for all.

    In the older form what stands between three stars, or the last word.
    """
    if str(record.get("livebench_release_date", _PARTIAL_SINCE))[:10] < _PARTIAL_SINCE:
        marked = (_TRIPLE.findall(text) or _WORD.findall(text))[-1:]
        answer = marked[0].lower() if marked else ""
        if answer:
            return float(gold.lower() in (answer, _NAMES.get(answer), f"{answer} movies"))
        return None
    golds = gold.split(",")
    tags, box = tables.all_solutions(text), _last_box(text)
    solutions = tags or ([] if box is None else [_without_fonts(box)])
    if not solutions and (last := _last_line(text)).count(",") == len(golds) - 1:
        solutions = [last]
    if not solutions:
        return None
    parts = [_plain_position(part) for solution in solutions for part in solution.split(",")]
    if len(solutions) > 1:
        parts = parts[-len(golds) :]
    right = sum(
        _contains_answer(part, _plain_position(wanted)) for part, wanted in zip(parts, golds, strict=False)
    )
    return ((right == len(golds)) + right / len(golds)) / 2


def _plain_position(text: str) -> str:
    return text.strip().lower().replace("-", " ").replace("position", "")


def _contains_answer(answer: str, wanted: str) -> bool:
    """Return whether `answer` holds `wanted`: a number must not be a part of another, and few words may stand beside
    the right ones."""
    if len(answer.split()) > len(wanted.split()) + _WORDS_BESIDE:
        return False
    if wanted.isdigit():
        return re.search(rf"(?<!\d){re.escape(wanted)}(?!\d)", answer) is not None
    return wanted in answer


def _score_reformat(text: str, gold: str, record: Row) -> float | None:
    form = re.search(r"format to (\w{2,10}) format", str(record.get("question")))
    if form is None:
        raise ConfigError("The question does not say the format of the table.")
    wanted = tables.read_table(form[1].lower(), gold)
    if wanted is None:
        raise ConfigError("The right table cannot be read.")
    rows = tables.read_table(form[1].lower(), text, list(wanted[0]))
    return float(rows is not None and tables.are_same_tables(rows, wanted))


SCORERS: Mapping[str, Scorer] = {
    "cta": _column_class,
    "tablejoin": _score_table_join,
    "tablereformat": _score_reformat,
    "math_comp": _score_contest,
    "olympiad": _proof_order,
    "spatial": _score_spatial,
    "web_of_lies_v2": _web_of_lies,
    "zebra_puzzle": _score_zebra,
}
