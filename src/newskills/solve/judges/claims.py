# SPDX-License-Identifier: Apache-2.0
"""Is a long answer true? A judge takes it apart into claims, searches for each, and decides on each.

After SAFE (Wei et al. 2024, "Long-form factuality in large language models", arXiv:2403.18802), in fewer requests: the
splitting writes claims that stand alone, and one prompt chooses between another search and a verdict.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, FatalToolError, ToolError
from newskills.base.protocols import Kit, Toolbox
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Attempt, Reply, Request, Row, Sample
from newskills.solve.chat import MAIN, ask
from newskills.solve.judges.judge import ASKED, PREFIX, JudgeSolver
from newskills.solve.parts import SolverParts
from newskills.solve.replies import join_replies

CLAIMS = "claims"
SUPPORTED, NOT_SUPPORTED, IRRELEVANT = "supported", "not_supported", "irrelevant"
AT_ONCE = 8
"""Claims of one answer that are looked up at the same time."""
NOTHING_FOUND = "(nothing yet)"
LONGEST_QUERY = 400
_CLAIM = re.compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+(\S.*)$", re.MULTILINE)
_NONE = re.compile(r"[\s*_.\"]*none[\s*_.\"]*", re.IGNORECASE)
_STEP = re.compile(r"^[\s*_>#-]{0,8}(search|verdict)[\s*_]{0,4}:[\s*_]{0,4}(\S.*)$", re.IGNORECASE | re.MULTILINE)
_VERDICT = re.compile(r"(not[ _-]supported|supported|irrelevant)\b", re.IGNORECASE)


class ClaimsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of the judge (`--extra_judge_args`)."""

    claim_prompt: Annotated[str, Meta(description="prompt that asks about one claim")] = "judge/longfact-claim"
    max_searches: Annotated[int, Meta(ge=1, le=50, description="searches per claim")] = 5
    max_claims: Annotated[
        int, Meta(ge=1, description="largest number of claims; an answer with more stays unscored")
    ] = 400


