# SPDX-License-Identifier: Apache-2.0
"""Scanners by rule of prompts and replies. Each reads a text once or a bounded part of it, whatever its length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from newskills.base.records import Row
from newskills.view.records import as_text
from newskills.view.scans.finding import Finding
from newskills.view.scans.transcript import SHORTEST_QUOTE, Transcript
from newskills.view.verdicts import answer_place

MAX_QUOTE_CHARS = 160
"""Characters of a quote."""
_OPENING, _CLOSING, _TAIL = 400, 300, 4_000
_REFUSALS = re.compile(
    r"\bi(?:'m| am)? (?:can't|cannot|can not|won't|will not|must decline|unable to|not able to)\b"
    r"|\bi(?:'m| am) (?:sorry|afraid)\b[^.\n]{0,20}\b(?:can't|cannot|unable|not able|won't)\b"
    r"|\bas an ai\b|\bagainst my (?:guidelines|policy|policies)\b|ich kann (?:dir|ihnen)? ?dabei nicht"
    r"|je ne peux pas|no puedo ayudar|我无法|我不能|抱歉，",
    re.IGNORECASE,
)
_LOOPS, _LOOP_LENGTH = 4, 120
_LINE, _LINES, _LINE_SHARE = 15, 8, 0.3
_SCRIPTS = {
    "Latin": re.compile(r"[A-Za-zÀ-ɏ]"),
    "Cyrillic": re.compile(r"[\u0400-\u052f]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
    "Bengali": re.compile(r"[\u0980-\u09ff]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
    "Hangul": re.compile(r"[\uac00-\ud7a3]"),
    "Kana": re.compile(r"[\u3040-\u30ff]"),
    "Han": re.compile(r"[\u4e00-\u9fff]"),
}
_LETTERS = {"Han": 5, "Kana": 5, "Hangul": 5}
"""Letters of a script below which it is a name or a symbol; 20 of others."""
_FEW_LETTERS = 20
_SHARE, _LATIN_SHARE = 0.1, 0.6
"""Of the reply's letters. Formulas and names are Latin in every language."""
_LANGUAGES = {
    "Latin": "english|french|german|spanish|italian|portuguese|turkish|英|法语|德语|translat|перевед|переклад",
    "Han": "chinese|mandarin|japanese|中文|汉语|日本語|translat",
    "Kana": "japanese|日本語|translat",
    "Hangul": "korean|한국어|translat",
    "Cyrillic": "russian|ukrainian|bulgarian|translat",
    "Greek": "greek|translat",
}
"""Script → words of prompts that ask for a language with it."""
_FORMATS: Mapping[str, tuple[str, str]] = {
    "no \\boxed{}": ("\\boxed", "\\boxed"),
    "no ####": ("####", "####"),
    "no <answer>": ("<answer>", "<answer>"),
    "no code block": ("```python", "```"),
    "no JSON": ("JSON", "{"),
}
"""Label → (what the prompt has, what the reply then needs)."""
_LEAST_GOLD, _LEAST_DIGITS = 4, 3


def refusal(transcript: Transcript) -> Finding | None:
    """Report a reply that begins with a refusal."""
    opening = transcript.reply[:_OPENING]
    match = _REFUSALS.search(opening.replace("’", "'"))
    if match:
        return Finding(label="refused", quotes=(line_at(opening, match.start()),))
    return None


def loop(transcript: Transcript) -> Finding | None:
    """Report a reply whose end repeats one piece of text, or most of which is one line."""
    text = f"{transcript.reasoning}\n{transcript.reply}".strip()
    tail = text[-_TAIL:]
    period, length = _end_repetition(tail)
    if length >= _LOOP_LENGTH:
        return Finding(label="loop", value=length / period, quotes=(tail[-min(MAX_QUOTE_CHARS, 2 * period) :],))
    lines = Counter(line for part in text.split("\n") for line in part.split(". ") if len(line) >= _LINE)
    if lines:
        line, count = lines.most_common(1)[0]
        if count >= _LINES and count * len(line) >= _LINE_SHARE * len(text):
            return Finding(label="loop", value=float(count), quotes=(line.strip()[:MAX_QUOTE_CHARS],))
    return None


def _end_repetition(text: str) -> tuple[int, int]:
    """Return (length of the piece, length of the end that repeats it at least `_LOOPS` times); (1, 0) without one.

    By the failure function of Knuth, Morris and Pratt on the reversed text: linear.
    """
    reverse = text[::-1]
    borders = [0] * len(reverse)
    border, best = 0, (1, 0)
    for place in range(1, len(reverse)):
        while border and reverse[place] != reverse[border]:
            border = borders[border - 1]
        border += reverse[place] == reverse[border]
        borders[place] = border
        length = place + 1
        if border and length >= _LOOPS * (length - border):
            best = (length - border, length)
    return best


