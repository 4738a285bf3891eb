# SPDX-License-Identifier: Apache-2.0
"""Multiple choice: the letter a model settled on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from string import ascii_uppercase
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.reading.reply_text import after_thinking
from newskills.base.records import Cause, Row, Score
from newskills.graders.math.extraction.extract import ExtractionPolicy, extract
from newskills.graders.reading.letters import (
    labels,
    letter_after,
    letter_announced,
    letter_in,
    letter_in_double_brackets,
    letter_of_a_line,
    what_follows,
)
from newskills.graders.reading.replies import stripped
from newskills.graders.reading.run_on import without_next_question
from newskills.graders.reading.statements import letter_stated

_DRESS = " .,;:!?()[]{}*_`'\"“”„«»「」。，；：！？$"
_BEHIND_LABEL = " :：\n"
_QUOTED = " `'\""
_DOTTED = "i̇"
"""The Turkish capital İ without case."""
_WRAPPED = re.compile(r"\\(?:boxed|text|textbf|mathrm)\s?\{([^{}]*)\}")
_CLAUSE = re.compile(r"[.,;(]")
_LONGEST_NAME = 2_000
_NAMEABLE = 200
_OPTION_LINE = re.compile(r"^\s*\(?([A-Z])[).:]", re.MULTILINE)


class MultichoiceConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=multichoice`; a record may override each by a field of the same name."""

    READINGS: ClassVar[Mapping[str, Row]] = {
        "strict": {"strict_extraction": True, "relaxed": False},
        "lenient": {"strict_extraction": False, "relaxed": True},
    }
    """How much a reply must look as it was asked to: the settings of `ns regrade --strict` and `--lenient`."""

    extract_from_boxed: Annotated[bool, Meta(description="read the last \\boxed{…}; else extract_regex")] = True
    extract_regex: Annotated[
        str | tuple[str, ...], Meta(description="one or several; the first that matches, its last match, is used")
    ] = r"The final answer is (.+)$"
    relaxed: Annotated[bool, Meta(description="try extract_regex first, then the box")] = True
    strict_extraction: Annotated[
        bool, Meta(description="nothing but the box counts, or nothing but extract_regex")
    ] = False
    use_predicted_answer_key: Annotated[
        bool, Meta(description="take predicted_answer from the record instead of extracting it")
    ] = False


