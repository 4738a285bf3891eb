# SPDX-License-Identifier: Apache-2.0
"""Solvers that draw several solutions and let the model choose among them, or write one out of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Reply, Request, Row, Sample
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.graders.voting.values import same_answer
from newskills.solve.chat import MAIN
from newskills.solve.parts import SolverParts
from newskills.solve.replies import sum_counts
from newskills.solve.selection.candidates import (
    OWN_COUNTS,
    Candidate,
    CandidateSet,
    all_of,
    gather_candidates,
    seeds_of,
    visible_part,
    with_seed,
)
from newskills.solve.selection.comparing import (
    Comparer,
    ComparisonReply,
    chosen_number,
    comparable_candidates,
    even_groups,
    last_match,
    problem_of,
)
from newskills.solve.selection.config import Selection
from newskills.solve.selection.votes import Votes, elect_majority

_TIMES = ("generation_start_time", "generation_end_time", "generation_time")


class CandidateSource(Protocol):
    """Where solutions come from."""

    async def candidates(self, sample: Sample, request: Request, kit: Kit) -> CandidateSet: ...

    @property
    def digest(self) -> Row:
        """What decides which they are, for the resume key."""
        ...


class Design(Struct, frozen=True, kw_only=True):
    """How solutions become one; the fields as in `selection_config`."""

    mode: Literal["genselect", "gensynthesis"]
    settings: Selection
    prompt: str
    regex: str
    window_size: int
    repeats: int = 1
    tournament: bool = False


class DrawResult(Struct, kw_only=True):
    """What one draw came to. `valid`: the model's last word could be read; else `candidate` was drawn by lot."""

    fields: Row
    text: str
    answer: str | None
    valid: bool
    comparisons: list[ComparisonReply] = []


class OnlineSource:
    """Solutions drawn for this very row, with seeds of their own."""

    def __init__(self, parts: SolverParts, design: Design, samples: int, solution_key: str = "generation") -> None:
        self._solver, self._samples = parts.drawn_by, samples
        self._own, self._key = parts.chat.generation_key, solution_key
        self._end = parts.chat.end_reasoning if design.settings.parse_reasoning_solutions else None

    @property
    def digest(self) -> Row:
        return {"samples": self._samples}

    async def candidates(self, sample: Sample, request: Request, kit: Kit) -> CandidateSet:
        """Draw solutions of the row. Raises what the model raises, where no solution at all was to be had."""
        seeds = seeds_of(request.inference.random_seed, self._samples)
        seeded = [with_seed(request, seed) for seed in seeds]
        return await gather_candidates(self._solver, sample, seeded, kit, self._make_candidate)

    def _make_candidate(self, number: int, attempt: Attempt) -> Candidate:
        fields = attempt.fields
        return Candidate(number=number, text=shown_text(fields, self._key, self._own, self._end), fields=fields)


