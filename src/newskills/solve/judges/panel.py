# SPDX-License-Identifier: Apache-2.0
"""Several judges of one answer: each is asked as it would be alone, and the verdicts are combined.

The combined verdict stands where a single judge's text would, as nothing but that verdict: no judge's text can be read
as the panel's. Everything that reads judgements afterwards works as with one judge.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from newskills.base.errors import BadRequestError
from newskills.base.judgement import (
    PANEL_FIELD,
    SPLIT_FIELD,
    parse_confidence,
    parse_judgement,
    parse_verdict,
    structured_verdict,
)
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.graders.judges.arena import arena_label, read_mark
from newskills.solve import make_solver
from newskills.solve.chat import MAIN
from newskills.solve.judges.judge import PREFIX, JudgeSolver
from newskills.solve.parts import SolverParts

_LABELS = ("B>>A", "B>A", "A=B", "A>B", "A>>B")
"""Results of a game from B's side to A's, each a step."""
_TURNED = {"A<B": "B>A", "A<<B": "B>>A"}
Verdict = str | float
Letters = Mapping[str, str]
VerdictForm = Literal["yes_or_no", "letter", "game", "mark"]


class PanelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of a panel, which `--judge_model=A,B,C` fills in."""

    solver: Annotated[str, Meta(description="how each judge is asked: a solver of single judges")] = "llm_judge"
    config: Annotated[Row, Meta(description="settings of that solver")] = {}
    names: Annotated[dict[str, str], Meta(description="role of a model → name of the judge")] = {}
    form: Annotated[VerdictForm, Meta(description="what a judge's text says")] = "yes_or_no"
    letters: Annotated[dict[str, str], Meta(description="letter → verdict, for form=letter")] = {}


class PanelJudgeSolver:
    """Fields written: those of one judge, with the panel's verdict as its text; `judge_panel`; `judge_split`.

    Yes or no, and letters: what most judges say; a tie is no verdict. Games: the median of A>>B … B>>A, and a tie in
    the middle of two. Marks: the mean. Where half of the judges or more give no verdict, neither does the panel: an
    answer that silences judges must not choose who decides. A judge whose request is refused is named with its error.
    """

    Config = PanelConfig

    def __init__(self, parts: SolverParts, config: PanelConfig = PanelConfig()) -> None:  # noqa: B008 - frozen
        """Make the solver of single judges. Raises UnknownNameError, ConfigError."""
        self._config = config
        self._key = parts.chat.generation_key
        self._members: dict[str, JudgeSolver] = {
            role: make_solver(config.solver, replace(parts, stamp={**parts.stamp, "model": name}), config.config)  # type: ignore[misc]
            for role, name in config.names.items()
        }
        self._form = FORMS[config.form]

    def request(self, sample: Sample) -> Request:
        """Return the first judge's question. Raises DataError."""
        return self._members[MAIN].request(sample)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        answers = await asyncio.gather(
            *(self._ask(role, sample, request, kit) for role in self._members), return_exceptions=True
        )
        attempts: dict[str, Attempt] = {}
        errors: dict[str, BadRequestError] = {}
        for role, answer in zip(self._members, answers, strict=True):
            if isinstance(answer, BadRequestError):
                errors[role] = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                attempts[role] = answer
        if not attempts:
            raise next(iter(errors.values()))
        first = next(iter(attempts.values()))
        if first.fields.get(f"{PREFIX}prefilled") or first.fields.get(self._key) is None:
            return first
        return Attempt(sample_id=sample.id, key=request.key(), fields=self._combine_verdicts(attempts, errors))

    async def _ask(self, role: str, sample: Sample, request: Request, kit: Kit) -> Attempt:
        member_kit = replace(kit, models={**kit.models, MAIN: kit.models[role]})
        return await self._members[role].solve(sample, request, member_kit)

    def _combine_verdicts(self, attempts: Mapping[str, Attempt], errors: Mapping[str, BadRequestError]) -> Row:
        names, letters = self._config.names, self._config.letters
        fields = dict(next(iter(attempts.values())).fields)
        keys = [key for key in fields if key.startswith(f"{self._key}-")] or [self._key]
        panel: dict[str, Row] = {names[role]: {"error": type(error).__name__} for role, error in errors.items()}
        is_split = False
        texts = {}
        for key in keys:
            verdicts = {
                role: self._form.read(attempt.fields.get(key), letters) for role, attempt in attempts.items()
            }
            for role, verdict in verdicts.items():
                own = panel.setdefault(names[role], {})
                own[key] = {"verdict": verdict, "text": attempts[role].fields.get(key)}
            present = [verdict for verdict in verdicts.values() if verdict is not None]
            is_split |= len(set(present)) > 1
            has_quorum = 2 * len(present) > len(names)
            together = self._form.combine(present) if has_quorum else None
            member_texts = [attempt.fields.get(key) for attempt in attempts.values()]
            texts[key] = "" if together is None else self._form.write(together, letters, member_texts)
        if self._key not in texts:
            texts[self._key] = "\n\n".join(f"[{key.removeprefix(f'{self._key}-')}]\n{texts[key]}" for key in keys)
        counts = dict.fromkeys(
            key
            for attempt in attempts.values()
            for key, value in attempt.fields.items()
            if key.startswith(f"{PREFIX}num_") and isinstance(value, int)
        )
        sums = {key: sum(attempt.fields.get(key) or 0 for attempt in attempts.values()) for key in counts}
        model = ", ".join(names.values())
        return {**fields, **texts, **sums, f"{PREFIX}model": model, PANEL_FIELD: panel, SPLIT_FIELD: is_split}


