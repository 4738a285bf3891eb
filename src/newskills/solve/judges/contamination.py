# SPDX-License-Identifier: Apache-2.0
"""Is a problem one of those that a data set holds already? Its most similar ones are shown to a model, pair by pair."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Reply, Request, Row, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

SIMILAR = "similar_items"
CONTAMINATED = "contaminated"
NOTHING = "(no similar problems: there is nothing to ask)"
"""In the place of a request that is never sent."""
_WORD = re.compile(r"\b(true|false)\b", re.IGNORECASE)


class ContaminationConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++retrieve_key=…` and so on, with `--generation_type=check_contamination`."""

    retrieve_key: Annotated[str, Meta(min_length=1, description="field of the row with the problem")] = "problem"
    check_both_ways: Annotated[bool, Meta(description="ask about each pair in both orders")] = False
    top_k: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="largest number of similar problems to ask about; null = all"),
    ] = None


class ContaminationSolver:
    """Asks about `problem1` and `problem2` until one pair is found to be the same.

    Record fields: `contaminated` (true; false; null where a reply had no verdict and no other said true: the sample
    is unscored), `all_generations` (every reply), and those of a generation for the last reply.
    """

    Config = ContaminationConfig

    def __init__(self, parts: SolverParts, config: ContaminationConfig) -> None:
        self._chat = parts.chat
        self._config = config

    def request(self, sample: Sample) -> Request:
        """Return the first question; its key is that of all of them. Raises DataError for a row that does not fit."""
        pairs = self._pairs(sample)
        if not pairs:
            return Request(prompt=NOTHING)
        digest = hashlib.blake2b(msgspec.json.encode(pairs), digest_size=8).hexdigest()
        return replace(self._question(sample, *pairs[0]), solver={"pairs": digest})

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Ask about one pair after the other, up to the first that is the same. Raises what the model raises."""
        replies: list[Reply] = []
        verdicts: list[bool | None] = []
        for first, second in self._pairs(sample):
            replies.append(await ask(kit.models[MAIN], self._question(sample, first, second)))
            verdicts.append(read_same_verdict(replies[-1].text))
            if verdicts[-1]:
                break
        fields: Row = {"all_generations": [reply.text for reply in replies], CONTAMINATED: _any_verdict(verdicts)}
        if fields[CONTAMINATED] is None:
            fields |= {"outcome": "unscored", "outcome_cause": "judge"}
        if not replies:
            return Attempt(
                sample_id=sample.id, key=request.key(), fields={self._chat.generation_key: "", **fields}
            )
        attempt = await self._chat.attempt(sample, request, join_replies(replies), self._chat.text(replies[-1]))
        attempt.fields |= fields
        return attempt

    def _pairs(self, sample: Sample) -> list[tuple[str, str]]:
        key, row = self._config.retrieve_key, sample.row
        problem, similar = row.get(key), row.get(SIMILAR)
        if not isinstance(problem, str):
            raise DataError(f"Record {sample.id}: the field '{key}' is missing or not text.")
        if not isinstance(similar, list) or not all(isinstance(item, str) for item in similar):
            raise DataError(
                f"Record {sample.id}: the field '{SIMILAR}' is missing or not a list of texts.",
                hint="ns retrieve_similar writes such rows.",
            )
        pairs = []
        for item in similar[: self._config.top_k]:
            pairs.append((problem, item))
            if self._config.check_both_ways:
                pairs.append((item, problem))
        return pairs

    def _question(self, sample: Sample, first: str, second: str) -> Request:
        return self._chat.request(replace(sample, row={**sample.row, "problem1": first, "problem2": second}))


def read_same_verdict(text: str) -> bool | None:
    """Return the verdict: the only one of True and False that the reply has, or the one in its last line.

    >>> read_same_verdict("They differ in one number.\\n**False**")
    False
    """
    answer = without_thinking(text)
    for part in (answer, answer.rpartition("\n")[2]):
        words = {word.lower() for word in _WORD.findall(part)}
        if len(words) == 1:
            return words == {"true"}
    return None


def _any_verdict(verdicts: list[bool | None]) -> bool | None:
    if any(verdicts):
        return True
    if None in verdicts:
        return None
    return False
