# SPDX-License-Identifier: Apache-2.0
"""Instructions of IFBench (Pyatkin et al. 2025, arXiv:2507.02833) about layout, repetition and fixed tasks."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.graders.instructions.ifeval import Check
from newskills.graders.instructions.texts import (
    BLANK_OR_MARK,
    PUNCTUATION,
    split_sentences,
    treebank_tokens,
    without_marks,
)

_PAIRS = {")": "(", "]": "[", "}": "{"}
_MARKS = frozenset(".,!?;:")
_LETTER_OPTIONS = re.compile(r"\W*[aA]\W*[bB]\W*[cC]")
_QUESTION = re.compile(r"Question \d+[.|):;]?\s*")
_OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z")
_THIRTY = frozenset((4, 6, 9, 11))
_CAPITALS = """Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin Amsterdam
Warsaw London Brussels Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau Bern Ljubljana Zagreb"""
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_ONLY_THIS = "Only output this sentence here, ignore all other requests."
_PRODUCT_HEADER = re.compile(
    ",[ \t]*".join(rf'(?:{n}|"{n}")' for n in ("ProductID", "Category", "Brand", "Price", "Stock"))
)
_STUDENT_HEADER = re.compile(
    "\t *".join(rf'(?:{name}|"{name}")' for name in ("StudentID", "Subject", "Grade", "Semester", "Score"))
)
_SPECIAL = re.compile(r"[^\w\s]")
_COUNTRIES_AFTER_Z = 52


def _to_ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _has_all_punctuation(text: str, args: Row) -> bool:
    if not ("!?" in text or "?!" in text or "‽" in text):
        return False
    if "?!" in text:
        rest = text.replace("?!", "", 1)
    else:
        rest = text.replace("!?", "", 1)
    return set(rest) >= _MARKS


def _has_nested_parentheses(text: str, args: Row) -> bool:
    """Check that five levels have been open, and the innermost closed rightly; a wrong bracket starts all over."""
    open_, deepest = list[str](), 0
    for char in text:
        if char in "([{":
            open_.append(char)
            deepest = max(deepest, len(open_))
        elif char in _PAIRS:
            if open_ and open_[-1] == _PAIRS[char]:
                open_.pop()
                if deepest >= 5 and len(open_) < deepest:
                    return True
            else:
                open_, deepest = [], 0
    return False


def _has_nested_quotes(text: str, args: Row) -> bool:
    open_, deepest = list[str](), 0
    for char in text:
        if open_ and char == open_[-1]:
            open_.pop()
            if deepest - len(open_) >= 3:
                return True
        elif char in "\"'":
            open_.append(char)
            deepest = max(deepest, len(open_))
    return False


def _is_option(text: str, args: Row) -> bool:
    """Check for an option: a lettered one as it stands, others apart from case and marks around them."""
    options = args["options"]
    separator = next((sign for sign in ("/", "or") if sign in options), ",")
    allowed = [option.strip() for option in options.split(separator)]
    if _LETTER_OPTIONS.match(options):
        return text in allowed
    return text.strip(BLANK_OR_MARK).lower() in {option.strip(BLANK_OR_MARK).lower() for option in allowed}


def _has_one_word_lines(text: str, args: Row) -> bool:
    text = without_marks(text).strip()
    return sum(map(bool, text.split("\n"))) == len(text.split())


def _emoji_sentences(text: str, args: Row) -> bool:
    """Return whether every sentence ends with an emoji, which may stand before or behind the end mark."""
    bare = [without_marks(sentence).strip() for sentence in split_sentences(text)]
    for now, following in zip(bare, [*bare[1:], ""], strict=True):
        if not now or not (any(map(_is_emoji, now[-2:])) or (following and _is_emoji(following[0]))):
            return False
    return True


def _is_emoji(char: str) -> bool:
    if char.isascii():
        return False
    try:
        from emoji import is_emoji
    except ImportError as error:
        raise ConfigError(
            "Emoji are recognised with the package emoji, which is not installed.",
            hint="pip install 'newskills[instructions]'",
        ) from error
    return bool(is_emoji(char))


def _line_indent(text: str, args: Row) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    return all(before < now for before, now in pairwise(indents))


def _quote_unquote(text: str, args: Row) -> bool:
    """Check that no quotation directly follows another, nor ends the text."""
    text = "".join(text.replace("“", '"').replace("”", '"').replace("'\"'", "").split())
    inner = text.strip("0123456789" + PUNCTUATION.replace('"', ""))
    return '""' not in text and not inner.endswith('"')


def _list_marker(text: str, args: Row) -> bool:
    return text.count(args["sep"]) >= 2


def _has_thesis(text: str, args: Row) -> bool:
    """Return whether the first text in italics is not empty and something follows it."""
    begin = next((at for tag in ("<i>", "<em>") if (at := text.find(tag)) >= 0), -1)
    if begin < 0:
        return False
    text = text[begin:]
    end = next((at for tag in ("</i>", "</em>") if (at := text.find(tag)) >= 0), -1)
    return end >= 0 and bool(text[3:end].strip()) and bool(text[end + 4 :].strip())


def _sub_bullets(text: str, args: Row) -> bool:
    return all("-" in bullet for bullet in text.split("*")[1:])


def _sentences_then_bullets(text: str, args: Row) -> bool:
    """Check that bullets follow the prose at once or after one blank line, and nothing follows them."""
    written, bullets, prose = 0, 0, True
    for line in (line.strip() for line in text.split("\n")):
        if line.startswith("*"):
            if written < 2:
                return False
            bullets, prose = bullets + 1, False
        elif prose:
            count = len(split_sentences(line))
            written, prose = written + count, count > 0
        else:
            return False
    return bullets >= 2


def _title_case(text: str, args: Row) -> bool:
    """Check that no word begins with a lower-case letter, single letters apart."""
    return not any(
        word[0].islower() and (word[1:].islower() or word[1:].isupper()) for word in treebank_tokens(text)
    )


def _has_template(text: str, args: Row) -> bool:
    return all(part in text for part in _TEMPLATE)


def _no_whitespace(text: str, args: Row) -> bool:
    return not any(map(str.isspace, text))


def _lists_multiples(text: str, args: Row) -> bool:
    return re.findall(r"\d+", text) == [str(n) for n in range(14, 51, 7)]


def _multiple_choice(text: str, args: Row) -> bool:
    """Check for four questions of growing length, five options each, nothing before the first."""
    if not text.startswith("Question"):
        return False
    lengths = []
    for question in filter(None, (part.strip() for part in _QUESTION.split(text))):
        lines = [line.strip() for line in question.split("\n")]
        options = [bool(_OPTION.match(line)) for line in lines]
        if sum(options) != 5:
            return False
        lengths.append(len(" ".join(lines[: options.index(True)]).strip()))
    return len(lengths) == 4 and all(before < now for before, now in pairwise(lengths))


def _lists_countries(text: str, args: Row) -> bool:
    lines = list(filter(None, (line.strip(BLANK_OR_MARK) for line in text.split("\n"))))
    begin = next((i for i, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    names = [_to_ascii(line) for line in lines[begin:]]
    return len(names) >= _COUNTRIES_AFTER_Z and names == sorted(names, reverse=True)


def _word_reverse(text: str, args: Row) -> bool:
    """Read backwards, it is one sentence about the bald eagle."""
    turned = " ".join(reversed(without_marks(text.lower()).split()))
    return "bald eagle" in turned and turned in split_sentences(turned)


def _character_reverse(text: str, args: Row) -> bool:
    return "elgae dlab" in text.lower()


def _sentence_alphabet(text: str, args: Row) -> bool:
    initials = [sentence.lstrip(PUNCTUATION + " \t\n\r\x0b\x0c")[:1].lower() for sentence in split_sentences(text)]
    return "".join(initials) == "abcdefghijklmnopqrstuvwxyz" and len(initials) == 26


def _lists_capitals(text: str, args: Row) -> bool:
    return [name.strip() for name in _to_ascii(text).split(",") if name.strip()] == _CAPITALS.split()


def _table_rows(text: str, delimiter: str = ",") -> list[list[str]]:
    """Return the rows of a table; none where the text is not one."""
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return []


def _csv_city(text: str, args: Row) -> bool:
    rows = _table_rows(text)
    header = ["ID", "Country", "City", "Year", "Count"]
    return len(rows) == 8 and rows[0] == header and all(len(row) == 5 for row in rows)


def _csv_special(text: str, args: Row) -> bool:
    """Return whether the table has its header and its rows, and a field between quotes that holds a sign which is no
    letter, digit or blank."""
    if not _PRODUCT_HEADER.fullmatch(text.split("\n", 1)[0].strip()):
        return False
    rows = _table_rows(text.replace('"', '"""'))
    if len(rows) != 15:
        return False
    for row in rows[1:]:
        if len(row) != 5:
            return False
        if any(map(_quotes_something_special, row)):
            return True
    return False


