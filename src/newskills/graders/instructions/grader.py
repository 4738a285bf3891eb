# SPDX-License-Identifier: Apache-2.0
"""Whether an answer follows the instructions of its prompt, strictly and loosely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import ClassVar

from newskills.base.errors import ConfigError
from newskills.base.reading.reply_text import after_thinking
from newskills.base.records import Cause, Outcome, Row, Score
from newskills.graders.instructions import ifbench_layout, ifbench_words, ifeval, korean

_MISFITS = (KeyError, TypeError, ValueError, AttributeError)
_SHOWN = 3


class InstructionGrader:
    """Base of graders of `instruction_id_list` with `kwargs`, one mapping for each.

    Fields written: `strict_eval`, `loose_eval`, each with `follow_instruction_list`, `follow_all_instructions`;
    `is_correct` = all are followed strictly. Loosely, an instruction is followed where one of eight forms of the answer
    follows it: without its first line, its last, both or none, and without asterisks. An answer behind reasoning is
    judged without the thinking. An instruction that is not known, or whose arguments do not fit: unscored.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "2"
    checks: ClassVar[Mapping[str, ifeval.Check]]
    needs: ClassVar[tuple[str, ...]]
    extras: ClassVar[str] = "instructions"

    def __init__(self) -> None:
        """Check that the packages are installed. Raises ConfigError where one is missing."""
        missing = [package for package in self.needs if find_spec(package) is None]
        if missing:
            raise ConfigError(
                f"The grader '{self.name}' needs {' and '.join(missing)}.",
                hint=f"pip install 'newskills[{self.extras}]'",
            )

    def grade(self, record: Row) -> Score:
        names, kwargs = record.get("instruction_id_list"), record.get("kwargs")
        if not isinstance(names, list) or not isinstance(kwargs, list) or len(names) != len(kwargs) or not names:
            return self._unscored_record(
                "instruction_id_list and kwargs must be lists of the same length, not empty"
            )
        unknown = [name for name in names if str(name) not in self.checks]
        if unknown:
            return self._unscored_record(f"unknown instructions: {', '.join(map(str, unknown[:_SHOWN]))}")
        text, thinking = _text_to_judge(record)
        if not text.strip():
            cause: Cause = "truncation" if thinking or record.get("finish_reason") == "length" else "model"
            nothing = [False] * len(names)
            return self._make_score("no_answer", nothing, nothing, "no answer", cause)
        try:
            strict, loose = self._check_instructions(text, names, kwargs)
        except _MISFITS as error:
            return self._unscored_record(f"arguments that do not fit: {type(error).__name__}: {error}")
        broken = [name for name, kept in zip(names, strict, strict=True) if not kept]
        outcome: Outcome = "wrong" if broken else "correct"
        why = "all followed"
        if broken:
            why = f"not followed: {', '.join(broken[:_SHOWN])}"
        return self._make_score(outcome, strict, loose, why, "model" if broken else None)

    def preload(self) -> None:
        """Import the packages that some checks load late."""
        for package in self.needs:
            __import__(package)

    def _check_instructions(self, text: str, names: list[str], kwargs: list[Row]) -> tuple[list[bool], list[bool]]:
        strict, loose = [], []
        variants: list[str] | None = None
        for name, given_arguments in zip(names, kwargs, strict=True):
            check, args = self.checks[name], _clean_arguments(given_arguments)
            kept = check(text, args)
            strict.append(kept)
            if not kept:
                if variants is None:
                    variants = _loose_forms(text)
                kept = any(check(variant, args) for variant in variants)
            loose.append(kept)
        return strict, loose

    def _make_score(
        self, outcome: Outcome, strict: list[bool], loose: list[bool], why: str, cause: Cause | None
    ) -> Score:
        fields: Row = {
            "strict_eval": _level_fields(strict),
            "loose_eval": _level_fields(loose),
            "is_correct": all(strict),
        }
        return Score(outcome=outcome, fields=fields, grader=f"{self.name}@{self.version}", why=why, cause=cause)

    def _unscored_record(self, why: str) -> Score:
        fields: Row = {"strict_eval": None, "loose_eval": None, "is_correct": None}
        stamp = f"{self.name}@{self.version}"
        return Score(outcome="unscored", fields=fields, grader=stamp, why=why, cause="data")


class IFEvalGrader(InstructionGrader):
    """The 25 kinds of IFEval."""

    name = "if"
    version: ClassVar[str] = "3"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation", "response")
    checks = ifeval.CHECKS
    needs: ClassVar[tuple[str, ...]] = ("langdetect",)

    def preload(self) -> None:
        from newskills.graders.instructions.language import language_support

        language_support()


class KoIFEvalGrader(IFEvalGrader):
    """The kinds of IFEval as they are meant in Korean."""

    name = "koifeval"
    answer_keys = ("generation", "response")
    checks = korean.CHECKS


class IFBenchGrader(InstructionGrader):
    """The 58 kinds of IFBench."""

    name = "ifbench"
    checks: ClassVar[Mapping[str, ifeval.Check]] = {**ifbench_words.CHECKS, **ifbench_layout.CHECKS}
    version: ClassVar[str] = "3"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation", "response")
    needs: ClassVar[tuple[str, ...]] = ("emoji", "syllapy")


def _text_to_judge(record: Row) -> tuple[str, bool]:
    """Return the text to judge, and whether its thinking has not ended."""
    text = str(record.get("generation") or record.get("response") or "")
    answer = after_thinking(text)
    if answer is None:
        return "", True
    judged_text = answer if answer == text else answer.strip()
    return judged_text, False


def _clean_arguments(given_arguments: Row) -> Row:
    """Return the arguments without nulls, and whole floats as integers."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in given_arguments.items()
        if value is not None
    }


def _loose_forms(text: str) -> list[str]:
    """Return the other forms of an answer that count loosely."""
    lines = text.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    forms = [text.replace("*", ""), *cut, *(part.replace("*", "") for part in cut)]
    return _other_forms(text, (form for form in forms if form.strip()))


def _other_forms(text: str, forms: Iterable[str]) -> list[str]:
    return [form for form in dict.fromkeys(forms) if form != text]


def _level_fields(followed: list[bool]) -> Row:
    return {"follow_instruction_list": followed, "follow_all_instructions": all(followed)}
