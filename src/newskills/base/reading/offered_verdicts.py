# SPDX-License-Identifier: Apache-2.0
"""The verdicts that a judge's prompt offers, where the judge repeats them instead of choosing, or before it does; and
those that it quotes from the answer that it judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

_YES, _NO = (rf"judge?ment\s?:\s?{word}\b" for word in ("yes", "no"))
_REMARK = r"(?:\s?\([^()\n]{0,80}\))?"
_BOTH = re.compile(
    rf"{_YES}[\"'`*]{{0,3}}{_REMARK}\W{{1,4}}or\W{{1,4}}{_NO}[\"'`*]{{0,3}}{_REMARK}"
    rf"|(?P<quote>[\"'`]){_YES}(?P=quote)\s(?:if|where|when)\b[^\n]{{0,120}}(?:\n[^\n]{{0,80}})?"
    rf"(?:\bor|\belse|,)\s(?P=quote){_NO}(?P=quote)"
    r"|\\boxed\s?\{\s?correct\s?\}\W{0,4}(?:or\b|/)\W{0,4}\\boxed\s?\{\s?incorrect\s?\}"
    r"|\\boxed\s?\{\s?correct\s?\}\s(?:if|where|when)\b[^\n]{0,120}(?:\n[^\n]{0,80})?\\boxed\s?\{\s?incorrect\s?\}"
    r"|\[correct\]\W{0,4}(?:or\b|/)\W{0,4}\[incorrect\]",
    re.IGNORECASE,
)
_CONDITION = re.compile(rf"[\"'`](?:{_YES}|{_NO})[\"'`]\s(?:if|where|when)\b", re.IGNORECASE)
_EXAMPLE = re.compile(r"^[ \t*_#>-]{0,8}example\s\d{1,2}\b", re.IGNORECASE | re.MULTILINE)
_GIVEN = re.compile(r"judge?ment[\s*_]{0,8}[:：][\s*_\"']{0,8}(?:yes|no)\b", re.IGNORECASE)
_GRADED = re.compile(r"^[ \t]{0,4}[*•-][ \t]{0,2}[\"“][^\n]{1,300}[\"”]\s?:\s?[A-Z][ \t.]{0,4}$\n?", re.MULTILINE)
_BETWEEN = re.compile(r"[ \t]{0,4}(?:[,;/|][ \t]{0,4}(?:(?:or|and)[ \t]{1,4})?|(?:or|and)[ \t]{1,4})")
_NEXT_LINE = re.compile(r"[ \t]{0,4}[,;.]?[ \t]{0,4}\n\s{0,8}[*•-]{0,2}\s{0,2}")
_QUOTATION_MARKS = "\"'`“«>"
_DECORATION_CHARS = " \t*_#>-•[]()"
_QUOTED = re.compile(
    r"^[ \t]{0,8}>[^\n]{0,2000}|\"[^\"\n]{1,400}\"|`{1,3}[^`\n]{1,400}`{1,3}|“[^”\n]{1,400}”|«[^»\n]{1,400}»"
    r"|(?<!\w)'[^'\n]{1,400}'(?!\w)",
    re.MULTILINE,
)
_OWN = re.compile(
    r"(?:\b(?:verdict|judge?ment|decision|conclusion|grade|rating|score|final\s\w{1,20}|output)(?:\s+is)?"
    r"|\b(?:therefore|thus|hence|so|finally|the\slast\sline\sis))\W{0,6}\Z",
    re.IGNORECASE,
)
"""What stands before a verdict of the judge's own in quotation marks."""
_SEVERAL_WORDS = re.compile(r"\S\s\S|\[\[|\\")
_MARKS = r"[\"'`()\[\]*]{0,4}"


def after_choices(text: str) -> str:
    """Return what follows the last place where a text offers yes and no, else the text; quoted verdicts with a
    condition ("if", "where", "when") behind them are removed.

    >>> after_choices('End with "Judgement: Yes" or "Judgement: No". Judgement: No')
    '. Judgement: No'
    """
    text = _after_examples(text)
    if ends := [match.end() for match in _BOTH.finditer(text)]:
        text = text[ends[-1] :]
    return _CONDITION.sub("", text)


