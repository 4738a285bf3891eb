# SPDX-License-Identifier: Apache-2.0
"""A model's mark as a part of the reward: three lines with 0 to 10 points each.

A line that is missing counts `missing` points. A reply without any of the three, and an endpoint that fails, are
failures of the judge: the sample is left unscored, never marked 0.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from newskills.base.aio import await_guarded, backoff_seconds
from newskills.base.errors import HttpError
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Failure, Reply, Request, Row
from newskills.prompts.renderer import load_prompt
from newskills.run.engine.build import RunBuilder
from newskills.run.rewarding.reward import MARK_NAMES, MAX_MARK, JudgeReward
from newskills.solve.judges.judge import shown_to_judges

_LINE = re.compile(
    rf"^[^\w\n]{{0,8}}(?:\d[.)])?[^\w\n]{{0,8}}({'|'.join(MARK_NAMES)})[^\w\n:=]{{0,8}}[:=][ \t*_`'\"(\[]{{0,8}}"
    r"(\d{1,3}(?:\.\d{1,4})?)(?!\w|\.\d)",
    re.IGNORECASE | re.MULTILINE,
)
UNKNOWN_ANSWER = "(not known)"


def read_points(text: str) -> dict[str, float]:
    """Return the last mark from 0 to 10 for each of the three lines; what is no such mark is left out. Thinking does
    not count.

    >>> points("Logic: 8\\n**Correctness:** 10/10\\nClarity = 11")
    {'logic': 8.0, 'correctness': 10.0}
    """
    answer = without_thinking(text)
    points_by_name = {
        name.lower(): float(value) for name, value in _LINE.findall(answer) if float(value) <= MAX_MARK
    }
    return {name: points_by_name[name] for name in MARK_NAMES if name in points_by_name}


def weighted_mark(points: Mapping[str, float], config: JudgeReward) -> float | Failure:
    """Return the judge's weighted mark, 0 to 1 where the weights sum to 1; a failure where its reply has no
    mark."""
    if not points:
        lines = ", ".join(name.capitalize() for name in MARK_NAMES)
        return Failure(
            kind="Unparsable", cause="judge", message=f"the judge's reply has none of the lines {lines}"
        )
    weights = {"logic": config.logic, "correctness": config.correctness, "clarity": config.clarity}
    return sum(weight * points.get(name, config.missing) for name, weight in weights.items()) / MAX_MARK


class RewardJudge:
    """Asks one model about single answers, `max_concurrent` at once. Belongs to one event loop."""

    def __init__(self, config: JudgeReward, builder: RunBuilder) -> None:
        """Load the prompt and make the model of the judge. Raises ConfigError (prompt, model), UnknownNameError,
        AuthError (no key)."""
        self._config = config
        self._prompt = load_prompt(config.prompt)
        self._model = builder.model(config.server, config.max_concurrent)
        self._gate = asyncio.Semaphore(config.max_concurrent)

    async def mark(self, record: Row) -> float | Failure:
        """Return the judge's mark, or why there is none."""
        shown = {"problem": UNKNOWN_ANSWER, "expected_answer": UNKNOWN_ANSWER, **shown_to_judges(record)}
        reply = await await_guarded(self._reply(shown))
        if isinstance(reply, Failure):
            return reply
        return weighted_mark(read_points(reply.text), self._config)

    async def close(self) -> None:
        await self._model.close()

    async def _reply(self, shown: Row) -> Reply:
        request = Request(messages=self._prompt.messages(shown), inference=self._config.inference)
        async with self._gate:
            return await self._ask(request)

    async def _ask(self, request: Request) -> Reply:
        for attempt in range(1, self._config.tries):
            try:
                return await self._model.complete(request)
            except HttpError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(backoff_seconds(attempt))
        return await self._model.complete(request)
