# SPDX-License-Identifier: Apache-2.0
"""Skills as a trainer takes them: problems of token ids, and what makes rollouts and rewards of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row
from newskills.run.rewarding.graders import BatchGrader, Capacity
from newskills.run.rewarding.policy import PolicyFormat
from newskills.run.rewarding.questions import QuestionFormat
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.rewarding.rollouts import SolverRollouts
from newskills.run.training.skill import Skill
from newskills.train.loops.samples import MixedScorer, Scorer


class TrainedSkill(Struct, frozen=True, kw_only=True):
    """A benchmark with its rows, and how its solver asks the model that is trained; `weight` among several."""

    benchmark: Benchmark
    asking: QuestionFormat
    skill: Skill
    rows: Sequence[Row]
    weight: float = 1.0


@contextmanager
def open_scorer(trained: TrainedSkill, reward: RewardConfig, context: int | None) -> Iterator[Scorer]:
    """Yield how the skill's problems are solved and rewarded: by one reply, or by its own solver with all that
    this needs.

    `context`: tokens that the model can see. Raises ConfigError, SandboxError, FatalToolError where that cannot be
    done here, or where the model's chat template cannot show its tools.
    """
    benchmark, skill, asking = trained.benchmark, trained.skill, trained.asking
    with ExitStack() as stack:
        where = asking.config.sandbox, Capacity(environment=asking.config.environment)
        verdict = stack.enter_context(BatchGrader(benchmark.grader, benchmark.grader_config, *where))
        scorer = skill.scorer(verdict, reward)
        if not asking.one_reply:
            form = PolicyFormat(tokenizer=skill.tokenizer, stops=skill.stops, context=context)
            rollouts = stack.enter_context(SolverRollouts(asking, form))
            if trained.rows:
                rollouts.check(trained.rows[0])
            scorer = msgspec.structs.replace(scorer, roll_out=rollouts)
        yield scorer


@contextmanager
def scoring_all(trained: Sequence[TrainedSkill], reward: RewardConfig, context: int | None) -> Iterator[Scorer]:
    """Yield the scorer for one skill, or for several, whose problems name theirs as their source. Raises as
    `open_scorer`."""
    with ExitStack() as stack:
        scorers = {
            skill.benchmark.name: stack.enter_context(open_scorer(skill, reward, context)) for skill in trained
        }
        first = next(iter(scorers.values()))
        if len(scorers) == 1:
            yield first
        else:
            yield MixedScorer(reward=first.reward, decode=first.decode, stops=first.stops, scorers=scorers)