class SelectingSolver:
    """Several solutions of a row, compared by the model in `repeats` draws, whose answers vote where there are several.

    A draw takes solutions in an order of its own: the first `window_size` of them, or in a tournament all, group by
    group, winners against winners. Where the model's choice cannot be read, one of its group is drawn by lot (by the
    seed), and has no vote while any draw was read. Unscored solutions are left out; a lost comparison
    ends the sample unscored, since another choice would be another method.

    Record fields: those of the chosen solution, or of the one that was written; `<mode>_comparison` (what the model
    said), `<mode>_successful`, `<mode>_num_generated_tokens`, `total_solution_generated_tokens`,
    `num_generated_tokens` (both together; as `num_input_tokens` and the times), `solution_list` (what can be chosen
    from), `num_lost_solutions`; with several draws `votes` and `num_invalid_selections`.
    """

    def __init__(self, parts: SolverParts, design: Design, source: CandidateSource) -> None:
        """Load the prompt. Raises UnknownNameError, ConfigError for the prompt."""
        self._chat, self._base, self._design, self._source = parts.chat, parts.drawn_by, design, source
        self._comparer = Comparer(parts, design.settings, design.prompt)

    def request(self, sample: Sample) -> Request:
        """Return the request of a solution. Raises DataError for a row that one of the prompts does not fit."""
        request = self._base.request(sample)
        self._comparer.request(sample, problem_of(sample.row, request), ["", ""], 0)
        selection = {
            **msgspec.to_builtins(self._design),
            **self._source.digest,
            "prompt": self._comparer.prompt_hash,
        }
        return msgspec.structs.replace(request, solver={**request.solver, "selection": selection})

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Let the model compare solutions in several draws. Raises what the model raises, and DataError where there are
        no solutions."""
        gathered = await self._source.candidates(sample, request, kit)
        pool = comparable_candidates(gathered.candidates, self._design.settings)
        draws = range(self._design.repeats)
        picks = await all_of(
            [
                asyncio.ensure_future(self._pick(sample, request, kit, pool or gathered.candidates, n))
                for n in draws
            ]
        )
        votes = elect_majority([pick.answer if pick.valid else None for pick in picks], same_answer)
        first_valid = next((number for number, pick in enumerate(picks) if pick.valid), 0)
        winner = picks[first_valid if votes.winner is None else votes.winner]
        fields = self._fields(winner, picks, gathered, [candidate.text for candidate in pool])
        if len(picks) > 1:
            fields |= _vote_fields(votes, winner, picks)
        return Attempt(sample_id=sample.id, key=request.key(), fields=fields)

    async def _pick(
        self, sample: Sample, request: Request, kit: Kit, pool: Sequence[Candidate], number: int
    ) -> DrawResult:
        seed = (request.inference.random_seed or 0) * self._design.repeats + number
        draw = random.Random(f"{seed} {sample.id}")  # noqa: S311 - repeatable on purpose, no secret
        order = draw.sample(pool, len(pool))
        if not order:
            raise DataError(f"Record {sample.id}: there are no solutions to choose from.")
        if not comparable_candidates(order, self._design.settings):
            return _draw_result(order[0], valid=False)
        question = _Draw(sample, problem_of(sample.row, request), kit, seed)
        if self._design.mode == "gensynthesis":
            return await self._synthesis(question, order[: self._design.window_size], draw)
        return await self._choice(
            question, order if self._design.tournament else order[: self._design.window_size], draw
        )

    async def _choice(self, question: _Draw, order: list[Candidate], draw: random.Random) -> DrawResult:
        comparisons: list[ComparisonReply] = []
        valid = True
        while len(order) > 1:
            groups = even_groups(order, self._design.window_size)
            lots = [draw.randrange(len(group)) for group in groups]
            outcomes = await all_of([asyncio.ensure_future(self._compare(question, group)) for group in groups])
            order = []
            for group, comparison, lot in zip(groups, outcomes, lots, strict=True):
                if comparison is None:
                    order += group
                    continue
                comparisons.append(comparison)
                index = chosen_number(self._design.regex, comparison.text, len(group))
                valid = index is not None
                order.append(group[lot if index is None else index])
        return msgspec.structs.replace(_draw_result(order[0], valid=valid), comparisons=comparisons)

    async def _synthesis(self, question: _Draw, group: list[Candidate], draw: random.Random) -> DrawResult:
        lot = draw.randrange(len(group))
        request = self._comparison(question, group)
        comparison = await self._comparer.ask(request, question.sample, question.kit.models[MAIN])
        text = (last_match(self._design.regex, comparison.text) or "").strip()
        if not text:
            return msgspec.structs.replace(_draw_result(group[lot], valid=False), comparisons=[comparison])
        attempt = await self._chat.attempt(question.sample, request, comparison.reply, text)
        attempt.fields[self._chat.generation_key] = text
        answer = extract_by_policy(text, ExtractionPolicy()).answer
        return DrawResult(fields=attempt.fields, text=text, answer=answer, valid=True, comparisons=[comparison])

    async def _compare(self, question: _Draw, group: list[Candidate]) -> ComparisonReply | None:
        """Compare a group; None for a group of one."""
        if len(group) == 1:
            return None
        request = self._comparison(question, group)
        return await self._comparer.ask(request, question.sample, question.kit.models[MAIN])

    def _comparison(self, question: _Draw, group: Sequence[Candidate]) -> Request:
        return self._comparer.request(
            question.sample, question.problem, [candidate.text for candidate in group], question.seed
        )

    def _fields(
        self, winner: DrawResult, picks: Sequence[DrawResult], gathered: CandidateSet, shown: list[str]
    ) -> Row:
        mode = self._design.mode
        replies = [comparison.reply for pick in picks for comparison in pick.comparisons]
        drawn = [candidate.fields for candidate in gathered.candidates]
        compared = sum_counts([reply.usage.output_tokens for reply in replies])
        solved = sum_counts([fields.get("num_generated_tokens") for fields in drawn])
        counts = {
            f"{mode}_num_generated_tokens": compared,
            "total_solution_generated_tokens": solved,
            "num_generated_tokens": sum_counts([compared, solved]),
            "num_input_tokens": sum_counts(
                [*(f.get("num_input_tokens") for f in drawn), *(reply.usage.input_tokens for reply in replies)]
            ),
        }
        own = {name: value for name, value in winner.fields.items() if name not in OWN_COUNTS}
        return {
            **own,
            f"{mode}_comparison": winner.comparisons[-1].text if winner.comparisons else "",
            f"{mode}_successful": winner.valid,
            **{name: count for name, count in counts.items() if count is not None},
            "solution_list": shown,
            "num_lost_solutions": gathered.lost,
            **selection_times(drawn, replies),
        }


class _Draw(Struct, frozen=True):
    """What all comparisons of one draw share."""

    sample: Sample
    problem: str
    kit: Kit
    seed: int


def shown_text(fields: Row, key: str, own: str, end: str | None) -> str:
    """Return the solution in the field `key`, or `own`, of a record; behind its reasoning where `end` says what ends
    that."""
    text = str(fields.get(key if key in fields else own) or "")
    if end is None:
        return text
    return visible_part(text, end, cut=fields.get("finish_reason") == "length")


def selection_times(drawn: Sequence[Row], replies: Sequence[Reply]) -> Row:
    """Return the times from the first request to the last reply; empty where the solutions have none."""
    begins = [fields["generation_start_time"] for fields in drawn if "generation_start_time" in fields]
    if not begins:
        return {}
    ends = [fields["generation_end_time"] for fields in drawn if "generation_end_time" in fields]
    begin, end = min(begins), max([*ends, *(reply.ended for reply in replies)])
    return dict(zip(_TIMES, (begin, end, end - begin), strict=True))


def _draw_result(candidate: Candidate, *, valid: bool) -> DrawResult:
    return DrawResult(fields=candidate.fields, text=candidate.text, answer=candidate.answer, valid=valid)


def _vote_fields(votes: Votes, winner: DrawResult, picks: Sequence[DrawResult]) -> Row:
    fields: dict[str, Any] = {
        "votes": votes.counts,
        "num_invalid_selections": sum(not pick.valid for pick in picks),
    }
    if winner.answer is not None:
        fields["predicted_answer"] = winner.answer
    return fields
