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
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.reading.conclusions import letter_concluded
from newskills.graders.reading.grammar import make_grammar
from newskills.graders.reading.hedges import other_options, several_boxes, side_by_side
from newskills.graders.reading.languages import TOUCHING, plain_text
from newskills.graders.reading.letters import (
    SEVERAL,
    Label,
    NamedLetter,
    announces_answer,
    begins_with,
    find_labels,
    letter_after,
    letter_announced,
    letter_in,
    letter_in_double_brackets,
    letter_of_a_line,
    what_follows,
)
from newskills.graders.reading.statements import letter_stated
from newskills_math.extraction.run_on import without_next_question
from newskills_math.normalise import strip_around

_DRESS = " .,;:!?()[]{}*_`'\"“”„«»「」。，；：！？$"
_BEHIND_LABEL = " :：\n"
_SEVERAL_BOXED = "A or B"
_QUOTED = " `'\""
_DOTTED = "i̇"
"""The Turkish capital İ without case."""
_WRAPPED = re.compile(r"\\(?:boxed|text|textbf|mathrm)\s?\{([^{}]*)\}")
_CLAUSE = re.compile(r"[.,;(]")
_LISTED = re.compile(r"[.,;(]|\b(?:or|and)\b")
_IN_A_WORD = re.compile(rf"[{TOUCHING}]")
_LONGEST_NAME = 2_000
_NAMEABLE = 200
_NEAR = 400
"""Characters behind a letter in which others beside it are looked for."""
_GUESSES = 3
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
    answer_keys = ("generation", "predicted_answer")
    gold_is_text = True
    Config = MultichoiceConfig

    def __init__(self, config: MultichoiceConfig = MultichoiceConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        if gold is None:
            return None
        return f"Answer: {gold}"

    def same_replies(self, record: Row) -> list[str]:
        """Return replies with the letter in other forms, and with the text of the option."""
        names, gold = _option_names(record), str(record.get("expected_answer") or "").strip()
        letter = names.get(_fold_text(gold)) or letter_in(gold, 26)
        if letter is None:
            return []
        forms = ["Answer: ({})", "Answer: {}.", "**Answer:** {}", "answer:  {} ", "The answer is ({})."]
        if record.get("relaxed", self.config.relaxed) or record.get(
            "extract_from_boxed", self.config.extract_from_boxed
        ):
            forms += ["\\boxed{{{}}}", "\\boxed{{({})}}", "\\boxed{{\\text{{{}}}}}"]
        statements = [form.format(letter) for form in forms]
        text = str(record.get(letter, ""))
        statements.append(f"Answer: {letter.lower()}")
        if len(text) < _NAMEABLE and "\n" not in text and letter == names.get(_fold_text(text)):
            statements.append(f"Answer: {text}")
        return statements

    def grade(self, record: Row) -> Score:
        gold = record.get("expected_answer")
        if gold is None or not str(gold).strip():
            return self._make_score(None, None, "the record has no expected_answer", "data")
        names = _option_names(record)
        expected = names.get(_fold_text(str(gold))) or letter_in(str(gold), 26) or str(gold).strip()
        if self.config.use_predicted_answer_key or "generation" not in record:
            field, letter, how = record.get("predicted_answer"), None, "field"
            if field is not None:
                letter = _meant_option(str(field), count_choices(record), names) or None
        else:
            letter, how = self._choose_letter(record, names)
        if letter is None:
            cut_short = how == "thinking" or record.get("finish_reason") == "length"
            return self._make_score(None, False, f"no answer ({how})", "truncation" if cut_short else "model")
        if letter == expected:
            return self._make_score(letter, True, f"letter ({how})", None)
        return self._make_score(letter, False, f"letter ({how})", "model")

    def _choose_letter(self, record: Row, names: Mapping[str, str]) -> tuple[str | None, str]:
        reply = after_thinking(str(record["generation"] or ""))
        if reply is None:
            return None, "thinking"
        text = plain_text(without_next_question(reply))
        count = count_choices(record)
        for candidate, how in self._answer_candidates(text, record):
            if (letter := _meant_option(candidate, count, names)) is not None:
                return _one_letter(letter, how)
        if self.config.strict_extraction:
            return None, "none"
        if (letter := letter_in_double_brackets(text, count)) is not None:
            return letter, "double brackets"
        if (letter := _on_answer_line(text, count, names)) is not None:
            return _one_letter(letter, "answer line")
        for whole in (text, text.strip().rsplit("\n", 1)[-1]):
            if (letter := names.get(_fold_text(whole))) is not None:
                return letter, "name"
        if (letter := letter_announced(text, count, names)) is not None:
            return letter, "last line"
        if (letter := letter_stated(text, count, names)) is not None:
            return _one_letter(letter, "statement")
        if (letter := letter_concluded(text, count)) is not None:
            return _one_letter(letter, "statement")
        if (letter := letter_of_a_line(text, count, names)) is not None:
            return letter, "line"
        return None, "none"

    def _answer_candidates(self, text: str, record: Row) -> list[tuple[str, str]]:
        """Return at most one candidate: what the expression or the box gives, in the order that `relaxed` says."""
        boxed = bool(record.get("extract_from_boxed", self.config.extract_from_boxed))
        relaxed = bool(record.get("relaxed", self.config.relaxed))
        patterns = record.get("extract_regex", self.config.extract_regex)
        if isinstance(patterns, str):
            patterns = [patterns]
        from_regex = _by_regex(text, list(patterns))
        from_box = _by_box(text)
        if relaxed:
            chosen = from_regex or from_box
        elif boxed:
            chosen = from_box
        else:
            chosen = from_regex
        if chosen is not None:
            return [chosen]
        return []

    def _make_score(self, letter: str | None, correct: bool | None, why: str, cause: Cause | None) -> Score:
        if correct is None:
            outcome = "unscored"
        elif letter is None:
            outcome = "no_answer"
        elif correct:
            outcome = "correct"
        else:
            outcome = "wrong"
        return Score(
            outcome=outcome,  # type: ignore[arg-type]
            fields={"predicted_answer": letter, "symbolic_correct": correct},
            grader=f"{self.name}@{self.version}",
            why=why,
            cause=cause,
        )


def count_choices(record: Row) -> int:
    """Count the options of the record: its fields `A`, `B`, …, or the list or the lines of `options`; else 26."""
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


def _one_letter(letter: str, how: str) -> tuple[str | None, str]:
    """Return a letter that was found, and how; SEVERAL is no letter."""
    if letter == SEVERAL:
        return None, "several letters"
    return letter, how


def _option_names(record: Row) -> dict[str, str]:
    """Map the folded text of each option that differs in more than its dress (Yes, No, Maybe) to its letter."""
    options: list[tuple[str, object]] = [(c, record[c]) for c in takewhile(record.__contains__, ascii_uppercase)]
    if not options and isinstance(listed := record.get("options"), list):
        options = list(zip(ascii_uppercase, listed, strict=False))
    letters: dict[str, str] = {}
    for letter, option in options:
        name = _fold_text(str(option))
        if len(name) > 1 or (name and letter_in(name, 26) is None):
            letters[name] = "" if name in letters else letter
    return {name: letter for name, letter in letters.items() if letter}


def _fold_text(text: str) -> str:
    """Remove case, mark-up and punctuation around the text; where that leaves nothing, only quotes."""
    if len(text) > _LONGEST_NAME:
        return ""
    if text.isascii() and text[:1].isalpha() and text[-1:].isalnum() and "\\" not in text:  # as most options are
        return " ".join(text.casefold().split())
    if "\\" in text:
        text = _WRAPPED.sub(r"\1", text)
    plain = text.casefold()
    if not plain.isascii():
        plain = plain_text(plain.replace(_DOTTED, "i"))
    return " ".join((strip_around(plain, _DRESS) or plain.strip(_QUOTED)).split())


def _meant_option(candidate: str, count: int, names: Mapping[str, str]) -> str | None:
    """Return the option whose text the candidate is, else what `letter_in` finds."""
    return names.get(_fold_text(candidate)) or letter_in(candidate, count)


def _on_answer_line(text: str, count: int, names: Mapping[str, str]) -> str | None:
    """Return the option that the last "Answer: …" gives: by the text of an option, or as `letter_after` finds it.

    Several such lines that name no option at all are guesses at the options' texts: then no earlier one counts.
    """
    every, misses = find_labels(text), 0
    for place, label in enumerate(every):
        if (marks := _only_marks_after(text, label.end)) in names:
            return names[marks]
        named = _named_behind(text, label, names)
        if named is not None:
            return named
        announced = letter_after(text, label, count)
        if announced is not None:
            return _settle_letter(text, every[place:], announced, count, names)
        lettered = _lettered_behind(text, label, count, names)
        if lettered is not None:
            return lettered
        misses += announces_answer(text, label)
        if misses == _GUESSES:
            return None
    return None


def _named_behind(text: str, label: Label, names: Mapping[str, str]) -> str | None:
    """Return the option whose text stands behind a label; SEVERAL where the texts of several do, None where none
    does."""
    if not names:
        return None
    for line in what_follows(text, label):
        for form in (line, _CLAUSE.split(line, maxsplit=1)[0]):
            letter = names.get(_fold_text(form))
            if letter is not None:
                listed = {names.get(_fold_text(part)) for part in _LISTED.split(line)}
                whole = names.get(_fold_text(line)) is not None
                if whole or listed <= {letter, None}:
                    return letter
                return SEVERAL
    return None


def _lettered_behind(text: str, label: Label, count: int, names: Mapping[str, str]) -> str | None:
    """Return the letter before its own option behind a label, also where that text denies: "(D) cannot be known"."""
    if not names:
        return None
    for line in what_follows(text, label):
        letter, names_it = begins_with(line, count, names)
        if names_it and len(line.strip(_DRESS)) > 1:
            return letter
    return None


def _settle_letter(text: str, every: list[Label], named: NamedLetter, count: int, names: Mapping[str, str]) -> str:
    """Return the letter that was found behind the first of `every`, the last labels first; SEVERAL where others stand
    beside it, another one where the sentence takes it back ("could be B, but I would say D")."""
    if named.letter == SEVERAL:
        return SEVERAL
    line, _, below = text[named.end : named.end + _NEAR].partition("\n")
    letter, names_it = None, False
    if next_line := next(filter(str.strip, below.splitlines()), ""):
        letter, names_it = begins_with(next_line, count, names)
    if (names_it and letter != named.letter) or other_options(line, named.letter, names):
        return SEVERAL
    for earlier in every[1:_GUESSES]:
        before = letter_after(text, earlier, count)
        if before is None or before.letter in (named.letter, SEVERAL):
            continue
        if side_by_side(_without_option(text[before.end : every[0].end], names), every[0].codes):
            return SEVERAL
    taken_back = make_grammar(every[0].codes).but.search(line)
    if taken_back is not None:
        behind = line[taken_back.end() :]
        instead = letter_stated(behind, count, names) or letter_concluded(behind, count)
        if instead:
            return instead
    return named.letter


def _without_option(between: str, names: Mapping[str, str]) -> str:
    """Return `between`, the text between two named letters, without the text of the first one's option."""
    bare = between.lstrip(_DRESS).casefold()
    named = max((name for name in names if bare.startswith(name)), key=len, default="")
    if named:
        return bare[len(named) :]
    return between


def _only_marks_after(text: str, at: int) -> str:
    """Return the marks, such as the option `**`, behind a label that ends at `at`, where the reply ends with them and
    no mark-up is open; else ''."""
    rest = text[at : at + _NAMEABLE].strip(_BEHIND_LABEL)
    whole = len(text) <= at + _NAMEABLE and rest not in text[text.rfind("\n", 0, at) + 1 : at]
    if whole and not rest.strip(_DRESS):
        return rest
    return ""


def _by_box(text: str) -> tuple[str, str] | None:
    if "box" not in text:
        return None
    extracted = extract_by_policy(text, ExtractionPolicy(extract_from_boxed=True))
    if extracted.answer is None or extracted.how not in ("box", "boxes"):
        return None
    if several_boxes(text):
        return (_SEVERAL_BOXED, "boxes")
    return (extracted.answer, "box")


def _by_regex(text: str, patterns: list[str]) -> tuple[str, str] | None:
    for pattern in patterns:
        try:
            matches = [
                match for match in re.finditer(pattern, text, re.MULTILINE) if not _cuts_a_word(text, match)
            ]
        except re.error as error:
            raise ConfigError(f"extract_regex '{pattern}' is not a regular expression: {error}.") from error
        if matches:
            matched_text = next(filter(None, matches[-1].groups()), matches[-1].group())
            return matched_text, "regex"
    return None


def _cuts_a_word(text: str, match: re.Match[str]) -> bool:
    """Return whether the expression took the first letter of a word: "La respuesta es Ausente"."""
    group = match.lastindex or 0
    letter = match[group] or ""
    return len(letter) == 1 and letter.isalpha() and _IN_A_WORD.match(text, match.end(group)) is not None