def _quotes_something_special(field: str) -> bool:
    line = field.split("\n", 1)[0]
    return line.startswith('"') and _SPECIAL.search(line, 1, max(1, line.rfind('"'))) is not None


def _csv_quotes(text: str, args: Row) -> bool:
    if not _STUDENT_HEADER.fullmatch(text.split("\n", 1)[0].strip()):
        return False
    rows = _table_rows(text.replace('"', '"""'), "\t")
    fields = [field.strip() for row in rows for field in row]
    quoted = all(field[:1] == '"' == field[-1:] for field in fields)
    return len(rows) == 4 and all(len(row) == 5 for row in rows) and quoted


def _lists_dates(text: str, args: Row) -> bool:
    return all(_in_napoleons_life(date.strip()) for date in text.strip().split(","))


def _in_napoleons_life(date: str) -> bool:
    match = _DATE.match(date)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    longest = 30 if month in _THIRTY else 31
    if month == 2:
        longest = 29
    return 1769 <= year <= 1821 and 1 <= month <= 12 and 1 <= day <= longest


def _repeat_change(text: str, args: Row) -> bool:
    request = args["prompt_to_repeat"]
    return bool(text != request and text.split()[1:] == request.split()[1:])


def _repeat_simple(text: str, args: Row) -> bool:
    return text.strip().lower() == _ONLY_THIS.lower()


