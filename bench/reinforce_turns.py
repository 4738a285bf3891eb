# SPDX-License-Identifier: Apache-2.0
"""How the problems of `bench.reinforce` are solved and judged: by one reply, or by two with something read between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bench.reinforce_tasks import Task
from newskills.base.records import Row
from newskills.models.tokenizer import HFTokenizer
from newskills.train.loops.samples import Judged, Problem, Reward, RollOut, Rollout, SampledTurn, Scorer
from newskills.train.verbs import Sampled, SamplingClient, SamplingParams

SECOND_SEED = 7_000_003
"""Added to the seed of second replies, which are not to be drawn with the random numbers of first ones."""


def scorer_of(task: Task, tokenizer: HFTokenizer, end: int) -> Scorer:
    """What solves and judges problems of a task."""
    scorer = Scorer(judged_by(task), tokenizer.decode, [end])
    if task.between is None:
        return scorer
    return msgspec.structs.replace(scorer, roll_out=rolled_by(task.between, tokenizer, scorer))


def judged_by(task: Task) -> Reward:
    """Right is the last reply, letter by letter; where the task wants it, the first one, too."""

    def judged(row: Row, text: str) -> Judged:
        right = text.strip() == row["expected_answer"]
        if task.strict:
            right = right and row.get("replied") == row["first"]
        return Judged(float(right), right)

    return lambda samples: [judged(row, text) for row, text, _ in samples]


def rolled_by(between: Callable[[str], str], tokenizer: HFTokenizer, scorer: Scorer) -> RollOut:
    """A first reply, what `between` makes of it, a second reply; a first one that does not end is the last."""

    def after(problem: Problem, first: Sampled) -> list[int]:
        return [*problem.prompt, *first.tokens, *tokenizer.encode(between(scorer.text(first.tokens)))]

    def roll_out(
        client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        firsts = client.sample([problem.prompt for problem in problems], count, params)
        pairs = [(problem, first) for problem, group in zip(problems, firsts, strict=True) for first in group]
        going_on = [after(problem, first) for problem, first in pairs if first.stop_reason == "stop"]
        later = msgspec.structs.replace(params, seed=params.seed + SECOND_SEED)
        seconds = iter(zip(going_on, client.sample(going_on, 1, later), strict=True) if going_on else ())
        rollouts = []
        for problem, first in pairs:
            turns = [SampledTurn(problem.prompt, first)]
            if first.stop_reason == "stop":
                prompt, [second] = next(seconds)
                turns.append(SampledTurn(prompt, second))
            replied = {"replied": scorer.text(first.tokens).strip()} if len(turns) > 1 else {}
            last = turns[-1].sampled
            text = scorer.text(last.tokens) if len(turns) > 1 else ""
            rollouts.append(
                Rollout(turns=turns, row=problem.row | replied, text=text, finish_reason=last.stop_reason)
            )
        return [rollouts[at : at + count] for at in range(0, len(rollouts), count)]

    return roll_out
