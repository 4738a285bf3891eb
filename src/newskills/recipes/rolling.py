# SPDX-License-Identifier: Apache-2.0
"""How problems are solved in training that take several replies of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from newskills.base.records import Row
from newskills.recipes.skill import Skill
from newskills.recipes.training import context_of
from newskills.run.rewarding.policy import PolicyFormat
from newskills.run.rewarding.questions import QuestionFormat
from newskills.run.rewarding.rollouts import SolverRollouts


@contextmanager
def roll_out(
    skill: Skill, asking: QuestionFormat, base: Path, rows: Sequence[Row]
) -> Iterator[SolverRollouts | None]:
    """Rollouts by the solver; None where one reply is an answer. Raises ConfigError, SandboxError where the solver
    cannot work here."""
    if asking.one_reply:
        yield None
        return
    form = PolicyFormat(tokenizer=skill.tokenizer, stops=skill.stops, context=context_of(base))
    with SolverRollouts(asking, form) as rollouts:
        if rows:
            rollouts.check(rows[0])
        yield rollouts