class _Form(Struct, frozen=True):
    """How verdicts of one form are read from a text, combined, and written so that the same reading finds them, by the
    side of what the judges wrote.

    Letters, and what they stand for, matter for the form of that name only.
    """

    read: Callable[[Any, Letters], Verdict | None]
    combine: Callable[[Sequence[Any]], Verdict | None]
    write: Callable[[Any, Letters, Sequence[object]], str]


def _read_yes_or_no(text: object, letters: Letters) -> str | None:
    verdict = parse_judgement(text)
    if verdict is None:
        return None
    if verdict:
        return "Yes"
    return "No"


def _majority_verdict(verdicts: Sequence[str]) -> str | None:
    """Return what most say; None where two verdicts are as frequent."""
    ranked = Counter(verdicts).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        return None
    return ranked[0][0]


def _median_game(labels: Sequence[str]) -> str:
    """Return the median; between two in the middle, the one nearer to a tie."""
    places = sorted(_LABELS.index(label) for label in labels)
    middle = (places[(len(places) - 1) // 2] + places[len(places) // 2]) / 2
    tie = _LABELS.index("A=B")
    return _LABELS[math.floor(middle) if middle > tie else math.ceil(middle)]


def _read_game(text: object, letters: Letters) -> str | None:
    label = arena_label(text)
    if label is None:
        return None
    return _TURNED.get(label, label)


def _written_yes_or_no(verdict: str, letters: Letters, texts: Sequence[object]) -> str:
    """Return the verdict, with the mean of the confidences that judges read in the answer, as an object where some of
    their texts are: official scorers read nothing else."""
    confidences = [percent for text in texts if (percent := parse_confidence(text)) is not None]
    percent = round(math.fsum(confidences) / len(confidences)) if confidences else None
    if any(structured_verdict(text) is not None for text in texts):
        stated = {} if percent is None else {"confidence": percent}
        return json.dumps({"correct": verdict.lower(), **stated})
    return f"Judgement: {verdict}" + ("" if percent is None else f"\nConfidence: {percent}")


def _written_letter(verdict: str, letters: Letters, texts: Sequence[object]) -> str:
    """Return the letter, or the name where the letter cannot be read (a small one)."""
    signs = (*(letter for letter, name in letters.items() if name == verdict), verdict)
    return next((sign for sign in signs if parse_verdict(sign, letters) == verdict), "")


FORMS: Mapping[VerdictForm, _Form] = {
    "yes_or_no": _Form(_read_yes_or_no, _majority_verdict, _written_yes_or_no),
    "letter": _Form(parse_verdict, _majority_verdict, _written_letter),
    "game": _Form(_read_game, _median_game, lambda verdict, letters, texts: f"[[{verdict}]]"),
    "mark": _Form(
        lambda text, letters: read_mark(text),
        lambda marks: math.fsum(marks) / len(marks),
        lambda verdict, letters, texts: f"[[{verdict:.3f}]]",
    ),
}
