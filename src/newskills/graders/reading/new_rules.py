# SPDX-License-Identifier: Apache-2.0
"""Answers to KOR-Bench, compared as each of its rules asks (Ma et al. 2024, arXiv:2410.06526)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from newskills.base.records import Row, Score
from newskills.graders.exact import final_answer
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills_math.verdict import equal

Same = Callable[[str, str], bool]

_CLEAN = str.maketrans("", "", '" \n[]')
_SIGNS = str.maketrans({"×": "*", "−": "-", "÷": "/"})
_DRESS = re.compile(r"\A(?:\*\*|\$\$?|`|\\\(|\\text\{)(.*?)(?:\*\*|\$\$?|`|\\\)|\})\Z", re.DOTALL)
_OR = re.compile(r"\\text\{\s*or\s*\}|or")
_BOUND = re.compile(r"(≥|≤|>=|<=|\\geq?|\\leq?)\s*(-?\d+(?:\.\d+)?)")
_BOUND_SIGNS = {">=": "≥", "\\ge": "≥", "\\geq": "≥", "<=": "≤", "\\le": "≤", "\\leq": "≤"}
_LONGEST = 200
_AIM = 24


class NewRulesGrader:
    """The last `[[…]]` of the reply, else its final answer, by the comparison of the question's rule.

    Fields read: `id` (kor-CATEGORY-NUMBER), `rule_id`, `expected_answer`. Written: `predicted_answer`,
    `symbolic_correct`.
    """

    name = "new_rules"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        if gold is None:
            return None
        category, _ = _category_and_number(record)
        compared = comparison_of_rule(category, str(record.get("rule_id")), str(gold))
        if compared is _one_of:
            gold = str(gold).partition(",")[0]
        elif compared is _is_one_of_words:
            gold, *_ = str(gold).split()
        return f"[[{gold}]]"

    def same_replies(self, record: Row) -> list[str]:
        """Return replies with the right answer within a sentence, and in bold brackets."""
        gold = self.gold_reply(record)
        return [f"So the answer is {gold}.", f"Thus:\n\n**{gold}**"]

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold, rule = record.get("expected_answer"), record.get("rule_id")
        category, number = _category_and_number(record)
        if gold is None or rule is None or not number:
            nothing: Row = {"predicted_answer": None, "symbolic_correct": None}
            return ungradable_score(stamp, "the record lacks id, rule_id or expected_answer", nothing)
        answer = _bracketed_answer(visible_reply(str(record.get("generation") or "")))
        if not answer:
            return no_answer_score(stamp, record, {"predicted_answer": None, "symbolic_correct": False})
        correct = comparison_of_rule(category, str(rule), str(gold))(_without_marks(answer), str(gold))
        fields: Row = {"predicted_answer": answer, "symbolic_correct": correct}
        why = "same" if correct else "another answer"
        return verdict_score(stamp, correct, fields, why)


def _category_and_number(record: Row) -> tuple[str, str]:
    """Return (category, number) of an id such as kor-logic-7; empty for any other id."""
    name, _, numbered = str(record.get("id", "")).partition("-")
    category, _, number = numbered.partition("-")
    if name == "kor":
        return (category, number)
    return ("", "")


def comparison_of_rule(category: str, rule: str, gold: str) -> Same:
    """Return how an answer to the question is compared with the right one."""
    if category == "puzzle":
        return _PUZZLES.get(rule, _by_words)
    if category == "logic":
        if rule == "5":
            return _in_any_order(";", _by_signs)
        return _by_signs
    if category == "operation":
        if _BOUND.search(gold):
            return _by_bounds
        return _OPERATIONS.get(rule, _by_value)
    return _clean_alike


def _bracketed_answer(text: str | None) -> str | None:
    """Return what the last `[[…]]` holds, with brackets of its own; else the final answer."""
    if not text:
        return None
    end = text.rfind("]]")
    start = text.rfind("[[", 0, max(end, 0))
    if start < 0:
        return final_answer(text)
    while text[start - 1 : start] == "[":
        start -= 1
    return text[start + 2 : end].strip() or None


def _without_marks(answer: str) -> str:
    match = _DRESS.match(answer)
    if match:
        return match[1].strip()
    return answer


def _clean_alike(answer: str, gold: str) -> bool:
    return answer.translate(_CLEAN) == gold.translate(_CLEAN)


def _by_signs(answer: str, gold: str) -> bool:
    return _compact_text(answer) == _compact_text(gold)


def _compact_text(text: str) -> str:
    return re.sub(r'[\s".]', "", text)


def _by_words(answer: str, gold: str) -> bool:
    return _words_or_signs(answer, gold) == _words_or_signs(gold, gold)


def _words_or_signs(text: str, gold: str) -> str:
    """Return letters and digits; all signs, too, where the right answer has nothing else."""
    if re.search(r"\w", gold):
        return re.sub(r"\W+", "", text)
    return _compact_text(text)


def _by_letters(answer: str, gold: str) -> bool:
    return _small_letters(answer) == _small_letters(gold)


def _small_letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _one_of(answer: str, gold: str) -> bool:
    return bool(_small_letters(answer)) and _small_letters(answer) in gold.lower().split(",")


def _is_one_of_words(answer: str, gold: str) -> bool:
    """Return whether the answer is one of several words."""
    return bool(_small_letters(answer)) and _small_letters(answer) in gold.lower().split()


def _same_words(answer: str, gold: str) -> bool:
    return sorted(re.findall(r"\w+", answer.lower())) == sorted(gold.split())


def _in_any_order(mark: str, same: Same) -> Same:
    def compared(answer: str, gold: str) -> bool:
        first, second = (sorted(map(_compact_text, text.split(mark))) for text in (answer, gold))
        return len(first) == len(second) and all(map(same, first, second))

    return compared


def _same_members(answer: str, gold: str) -> bool:
    return sorted(_words_or_signs(answer, gold)) == sorted(_words_or_signs(gold, gold))


def _same_numbers(answer: str, gold: str) -> bool:
    first, second = (list(map(int, re.findall(r"\d{1,400}", text))) for text in (answer, gold))
    if second:
        return first == second
    return _by_words(answer, gold)


def _but_for_commas(answer: str, gold: str) -> bool:
    return re.sub(r"[,\s\[\]]+", "", answer) == re.sub(r"[,\s\[\]]+", "", gold)


def _by_bounds(answer: str, gold: str) -> bool:
    return _read_bounds(answer) == _read_bounds(gold)


def _read_bounds(text: str) -> list[tuple[str, str]]:
    return sorted((_BOUND_SIGNS.get(sign, sign), bound) for sign, bound in _BOUND.findall(text))


def _by_value(answer: str, gold: str) -> bool:
    """Compare formulas by value; of several solutions, all."""
    first, second = (_OR.split(text.rpartition("=")[2]) for text in (answer, gold))
    if len(first) != len(second):
        return False
    left = list(second)
    for part in first:
        match = next((other for other in left if equal(part, other)[0]), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _signs_put_in(answer: str, gold: str) -> bool:
    """Return whether operators stand where they are wanted, and the sum is right."""
    term, wanted = answer.translate(_SIGNS).partition("=")[0], gold.translate(_SIGNS)
    if re.findall(r"[-+*/]", term) != re.findall(r"[-+*/]", wanted.partition("=")[0]):
        return False
    return _term_value(term) == _term_value(wanted.rpartition("=")[2])


def _made_of_numbers(answer: str, gold: str) -> bool:
    """Return whether the four numbers, each once, make 24 in each of the terms that are given."""
    wanted = sorted(re.sub(r"\W+", "", gold.partition("\n")[0].partition("=")[0]))
    terms = [line.translate(_SIGNS).partition("=")[0] for line in answer.splitlines() if line.strip()]
    return bool(terms) and all(
        sorted(re.sub(r"\W+", "", term)) == wanted and _term_value(term) == _AIM for term in terms
    )


def _term_value(term: str) -> Fraction | None:
    """Return the value of a term of whole numbers; None for anything else. Nothing is executed."""
    try:
        if len(term) <= _LONGEST:
            return _node_value(ast.parse(term.strip(), mode="eval").body)
        return None
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _node_value(node: ast.expr) -> Fraction:
    """Return the value of a term. Raises ValueError for what is no number, sum, difference, product or quotient."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_node_value(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        left, right = _node_value(node.left), _node_value(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        return left / right
    raise ValueError("no term of whole numbers")


_PUZZLES: Mapping[str, Same] = {
    "1": _by_letters,
    "2": _one_of,
    "3": _same_words,
    "4": _is_one_of_words,
    "5": _in_any_order(",", str.__eq__),
    "9": _signs_put_in,
    "10": _made_of_numbers,
    "18": _but_for_commas,
}
_OPERATIONS: Mapping[str, Same] = {"18": _same_members, **dict.fromkeys(("23", "24", "25"), _same_numbers)}
