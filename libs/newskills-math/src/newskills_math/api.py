# SPDX-License-Identifier: Apache-2.0
"""What users call: the functions of math-verify with its signatures, and `compare`, which gives its reason.

What they need loads at the first call: most of its time goes into compiling regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from newskills_math.extraction.extract import ExtractedAnswer, ExtractionPolicy

DIGITS = 15
LONGEST_TIMEOUT = 0.9
"""A longer one changes nothing."""
_NEVER = r"(?!)"
_LONGEST_TEXT = 500
_MOST_WORDS = 4
_SENTENCE = re.compile(r"\b(?:it|is|are|so|we|thus|hence)\b", re.IGNORECASE)
_DOLLARS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))


class LatexExtractionConfig(NamedTuple):
    """Read answers in LaTeX; as in math-verify.

    try_extract_without_anchor  also where no box and no phrase ("the answer is …") says which it is
    boxed_match_priority        a box goes before all else, whatever this says
    normalization_config        nothing to set here: answers are normalised always
    """

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


class ExprExtractionConfig(NamedTuple):
    """Read answers in plain text; as in math-verify."""

    try_extract_without_anchor: bool = True


class StringExtractionConfig(NamedTuple):
    """Read an answer that is one of `strings`; as in math-verify."""

    strings: tuple[str, ...] = ("A", "B", "C", "D")
    try_extract_without_anchor: bool = True
    lowercase: bool = True


ExtractionTarget = LatexExtractionConfig | ExprExtractionConfig | StringExtractionConfig
DEFAULT_TARGETS: tuple[ExtractionTarget, ...] = (LatexExtractionConfig(), ExprExtractionConfig())


class ParsedAnswer(str):
    """The text of an answer. `how` tells where it stood: box, boxes, hashes, tag, json, heading, phrase, closing,
    number, text (all of it), string (one of a StringExtractionConfig)."""

    __slots__ = ("how",)
    how: str

    def __new__(cls, text: str, how: str = "text") -> ParsedAnswer:
        answer = super().__new__(cls, text)
        answer.how = how
        return answer

    def __reduce__(self) -> tuple[type[ParsedAnswer], tuple[str, str]]:
        return ParsedAnswer, (str(self), self.how)


class AnswerComparison(NamedTuple):
    """Whether two answers are equal, and which step decided. True as a whole where they are equal.

    `equal` is None where that is undecided, as where the time was used up: never to be counted as wrong.
    """

    equal: bool | None
    reason: str

    def __bool__(self) -> bool:
        return self.equal is True


def extract(text: str, policy: ExtractionPolicy | None = None) -> ExtractedAnswer:
    """Return the last final answer of a reply in a form that `policy` lets count, and which form it was.

    Without a policy these count: a box, `####`, a tag, a field of JSON, a heading, a phrase. Raises PatternError for a
    regular expression that does not compile.
    """
    from newskills_math.extraction.extract import ExtractionPolicy
    from newskills_math.extraction.extract import extract as extract_answer

    return extract_answer(text, policy or ExtractionPolicy())


def compare(
    gold: object,
    answer: object,
    *,
    digits: int = DIGITS,
    symbolic: bool = True,
    seconds: float | None = None,
) -> AnswerComparison:
    """Return whether an answer is what the gold is, and why. Both are texts (or numbers), not whole replies.

    digits    significant digits within which a printed float stands for an exact value
    symbolic  whether math-verify, where installed, decides what everything else leaves open
    seconds   CPU time of this thread for the pair, 0.9 unless set; any thread will do
    """
    from newskills_math.values.deadline import OutOfTime, is_limited, run_limited
    from newskills_math.values.equal import Options
    from newskills_math.verdict import equal

    options = Options(digits, symbolic)
    if seconds is None:
        return AnswerComparison(*equal(_answer_text(answer), _answer_text(gold), options))
    try:
        return AnswerComparison(
            *run_limited(lambda: equal(_answer_text(answer), _answer_text(gold), options), seconds)
        )
    except OutOfTime as end:
        if is_limited():
            raise
        return AnswerComparison(None, f"no time left in step {end.step}")


def parse(
    pred: str,
    extraction_config: Sequence[ExtractionTarget] = DEFAULT_TARGETS,
    fallback_mode: Literal["no_fallback", "first_match"] = "first_match",
    extraction_mode: Literal["first_match", "any_match"] = "any_match",
    parsing_timeout: int | None = 5,
    raise_on_error: bool = False,
) -> list[ParsedAnswer]:
    """Return the final answer of a reply or of a gold text, as a list of one; empty where there is none.

    The signature is that of math-verify. A reply is read in linear time, so that no timeout is needed, and there is
    one answer at most, so that the modes change nothing.
    """
    strings = [target for target in extraction_config if isinstance(target, StringExtractionConfig)]
    answer = _find_answer(str(pred), any(target.try_extract_without_anchor for target in extraction_config))
    for target in strings:
        if answer is not None and (string := _one_of(answer, target)) is not None:
            return [ParsedAnswer(string, "string")]
    if answer is None or len(strings) == len(extraction_config):
        return []
    return [answer]


def verify(
    gold: object,
    target: object,
    float_rounding: int = 6,
    numeric_precision: int = DIGITS,
    strict: bool = True,
    allow_set_relation_comp: bool = False,
    timeout_seconds: float | None = 5,
    raise_on_error: bool = False,
) -> bool:
    """Return whether one of the answers is one of the golds; each is what `parse` returns, a text or a number.

    The signature is that of math-verify; False where `compare` is undecided. `timeout_seconds` can only shorten the
    CPU time that a pair has, and None does not lift it. `float_rounding` changes nothing: a printed number stands for
    what rounds to its own digits. Raises ValueError for the settings of math-verify that are not offered here.
    """
    if not strict or allow_set_relation_comp:
        name = "allow_set_relation_comp=True" if strict else "strict=False"
        raise ValueError(f"{name} of math-verify is not supported; compare() has options of its own.")
    is_short = timeout_seconds is not None and 0 < timeout_seconds < LONGEST_TIMEOUT
    seconds = timeout_seconds if is_short else None
    return any(
        compare(right, answer, digits=numeric_precision, seconds=seconds).equal is True
        for right in _as_answers(gold)
        for answer in _as_answers(target)
    )


def math_metric(
    gold_extraction_target: Sequence[ExtractionTarget] = (ExprExtractionConfig(),),
    pred_extraction_target: Sequence[ExtractionTarget] = (ExprExtractionConfig(),),
    aggregation_function: Callable[[list[float]], float] = max,
    precision: int = 6,
) -> Callable[[list[str], list[str]], tuple[float, tuple[list[str], list[str]] | None]]:
    """Return a function from golds and replies to their score and the answers that were read; as in math-verify."""

    def score(golds: list[str], predictions: list[str]) -> tuple[float, tuple[list[str], list[str]] | None]:
        right = [parse(gold, gold_extraction_target) for gold in golds]
        answers = [parse(prediction, pred_extraction_target) for prediction in predictions]
        scores = [float(any(verify(gold, answer, precision) for gold in right)) for answer in answers]
        texts = [[str(text) for texts in side for text in texts] for side in (right, answers)]
        return aggregation_function(scores), (texts[0], texts[1])

    return score


def _answer_text(answer: object) -> str:
    """Return the text of an answer; what is no text or number was parsed by something else."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, int | float) or type(answer).__name__ in ("Fraction", "Decimal"):
        return str(answer)
    raise TypeError(
        f"expected a text or a number, got {type(answer).__name__}: parse it with newskills_math.parse, and verify "
        "it with newskills_math.verify"
    )


