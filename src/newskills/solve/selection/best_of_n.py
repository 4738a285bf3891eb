# SPDX-License-Identifier: Apache-2.0
"""`best_of_n`: several answers to each row, of which the one with the highest score is returned."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Message, Reply, Request, Row, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts
from newskills.solve.replies import sum_counts
from newskills.solve.selection.candidates import (
    OWN_COUNTS,
    SUMMED,
    Candidate,
    all_of,
    gather_candidates,
    seeds_of,
    visible_part,
    with_seed,
)
from newskills.solve.selection.comparing import last_match, problem_of
from newskills.solve.selection.config import BestOfNConfig
from newskills.solve.selection.selecting import selection_times

REWARD = "reward"
"""Role of the model that scores."""


class BestOfNSolver:
    """Draws `samples` answers; each is scored by a reward model or a judge, and the first of the best is returned.

    Unscored answers are left out; a lost score ends the sample unscored. A judge's reply without a score
    is below all others; an answer without text is not scored at all.

    Record fields beside those of the returned answer: `reward_model_score` (null where it has none), `scores` (of all,
    in the order of their seeds), `score_num_generated_tokens` (by a judge), `num_lost_solutions`; token counts and
    times are of all.
    """

    Config = BestOfNConfig

    def __init__(self, parts: SolverParts, config: BestOfNConfig) -> None:
        """Load the prompt. Raises UnknownNameError, ConfigError for the prompt."""
        self._base, self._config, self._key = parts.drawn_by, config, parts.chat.generation_key
        self._end = parts.chat.end_reasoning if config.parse_reasoning_solutions else None
        loaded = parts.load(config.prompt_config)
        inference = parts.chat.inference
        self._judge = parts.chat.changed(
            loaded,
            inference=msgspec.structs.replace(
                inference,
                temperature=0.0,
                top_logprobs=None,
                tokens_to_generate=config.tokens_to_generate or inference.tokens_to_generate,
            ),
            parse_reasoning=False,
            stop=(),
            response_format=None,
        )
        self._hash = loaded.hash if config.scorer == "judge" else ""

    def request(self, sample: Sample) -> Request:
        """Return the request of an answer. Raises DataError for a row that one of the prompts does not fit."""
        request = self._base.request(sample)
        if self._config.scorer == "judge":
            self._scoring_request(sample, problem_of(sample.row, request), "")
        selection = {"best_of_n": msgspec.to_builtins(self._config), "prompt": self._hash}
        return msgspec.structs.replace(request, solver={**request.solver, "selection": selection})

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Draw answers, and choose the one with the best score. Raises what the models raise, and ConfigError without
        the model that scores."""
        judging = self._config.scorer == "judge"
        scorer = kit.models.get(REWARD, kit.models[MAIN] if judging else None)
        if scorer is None:
            raise ConfigError(
                "No model is given that scores the answers.",
                hint="Give one: ++models.reward.server_type=vllm_classify ++models.reward.model=… "
                "++models.reward.base_url=…",
            )
        seeds = seeds_of(request.inference.random_seed, self._config.samples)
        gathered = await gather_candidates(
            self._base, sample, [with_seed(request, seed) for seed in seeds], kit, self._make_candidate
        )
        problem = problem_of(sample.row, request)
        scored = [candidate for candidate in gathered.candidates if candidate.text]
        replies = await all_of(
            [
                asyncio.ensure_future(ask(scorer, self._scoring_request(sample, problem, candidate.text)))
                for candidate in scored
            ]
        )
        scores = {candidate.number: self._score(reply) for candidate, reply in zip(scored, replies, strict=True)}
        known_scores = {number: score for number, score in scores.items() if score is not None}
        best = max(gathered.candidates, key=lambda candidate: known_scores.get(candidate.number, -math.inf))
        fields = self._fields(best, gathered.candidates, replies if judging else [])
        fields |= {
            "reward_model_score": scores.get(best.number),
            "scores": [scores.get(candidate.number) for candidate in gathered.candidates],
            "num_lost_solutions": gathered.lost,
        }
        return Attempt(sample_id=sample.id, key=request.key(), fields=fields)

    def _make_candidate(self, number: int, attempt: Attempt) -> Candidate:
        fields = attempt.fields
        text = str(fields.get(self._key) or "")
        if self._end is not None:
            text = visible_part(text, self._end, cut=fields.get("finish_reason") == "length")
        return Candidate(number=number, text=text.strip(), fields=fields)

    def _scoring_request(self, sample: Sample, problem: str, solution: str) -> Request:
        if self._config.scorer == "judge":
            row = {**sample.row, "problem": problem, "solution": solution}
            return self._judge.request(msgspec.structs.replace(sample, row=row))
        return Request(
            messages=[Message(role="user", content=problem), Message(role="assistant", content=solution)],
            inference=self._judge.inference,
        )

    def _score(self, reply: Reply) -> float | None:
        if self._config.scorer == "judge":
            score_text = last_match(self._config.regex, reply.text)
        else:
            score_text = reply.text
        with contextlib.suppress(ValueError, TypeError):
            score = float(score_text or "")
            if math.isfinite(score):
                return score
            return None
        return None

    def _fields(self, best: Candidate, drawn: Sequence[Candidate], replies: Sequence[Reply]) -> Row:
        own = [candidate.fields for candidate in drawn]
        usage = {
            "num_generated_tokens": [reply.usage.output_tokens for reply in replies],
            "num_input_tokens": [reply.usage.input_tokens for reply in replies],
        }
        counts = {name: sum_counts([*(fields.get(name) for fields in own), *usage[name]]) for name in SUMMED}
        if replies:
            counts["score_num_generated_tokens"] = sum_counts(usage["num_generated_tokens"])
        return {
            **{name: value for name, value in best.fields.items() if name not in OWN_COUNTS},
            **{name: count for name, count in counts.items() if count is not None},
            **selection_times(own, replies),
        }
