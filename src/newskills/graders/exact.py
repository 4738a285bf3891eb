# SPDX-License-Identifier: Apache-2.0
"""Equality of texts: the whole reply, or the final answer in it; strictly, or without regard to how it is written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from newskills.base.records import Row, Score
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills_math.extraction.run_on import without_next_question
from newskills_math.normalise import strip_around

_WRAPPED = re.compile(r"\A\\(?:boxed|text|textbf|texttt|mathrm|mathbf|mathsf)\s?\{(.*)\}\Z", re.DOTALL)
_BRACKETED = re.compile(r"\A(?:\((\w+)\)|\[(\w+)\])\Z")
_OPTION = re.compile(r"\A\(?([a-z])(?:\)|[.:](?=\s|\Z))")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "−": "-"})
_WRAPPERS = (("**", "**"), ("$", "$"), ("`", "`"), ('"', '"'), ("'", "'"), ("\\(", "\\)"), ("\\[", "\\]"))
_LABEL = re.compile(
    r"^[\s*_#>]*+(?:the\s++)?(?:final\s++)?answer[\s*_]*+[:：]([^\n]+)", re.IGNORECASE | re.MULTILINE
)
_BRACKETS = re.compile(r"\banswer is:?[ \t]+([*`\[\](){}<> ]+)\.?[*`]{0,3}[ \t]*$", re.IGNORECASE | re.MULTILINE)
_MARKED = ("box", "boxes", "unclosed", "tag", "json")
_FORMULA = re.compile(r"[=+*/&|~⇒→<>^\\;{}()]")
_WORDS = re.compile(r"\w+(?: \w+)*")
_LAYERS = 6


class ExactConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=exact`."""

    READINGS: ClassVar[Mapping[str, Row]] = {
        "strict": {"loose": False, "ignore_case": False},
        "lenient": {"loose": True, "ignore_case": True},
    }
    """The settings of `ns regrade --strict` and `--lenient`."""

    extract: Annotated[
        Literal["whole", "answer", "brackets", "tail"],
        Meta(
            description="what is compared: the whole reply; its final answer (box, 'Answer: …'); its last [[…]]; "
            "its box, or as many of its last lines as the right answer has"
        ),
    ] = "whole"
    loose: Annotated[
        bool,
        Meta(
            description="ignore mark-up, quotes, final punctuation, brackets around an option letter; 1,000 = 1000.0"
        ),
    ] = False
    ignore_case: Annotated[bool, Meta(description="compare without regard to upper and lower case")] = True
    answer_key: Annotated[str, Meta(description="field with the model's answer")] = "generation"
    gold_key: Annotated[str, Meta(description="field with the right answer")] = "expected_answer"
    accepted_key: Annotated[str, Meta(description="field with further right answers, a list")] = "accepted_answers"