class ClaimsJudgeSolver(JudgeSolver):
    """Record field beside those of a judge: `claims`, `{"claim", "verdict", "searches"}` for each.

    `verdict` is supported, not_supported, irrelevant, or null where the judge gave none; `claims` is null where its
    splitting cannot be read. Its requests need a search tool (`++tool_modules=[tavily]`).
    """

    Config = ClaimsConfig

    def __init__(self, parts: SolverParts, config: ClaimsConfig) -> None:
        """Choose the search tool, and load the prompt. Raises ConfigError without a search tool, UnknownNameError for
        the prompt."""
        super().__init__(parts)
        if parts.tools is None or not parts.tools.specs:
            raise ConfigError(
                "Claims are checked by a search, but no search tool is given.",
                hint="Give one: ++tool_modules=[tavily].",
            )
        searches = [spec.name for spec in parts.tools.specs if "query" in spec.input_schema.get("properties", {})]
        if not searches:
            raise ConfigError(f"None of the tools takes a query: {', '.join(s.name for s in parts.tools.specs)}.")
        self._search = searches[0]
        self._prompt = parts.load(config.claim_prompt)
        self._config = config
        self._tools = parts.tools.settings

    def request(self, sample: Sample) -> Request:
        """Return the request for the claims of an answer. Raises DataError for a row that the prompt does not fit."""
        settings = {"prompt": self._prompt.hash, "max_searches": self._config.max_searches, "tools": self._tools}
        return replace(super().request(sample), solver=settings)

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        """Ask for the claims of an answer, and for a verdict on each. Raises what the model raises, and
        FatalToolError."""
        if self._fields_without_question(sample.row) is not None:
            return await super().solve(sample, request, kit)
        if kit.tools is None:
            raise FatalToolError("This run has no tools.")
        replies = [await ask(kit.models[MAIN], request)]
        texts = split_claims(self._chat.text(replies[0]))
        rated: list[Row] | None = None
        if texts is not None and len(texts) <= self._config.max_claims:
            places = asyncio.Semaphore(AT_ONCE)
            look = _ClaimChecks(sample.row, request, kit, places, replies, uuid.uuid4().hex)
            tasks = [asyncio.ensure_future(self._rate(text, look)) for text in texts]
            try:
                rated = list(await asyncio.gather(*tasks))
            finally:
                for task in tasks:  # where one has failed, or the sample was given up
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await kit.tools.release(look.request_id)
        attempt = await self._chat.attempt(sample, request, join_replies(replies), claims_text(rated))
        fields = {self._key: attempt.fields[self._key], CLAIMS: rated, **self._stamp}
        fields |= {f"{PREFIX}{k.lstrip('_')}": v for k, v in attempt.fields.items() if k != self._key}
        attempt.fields = {**fields, ASKED: request.key()}
        return attempt

    def _fields_without_question(self, row: Row) -> Row | None:
        if (lost := super()._fields_without_question(row)) is not None:
            return lost
        if str(row.get("generation") or "").strip():
            return None
        return {self._key: claims_text([]), CLAIMS: [], f"{PREFIX}prefilled": True}

    async def _rate(self, claim: str, look: _ClaimChecks) -> Row:
        findings: list[str] = []
        searches: list[str] = []
        async with look.places:
            while True:
                left = self._config.max_searches - len(searches)
                row = {**look.row, "claim": claim, "searches_left": left}
                row["findings"] = "\n\n".join(findings) or NOTHING_FOUND
                reply = await ask(
                    look.kit.models[MAIN], replace(look.request, messages=self._prompt.messages(row))
                )
                look.replies.append(reply)
                verdict, query = next_step(self._chat.text(reply))
                if not query or not left:
                    return {"claim": claim, "verdict": verdict, "searches": searches}
                searches.append(query)
                assert look.kit.tools is not None
                findings.append(f"Search: {query}\n{await self._find(query, look.kit.tools, look.request_id)}")

    async def _find(self, query: str, tools: Toolbox, request_id: str) -> str:
        try:
            return await tools.execute(self._search, {"query": query}, request_id)
        except FatalToolError:
            raise
        except ToolError as error:
            return f"(refused: {error.message})"


class _ClaimChecks(Struct):
    """One answer under way."""

    row: Row
    request: Request
    kit: Kit
    places: asyncio.Semaphore
    replies: list[Reply]
    request_id: str


def split_claims(text: str) -> list[str] | None:
    """Return the claims of a list; [] for the word NONE; None for a text that is neither.

    >>> split_claims("- Rome is old.\\n- Rome is in Italy.")
    ['Rome is old.', 'Rome is in Italy.']
    """
    text = without_thinking(text)
    if _NONE.fullmatch(text):
        return []
    return [claim.strip() for claim in _CLAIM.findall(text)] or None


def next_step(text: str) -> tuple[str | None, str]:
    """Return (verdict, "") or (None, words to search for), from the last line that has one of them; else (None,
    "")."""
    steps = _STEP.findall(without_thinking(text))
    if not steps:
        return None, ""
    kind, rest = steps[-1]
    if kind.lower() == "search":
        return None, rest.strip(" *_\"'`")[:LONGEST_QUERY]
    verdict = _VERDICT.match(rest.strip(" *_\"'`[(<"))
    return (verdict[1].lower().replace(" ", "_").replace("-", "_") if verdict else None), ""


def claims_text(claims: list[Row] | None) -> str:
    """Return the judgement in words."""
    if claims is None:
        return "The claims of the answer could not be extracted."
    counts = {
        name: sum(row["verdict"] == name for row in claims) for name in (SUPPORTED, NOT_SUPPORTED, IRRELEVANT)
    }
    unrated = len(claims) - sum(counts.values())
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in {**counts, "unrated": unrated}.items())