def language_switch(transcript: Transcript) -> Finding | None:
    """Report a reply with a script that its prompt has not, unless the prompt names such a language."""
    reply = transcript.reply
    prompt = f"{transcript.prompt}\n{transcript.question}"
    asked_scripts = {name for name, count in _script_letters(prompt).items() if count}
    counts = _script_letters(reply)
    letters = sum(counts.values())
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        share = _LATIN_SHARE if name == "Latin" else _SHARE
        is_enough = count >= _LETTERS.get(name, _FEW_LETTERS) and count >= share * letters
        if not is_enough or not asked_scripts or name in asked_scripts:
            continue
        if re.search(_LANGUAGES.get(name, "translat"), prompt, re.IGNORECASE):
            continue
        match = _SCRIPTS[name].search(reply)
        assert match is not None
        return Finding(label=name, value=count / letters, quotes=(line_at(reply, match.start()),))
    return None


def _script_letters(text: str) -> dict[str, int]:
    if text.isascii():
        return {"Latin": sum(map(str.isalpha, text))}
    return {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS.items()}


def truncated(transcript: Transcript) -> Finding | None:
    """Report a reply that the token limit ended, or that never left its reasoning."""
    text = as_text(transcript.row.get("generation"))
    tail = text.rstrip()[-MAX_QUOTE_CHARS:]
    quotes: tuple[str, ...] = ()
    if len(tail) >= _LINES:
        quotes = (tail,)
    if transcript.row.get("finish_reason") == "length" or transcript.cause == "truncation":
        return Finding(label="token limit", quotes=quotes)
    if "<think>" in text and "</think>" not in text:
        return Finding(label="within reasoning", quotes=quotes)
    return None


def answer_in_prompt(transcript: Transcript) -> Finding | None:
    """Report a prompt that holds the expected answer, where that is long enough not to be there by chance."""
    gold = transcript.gold
    digits = sum(map(str.isdigit, gold))
    if _has_options(transcript.row) or (len(gold) < _LEAST_GOLD and digits < _LEAST_DIGITS):
        return None
    prompt = transcript.prompt or transcript.question
    place = answer_place(prompt, gold)
    if place < 0:
        return None
    return Finding(label="given", quotes=(line_at(prompt, place),))


def _has_options(row: Row) -> bool:
    return any(row.get(name) for name in ("options", "choices"))


def not_extracted(transcript: Transcript) -> Finding | None:
    """Report a reply that is not correct and ends with the expected answer, where another answer, or none, was
    extracted."""
    gold, answer = transcript.gold, transcript.answer
    if transcript.outcome not in ("wrong", "no_answer") or not gold or answer == gold:
        return None
    closing = transcript.reply.rstrip()[-_CLOSING:]
    place = answer_place(closing, gold)
    if place < 0:
        return None
    ends_with_gold = not any(map(str.isalnum, closing[place + len(gold) :]))
    if answer and not ends_with_gold and "\\boxed{" + gold + "}" not in closing:
        return None
    label = "another extracted" if answer else "none extracted"
    return Finding(label=label, quotes=(line_at(closing, place),))


def format_lost(transcript: Transcript) -> Finding | None:
    """Report a reply that ended by itself without the format that its prompt asks for."""
    reply = transcript.reply
    if not reply.strip() or transcript.row.get("finish_reason") == "length":
        return None
    prompt = f"{transcript.template}\n{transcript.prompt}"
    for label, (mark, needed) in _FORMATS.items():
        if mark in prompt and needed not in reply:
            return Finding(label=label, quotes=(last_line(reply),))
    return None


def line_at(text: str, place: int) -> str:
    """Return the line around a place of the text, at most `MAX_QUOTE_CHARS` characters of it; of a line that is too
    short to be quoted, also what is around it."""
    start = max(text.rfind("\n", 0, place) + 1, place - MAX_QUOTE_CHARS // 2)
    end = text.find("\n", place)
    line_end = len(text) if end < 0 else end
    line = text[start : min(line_end, start + MAX_QUOTE_CHARS)].strip()
    if len(line) >= SHORTEST_QUOTE:
        return line
    return text[max(0, place - MAX_QUOTE_CHARS // 2) : place + MAX_QUOTE_CHARS // 2].strip()


def last_line(text: str) -> str:
    """Return the end of the last line that is not blank."""
    return line_at(text.rstrip(), max(0, len(text.rstrip()) - 1))
