# SPDX-License-Identifier: Apache-2.0
"""The 25 kinds of instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911), by their published definitions.

Each check takes a text and the arguments of the instruction (the data's `kwargs` without nulls). It raises KeyError or
ValueError where the arguments do not fit, and nothing for any text; its time is linear in the text's length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from newskills.base.records import Row
from newskills.graders.instructions.language import detect_language, is_language
from newskills.graders.instructions.texts import plain_words, punkt_sentences, treebank_tokens

Check = Callable[[str, Row], bool]

_STAR_BULLET = re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE)
_DASH_BULLET = re.compile(r"^[^\S\n]*-", re.MULTILINE)
_HIGHLIGHT = re.compile(r"\*([^\n*]*)\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*([^\n*]*)\*\*")
_PARAGRAPH_MARK = re.compile(r"\s?\*\*\*\s?")
_POSTSCRIPTS = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


def is_in_relation(number: int, relation: str, threshold: int) -> bool:
    """Return whether `number` is `less than` or `at least` the threshold. Raises ValueError for another relation."""
    if relation == "less than":
        return number < threshold
    if relation == "at least":
        return number >= threshold
    raise ValueError(f"the relation '{relation}' is neither 'less than' nor 'at least'")


@lru_cache(maxsize=4096)
def _anywhere_pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text), re.IGNORECASE)


@lru_cache(maxsize=4096)
def _as_word(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(text)}\b", re.IGNORECASE)


def _has_keywords(text: str, args: Row) -> bool:
    return all(_anywhere_pattern(keyword).search(text) for keyword in args["keywords"])


def _has_keyword_count(text: str, args: Row) -> bool:
    count = len(_anywhere_pattern(args["keyword"].strip()).findall(text))
    return is_in_relation(count, args["relation"], args["frequency"])


def _avoids_words(text: str, args: Row) -> bool:
    return not any(_as_word(word).search(text) for word in args["forbidden_words"])


def _has_letter_count(text: str, args: Row) -> bool:
    letter = args["letter"].lower()
    if len(letter) != 1:
        raise ValueError(f"'{letter}' is not one letter")
    return is_in_relation(text.lower().count(letter), args["let_relation"], args["let_frequency"])


def _is_in_language(text: str, args: Row) -> bool:
    return is_language(text, args["language"])


def _sentence_count(text: str, args: Row) -> bool:
    return is_in_relation(len(punkt_sentences(text)), args["relation"], args["num_sentences"])


def _word_count(text: str, args: Row) -> bool:
    return is_in_relation(len(plain_words(text)), args["relation"], args["num_words"])


def _marked_paragraphs(text: str, args: Row) -> bool:
    parts = [bool(part.strip()) for part in _PARAGRAPH_MARK.split(text)]
    if not all(parts[1:-1]):
        return False
    return bool(sum(parts) == args["num_paragraphs"])


def _first_word(text: str, args: Row) -> bool:
    return begins_paragraph(text, args, str.__eq__)


def begins_paragraph(text: str, args: Row, same: Callable[[str, str], bool]) -> bool:
    """Check the number of paragraphs, and the first word of the n-th.

    Paragraphs are between blank lines; the n-th is counted with empty ones, their number without.
    """
    nth, wanted = args["nth_paragraph"], args["first_word"].lower()
    paragraphs = [paragraph.strip() for paragraph in text.split("\n\n")]
    count = sum(map(bool, paragraphs))
    if not 1 <= nth <= count or not paragraphs[nth - 1]:
        return False
    word = paragraphs[nth - 1].split()[0].lstrip("'").lstrip('"').lower()
    match = re.match(r"[^.,?!'\"]*", word)
    return count == args["num_paragraphs"] and match is not None and same(match.group(), wanted)


def _has_placeholders(text: str, args: Row) -> bool:
    """Check the number of pairs of brackets on one line, from each first `[` to the next `]`."""
    count = 0
    for line in text.split("\n"):
        close = -1
        while (begin := line.find("[", close + 1)) >= 0 and (close := line.find("]", begin)) >= 0:
            count += 1
    return bool(count >= args["num_placeholders"])


def _has_postscript(text: str, args: Row) -> bool:
    marker = args["postscript_marker"].strip()
    pattern = _POSTSCRIPTS.get(marker, re.escape(marker.lower()))
    return re.search(pattern, text.lower()) is not None


def _has_bullets(text: str, args: Row) -> bool:
    return bool(len(_STAR_BULLET.findall(text)) + len(_DASH_BULLET.findall(text)) == args["num_bullets"])


def _has_constrained_answer(text: str, args: Row) -> bool:
    return any(answer in text for answer in _ANSWERS)


def _has_highlights(text: str, args: Row) -> bool:
    """Check the number of highlights.

    `*one*` counts once; `**one**` counts for its inner pair of asterisks only where that is not empty.
    """
    single = sum(bool(inner.strip()) for inner in _HIGHLIGHT.findall(text))
    double = sum(bool(inner.strip()) for inner in _DOUBLE_HIGHLIGHT.findall(text))
    return bool(single + double >= args["num_highlights"])


def _has_sections(text: str, args: Row) -> bool:
    marks = re.findall(rf"{re.escape(args['section_spliter'].strip())}\s?\d+", text)
    return bool(len(marks) >= args["num_sections"])


def _json_format(text: str, args: Row) -> bool:
    text = text.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _has_title(text: str, args: Row) -> bool:
    for line in text.split("\n"):
        begin, end = line.find("<<"), line.rfind(">>")
        if 0 <= begin < end - 2 and line[begin : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


def _two_responses(text: str, args: Row) -> bool:
    parts = [part.strip() for part in text.split("******")]
    responses = [part for part in parts if part]
    return all(parts[1:-1]) and len(responses) == 2 and responses[0] != responses[1]


def _repeat_prompt(text: str, args: Row) -> bool:
    return text.strip().lower().startswith(args["prompt_to_repeat"].strip().lower())


def _end_phrase(text: str, args: Row) -> bool:
    return text.strip().strip('"').lower().endswith(args["end_phrase"].strip().lower())


def _capital_words(text: str, args: Row) -> bool:
    count = sum(token.isupper() for token in treebank_tokens(text))
    return is_in_relation(count, args["capital_relation"], args["capital_frequency"])


def _english_capital(text: str, args: Row) -> bool:
    return text.isupper() and detect_language(text) in ("en", None)


def _english_lowercase(text: str, args: Row) -> bool:
    return text.islower() and detect_language(text) in ("en", None)


def _no_comma(text: str, args: Row) -> bool:
    return "," not in text


def _is_quotation(text: str, args: Row) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


CHECKS: Mapping[str, Check] = {
    "keywords:existence": _has_keywords,
    "keywords:frequency": _has_keyword_count,
    "keywords:forbidden_words": _avoids_words,
    "keywords:letter_frequency": _has_letter_count,
    "language:response_language": _is_in_language,
    "length_constraints:number_sentences": _sentence_count,
    "length_constraints:number_paragraphs": _marked_paragraphs,
    "length_constraints:number_words": _word_count,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:number_placeholders": _has_placeholders,
    "detectable_content:postscript": _has_postscript,
    "detectable_format:number_bullet_lists": _has_bullets,
    "detectable_format:constrained_response": _has_constrained_answer,
    "detectable_format:number_highlighted_sections": _has_highlights,
    "detectable_format:multiple_sections": _has_sections,
    "detectable_format:json_format": _json_format,
    "detectable_format:title": _has_title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat_prompt,
    "startend:end_checker": _end_phrase,
    "startend:quotation": _is_quotation,
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": _english_capital,
    "change_case:english_lowercase": _english_lowercase,
    "punctuation:no_comma": _no_comma,
}
