# SPDX-License-Identifier: Apache-2.0
"""Several questions to a judge about one row: two games with the orders swapped, or one per turn of a conversation."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.prompts.official.table import is_official
from newskills.solve.chat import MAIN, ChatSolver, ask
from newskills.solve.judges.judge import ASKED, JudgeSolver, is_lost
from newskills.solve.parts import SolverParts

MT_BENCH = "judge/mt-bench"
WITH_REFERENCE = ("math", "reasoning", "coding")
"""Categories of MT-Bench that are judged by a reference answer."""
ALL = "rubrics"
"""Name of the question about all criteria."""
_CRITERION = re.compile(r"^[\s*_#>-]{0,8}criterion (\d{1,4})\b", re.IGNORECASE | re.MULTILINE)
_COUNTS = ("judge_num_generated_tokens", "judge_num_input_tokens")


class SeveralConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of judges that ask several times."""

    prompts: Annotated[
        dict[str, str], Meta(description="category of a row → prompt instead of prompt_config")
    ] = {}


class SeveralJudgements(JudgeSolver):
    """Base: `<key>-<name>` for each question, all of them in `<key>` as one text; the rest as `JudgeSolver`."""

    Config = SeveralConfig

    def __init__(self, parts: SolverParts, config: SeveralConfig = SeveralConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(parts)
        self._others: Mapping[str, ChatSolver] = {
            category: parts.chat.with_prompt(parts.load(name)) for category, name in config.prompts.items()
        }

    @abstractmethod
    def questions(self, row: Row) -> dict[str, Row]:
        """Return name → fields that the prompt needs beside the row's own. Raises DataError for a row that lacks
        some."""

    def request(self, sample: Sample) -> Request:
        """Return the first question, which stands for all of them. Raises DataError."""
        if is_lost(sample.row):
            return super().request(sample)
        return next(iter(self._requests(sample).values()))

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        if is_lost(sample.row):
            return await super().solve(sample, request, kit)
        solver, requests = self._solver(sample.row), self._requests(sample)
        replies = await asyncio.gather(*(ask(kit.models[MAIN], request) for request in requests.values()))
        fields: Row = {self._key: ""}
        for (name, judge_request), reply in zip(requests.items(), replies, strict=True):
            attempt = await solver.attempt(sample, judge_request, reply, solver.text(reply))
            prefixed = {
                f"judge_{key.lstrip('_')}": value for key, value in attempt.fields.items() if key != self._key
            }
            for count in _COUNTS:
                if count in prefixed and count in fields:
                    prefixed[count] += fields[count]
            text = attempt.fields[self._key]
            fields |= prefixed | {f"{self._key}-{name}": text}
            fields[self._key] += f"[{name}]\n{text}\n\n"
        fields[self._key] = fields[self._key].rstrip()
        return Attempt(
            sample_id=sample.id, key=request.key(), fields={**fields, **self._stamp, ASKED: request.key()}
        )

    def _solver(self, row: Row) -> ChatSolver:
        return self._others.get(str(row.get("category")), self._chat)

    def _solver_of(self, name: str, row: Row) -> ChatSolver:
        """Return the solver of one of the row's questions."""
        return self._solver(row)

    def _requests(self, sample: Sample) -> dict[str, Request]:
        requests = {}
        for name, more in self.questions(sample.row).items():
            question = Sample(id=sample.id, row={**sample.row, **more}, position=sample.position)
            requests[name] = self._solver_of(name, sample.row).request(question)
        return requests


class ArenaJudgeSolver(SeveralJudgements):
    """Two games between the answer and `baseline_answer`: `gen-base`, where the answer is A, and `base-gen`."""

    def questions(self, row: Row) -> dict[str, Row]:
        """Return the comparison in both orders. Raises DataError for a record without `baseline_answer`."""
        baseline = row.get("baseline_answer")
        if not isinstance(baseline, str) or not baseline.strip():
            raise DataError(
                f"Record {row.get('id')} has no baseline_answer to compare with.",
                hint="Write the answers of the model to compare with into the field baseline_answer of the data.",
            )
        own = str(row.get("generation") or "")
        return {
            "gen-base": {"answer_1": own, "answer_2": baseline},
            "base-gen": {"answer_1": baseline, "answer_2": own},
        }


class TurnsJudgeSolver(SeveralJudgements):
    """One question for each turn: `conversation` is what was said before it, `answer` the answer of the turn.

    The official instructions of MT-Bench are four: for the first and the second turn, each with a reference or without.
    """

    def __init__(self, parts: SolverParts, config: SeveralConfig = SeveralConfig()) -> None:  # noqa: B008 - frozen
        """Load the other official instructions where the prompt is an official one. Raises ConfigError where some of
        the official instructions are missing, or do not fit."""
        super().__init__(parts, config)
        self._official: dict[str, ChatSolver] = {}
        if not str(parts.stamp.get("prompt")).startswith(f"{MT_BENCH} ") or not is_official(
            parts.load(MT_BENCH).source
        ):
            return
        for name in ("turn1_with_ref", "turn2", "turn2_with_ref"):
            prompt = parts.load(f"{MT_BENCH}/{name}")
            if not is_official(prompt.source):
                raise ConfigError(
                    f"Of the official instructions of MT-Bench {prompt.name} is missing.",
                    hint="Run: ns prepare_data mt-bench",
                )
            self._official[name] = parts.chat.with_prompt(prompt)

    def _solver_of(self, name: str, row: Row) -> ChatSolver:
        """Return the solver of a turn; the first turn without a reference is the main prompt's."""
        with_reference = row.get("category") in WITH_REFERENCE and bool(row.get("turn_references"))
        key = name.replace("-", "") + ("_with_ref" if with_reference else "")
        return self._official.get(key, self._solver(row))

    def questions(self, row: Row) -> dict[str, Row]:
        """Return one question for each turn, with the conversation before it.

        Raises DataError where turns and answers are not as many.
        """
        turns, answers = row.get("turns") or [], row.get("turn_answers") or []
        references = row.get("turn_references") or []
        if not turns or len(answers) != len(turns):
            raise DataError(f"Record {row.get('id')} has {len(turns)} turns and {len(answers)} turn_answers.")
        questions: dict[str, Row] = {}
        before = ""
        earlier: Row = {}
        for number, (question, answer) in enumerate(zip(turns, answers, strict=True), 1):
            reference = references[number - 1] if number <= len(references) else ""
            questions[f"turn-{number}"] = {
                "conversation": before or "(this is the first turn)",
                "question": question,
                "answer": answer,
                "reference": reference or "(there is none)",
                f"question_{number}": question,
                f"answer_{number}": answer,
                f"ref_answer_{number}": reference,
                **earlier,
            }
            earlier |= {
                key: questions[f"turn-{number}"][key] for key in (f"question_{number}", f"answer_{number}")
            }
            earlier[f"ref_answer_{number}"] = reference
            before += f"User: {question}\n\nAssistant: {answer}\n\n"
        return questions


class RubricConfig(SeveralConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of judges of criteria."""

    at_once: Annotated[
        bool, Meta(description="one question about all criteria of a row, instead of one for each")
    ] = False


class RubricJudgeSolver(SeveralJudgements):
    """One question for each of the row's `rubrics` (`{"criterion", "points"}`), whether the criterion is met; or one
    about all of them, whose reply is cut into their parts: lines that begin with `Criterion N`."""

    Config = RubricConfig

    def __init__(self, parts: SolverParts, config: RubricConfig = RubricConfig()) -> None:  # noqa: B008 - frozen
        super().__init__(parts, config)
        self._at_once = config.at_once

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        attempt = await super().solve(sample, request, kit)
        whole = attempt.fields.pop(f"{self._key}-{ALL}", None)
        if isinstance(whole, str):
            attempt.fields[self._key] = whole
            parts = criterion_parts(whole)
            for number in range(1, len(sample.row["rubrics"]) + 1):
                attempt.fields[f"{self._key}-rubric-{number}"] = parts.get(number, "")
        return attempt

    def questions(self, row: Row) -> dict[str, Row]:
        """Return one question for each criterion; the prompt sees `criterion` and `answer`, the reply without its
        thinking.

        Raises DataError for a record without rubrics.
        """
        rubrics = row.get("rubrics")
        if not isinstance(rubrics, list) or not rubrics:
            raise DataError(f"Record {row.get('id')} has no list of rubrics.")
        answer = without_thinking(str(row.get("generation") or ""))
        if self._at_once:
            lines = [f"Criterion {number}: {rubric['criterion']}" for number, rubric in enumerate(rubrics, 1)]
            return {ALL: {"criteria": "\n\n".join(lines), "answer": answer}}
        return {f"rubric-{number}": {**rubric, "answer": answer} for number, rubric in enumerate(rubrics, 1)}


def criterion_parts(reply: str) -> dict[int, str]:
    """Return number → part of a reply about several criteria, without thinking; a number that heads two parts has
    none, since either could be meant.

    >>> criterion_parts("Criterion 1: It does. Judgement: Yes\\n**Criterion 2**: Judgement: No")
    {1: 'Criterion 1: It does. Judgement: Yes', 2: '**Criterion 2**: Judgement: No'}
    """
    text = without_thinking(reply)
    heads = list(_CRITERION.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    numbers = [int(head[1]) for head in heads]
    return {
        number: text[head.start() : end].strip()
        for number, head, end in zip(numbers, heads, ends, strict=True)
        if numbers.count(number) == 1
    }
