# SPDX-License-Identifier: Apache-2.0
"""The final answer out of a generation, in time linear in its length.

A user's regular expression is the exception; it runs in a worker with a deadline.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from newskills_math.extraction.boxes import last_boxes, without_placeholders
from newskills_math.extraction.closing import closing_answer, stated_answer
from newskills_math.extraction.labels import below_answer_heading, json_answers, last_behind_hashes
from newskills_math.extraction.masks import mask
from newskills_math.extraction.run_on import without_next_question
from newskills_math.extraction.statements import value_of
from newskills_math.extraction.thinking import after_thinking


class PatternError(ValueError):
    """A regular expression of the caller does not compile."""


class ExtractionPolicy(NamedTuple):
    """Which forms of a final answer count.

    extract_from_boxed   read the last `\\boxed{…}`, or what else states an answer; else `extract_regex`
    extract_regex        its last match is the answer (group 1 if it has groups)
    relaxed_extraction   try extract_regex, then the box, then every other form, closing statement included
    strict_extraction    nothing but the box counts, or nothing but extract_regex
    """

    extract_from_boxed: bool = True
    extract_regex: str = ""
    relaxed_extraction: bool = False
    strict_extraction: bool = False


class ExtractedAnswer(NamedTuple):
    """`how`: box, boxes, regex, hashes, tag, json, heading, phrase, closing, number.

    Without an answer: thinking, unclosed, none.
    """

    answer: str | None
    how: str


_PHRASE = re.compile(
    r"(?:answer(?:\s+to\s[^.:\n]{1,60}?)?[*_]{0,3}\s*(?:is|are|=|:|'s(?=\s)|would be|,(?=\s[$\\]*[\d-][^\s,]*,))"
    r"|antwort\s*(?:ist|lautet|:)"
    r"|réponse\s*(?:finale\s*)?(?:est|:)|respuesta\s*(?:final\s*)?(?:es|:)"
    r"|risposta\s*(?:finale\s*)?(?:è|:)|resposta\s*(?:final\s*)?(?:é|:)|ответ\s*[:—-]?"
    r"|答案\s*(?:是|为|：|:)|答え\s*(?:は|：|:)|정답은|답은"
    r"|jibu\s*(?:ni\b|:)|উত্তর\s*(?:হল|হলো|:)|సమాధానం\s*:?|คำตอบ\s*(?:คือ|:))"
    r"[ \t*_:：}]*\n?[ \t*_]*",
    re.IGNORECASE,
)
_TAG = re.compile(r"<answer>", re.IGNORECASE)
_NUMBER = re.compile(r"[-−+]?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:/\d+)?(?:\s?\\?%)?")
_EXCLAMATION = re.compile(r"[!?]\**\s+(?=[A-Z])")
_SENTENCE_END = re.compile(r"(?<=[^\s.])[.。।](?=\s|$)|[;；](?=\s)|(?<=[.。।])\s|\n")
_DISPLAY = re.compile(r"^\s*(?:\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\])", re.DOTALL)
_GOES_ON = re.compile(r"\s*(?:\\?%|°|,|and\b|or\b)")
_REASON = re.compile(
    r"[,;:]?\s+(?:because|since|so that|as (?:we|it|the)|and not|but not|not(?=\s+[\d$\\])|rather than|instead of)\b"
    r"|[,;]\s+(?:which|where|the other)\b|\s+\((?=[^()]*(?:[a-zA-Z]{3,}|=))[^()]*\)\W*$",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"[,;]\s+(?:(?!and\b|or\b)[a-z]{2,}\b|or (?:about|approximately|roughly|equivalently|simply)\b|i\.\s?e\b|e\.\s?g\b)"
)
_SPELT_TWICE = re.compile(r"[A-Za-z]{3,9}(?:[ -][A-Za-z]{3,9}){0,2}\s?\((\d[\d,.]*)\)\W*")
_FORMULA = re.compile(r"\d|\\[a-zA-Z]")
_FACE = re.compile(r"\s[:;]-?[)(DP]\W*$")
_ENVIRONMENT = re.compile(r"\s*\\begin\{")
_PROSE_FIRST = re.compile(r"(?!(?:yes|no|not|option|choice|all|none|any)\b)[A-Za-z]{2,}\s(?=.*\d)", re.IGNORECASE)
_MOST_WORDS = 4
_TAIL = 4_000


def extract(text: str, policy: ExtractionPolicy) -> ExtractedAnswer:
    """Return the last final answer of `text` in a form that `policy` lets count, and which form it was.

    Raises PatternError for a regular expression that does not compile.
    """
    shown = after_thinking(text)
    if shown is None:
        return ExtractedAnswer(None, "thinking")
    visible = without_next_question(shown)
    if policy.relaxed_extraction:
        steps = (_regex_step(policy.extract_regex), *_RELAXED)
    elif not policy.extract_from_boxed:
        steps = (_regex_step(policy.extract_regex),)
    else:
        steps = _STRICT if policy.strict_extraction else _USUAL
    if policy.relaxed_extraction and "\\boxed" in visible:
        visible = without_placeholders(visible)
    for step in steps:
        if (extracted := step(visible)) is not None:
            return extracted
    return ExtractedAnswer(None, "none")


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for last_match in pattern.finditer(text):
        match = last_match
    return match


def _regex_step(pattern: str) -> Callable[[str], ExtractedAnswer | None]:
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise PatternError(f"extract_regex '{pattern}' is not a regular expression: {error}.") from error

    def step(text: str) -> ExtractedAnswer | None:
        last = _last_match(compiled, text)
        if last is None:
            return None
        groups = [g for g in last.groups() if g is not None]
        matched_text = groups[0] if groups else last.group()
        answer = matched_text.strip()
        inner = _boxed_answer(answer)
        if "\n" not in answer:
            answer = answer_statement(answer)
        answer_text = inner.answer if inner is not None and inner.answer else answer or None
        return ExtractedAnswer(answer_text, "regex")

    return step


def _boxed_answer(text: str) -> ExtractedAnswer | None:
    boxes = last_boxes(text)
    if boxes is None:
        return None
    if boxes.answer is None:
        return ExtractedAnswer(None, "unclosed")
    source = "box" if boxes.different == 1 else "boxes"
    return ExtractedAnswer(boxes.answer, source)


def _hashes_answer(text: str) -> ExtractedAnswer | None:
    line = last_behind_hashes(text) if "####" in text else None
    if line:
        return ExtractedAnswer(line, "hashes")
    return None


def _json_answer(text: str) -> ExtractedAnswer | None:
    """Return the field `answer` of an object; several that differ are a list."""
    answers = json_answers(text) if "nswer" in text else []
    if answers:
        return ExtractedAnswer(", ".join(answers), "json")
    return None


def _headed_answer(text: str) -> ExtractedAnswer | None:
    """Return what stands alone below a heading "Final Answer": a formula, or a line of few words."""
    rest = None
    if "nswer" in text or "esult" in text:
        rest = below_answer_heading(text)
    if rest is None:
        return None
    if (inside := _displayed_formula(rest)) is not None:
        return ExtractedAnswer(inside.strip(), "heading")
    line = rest.split("\n", 1)[0].strip(" \t*_`").rstrip(".")
    is_answer = line != "" and len(line.split()) <= _MOST_WORDS and _PHRASE.search(line) is None
    if is_answer:
        return ExtractedAnswer(line, "heading")
    return None


def _tagged_answer(text: str) -> ExtractedAnswer | None:
    last = _last_match(_TAG, text)
    if last is None:
        return None
    body = text[last.end() :]
    end = body.lower().find("</answer>")
    if end < 0:
        return ExtractedAnswer(None, "unclosed")
    inner = body[:end].strip()
    box = _boxed_answer(inner)
    if box is not None:
        return box
    return ExtractedAnswer(inner or None, "tag")


def _phrase_answer(text: str) -> ExtractedAnswer | None:
    rest = _behind_phrase(text)
    if rest is None:
        return None
    if (inside := _displayed_formula(rest)) is not None:
        return ExtractedAnswer(inside.strip(), "phrase")
    line = _SENTENCE_END.split(rest, maxsplit=1)[0].strip(" \t*_`")
    if line:
        return ExtractedAnswer(line, "phrase")
    return None


def _stated_phrase(text: str) -> ExtractedAnswer | None:
    """Find a phrase as `_phrase_answer` does, reduced to its statement; none of prose without a number, as in "the
    answer is easy to check"."""
    rest = _behind_phrase(text)
    answer = answer_statement(rest) if rest is not None else ""
    if not answer or (_FORMULA.search(answer) is None and len(answer.split()) > _MOST_WORDS):
        return None
    return ExtractedAnswer(answer, "phrase")