class MultichoiceGrader:
    """Fields written: `predicted_answer` (a letter or null), `symbolic_correct`.

    An option may also be named by its text, in the reply and as the gold answer: options are the fields `A`, `B`, …,
    or else the list `options`.
    """

    name = "multichoice"
    version = "15"
    Config = MultichoiceConfig

    def __init__(self, config: MultichoiceConfig = MultichoiceConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        return None if gold is None else f"Answer: {gold}"

    def same_replies(self, record: Row) -> list[str]:
        """The letter in other dress, and the text of the option."""
        names, gold = _names(record), str(record.get("expected_answer") or "").strip()
        letter = names.get(_folded(gold)) or letter_in(gold, 26)
        if letter is None:
            return []
        forms = ["Answer: ({})", "Answer: {}.", "**Answer:** {}", "answer:  {} ", "The answer is ({})."]
        if record.get("relaxed", self.config.relaxed) or record.get(
            "extract_from_boxed", self.config.extract_from_boxed
        ):
            forms += ["\\boxed{{{}}}", "\\boxed{{({})}}", "\\boxed{{\\text{{{}}}}}"]
        statements = [form.format(letter) for form in forms]
        text = str(record.get(letter, ""))
        named = len(text) < _NAMEABLE and "\n" not in text and letter == names.get(_folded(text))
        return [*statements, f"Answer: {letter.lower()}", *([f"Answer: {text}"] if named else [])]

    def grade(self, record: Row) -> Score:
        gold = record.get("expected_answer")
        if gold is None or not str(gold).strip():
            return self._score(None, None, "the record has no expected_answer", "data")
        names = _names(record)
        expected = names.get(_folded(str(gold))) or letter_in(str(gold), 26) or str(gold).strip()
        if self.config.use_predicted_answer_key or "generation" not in record:
            field = record.get("predicted_answer")
            letter, how = (None if field is None else _meant(str(field), choices(record), names)) or None, "field"
        else:
            letter, how = self._chosen(record, names)
        if letter is None:
            cut_short = how == "thinking" or record.get("finish_reason") == "length"
            return self._score(None, False, f"no answer ({how})", "truncation" if cut_short else "model")
        correct = letter == expected
        return self._score(letter, correct, f"letter ({how})", None if correct else "model")

    def _chosen(self, record: Row, names: Mapping[str, str]) -> tuple[str | None, str]:
        reply = after_thinking(str(record["generation"] or ""))
        if reply is None:
            return None, "thinking"
        text = without_next_question(reply)
        count = choices(record)
        for candidate, how in self._candidates(text, record):
            if (letter := _meant(candidate, count, names)) is not None:
                return letter or None, how if letter else "several letters"
        if self.config.strict_extraction:
            return None, "none"
        if (letter := letter_in_double_brackets(text, count)) is not None:
            return letter, "double brackets"
        if (letter := _on_answer_line(text, count, names)) is not None:
            return letter or None, "answer line" if letter else "several letters"
        for whole in (text, text.strip().rsplit("\n", 1)[-1]):
            if (letter := names.get(_folded(whole))) is not None:
                return letter, "name"
        if (letter := letter_announced(text, count, names)) is not None:
            return letter, "last line"
        if (letter := letter_stated(text, count, names)) is not None:
            return letter, "statement"
        letter = letter_of_a_line(text, count, names)
        return letter, "none" if letter is None else "line"

    def _candidates(self, text: str, record: Row) -> list[tuple[str, str]]:
        """At most one: what the expression or the box gives, in the order that `relaxed` says."""
        boxed = bool(record.get("extract_from_boxed", self.config.extract_from_boxed))
        relaxed = bool(record.get("relaxed", self.config.relaxed))
        patterns = record.get("extract_regex", self.config.extract_regex)
        from_regex = _by_regex(text, [patterns] if isinstance(patterns, str) else list(patterns))
        from_box = _by_box(text)
        if relaxed:
            chosen = from_regex or from_box
        else:
            chosen = from_box if boxed else from_regex
        return [chosen] if chosen is not None else []

    def _score(self, letter: str | None, correct: bool | None, why: str, cause: Cause | None) -> Score:
        if correct is None:
            outcome = "unscored"
        elif letter is None:
            outcome = "no_answer"
        else:
            outcome = "correct" if correct else "wrong"
        return Score(
            outcome=outcome,  # type: ignore[arg-type]
            fields={"predicted_answer": letter, "symbolic_correct": correct},
            grader=f"{self.name}@{self.version}",
            why=why,
            cause=cause,
        )


def choices(record: Row) -> int:
    """How many options the record has: its fields `A`, `B`, …, or the list or the lines of `options`; else 26."""
    letters = list(takewhile(lambda letter: letter in record, ascii_uppercase))
    if len(letters) > 1:
        return len(letters)
    options = record.get("options")
    if isinstance(options, list | dict) and len(options) > 1:
        return len(options)
    if isinstance(options, str):
        lines = _OPTION_LINE.findall(options)
        if len(lines) > 1:
            return len(lines)
    return 26


def _names(record: Row) -> dict[str, str]:
    """Folded text of an option → its letter, for options that differ in more than their dress (Yes, No, Maybe)."""
    options: list[tuple[str, object]] = [(c, record[c]) for c in takewhile(record.__contains__, ascii_uppercase)]
    if not options and isinstance(listed := record.get("options"), list):
        options = list(zip(ascii_uppercase, listed, strict=False))
    letters: dict[str, str] = {}
    for letter, option in options:
        name = _folded(str(option))
        if len(name) > 1 or (name and letter_in(name, 26) is None):
            letters[name] = "" if name in letters else letter
    return {name: letter for name, letter in letters.items() if letter}


def _folded(text: str) -> str:
    """Without case, mark-up and punctuation around it; where that leaves nothing, without quotes."""
    if len(text) > _LONGEST_NAME:
        return ""
    plain = _WRAPPED.sub(r"\1", text).casefold().replace(_DOTTED, "i")
    return " ".join((stripped(plain, _DRESS) or plain.strip(_QUOTED)).split())


def _meant(candidate: str, count: int, names: Mapping[str, str]) -> str | None:
    """The option whose text the candidate is, else what `letter_in` finds."""
    return names.get(_folded(candidate)) or letter_in(candidate, count)


def _on_answer_line(text: str, count: int, names: Mapping[str, str]) -> str | None:
    """What the last "Answer: …" gives: the text of an option, or what `letter_after` finds."""
    for at in labels(text):
        if (marks := _only_marks_after(text, at)) in names:
            return names[marks]
        lines = what_follows(text, at) if names else []
        forms = (form for line in lines for form in (line, _CLAUSE.split(line, maxsplit=1)[0]))
        named = next(filter(None, (names.get(_folded(form)) for form in forms)), None)
        if (letter := named or letter_after(text, at, count)) is not None:
            return letter
    return None


def _only_marks_after(text: str, at: int) -> str:
    """The option `**` behind a label that ends at `at`, where the reply ends with it and no mark-up is open."""
    rest = text[at : at + _NAMEABLE].strip(_BEHIND_LABEL)
    whole = len(text) <= at + _NAMEABLE and rest not in text[text.rfind("\n", 0, at) + 1 : at]
    return rest if whole and not rest.strip(_DRESS) else ""


def _by_box(text: str) -> tuple[str, str] | None:
    if "box" not in text:
        return None
    extracted = extract(text, ExtractionPolicy(extract_from_boxed=True))
    return (
        (extracted.answer, "box") if extracted.answer is not None and extracted.how in ("box", "boxes") else None
    )


def _by_regex(text: str, patterns: list[str]) -> tuple[str, str] | None:
    for pattern in patterns:
        try:
            matches = list(re.finditer(pattern, text, re.MULTILINE))
        except re.error as error:
            raise ConfigError(f"extract_regex '{pattern}' is not a regular expression: {error}.") from error
        if matches:
            groups = [g for g in matches[-1].groups() if g]
            return (groups[0] if groups else matches[-1].group()), "regex"
    return None