class ExactGrader:
    """The answer must be the expected text, or one of those accepted besides.

    Fields written: `predicted_answer`, `symbolic_correct`.
    """

    name = "exact"
    version = "5"
    answer_keys = ("generation",)
    gold_is_text = True
    Config = ExactConfig

    def __init__(self, config: ExactConfig = ExactConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def gold_reply(self, record: Row) -> Row | None:
        gold = record.get(self.config.gold_key)
        if gold is None:
            return None
        return {self.config.answer_key: self._reply_with(str(gold))}

    def same_replies(self, record: Row) -> list[Row]:
        """Return replies with words in other letters and blanks, and dressed up where that may be."""
        gold = str(record.get(self.config.gold_key))
        if not _WORDS.fullmatch(gold):
            return []
        forms = [
            f"  {gold.replace(' ', '  ')}\n",
            *([gold.upper(), gold.lower()] if self.config.ignore_case else []),
        ]
        if self.config.loose:
            forms += [f"**{gold}**", f"{gold}.", f'"{gold}"']
        texts = [self._reply_with(form) for form in forms]
        if self.config.extract == "answer":
            texts += [f"\\boxed{{{gold}}}", f"**Answer:** {gold}"]
        return [{self.config.answer_key: text} for text in texts]

    def _reply_with(self, answer: str) -> str:
        if self.config.extract == "brackets":
            return f"[[{answer}]]"
        return answer

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        gold = record.get(self.config.gold_key)
        if gold is None:
            why = f"the record has no {self.config.gold_key}"
            return ungradable_score(stamp, why, {"predicted_answer": None, "symbolic_correct": None})
        golds = [str(gold), *map(str, record.get(self.config.accepted_key) or ())]
        answer = self._extract_answer(visible_reply(str(record.get(self.config.answer_key) or "")), golds[0])
        if not answer:
            return no_answer_score(stamp, record, {"predicted_answer": None, "symbolic_correct": False})
        correct = any(self._is_same_answer(answer, gold) for gold in golds)
        fields: Row = {"predicted_answer": answer, "symbolic_correct": correct}
        return verdict_score(stamp, correct, fields, "same text" if correct else "another text")

    def _extract_answer(self, text: str | None, gold: str) -> str | None:
        if not text or self.config.extract == "whole":
            return text
        if self.config.extract == "tail":
            if "\\boxed" in text:
                return extract_by_policy(text, ExtractionPolicy()).answer
            return _last_lines(text, len(gold.split("\n")))
        if self.config.extract == "brackets" and (inner := _double_brackets(text)) is not None:
            return inner
        bare = not re.search(r"\w", gold)
        braces = "{" in gold or "}" in gold or bare
        whole_box = _whole_box(text) if braces else None
        return whole_box or (_bracketed_answer(text) if bare else None) or final_answer(text)

    def same_answer(self, left: str, right: str) -> bool:
        """Return whether either is the other, as a right answer is compared."""
        return self._is_same_answer(left, right) and self._is_same_answer(right, left)

    def _is_same_answer(self, answer: str, gold: str) -> bool:
        case = self.config.ignore_case
        if _normalise_text(answer, case) == _normalise_text(gold, case):
            return True
        return self.config.loose and _are_alike(_strip_decoration(answer, case), _strip_decoration(gold, case))


def final_answer(text: str) -> str | None:
    """Return the content of the box, the line after "Answer:", or what follows "the answer is"; else the text itself,
    if it is one line, else None."""
    text = without_next_question(text)
    extracted = extract_by_policy(text, ExtractionPolicy())
    if extracted.how == "hashes":
        extracted = extract_by_policy(text.replace("####", " "), ExtractionPolicy())
    if extracted.how in _MARKED:
        return extracted.answer
    if labels := _LABEL.findall(text):
        return _without_marks(str(labels[-1])) or None
    if extracted.how in ("phrase", "heading"):
        return extracted.answer
    if text and "\n" not in text:
        return text
    return None


def _without_marks(text: str) -> str:
    """Remove the marks of bold and code around the text."""
    text = text.strip()
    for mark in ("**", "__", "`"):
        text = text.removeprefix(mark).removesuffix(mark).strip()
    return text


def _whole_box(text: str) -> str | None:
    """Return the content of the last box up to the last brace of its line, for answers that hold unpaired braces
    themselves."""
    start = text.rfind("\\boxed{")
    line = text[start + len("\\boxed{") :].split("\n", 1)[0]
    end = line.rfind("}")
    if start >= 0 <= end:
        return line[:end].replace("\\{", "{").replace("\\}", "}").strip() or None
    return None


def _bracketed_answer(text: str) -> str | None:
    """Return the brackets behind the last "the answer is", of which those in prose are not read."""
    matches = _BRACKETS.findall(text)
    if matches:
        return _without_marks(matches[-1]) or None
    return None


def _double_brackets(text: str) -> str | None:
    """Return the content of the last `[[…]]`; None where there is none or it is empty."""
    end = text.rfind("]]")
    start = text.rfind("[[", 0, max(end, 0))
    if start >= 0:
        return text[start + 2 : end].strip() or None
    return None


def _last_lines(text: str, count: int) -> str:
    """Return the last `count` lines that are neither empty nor a fence of a code block."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("```")]
    return "\n".join(lines[-count:])


def _normalise_text(text: str, ignore_case: bool) -> str:
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    if ignore_case:
        return text.casefold()
    return text


def _strip_decoration(text: str, ignore_case: bool) -> str:
    """Remove what only decorates the answer, from the outside in."""
    text = _normalise_text(text.translate(_QUOTES), ignore_case)
    for _ in range(_LAYERS):
        before = text
        text = strip_around(text, " .;,!?:") if re.search(r"\w", text) else text.strip()
        if wrapped := _WRAPPED.match(text):
            text = wrapped[1]
        for left, right in _WRAPPERS:
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                text = text[len(left) : -len(right)]
        if bracketed := _BRACKETED.match(text):
            text = bracketed[1] or bracketed[2]
        if text == before:
            break
    return text


def _are_alike(answer: str, gold: str) -> bool:
    if answer == gold:
        return True
    if len(gold) == 1 and gold.isalpha() and (option := _OPTION.match(answer.casefold())):
        return option[1] == gold.casefold()
    first, second = _read_number(answer), _read_number(gold)
    if first is not None and second is not None:
        return first == second
    if _FORMULA.search(gold) and answer.replace(" ", "") == gold.replace(" ", ""):
        return True
    return _list_elements(answer) == _list_elements(gold)


def _read_number(text: str) -> Fraction | None:
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    if _NUMBER.fullmatch(plain):
        return Fraction(plain)
    return None


def _list_elements(text: str) -> Sequence[str]:
    """Return the elements of a list, however they are separated; without any word, the characters."""
    if not re.search(r"\w", text):
        full_stop = "." if len(text) > 1 else ""
        return text.replace(" ", "").removesuffix(full_stop)
    return text.removeprefix("[").removesuffix("]").replace(",", " ").replace("'", "").split()
