# SPDX-License-Identifier: Apache-2.0
"""Values as Python writes them: what a function returns, say (CRUXEval, arXiv:2401.03065). Nothing is executed."""

from __future__ import annotations

import ast
import re
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row, Score
from newskills.graders.reading.replies import no_answer_score, ungradable_score, verdict_score, visible_reply
from newskills.graders.reading.tables import last_block

_TAGGED = re.compile(r"\[ANSWER\](.*?)(?:\[/ANSWER\]|\Z)", re.DOTALL)
_LABEL = re.compile(r"^[\s*_#>]*+(?:final\s++)?answer[\s*_]*+:([^\n]+)", re.IGNORECASE | re.MULTILINE)
_LONGEST = 20_000
_MOST_SIGNS = 10


class LiteralGrader:
    """The reply's value must equal that of `expected_answer`, as Python compares: `1.0` is `1`, `'a'` is not `'A'`.

    A value stands between `[ANSWER]` and `[/ANSWER]`, in the last code block, behind the last "Answer:", else in the
    last line; of `f(1) == 2` it is what follows `==`. Fields written: `predicted_answer`, `symbolic_correct`.
    """

    name = "literal"
    version = "2"
    answer_keys = ("generation",)
    gold_is_text = True

    def gold_reply(self, record: Row) -> str | None:
        gold = record.get("expected_answer")
        if gold is None:
            return None
        return f"[ANSWER]{gold}[/ANSWER]"

    def same_replies(self, record: Row) -> list[str]:
        gold = record.get("expected_answer")
        if gold is None:
            return []
        return [f"Answer: {gold}", f"```python\n{gold}\n```", f"[ANSWER]f(x) == {gold}"]

    def grade(self, record: Row) -> Score:
        """Compare the answer with the right one. Raises ConfigError where the right answer is no literal."""
        stamp, gold = f"{self.name}@{self.version}", record.get("expected_answer")
        if gold is None:
            nothing: Row = {"predicted_answer": None, "symbolic_correct": None}
            return ungradable_score(stamp, "the record has no expected_answer", nothing)
        answer = _answer_text(visible_reply(str(record.get("generation") or "")) or "")
        if not answer:
            return no_answer_score(stamp, record, {"predicted_answer": None, "symbolic_correct": False})
        correct, why = _compare_values(answer, str(gold))
        return verdict_score(stamp, correct, {"predicted_answer": answer, "symbolic_correct": correct}, why)


def _answer_text(text: str) -> str:
    if tagged := _TAGGED.findall(text):
        return str(tagged[-1]).strip()
    if text.count("```") > 1:
        return last_block(text)
    labelled = _LABEL.findall(text)
    last_answer = labelled[-1] if labelled else text.rsplit("\n", 1)[-1]
    answer = last_answer.strip().removeprefix("**").removesuffix("**")
    return answer.strip().removeprefix("`").removesuffix("`").strip()


def _compare_values(answer: str, gold: str) -> tuple[bool, str]:
    try:
        wanted = _literal_value(gold)
    except ValueError as error:
        raise ConfigError(f"expected_answer is not a literal of Python: {gold[:80]}") from error
    parts = answer.split("==", _MOST_SIGNS)
    for text in ("==".join(parts[at:]) for at in range(len(parts))):
        try:
            same = bool(_literal_value(text) == wanted)
        except (ValueError, RecursionError):
            continue
        why = "same value" if same else "another value"
        return same, why
    return False, "no literal"


def _literal_value(text: str) -> Any:
    """Return the value of a literal. Raises ValueError for what is no literal, or is too long."""
    if len(text) > _LONGEST:
        raise ValueError("too long")
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from error