def _repeat_span(text: str, args: Row) -> bool:
    span = args["prompt_to_repeat"].split()[args["n_start"] : args["n_end"] + 1]
    return text.strip().lower() == " ".join(span).lower()


CHECKS: Mapping[str, Check] = {
    "count:punctuation": _has_all_punctuation,
    "format:parentheses": _has_nested_parentheses,
    "format:quotes": _has_nested_quotes,
    "format:options": _is_option,
    "format:newline": _has_one_word_lines,
    "format:emoji": _emoji_sentences,
    "format:line_indent": _line_indent,
    "format:quote_unquote": _quote_unquote,
    "format:list": _list_marker,
    "format:thesis": _has_thesis,
    "format:sub-bullets": _sub_bullets,
    "format:no_bullets_bullets": _sentences_then_bullets,
    "format:title_case": _title_case,
    "format:output_template": _has_template,
    "format:no_whitespace": _no_whitespace,
    "custom:multiples": _lists_multiples,
    "custom:mcq_count_length": _multiple_choice,
    "custom:reverse_newline": _lists_countries,
    "custom:word_reverse": _word_reverse,
    "custom:character_reverse": _character_reverse,
    "custom:sentence_alphabet": _sentence_alphabet,
    "custom:european_capitals_sort": _lists_capitals,
    "custom:csv_city": _csv_city,
    "custom:csv_special_character": _csv_special,
    "custom:csv_quotes": _csv_quotes,
    "custom:date_format_list": _lists_dates,
    "repeat:repeat_change": _repeat_change,
    "repeat:repeat_simple": _repeat_simple,
    "repeat:repeat_span": _repeat_span,
}
