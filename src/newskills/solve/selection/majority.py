# SPDX-License-Identifier: Apache-2.0
"""`majority` and `weighted_vote`: several answers to each row, which vote (https://arxiv.org/abs/2203.11171)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import msgspec

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.graders.voting.values import same_answer
from newskills.solve.parts import SolverParts
from newskills.solve.replies import sum_counts
from newskills.solve.selection.candidates import (
    OWN_COUNTS,
    SUMMED,
    Candidate,
    CandidateSet,
    gather_candidates,
    seeds_of,
    visible_part,
    with_seed,
)
from newskills.solve.selection.config import VoteConfig
from newskills.solve.selection.selecting import selection_times
from newskills.solve.selection.votes import classes_of

_LOGPROBS = ("tokens", "logprobs", "top_logprobs")


class VotingSolver:
    """Base: draws `samples` answers; the longest text of the class of answers with the most votes is returned.

    Answers that the math grader takes for the same value are one class; of classes with equal votes the first
    that was given wins. Unscored answers have no vote. With `early_stop_votes` those still under way are
    given up once so many agree: which these are depends on the times of the replies.

    Record fields beside those of the returned answer: `predicted_answer` (null where nobody has one), `votes`,
    `num_votes`, `num_lost_solutions`, `stopped_early`; token counts and times are of all answers.
    """

    Config = VoteConfig

    def __init__(self, parts: SolverParts, config: VoteConfig) -> None:
        self._base, self._config = parts.drawn_by, config
        self._key, self._end = parts.chat.generation_key, parts.chat.end_reasoning

    def request(self, sample: Sample) -> Request:
        """Return the request of an answer. Raises DataError for a row that the prompt does not fit."""
        request = self._base.request(sample)
        selection = {"name": type(self).__name__, **msgspec.to_builtins(self._config)}
        return msgspec.structs.replace(request, solver={**request.solver, "selection": selection})

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Draw answers, and elect one of them. Raises what the model raises, where no answer at all was to be had."""
        seeds = seeds_of(request.inference.random_seed, self._config.samples)
        seeded = [with_seed(request, seed) for seed in seeds]
        gathered = await gather_candidates(
            self._base, sample, seeded, kit, self._make_candidate, enough=self._enough
        )
        return Attempt(sample_id=sample.id, key=request.key(), fields=self._elect(gathered))

    @abstractmethod
    def weight(self, candidate: Candidate) -> float:
        """Return what a vote counts. Raises NewskillsError."""

    def _make_candidate(self, number: int, attempt: Attempt) -> Candidate:
        fields = attempt.fields
        text = visible_part(
            str(fields.get(self._key) or ""), self._end, cut=fields.get("finish_reason") == "length"
        )
        return Candidate(number=number, text=text, fields=fields)

    def _enough(self, candidates: Sequence[Candidate]) -> bool:
        needed = self._config.early_stop_votes
        if needed is None or len(candidates) < needed:
            return False
        classes = classes_of([candidate.answer for candidate in candidates], same_answer)
        return any(len(members) >= needed for members in classes.values())

    def _elect(self, gathered: CandidateSet) -> Row:
        candidates = gathered.candidates
        classes = classes_of([candidate.answer for candidate in candidates], same_answer)
        votes = {answer: sum(self.weight(candidates[n]) for n in members) for answer, members in classes.items()}
        ranked = dict(sorted(votes.items(), key=lambda vote: -vote[1]))
        answer = next(iter(ranked), None)
        members: Sequence[int] = range(len(candidates)) if answer is None else classes[answer]
        winner = max((candidates[n] for n in members), key=lambda candidate: len(candidate.text))
        drawn: list[Mapping[str, int]] = [candidate.fields for candidate in candidates]
        counts = {
            name: count
            for name in SUMMED
            if (count := sum_counts([fields.get(name) for fields in drawn])) is not None
        }
        return {
            **self.kept_fields(winner.fields),
            **counts,
            **selection_times([candidate.fields for candidate in candidates], []),
            "predicted_answer": winner.answer if answer is not None else None,
            "votes": ranked,
            "num_votes": sum(map(len, classes.values())),
            "num_lost_solutions": gathered.lost,
            "stopped_early": gathered.stopped_early,
        }

    def kept_fields(self, fields: Row) -> Row:
        """Return what stays of the record of the winner."""
        return {name: value for name, value in fields.items() if name not in OWN_COUNTS}


class MajoritySolver(VotingSolver):
    """Each answer has one vote."""

    def weight(self, candidate: Candidate) -> int:
        return 1


class WeightedVoteSolver(VotingSolver):
    """A vote counts exp(mean log-probability of the tokens): the inverse of the answer's perplexity."""

    def __init__(self, parts: SolverParts, config: VoteConfig) -> None:
        super().__init__(parts, config)
        self._asked = parts.chat.inference.top_logprobs is not None

    def request(self, sample: Sample) -> Request:
        request = super().request(sample)
        if not self._asked:
            request.inference = msgspec.structs.replace(request.inference, top_logprobs=1)
        return request

    def weight(self, candidate: Candidate) -> float:
        """Return exp(mean log-probability of the tokens), in (0, 1]. Raises DataError where the server sent
        none."""
        values = candidate.fields.get("logprobs")
        if not values:
            raise DataError(
                "The server sent no log-probabilities, which are needed to weight the votes.",
                hint="Use solver=majority, or a server that returns them.",
            )
        return math.exp(math.fsum(values) / len(values))

    def kept_fields(self, fields: Row) -> Row:
        dropped = () if self._asked else _LOGPROBS
        return {name: value for name, value in super().kept_fields(fields).items() if name not in dropped}
