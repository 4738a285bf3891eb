# SPDX-License-Identifier: Apache-2.0
"""Several answers to one row: drawn with seeds of their own, those that were lost left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.base.protocols import Kit, Solver
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy
from newskills.solve.reasoning import split_reasoning

T = TypeVar("T")
SUMMED = ("num_generated_tokens", "num_input_tokens")
OWN_COUNTS = frozenset((*SUMMED, "num_reasoning_tokens", "num_answer_tokens"))
"""Fields of one answer's record that do not belong into the record of several."""


class Candidate(Struct, frozen=True, kw_only=True):
    """`text` is what others are shown of it and what an answer is read from; `fields` what its record would get."""

    number: int
    text: str
    fields: Row

    @property
    def answer(self) -> str | None:
        """What its solver says that it is, else the final answer of the text; None where there is none."""
        if "predicted_answer" in self.fields:
            answer = self.fields["predicted_answer"]
            if answer is None:
                return None
            return str(answer)
        return extract_by_policy(self.text, ExtractionPolicy()).answer


class CandidateSet(Struct, kw_only=True):
    """Candidates in the order of their seeds.

    lost           those that failed for no fault of the model
    stopped_early  some were given up because the others were enough
    """

    candidates: list[Candidate] = []
    lost: int = 0
    stopped_early: bool = False


def seeds_of(seed: int | None, count: int) -> range:
    """Return a seed for each candidate; runs with neighbouring seeds share none. Without a seed, as with 0.

    >>> seeds_of(0, 4), seeds_of(1, 4)
    (range(0, 4), range(4, 8))
    """
    first = (seed or 0) * count
    return range(first, first + count)


def with_seed(request: Request, seed: int) -> Request:
    """Return `request`, drawn with another seed, unless none is to be sent."""
    if request.inference.random_seed is None:
        return request
    inference = msgspec.structs.replace(request.inference, random_seed=seed)
    return msgspec.structs.replace(request, inference=inference)


def visible_part(text: str, end: str, *, cut: bool) -> str:
    """Return what follows the reasoning of `text`, which ends with `end` (`</think>`).

    Without `end` the text is taken for a solution without reasoning, unless it was `cut` off or has begun to reason.
    """
    begin = end.replace("</", "<", 1)
    separate = not cut and (begin == end or begin not in text)
    if end not in text and separate:
        return without_thinking(text)
    return str(split_reasoning(text, "text", end)["text"])


async def gather_candidates(
    solver: Solver,
    sample: Sample,
    requests: Sequence[Request],
    kit: Kit,
    made: Callable[[int, Attempt], Candidate],
    *,
    enough: Callable[[Sequence[Candidate]], bool] = lambda candidates: False,
) -> CandidateSet:
    """Solve `sample` once for each of `requests`, all at once; those still under way are cancelled once `enough`.

    Raises the first failure where all have failed, and what is no NewskillsError.
    """
    tasks = [asyncio.ensure_future(_solve_or_error(solver, sample, request, kit)) for request in requests]
    numbers = {task: number for number, task in enumerate(tasks)}
    candidates: list[Candidate] = []
    errors: list[NewskillsError] = []
    waiting = set(tasks)
    try:
        while waiting and not enough(candidates):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=numbers.__getitem__):
                outcome = task.result()
                if isinstance(outcome, NewskillsError):
                    errors.append(outcome)
                else:
                    candidates.append(made(numbers[task], outcome))
    finally:
        await _cancel_tasks(waiting)
    if errors and not candidates:
        raise errors[0]
    candidates.sort(key=lambda candidate: candidate.number)
    return CandidateSet(candidates=candidates, lost=len(errors), stopped_early=bool(waiting))


async def all_of(tasks: Sequence[asyncio.Future[T]]) -> list[T]:
    """Await all results; where one fails, or the sample is given up, the others are ended before that is
    raised."""
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        await _cancel_tasks(tasks)
        raise


async def _solve_or_error(solver: Solver, sample: Sample, request: Request, kit: Kit) -> Attempt | NewskillsError:
    try:
        return await solver.solve(sample, request, kit)
    except NewskillsError as error:
        return error


async def _cancel_tasks(tasks: Collection[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
