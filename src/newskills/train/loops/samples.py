# SPDX-License-Identifier: Apache-2.0
"""Problems, samples of them and what these are worth, as every trainer gets them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from newskills.base.errors import TrainingError
from newskills.base.records import Row
from newskills.train.verbs import Sampled, SamplingClient, SamplingParams

SEEDS_APART = 500_009
"""Between the seeds of two sources, so that their samples are not drawn with the same random numbers."""


class Problem(Struct, frozen=True):
    """`prompt` as token ids; `row` is what the grader gets, with the generation merged in.

    `source`: the benchmark that it is from, where there are several.
    """

    prompt: Sequence[int]
    row: Row
    source: str = ""


class SampledTurn(Struct, frozen=True):
    """`prompt`: all that the model read, as token ids, before it wrote `sampled`."""

    prompt: Sequence[int]
    sampled: Sampled


class Rollout(Struct, frozen=True, kw_only=True):
    """One attempt at a problem.

    row      the problem's row with what its solver recorded
    rewards  of each turn, where the environment gives them; empty where it does not
    source   that of the problem
    lost     why an instrument (sandbox, tool, environment) failed; nothing is learnt of such a rollout
    """

    turns: Sequence[SampledTurn]
    row: Row
    text: str
    finish_reason: str
    rewards: Sequence[float] = ()
    lost: str = ""
    source: str = ""

    @property
    def is_cut_off(self) -> bool:
        """Whether a limit has ended it: that of tokens, or an agent's of steps, time or cost."""
        return self.finish_reason in ("length", "steps", "time", "cost")

    @property
    def tokens(self) -> int:
        """Tokens that the model wrote."""
        return sum(len(turn.sampled.tokens) for turn in self.turns)


RollOut = Callable[[SamplingClient, Sequence[Problem], int, SamplingParams], list[list[Rollout]]]
"""(model, problems, rollouts of each, sampling) → the rollouts of each problem. The same seed gives the same ones."""


class Judged(Struct, frozen=True):
    """The reward of a sample; None where the instrument failed. `answer` is what the grader extracted.

    outcome     correct, wrong, no_answer or unscored
    components  what the reward is the sum of, by name
    why         cause and sentence of what is unscored
    """

    reward: float | None
    correct: bool
    answer: str | None = None
    outcome: str = ""
    components: dict[str, float] = {}
    why: str = ""

    def __post_init__(self) -> None:
        """Raise TrainingError for a reward that would spoil all that is computed from it."""
        if self.reward is not None and not math.isfinite(self.reward):
            raise TrainingError(f"A sample has the reward {self.reward}, which is not a finite number.")


Reward = Callable[[Sequence[tuple[Row, str, str]]], list[Judged]]
"""Judges samples: (problem's row, text, finish_reason) each."""

Decode = Callable[[Sequence[int]], str]


class Scorer(Struct, frozen=True):
    """How sampled tokens become rewards: `decode` makes text of them, `reward` judges it, `stops` end a sample.

    `roll_out`: how problems are solved where one reply is not an answer (code, tools, several turns).
    """

    reward: Reward
    decode: Decode
    stops: Sequence[int]
    roll_out: RollOut | None = None

    @property
    def several_turns(self) -> bool:
        """Whether a problem may take more than one reply."""
        return self.roll_out is not None

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of a sample, without the token that ended it."""
        ended = tokens and tokens[-1] in set(self.stops)
        return self.decode(tokens[:-1] if ended else tokens)

    def rollouts(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        """Return `count` of each problem. Raises what the client and `roll_out` raise."""
        if self.roll_out is not None:
            return self.roll_out(client, problems, count, params)
        groups = client.sample([problem.prompt for problem in problems], count, params)
        return [
            [
                Rollout(
                    turns=(SampledTurn(problem.prompt, sampled),),
                    row=problem.row,
                    text=self.text(sampled.tokens),
                    finish_reason=sampled.stop_reason,
                    source=problem.source,
                )
                for sampled in group
            ]
            for problem, group in zip(problems, groups, strict=True)
        ]

    def judge(self, rollouts: Sequence[Rollout]) -> list[Judged]:
        """Grade the samples; what was lost has no reward. Raises TrainingError where nothing could be graded: a broken
        grader teaches nothing."""
        judged = self.verdicts(rollouts)
        check_graded(judged)
        return judged

    def verdicts(self, rollouts: Sequence[Rollout]) -> list[Judged]:
        """Return them in order; what was lost has no reward."""
        kept = [rollout for rollout in rollouts if not rollout.lost]
        rewards = iter(
            self.reward([(rollout.row, rollout.text, rollout.finish_reason) for rollout in kept]) if kept else ()
        )
        return [
            Judged(None, correct=False, outcome="unscored", why=rollout.lost) if rollout.lost else next(rewards)
            for rollout in rollouts
        ]


class MixedScorer(Scorer, frozen=True, kw_only=True):
    """Problems of several sources, each solved and judged as its own scorer does."""

    scorers: Mapping[str, Scorer]

    @property
    def several_turns(self) -> bool:
        return any(scorer.several_turns for scorer in self.scorers.values())

    def rollouts(
        self, client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        """Return `count` of each problem, source by source. Raises what the client and the sources raise."""
        groups: list[list[Rollout]] = [[] for _ in problems]
        for number, (source, scorer) in enumerate(self.scorers.items()):
            places = [place for place, problem in enumerate(problems) if problem.source == source]
            if not places:
                continue
            own = msgspec.structs.replace(params, seed=params.seed + number * SEEDS_APART)
            solved = scorer.rollouts(client, [problems[place] for place in places], count, own)
            for place, group in zip(places, solved, strict=True):
                groups[place] = [msgspec.structs.replace(rollout, source=source) for rollout in group]
        return groups

    def verdicts(self, rollouts: Sequence[Rollout]) -> list[Judged]:
        """Return them in order, by the grader of each one's source."""
        judged: dict[int, Judged] = {}
        for source, scorer in self.scorers.items():
            places = [place for place, rollout in enumerate(rollouts) if rollout.source == source]
            verdicts = scorer.verdicts([rollouts[place] for place in places])
            judged.update(zip(places, verdicts, strict=True))
        return [judged[place] for place in range(len(rollouts))]


def check_graded(judged: Sequence[Judged]) -> None:
    """Raise TrainingError, with the most frequent cause, where no sample has a reward."""
    if any(sample.reward is not None for sample in judged):
        return
    causes = Counter(sample.why for sample in judged if sample.why).most_common(1)
    cause = f" ({causes[0][0].rstrip('.')})" if causes else ""
    raise TrainingError(
        f"None of the samples could be graded; training stopped{cause}.",
        hint="Checkpoints are kept: fix the cause, then run the same command to resume.",
    )
