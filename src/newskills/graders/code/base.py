# SPDX-License-Identifier: Apache-2.0
"""What all graders of code share: the answer's program, what is said where there is none, and the shape of a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct

from newskills.base.errors import SandboxError
from newskills.base.protocols import Kit, Sandbox
from newskills.base.records import Cause, Row, Score
from newskills.graders.code.extract import ExtractedCode, extract_code
from newskills.graders.code.programs import CHAINS, ProgramResult


class CodeFinding(Struct, frozen=True, kw_only=True):
    """`passed` None: not judged, for `cause`. `unread`: what should be code is no program at all.

    `suspicious`: what the code tried or names that honest code has no use for; it decides nothing.
    """

    passed: bool | None
    why: str = ""
    cause: Cause = "harness"
    unread: bool = False
    suspicious: str = ""
    fields: Row = {}


def unjudged_finding(why: str, cause: Cause = "harness") -> CodeFinding:
    return CodeFinding(passed=None, why=why, cause=cause)


class CodeGrader(ABC):
    """Extract, judge, score. Fields written: `completion`, `is_correct`, and what `verdict_fields` tells."""

    name: ClassVar[str]
    version: ClassVar[str] = "2"

    @abstractmethod
    def language(self, record: Row) -> str: ...

    @abstractmethod
    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        """Judge `code` by the record's tests; KeyError, TypeError, ValueError mean that the record holds none."""

    def extract(self, record: Row) -> ExtractedCode:
        language = self.language(record)
        wanted = str(record.get("entry_point") or "") if language == "python" else ""
        return extract_marked(str(record.get("generation") or ""), language, wanted)

    def gold_head(self, record: Row) -> str:
        """Return what stands before the reference solution in a whole answer."""
        return ""

    def gold_reply(self, record: Row) -> str | None:
        """Return the row's `canonical_solution` in a block; None where it has none."""
        solution = record.get("canonical_solution")
        if solution is None:
            return None
        return f"```{self.language(record)}\n{self.gold_head(record)}{solution}\n```"

    def is_answer(self, extracted: ExtractedCode) -> bool:
        return bool(extracted.code.strip())

    def verdict_fields(self, passed: bool | None) -> Row:
        return {}

    async def grade(self, record: Row, kit: Kit) -> Score:
        """Run the answer's code. Raises SandboxError where there is no sandbox."""
        if kit.sandbox is None:
            raise SandboxError("There is no sandbox to run the code in.")
        extracted = self.extract(record)
        if not self.is_answer(extracted):
            return self.no_answer(extracted, record)
        if not extracted.code.isascii() and not _is_text(extracted.code):
            return self._make_score(
                "wrong", "", CodeFinding(passed=False, why="half of a surrogate pair"), "model"
            )
        try:
            finding = await self.judge(extracted.code, record, kit.sandbox)
        except (KeyError, TypeError, ValueError) as error:
            finding = unjudged_finding(f"the record has no tests ({type(error).__name__}: {error})", "data")
        if finding.passed is None:
            return self._make_score("unscored", extracted.code, finding, finding.cause)
        if finding.unread and extracted.how == "whole":
            return self.no_answer(ExtractedCode(code="", how="no program"), record)
        if finding.passed:
            return self._make_score("correct", extracted.code, finding, None)
        return self._make_score("wrong", extracted.code, finding, "model")

    def no_answer(self, extracted: ExtractedCode, record: Row) -> Score:
        cut_short = extracted.how in ("thinking", "unclosed") or record.get("finish_reason") == "length"
        nothing = CodeFinding(passed=False, why=f"no code ({extracted.how})")
        return self._make_score("no_answer", "", nothing, "truncation" if cut_short else "model")

    def _make_score(self, outcome: Any, code: str, finding: CodeFinding, cause: Cause | None) -> Score:
        fields = {"completion": code, "is_correct": finding.passed, **self.verdict_fields(finding.passed)}
        if finding.suspicious:
            fields["suspicious"] = finding.suspicious
        return Score(
            outcome=outcome,
            fields=fields | finding.fields,
            grader=f"{self.name}@{self.version}",
            why=finding.why or "passed",
            cause=cause,
        )


def _is_text(code: str) -> bool:
    try:
        code.encode()
    except UnicodeEncodeError:
        return False
    return True


def extract_marked(text: str, language: str, wanted: str = "") -> ExtractedCode:
    """Call `extract_code` with the first of the language's marks that a block of the reply has."""
    marks: Sequence[str] = CHAINS[language].marks if language in CHAINS else (language,)
    extractions = [extract_code(text, mark, wanted) for mark in marks]
    return next((each for each in extractions if each.how == "language"), extractions[0])


def not_built(ran: ProgramResult, program: str = "") -> CodeFinding | None:
    """Return the finding on a job that did not come to run; None for one that did. `program`: text of the benchmark's,
    whose own needs are not the answer's fault."""
    if ran.missing:
        return unjudged_finding(f"'{ran.missing}' is not in the sandbox: install it where the sandbox runs")
    if ran.build is None:
        return None
    messages = f"{ran.build.out}\n{ran.build.err}"
    if "Error occurred during initialization of VM" in messages:
        return unjudged_finding("the Java machine cannot start in the sandbox: raise ++sandbox.limits.memory_mb")
    for line in messages.splitlines():
        if lacking := _missing_dependency(line, program):
            return unjudged_finding(f"the benchmark's own code needs '{lacking}', which is not in the sandbox")
    first = next((line for line in messages.splitlines() if "error" in line), str(ran.build))
    return CodeFinding(passed=False, why=f"not built: {first.strip()[:300]}", unread=True)


_ENDS = (": No such file or directory", " does not exist", "`", "`")
_BEGINNINGS = ("fatal error: ", "error: package ", "unresolved import `", "unlinked crate `")


def _missing_dependency(line: str, program: str) -> str:
    """Return the header or package that the line of a compiler misses, if `program` is what asks for it."""
    for begin, end in zip(_BEGINNINGS, _ENDS, strict=True):
        _, opening, rest = line.partition(begin)
        name, ended, _ = rest.partition(end)
        if opening and ended and name and name in program:
            return name
    return ""
