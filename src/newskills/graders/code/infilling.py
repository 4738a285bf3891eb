# SPDX-License-Identifier: Apache-2.0
"""The missing middle of a function (Bavarian et al. 2022, arXiv:2207.14255)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.protocols import Sandbox
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, unjudged_finding
from newskills.graders.code.extract import ExtractedCode, extract_code, text_with_code
from newskills.graders.code.harness import Program, Suite, SuiteVerdict, Time, run_program

_WALL = 6
_FENCE = "```"


class InfillingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=human_eval_infilling`."""

    timeout: Annotated[
        float, Meta(gt=0, description="CPU seconds for all tests; on the clock, six times as much")
    ] = 5.0


class InfillingGrader(CodeGrader):
    """Row: `prefix`, `suffix`, `entry_point`, `test` (a function `check`).

    The piece is tried as it stands; where that fails and it repeats what stands before or after the gap, without the
    repetition; and, a block having lost the line it begins in, behind a line break. Field written: `passed`.
    """

    name: ClassVar[str] = "human_eval_infilling"
    version: ClassVar[str] = "3"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = InfillingConfig

    def __init__(self, config: InfillingConfig = InfillingConfig()) -> None:  # noqa: B008 - frozen
        self.config = config

    def language(self, record: Row) -> str:
        return str(record.get("language") or "python")

    def verdict_fields(self, passed: bool | None) -> Row:
        return {"passed": passed}

    def extract(self, record: Row) -> ExtractedCode:
        """Extract the code as from other answers, but with its blanks; a block of blanks alone is an answer."""
        text = str(record.get("generation") or "")
        language = self.language(record)
        extracted = extract_code(text, language)
        answer = text_with_code(text) or ""
        if extracted.how in ("thinking", "unclosed") or _FENCE not in answer:
            code = answer if extracted.code else ""
            return ExtractedCode(code=code, how=extracted.how)
        return ExtractedCode(code=_last_block(answer, language), how=extracted.how)

    def is_answer(self, extracted: ExtractedCode) -> bool:
        return bool(extracted.code)

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        first: SuiteVerdict | None = None
        for piece in answer_readings(code, str(record["prefix"]), str(record["suffix"])):
            verdict = await self._try_piece(piece, record, sandbox)
            if not verdict.judged:
                return unjudged_finding(str(verdict), "data" if verdict.kind == "data" else "grader")
            if verdict.passed:
                return CodeFinding(passed=True)
            first = first or verdict
        return CodeFinding(passed=False, why=str(first))

    async def _try_piece(self, piece: str, record: Row, sandbox: Sandbox) -> SuiteVerdict:
        entry = str(record["entry_point"])
        program = Program(
            answer=f"{record['prefix']}{piece}{record['suffix']}",
            names=[entry, *_helper_functions(record, entry)],
            suites=[Suite(tests=[f"{record['test']}\ncheck({entry})\n"])],
        )
        time = Time(cpu=self.config.timeout, wall=_WALL * self.config.timeout)
        (verdict,) = await run_program(program, time, sandbox)
        return verdict


def _last_block(answer: str, language: str) -> str:
    """Return the last block marked with the language, else without a mark, else the last, as it stands."""
    blocks = [block.partition("\n") for block in answer.split(_FENCE)[1::2]]
    for marks in ((language,), ("", "py")):
        if chosen := [body for mark, _, body in blocks if mark.strip().lower() in marks]:
            return chosen[-1].removesuffix("\n") or "\n"
    return blocks[-1][2].removesuffix("\n")


def answer_readings(code: str, prefix: str, suffix: str) -> Iterator[str]:
    """Yield readings of the answer, the plainest first, each once."""
    bare = code[_overlap_length(prefix, code) :]
    cut = _overlap_length(bare, suffix)
    if cut:
        bare = bare[: len(bare) - cut]
    seen = set()
    for piece in (code, f"{code}\n", bare, f"{bare}\n", f"\n{code}\n", code.lstrip()):
        if piece not in seen:
            seen.add(piece)
            yield piece


_DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def _helper_functions(record: Row, entry: str) -> list[str]:
    """Return the functions of the record that its tests use beside the one that is asked for."""
    used = set(_WORD.findall(str(record["test"]))) - {entry, "check"}
    defined = _DEFINED.findall(f"{record['prefix']}{record['canonical_solution']}{record['suffix']}")
    return [name for name in dict.fromkeys(defined) if name in used]


def _overlap_length(before: str, after: str) -> int:
    """Return the length of the longest end of `before` that `after` begins with."""
    return next((n for n in range(min(len(before), len(after)), 0, -1) if before.endswith(after[:n])), 0)