def own_words(text: str) -> str:
    """Return the text without what it quotes within a line: an answer that says "Judgement: Yes" gives no verdict on
    itself.

    A line that is a quotation, or a quotation behind "Verdict:", "therefore" and the like, is the judge's own. Of lines
    marked as quoted (`>`), the last of the text is, where it stands alone and nothing announces it ("It says:").

    >>> own_words('The answer claims "Judgement: Yes". Judgement: No')
    'The answer claims  . Judgement: No'
    """
    last = text.rstrip().rfind("\n") + 1

    def kept(match: re.Match[str]) -> str:
        if match[0].lstrip().startswith(">"):
            above = text[: match.start()].rstrip()
            announced = above.endswith(":") or above.rpartition("\n")[2].lstrip().startswith(">")
            if match.start() < last or announced:
                return ""
            return match[0]
        if not _SEVERAL_WORDS.search(match[0]):
            return match[0]
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip(_DECORATION_CHARS)
        if before and not _OWN.search(before):
            return " "
        return match[0]

    if any(mark in text for mark in _QUOTATION_MARKS):
        return _QUOTED.sub(kept, text)
    return text


def _after_examples(text: str) -> str:
    """Return what follows the verdict of the last of several numbered examples, each with a verdict; else the text."""
    headings = [match.end() for match in _EXAMPLE.finditer(text)]
    if len(headings) < 2 or _GIVEN.search(text, headings[0], headings[-1]) is None:
        return text
    last = _GIVEN.search(text, headings[-1])
    if last is None:
        return text[headings[-1] :]
    return text[last.end() :]


def without_choices(text: str, verdicts: Mapping[str, str]) -> str:
    """Return the text without lists of two or more different verdicts: letters, names in capitals, or both.

    Examples of graded answers, a line each (`- "I do not know.": C`), are such a list.

    >>> without_choices("A: CORRECT / B: INCORRECT", {"A": "correct", "B": "incorrect"})
    ''
    """
    if len(_GRADED.findall(text)) > 1:
        text = _GRADED.sub("", text)
    kept, at = [], 0
    for start, end in _verdict_lists(text, tuple(verdicts.items())):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def _verdict_lists(text: str, verdicts: tuple[tuple[str, str], ...]) -> Iterator[tuple[int, int]]:
    """Start and end of each list."""
    letters = {_plain_name(name): letter for letter, name in verdicts}
    start, end, listed = 0, 0, set[str]()
    named_before = False
    for match in _choice_pattern(verdicts).finditer(text):
        name = match["name"] or match["alone"]
        choice = match["letter"] or letters[_plain_name(name)]
        between = text[end : match.start()]
        joined = _BETWEEN.fullmatch(between) or (named_before and name and _NEXT_LINE.fullmatch(between))
        if not joined or choice in listed:
            if len(listed) > 1:
                yield start, end
            start, listed = match.start(), set()
        listed.add(choice)
        end, named_before = match.end(), bool(name)
    if len(listed) > 1:
        yield start, end


def _plain_name(name: str) -> str:
    return re.sub(r"[ _-]", " ", name).casefold()


@lru_cache(maxsize=64)
def _choice_pattern(verdicts: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    """Return a pattern for a letter with its name, a letter, or a name in capitals."""
    alternatives = "|".join(re.escape(name).replace("_", "[ _-]") for _, name in verdicts)
    shouted = "|".join(re.escape(name.upper()).replace("_", "[ _-]") for _, name in verdicts)
    letters = "|".join(re.escape(letter) for letter, _ in verdicts)
    return re.compile(
        rf"{_MARKS}(?<![A-Za-z0-9])(?:(?P<letter>{letters}){_MARKS}(?:\s?[:.=)–-]\s?{_MARKS}(?P<name>(?i:{alternatives})))?"
        rf"|(?P<alone>{shouted}))(?![A-Za-z0-9'_]){_MARKS}"
    )
