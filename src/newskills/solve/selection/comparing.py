# SPDX-License-Identifier: Apache-2.0
"""Several solutions in one prompt, and what the model says about them: a number (GenSelect), or a solution of its own.

GenSelect: https://arxiv.org/abs/2504.16891, section 4.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from newskills.base.protocols import Model
from newskills.base.records import Reply, Request, Row, Sample
from newskills.solve.chat import ChatSolver, ask
from newskills.solve.parts import SolverParts
from newskills.solve.selection.candidates import Candidate, with_seed
from newskills.solve.selection.config import Selection

T = TypeVar("T")
_DIGITS = 6
"""Of a number that a model names; more can be no index."""


class ComparisonReply(Struct, frozen=True, kw_only=True):
    """`text` is what the model said behind its reasoning, if that was to be parsed; `reply` all of it."""

    text: str
    reply: Reply


class Comparer:
    """Asks about several solutions of one row."""

    def __init__(self, parts: SolverParts, settings: Selection, prompt: str) -> None:
        """Load the prompt. Raises UnknownNameError, ConfigError for the prompt."""
        inference = parts.chat.inference
        loaded = parts.load(prompt)
        self.chat: ChatSolver = parts.chat.changed(
            loaded,
            inference=msgspec.structs.replace(
                inference,
                temperature=settings.temperature,
                tokens_to_generate=settings.tokens_to_generate or inference.tokens_to_generate,
                top_logprobs=None,
            ),
            parse_reasoning=settings.parse_reasoning,
            stop=(),
            response_format=None,
        )
        self.prompt_hash = loaded.hash

    def request(self, sample: Sample, problem: str, solutions: Sequence[str], seed: int) -> Request:
        """Return the request that compares `solutions`. Raises DataError for a prompt that needs a field which the row
        does not have."""
        more = {
            "problem": problem,
            "solutions": numbered_solutions(solutions),
            "num_solutions": len(solutions),
            "max_idx": len(solutions) - 1,
        }
        request = self.chat.request(msgspec.structs.replace(sample, row={**sample.row, **more}))
        return with_seed(request, seed)

    async def ask(self, request: Request, sample: Sample, model: Model) -> ComparisonReply:
        """Return the reply to a comparison, and the text that is kept of it. Raises what the model raises."""
        reply = await ask(model, request)
        attempt = await self.chat.attempt(sample, request, reply, self.chat.text(reply))
        return ComparisonReply(text=str(attempt.fields[self.chat.generation_key]), reply=reply)


def numbered_solutions(solutions: Sequence[str]) -> str:
    """Return the solutions as a prompt shows them, numbered from 0."""
    return "\n\n".join(f"Solution {number}:\n{solution}" for number, solution in enumerate(solutions))


def problem_of(row: Row, request: Request) -> str:
    """Return the row's `problem`, else what the last user message asks (for the text endpoint: the prompt)."""
    if isinstance(row.get("problem"), str):
        return str(row["problem"])
    if request.messages is None:
        if isinstance(request.prompt, str):
            return request.prompt
        return ""
    question = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    if isinstance(question, list):
        return "".join(str(part.get("text", "")) for part in question)
    return question or ""


def last_match(regex: str, text: str) -> str | None:
    """Return the first group of the last match; None where there is none."""
    last = None
    for match in re.finditer(regex, text):
        last = match[1]
    return last


def chosen_number(regex: str, text: str, count: int) -> int | None:
    """Return the number of the chosen one of `count` solutions; None where the last match names none of them."""
    choice_text = (last_match(regex, text) or "").strip()
    if not choice_text.isdecimal() or len(choice_text) > _DIGITS:
        return None
    if int(choice_text) < count:
        return int(choice_text)
    return None


def even_groups(items: Sequence[T], size: int) -> list[list[T]]:
    """Group `items` in order, in as few groups of at most `size` as will do; their sizes differ by one at most.

    >>> even_groups("abcdefghi", 8)
    [['a', 'b', 'c', 'd', 'e'], ['f', 'g', 'h', 'i']]
    """
    groups = -(-len(items) // size)
    each, more = divmod(len(items), max(groups, 1))
    ends = [number * each + min(number, more) for number in range(groups + 1)]
    return [list(items[begin:end]) for begin, end in itertools.pairwise(ends)]


def comparable_candidates(candidates: Sequence[Candidate], settings: Selection) -> list[Candidate]:
    """Return the candidates that are shown: not too long, and with a text."""
    cap = settings.solution_length_cap
    return [
        candidate
        for candidate in candidates
        if (candidate.text.strip() or not settings.filter_incomplete_solutions)
        and (cap is None or len(candidate.text) <= cap)
    ]
