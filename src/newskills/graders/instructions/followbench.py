# SPDX-License-Identifier: Apache-2.0
"""FollowBench's own decisions (Jiang et al. 2024, arXiv:2310.20410): rules, or a judge's list for other sources.

Sentences, words and paragraphs are cut as the authors cut them, blank ones included: numbers must be theirs.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence

from newskills.base.reading.reply_text import after_thinking
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import verdict_score

LEVELS = 5
Rule = Callable[[str], bool]
_STOPS = re.compile(r"[.!?]")
_ENDS = re.compile(r"(?<!\w\.\w.)(?<![A-Z][a-z]\.)(?<=\.|\?)\s")
_LIST = re.compile(r"\[(.*)\]")
_ELEMENT = re.compile(r"""\s*(["'])(YES|NO|PARTIAL|MAYBE|UNKNOWN|N/A)\1\s*""")
_POINTS = 5


def _split_sentences(text: str) -> list[str]:
    return [part for part in _STOPS.split(text) if part]


def _sentence_count(number: int) -> Rule:
    return lambda text: len(_split_sentences(text)) == number


def _wants_word(word: str, sentence: int | None = None) -> Rule:
    """Make a rule that wants a whole word in the text, or in its sentence of that number (from 1)."""
    pattern = re.compile(rf"\b{re.escape(word)}\b")

    def rule(text: str) -> bool:
        if sentence is None:
            return bool(pattern.search(text))
        parts = _split_sentences(text)
        return len(parts) >= sentence and bool(pattern.search(parts[sentence - 1]))

    return rule


def _negated_rule(rule: Rule) -> Rule:
    return lambda text: not rule(text)


def _wants_pattern(pattern: str, sentence: int | None = None, flags: re.RegexFlag = re.NOFLAG) -> Rule:
    compiled = re.compile(pattern, flags)

    def rule(text: str) -> bool:
        if sentence is None:
            return bool(compiled.search(text))
        parts = _split_sentences(text)
        return len(parts) >= sentence and bool(compiled.search(parts[sentence - 1]))

    return rule


def _wants_part_count(fits: Callable[[int], bool]) -> Rule:
    """Make a rule about the number of parts between single blanks."""
    return lambda text: fits(len(text.split(" ")))


def _words_of_sentences(fits: Callable[[int], bool]) -> Rule:
    return lambda text: all(fits(len(part.split())) for part in _split_sentences(text))


def _count_punctuation(text: str) -> int:
    return sum(char in string.punctuation for char in text)


def _three_short(text: str) -> bool:
    paragraphs = text.split("\n\n")
    return len(paragraphs) >= 3 and all(len(_split_sentences(part)) < 3 for part in paragraphs[:3])


def _has_numbered_paragraphs(text: str) -> bool:
    return all(re.match(r"\d+\.", part.lstrip()) for part in text.split("\n\n") if part.strip())


def _wants_paragraphs(number: int) -> Rule:
    return lambda text: len(text.split("\n\n")) == number


def _short_points(text: str) -> bool:
    points = [part for part in _ENDS.split(text) if any(f"{number}." in part for number in range(1, _POINTS + 1))]
    return all(len(part.split(".")) < 3 for part in points)


_LEVEL_RULES: dict[str, tuple[Rule, ...]] = {
    "cnn_dailymail": (
        _sentence_count(3),
        _words_of_sentences(lambda words: words < 15),
        lambda text: all(_wants_word(word, at)(text) for at, word in enumerate(("Potter", "actor", "films"), 1)),
        _negated_rule(_wants_word("lavish", 2)),
        _wants_pattern(r"\b(has|have)\s+\w+", 3),
    ),
    "xsum": (
        _sentence_count(1),
        _wants_part_count(lambda pieces: pieces < 20),
        _negated_rule(_wants_word("Newton Stewart")),
        _wants_pattern(r"\b(am|is|are)\s+\w+ing\b"),
        _wants_word("operation"),
    ),
    "samsum": (
        _sentence_count(1),
        _wants_part_count(lambda pieces: pieces < 15),
        _wants_word("stuff"),
        _negated_rule(_wants_pattern("procrast", flags=re.IGNORECASE)),
        lambda text: _count_punctuation(text) == 1,
    ),
    "gigaword": (
        _wants_part_count(lambda pieces: pieces == 8),
        lambda text: _count_punctuation(text) == 0,
        str.islower,
        _negated_rule(_wants_word("bus")),
        _wants_word("in"),
    ),
    "arxiv": (
        _sentence_count(1),
        _wants_part_count(lambda pieces: pieces <= 20),
        lambda text: text.startswith("We"),
        _wants_word("activations"),
        _negated_rule(_wants_word("transformer")),
    ),
    "format-30": (
        lambda text: "**" in text,
        lambda text: len(re.findall(r"\*\*[\d].+?:", text)) == _POINTS,
        _short_points,
        lambda text: all(10 <= len(part.split()) <= 15 for part in _ENDS.split(text)),
        lambda text: not any(word.endswith("-ly") for word in text.split()),
    ),
}
"""The rule that each level adds to those before it."""
_SUGGESTIONS: tuple[Rule, ...] = (
    _wants_paragraphs(3),
    _three_short,
    _words_of_sentences(lambda words: words > 20),
    _has_numbered_paragraphs,
    lambda text: text.endswith("Those are suggestions"),
)
"""The same of `format-22`, whose last level asks for a paragraph more."""


def _wants_last_match(pattern: str) -> Callable[[str, str], bool]:
    """Make a rule that wants the last match to be the target."""
    return lambda text, target: (re.findall(pattern, text) or [None])[-1] == target


_LAST: dict[str, str] = {"BBH_logical": r"\([A-Z]\)", "BBH_time": r"\d{2}/\d{2}/\d{4}", "gsm_8k": r"\$\d+"}
_TARGETS: dict[str, Callable[[str, str], bool]] = {
    "E2E": lambda text, target: text == target,
    "text_editing": lambda text, target: text == target,
    "WIKIEVENTS": lambda text, target: set(text.split("\n")) <= set(target.split("\n")),
    "CONLL2003": lambda text, target: text in re.findall(r"'([^']*)'", target),
    "self_made_space": lambda text, target: target in text,
    "example": lambda text, target: bool(_example_form(target).fullmatch(text)),
    **{source: _wants_last_match(pattern) for source, pattern in _LAST.items()},
}
RULES = frozenset({*_LEVEL_RULES, *_TARGETS, "format-22"})


def rule_of(kind: str, example: int, source: str) -> str:
    """Return the rule that decides on an instruction of `kind` (content, …, example); '' where the judge decides."""
    if kind == "example":
        return kind
    if kind == "format":
        if (name := f"format-{example}") in RULES:
            return name
        return ""
    if source in RULES:
        return source
    return ""


def _example_form(target: str) -> re.Pattern[str]:
    """Return the form of the examples as a pattern, in which any text may stand at the place of the answer."""
    form = target.replace("{instruction}\n", "").replace("{{", "{").replace("}}", "}").replace("{answer}", ".*")
    return re.compile(".*".join(map(re.escape, form.split(".*"))))


def is_satisfied(rule: str, level: int, text: str, target: str) -> bool:
    """Return whether `text` keeps all that the levels up to `level` (1–5) ask for."""
    if rule in _TARGETS:
        return _TARGETS[rule](text, target)
    if rule == "format-22":
        first = _wants_paragraphs(4) if level == LEVELS else _SUGGESTIONS[0]
        return first(text) and all(check(text) for check in _SUGGESTIONS[1:level])
    return all(check(text) for check in _LEVEL_RULES[rule][:level])


def listed_verdicts(text: object, level: int) -> list[bool] | None:
    """Return the judge's YES or NO for each of `level` constraints, from its last line; None for any other text."""
    if not isinstance(text, str) or (shown := after_thinking(text)) is None:
        return None
    last = shown.strip("`").strip().rpartition("\n")[2]
    if level == 1:
        if "YES" in last:
            return [True]
        if "NO" in last:
            return [False]
        return None
    if (match := _LIST.search(last)) is None:
        return None
    elements = [_ELEMENT.fullmatch(part) for part in match[1].split(",")]
    verdicts = [element[2] == "YES" for element in elements if element is not None]
    if len(verdicts) == len(elements) == level:
        return verdicts
    return None


class FollowBenchGrader:
    """Fields written: `hard_satisfied` (all constraints), `soft_satisfied` (their share, 0–1), `constraints` (a list).

    Reads the row's `rule`, `level`, `expected_answer`, and where no rule decides the judge's list. A rule knows only
    all or nothing. A judge's text without the list leaves the sample unscored.
    """

    name = "followbench"
    version = "2"

    def grade(self, record: Row) -> Score:
        stamp = f"{self.name}@{self.version}"
        level, rule = int(record["level"]), record.get("rule")
        verdicts: Sequence[bool] | None
        if rule:
            verdicts = [is_satisfied(rule, level, _reply_text(record), str(record.get("expected_answer", "")))]
        else:
            verdicts = listed_verdicts(record.get("judgement"), level)
        if verdicts is None:
            fields: Row = {"hard_satisfied": None, "soft_satisfied": None, "constraints": None}
            why = f"the judge's last line is no list of {level} YES or NO"
            return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="judge")
        share = sum(verdicts) / len(verdicts)
        fields = {"hard_satisfied": share == 1, "soft_satisfied": share, "constraints": list(verdicts)}
        return verdict_score(stamp, share == 1, fields, f"{sum(verdicts)} of {len(verdicts)} satisfied", share)


def _reply_text(record: Row) -> str:
    text = str(record.get("generation") or "")
    shown = after_thinking(text)
    if shown is None:
        return ""
    if shown == text:
        return shown
    return shown.strip()
