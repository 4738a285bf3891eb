# SPDX-License-Identifier: Apache-2.0
"""One answer out of several of a model in this process, under the names of the recipe that this one replaces.

`ns aimo generate --strategy …` does the same with a served model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from newskills.aimo.local_model import LocalModel
from newskills.graders.voting.values import same_answer
from newskills.solve.selection.comparing import chosen_number, numbered_solutions
from newskills.solve.selection.config import GenSelectPrompt
from newskills.solve.selection.votes import classes_of
from newskills_aimo.recipe.answers import extract_answer_from_solution
from newskills_aimo.recipe.evaluating import COT

AT_ONCE = 8
"""Samples that are generated together."""


class SolutionCandidate(Struct, kw_only=True):
    """A solution, its final answer, and the mean log-probability of its tokens."""

    response: str
    answer: str | None = None
    log_prob: float = 0.0


class _SamplingSolver:
    def __init__(self, model: Any, tokenizer: Any, count: int, temperature: float, max_new_tokens: int) -> None:
        self._local = LocalModel(model, tokenizer)
        self.num_samples, self.temperature, self.max_new_tokens = count, temperature, max_new_tokens

    def candidates(self, problem: str) -> list[SolutionCandidate]:
        """Return solutions of the problem, sampled from the model."""
        prompt = self._local.prompt(COT, {"problem": problem})
        made: list[SolutionCandidate] = []
        while len(made) < self.num_samples:
            prompts = [prompt] * min(AT_ONCE, self.num_samples - len(made))
            for reply in self._local.generate(
                prompts, max_new_tokens=self.max_new_tokens, temperature=self.temperature
            ):
                answer = extract_answer_from_solution(reply.text)
                made.append(SolutionCandidate(response=reply.text, answer=answer, log_prob=reply.logprob))
        return made


class MajorityVoteSolver(_SamplingSolver):
    """Takes the answer that most solutions give; answers of the same value vote together."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        num_samples: int = 16,
        temperature: float = 0.7,
        max_new_tokens: int = 4096,
    ) -> None:
        super().__init__(model, tokenizer, num_samples, temperature, max_new_tokens)

    def solve(self, problem: str) -> str:
        """Return the longest solution with the answer that wins; without any answer the first solution."""
        return select(self.candidates(problem))


class LocalWeightedVoteSolver(MajorityVoteSolver):
    """Takes the answer whose solutions the model is surest of: each vote weighs exp(mean log-probability)."""

    def solve(self, problem: str) -> str:
        """Return the longest solution with the answer that wins; without any answer the first solution."""
        candidates = self.candidates(problem)
        return select(candidates, [math.exp(candidate.log_prob) for candidate in candidates])


class LocalGenSelectSolver(_SamplingSolver):
    """Lets a model compare the solutions and choose the best of them."""

    def __init__(
        self,
        generator_model: Any,
        selector_model: Any,
        tokenizer: Any,
        num_candidates: int = 16,
        temperature: float = 0.7,
        max_new_tokens: int = 4096,
    ) -> None:
        super().__init__(generator_model, tokenizer, num_candidates, temperature, max_new_tokens)
        self._selector = LocalModel(selector_model, tokenizer)

    def solve(self, problem: str) -> str:
        """Return the chosen solution; where the choice names none, the one that a vote selects."""
        candidates = self.candidates(problem)
        if len(candidates) == 1:
            return candidates[0].response
        asked_for, count = GenSelectPrompt(), len(candidates)
        row = {
            "problem": problem,
            "solutions": numbered_solutions([candidate.response for candidate in candidates]),
            "num_solutions": count,
            "max_idx": count - 1,
        }
        prompt = self._selector.prompt(asked_for.prompt_config, row)
        (reply,) = self._selector.generate([prompt], max_new_tokens=self.max_new_tokens)
        index = chosen_number(asked_for.regex, reply.text, count)
        if index is None:
            return select(candidates)
        return candidates[index].response


def select(candidates: Sequence[SolutionCandidate], weights: Sequence[float] | None = None) -> str:
    """Return the longest solution with the answer of most votes, or most weight; without any answer the first one."""
    weights = weights or [1.0] * len(candidates)
    classes = classes_of([candidate.answer for candidate in candidates], same_answer).values()
    if not classes:
        if candidates:
            return candidates[0].response
        return ""
    winners = max(classes, key=lambda members: sum(weights[at] for at in members))
    return max((candidates[at].response for at in winners), key=len)


GenSelectSolver, WeightedVoteSolver = LocalGenSelectSolver, LocalWeightedVoteSolver
"""The names in the older recipe; those of the solvers of `ns generate` are alike."""
