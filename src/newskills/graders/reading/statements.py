# SPDX-License-Identifier: Apache-2.0
"""Sentences that name an option without a label: "So C.", "Option B is correct.", "I'll go with (D) 5 m/s.".

Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_uppercase

from newskills.graders.reading.hedges import side_by_side
from newskills.graders.reading.letters import SEVERAL, TAIL, bare_option

_WORD_ENDS = r"(?![^\W\d_])"
_LETTER = r"[(\[*\"]{0,4}([A-Z])(?![A-Za-z0-9])[)\]*\"]{0,4}"
_BEST = r"(?:most\s)?(?:correct|right|best)"
_END = r"[*\"]{0,3}\s{0,3}(?:[.!](?=[\s*]|\Z)|\n|\Z)"
_IS_RIGHT = rf"(?:is|must be)\s(?:the\s)?(?:{_BEST}(?:\s(?:answer|option|choice|one))?|answer)"
_AFFIRMED = re.compile(
    r"\b(?:option|choice|answer|statement)[\s(*\"]{1,4}([A-Z])[)*\"]{0,3}\s(?:is|must be)\s(?:the\s)?"
    rf"(?:{_BEST}\b|(?:answer|one){_END})",
    re.IGNORECASE,
)
_CONCLUDED = re.compile(
    rf"\b(?:[Tt]herefore|[Tt]hus|[Hh]ence|[Ss]o|[Cc]onsequently)[,:]?\s{{1,3}}(?:only\s)?"
    rf"(?:(?:the\s)?(?:option|choice)\s|(?!I{_END})){_LETTER}(?:\s{_IS_RIGHT}|\sit\sis|\sholds|\sfits)?{_END}"
)
_WHY = r"[*\"]{0,3},?\s(?:as|because|since|given)\s"
_DEDUCED = re.compile(
    rf"\b(?:must|has to|can only)\sbe\s(?:(?:option|choice)\s)?(?!I\s){_LETTER}(?:{_END}|{_WHY})"
)
_SAID = re.compile(
    rf"\b(?:[Ii]t|[Tt]his)(?:\sis|'s|’s)\s(?:(?:option|choice)\s)?[*\"]{{0,3}}\(([A-Z])\)(?:{_END}|{_WHY})"
)
_BARE = rf"(?:(?:option|choice)\s)?(?!I{_END}){_LETTER}"
_AT_THE_END = re.compile(
    rf"\b(?:(?:[Ii]t|[Tt]his)(?:\sis|'s|’s)|[Tt]hat\sleaves(?:\s(?:us\swith|only))?|i\.e\.,?)\s{_BARE}(?:{_END}|{_WHY})"
    rf"|^(?:[Pp]robably|[Pp]erhaps|[Mm]aybe|[Ll]ikely|[Dd]efinitely)\s{_BARE}{_END}"
    rf"|^[*_#>-]{{0,4}}(?:[Cc]orrect|[Ss]elected|[Cc]hosen)[*_]{{0,2}}:[*_]{{0,2}}\s{_BARE}{_END}"
    rf"|(?:^|(?<=[.!?]\s)){_LETTER}\sit\sis{_END}"
)
_AND_WHY = re.compile(rf"\s*{_LETTER}(?:\s[-–—])?{_WHY}")
_IN_JSON = re.compile(r"\"(?:choice|option|selected|selection|prediction|letter)\"\s{0,3}:\s{0,3}\"([A-Z])\"")
_CHOOSE = r"(?:say|choose|pick|select|go\swith)"
_I_CHOOSE = (
    rf"\bI(?:(?:'d|’d|'ll|’ll|\swould|\swill)?\s{_CHOOSE}"
    r"|\s(?:think|believe|guess)(?:\sthat)?\sit(?:'s|’s|\sis))\s(?:(?:option|choice|answer)\s)?"
)
_WE_CHOOSE = (
    rf"\b[Ww]e(?:'d|’d|'ll|’ll|\scan|\smust|\sshould|\swould|\swill)?\s{_CHOOSE}\s(?:option|choice|answer)\s"
)
_CHOSEN = re.compile(rf"(?:{_I_CHOOSE}|{_WE_CHOOSE})(?!I\s){_LETTER}(?:{_END}|{_WHY})")
_CHOSEN_OPTION = re.compile(rf"(?:{_I_CHOOSE}|{_WE_CHOOSE}){_LETTER}[:.,)]?\s(.{{1,200}}?)$", re.MULTILINE)
_LABELLED = re.compile(
    r"^[\s*_#>-]{0,9}(?:solution|conclusion|verdict|decision|choice|selection|my pick)[*_\s]{0,5}[:：][*_\s]{0,5}"
    rf"(?:(?:option|choice)\s)?{_LETTER}{_END}",
    re.IGNORECASE | re.MULTILINE,
)
_JUDGED = re.compile(rf"(?:^|(?<=[.!?]\s)){_LETTER}\s{_IS_RIGHT}{_END}", re.MULTILINE)
_JUDGED_OPTION = re.compile(
    rf"(?:^|(?<=[.!?]\s)){_LETTER}[:.)]?\s([^\n]{{1,200}}?)\s{_IS_RIGHT}{_END}", re.MULTILINE
)
_OPTION = rf"(?:option|choice|answer)\s{_LETTER}"
_FITTING = re.compile(
    rf"\b(?:corresponds?\sto|match(?:es)?|closest\sto)\s{_OPTION}{_END}"
    rf"|\b[Oo]nly\s{_OPTION}\s(?:is\s(?:correct|right|consistent|left|possible|valid|true)|fits|works|satisfies|matches)\b"
    rf"|(?:→|⇒|=>|->)\s?(?:option\s)?{_LETTER}\s*\Z"
)
_MARKED = ')].:*"'
_NAMED = re.compile(r"(?:\bis|'s|’s)\s([^\n]{1,200})\Z")
_LETTERED = re.compile(r"\s[*]{0,2}\(([A-Z])\)[*]{0,2}[.!]?\Z")
_CONTRARY = re.compile(rf"(?:\b(?:not|but|however|wrong|incorrect)|n't|n’t){_WORD_ENDS}", re.IGNORECASE)


def letter_stated(text: str, count: int, meant: Mapping[str, str]) -> str | None:
    """Return the letter of the last "option B is correct"; else "So C.", "It must be C.", "It is (C).", "I choose C.";
    else "B is correct."; else, in the last line, "This matches option B."; else a reply of one line that ends with the
    text of an option.

    A letter may have its option behind it (`meant`: text of it → letter). Sentences "B is correct." about several
    letters name none of them: SEVERAL, where they are the whole reply.
    """
    tail = text[-TAIL:]
    for pattern in (_AFFIRMED, _CONCLUDED, _DEDUCED, _SAID, _CHOSEN, _LABELLED, _IN_JSON):
        matches = list(pattern.finditer(tail))
        if matches:
            return _last_letter(matches, tail, count)
    matches = list(_CHOSEN_OPTION.finditer(tail))
    chosen = [letter for match in matches if (letter := _with_option(match, meant))]
    if chosen:
        if len(matches) > len(chosen) + 1:
            return SEVERAL
        return chosen[-1]
    judged = {match[1] for match in _JUDGED.finditer(tail)}
    for match in _JUDGED_OPTION.finditer(tail):
        if _with_option(match, meant) or tail[match.end(1)] in _MARKED:
            stated_letter = match[1] if _with_option(match, meant) else SEVERAL
            judged.add(stated_letter)
    if len(judged) > 1 and "\n" not in text.strip():
        return SEVERAL
    letters = judged or _fitting_options(tail) or _closing_options(tail) or _named_options(tail, meant)
    if len(letters) == 1 and letters <= set(ascii_uppercase[:count]):
        return next(iter(letters))
    return None


def _last_letter(matches: list[re.Match[str]], tail: str, count: int) -> str | None:
    """Return the letter of the last match; SEVERAL where another was named right before it."""
    last = matches[-1]
    another = len(matches) > 1 and matches[-2][1].upper() != last[1].upper()
    if another and side_by_side(tail[matches[-2].end() : last.start()]):
        return SEVERAL
    if last[1].upper() in ascii_uppercase[:count]:
        return last[1].upper()
    return None


def _with_option(match: re.Match[str], meant: Mapping[str, str]) -> str | None:
    """Return the letter of a match, if what stands behind it is its option."""
    if meant.get(bare_option(match[2])) == match[1]:
        return match[1]
    return None


def _fitting_options(text: str) -> set[str]:
    """Return the options that the last line finds to fit, if it denies and restricts nothing."""
    line = text.strip().rpartition("\n")[2]
    if (matches := list(_FITTING.finditer(line))) and not _CONTRARY.search(
        line, _sentence_start(line, matches[0].start())
    ):
        return {letter for match in matches for letter in match.groups() if letter}
    return set()


def _closing_options(text: str) -> set[str]:
    """Return the options that the last line names in its last sentence, or a reply of one line in its first words."""
    first, _, line = text.strip().rpartition("\n")
    if matches := list(_AT_THE_END.finditer(line.strip())):
        return {letter for letter in matches[-1].groups() if letter}
    match = None if first else _AND_WHY.match(line)
    if match:
        return {match[1]}
    return set()


def _named_options(text: str, meant: Mapping[str, str]) -> set[str]:
    """Return the option that a reply of one line ends with: "The planet is Venus.", "The red one is Mars (C)."; if no
    other is mentioned and nothing denied."""
    line = text.strip()
    if "\n" in line or _CONTRARY.search(line):
        return set()
    folded = line.casefold()
    mentioned = {letter for name, letter in meant.items() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)}
    if len(mentioned) != 1:
        return set()
    (letter,) = mentioned
    if lettered := _LETTERED.search(line):
        named_before = meant.get(_last_words(line[: lettered.start()], meant))
        if lettered[1] == letter and named_before:
            return mentioned
        return set()
    named = _NAMED.search(line)
    if named is not None and meant.get(bare_option(named[1])) == letter:
        return mentioned
    return set()


def _last_words(line: str, meant: Mapping[str, str]) -> str:
    """Return the name of an option that `line` ends with; '' where there is none."""
    folded = bare_option(line)
    return next((name for name in meant if folded == name or folded.endswith(f" {name}")), "")


def _sentence_start(line: str, at: int) -> int:
    """Return where the sentence begins in which `at` stands."""
    return max(line.rfind(mark, 0, at) for mark in (". ", "? ", "! ")) + 1