def _as_answers(answers: object) -> Iterable[object]:
    if isinstance(answers, list | tuple):
        return answers
    return [answers]


def _find_answer(text: str, anywhere: bool) -> ParsedAnswer | None:
    """Return the answer that a box or phrase announces; if `anywhere` is allowed, else what may be one."""
    from newskills_math.extraction.extract import ExtractionPolicy

    anchored = extract(text)
    if anchored.answer is not None:
        return ParsedAnswer(anchored.answer, anchored.how)
    if not anywhere or anchored.how != "none":
        return None
    if _is_bare(text):
        return ParsedAnswer(_without_dollars(text))
    extracted = extract(text, ExtractionPolicy(extract_regex=_NEVER, relaxed_extraction=True))
    if extracted.answer is None:
        return None
    return ParsedAnswer(extracted.answer, extracted.how)


def _is_bare(text: str) -> bool:
    """Return whether a text is nothing but an answer, as golds of data sets are."""
    from newskills_math.words import is_prose

    text = text.strip()
    if not 0 < len(text) <= _LONGEST_TEXT or _SENTENCE.search(text):
        return False
    return not is_prose(text) or len(text.split()) <= _MOST_WORDS


def _without_dollars(text: str) -> str:
    text = text.strip()
    for opening, closing in _DOLLARS:
        inside = text[len(opening) : len(text) - len(closing)]
        if text.startswith(opening) and text.endswith(closing) and inside and opening not in inside:
            return inside.strip()
    return text


def _one_of(answer: str, target: StringExtractionConfig) -> str | None:
    """Return the string of the configuration that the answer is, in brackets or not."""
    from newskills_math.normalise import tidy_answer
    from newskills_math.words import option_letter

    plain = tidy_answer(answer)
    for text in (answer.strip(), plain, option_letter(plain)):
        for string in target.strings:
            if text and text.casefold() == string.casefold():
                if target.lowercase:
                    return string.lower()
                return string
    return None