def _behind_phrase(text: str) -> str | None:
    tail = text[-_TAIL:]
    last = _last_match(_PHRASE, tail)
    if last is None:
        return None
    return tail[last.end() :]


def _displayed_formula(rest: str) -> str | None:
    """Return what stands between dollars where the answer is just that."""
    display = _DISPLAY.match(rest)
    if display is None or _GOES_ON.match(rest[display.end() :].split("\n", 1)[0]):
        return None
    return next(g for g in display.groups() if g is not None)


def answer_statement(rest: str) -> str:
    """Return the answer that text begins with: up to the end of its statement, without reasons and remarks."""
    if (inside := _displayed_formula(rest)) is not None:
        return value_of(inside) or inside.strip()
    if _ENVIRONMENT.match(rest) and (formulas := mask(rest).formulas):
        return value_of(formulas[0]) or ""
    line = _EXCLAMATION.split(_SENTENCE_END.split(rest, maxsplit=1)[0], maxsplit=1)[0].strip(" \t*_`")
    if (spelt := _SPELT_TWICE.fullmatch(line.replace("*", ""))) is not None:
        return spelt[1]
    line = _REASON.split(_FACE.sub("", line), maxsplit=1)[0].strip(" \t*_`")
    if (remark := _REMARK.search(line)) is not None and _FORMULA.search(line, 0, remark.start()):
        line = line[: remark.start()]
    if _PROSE_FIRST.match(line):
        masked = mask(line)
        return stated_answer(masked.text, masked) or line
    return line


def _answer_at_end(text: str) -> ExtractedAnswer | None:
    closing = closing_answer(text[-_TAIL:])
    if closing.gives_up:
        return ExtractedAnswer(None, "none")
    if closing.answer:
        return ExtractedAnswer(closing.answer, "closing")
    return None


def _last_number(text: str) -> ExtractedAnswer | None:
    last = _last_match(_NUMBER, text[-_TAIL:])
    if last is not None:
        return ExtractedAnswer(last.group().rstrip(","), "number")
    return None


_Step = Callable[[str], ExtractedAnswer | None]
_STRICT: tuple[_Step, ...] = (_boxed_answer,)
_USUAL: tuple[_Step, ...] = (
    _boxed_answer,
    _hashes_answer,
    _tagged_answer,
    _json_answer,
    _headed_answer,
    _phrase_answer,
)
_RELAXED: tuple[_Step, ...] = (
    _boxed_answer,
    _hashes_answer,
    _tagged_answer,
    _json_answer,
    _headed_answer,
    _stated_phrase,
    _answer_at_end,
    _phrase_answer,
    _last_number,
)
