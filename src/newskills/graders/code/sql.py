# SPDX-License-Identifier: Apache-2.0
"""SQL judged by what it finds (BIRD, arXiv:2305.03111; Spider, arXiv:1809.08887): rows are compared, never texts."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, ExecutionRefusedError
from newskills.base.protocols import Execution, Sandbox
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Row
from newskills.graders.code.base import CodeFinding, CodeGrader, unjudged_finding
from newskills.graders.code.extract import ExtractedCode, extract_code
from newskills.graders.math.extraction import ExtractionPolicy, extract_by_policy

_LONGEST = 10_000_000
_LETTER = re.compile(r"[^\W\d_]")
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)


class BirdConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=bird`."""

    timeout: Annotated[float, Meta(gt=0, description="seconds for one query")] = 30.0
    answer_format: Annotated[
        Literal["CODEBLOCK", "BOXED", "USE_REGEX"], Meta(description="where the query stands in the answer")
    ] = "CODEBLOCK"
    extraction_regex: Annotated[str, Meta(description="for USE_REGEX: its first group, of the last match")] = ""
    regex_dotall: Annotated[bool, Meta(description="whether `.` matches line breaks, too")] = False
    comparison: Annotated[
        Literal["set", "rows"],
        Meta(
            description="set: as BIRD does; rows: as often as they occur, in order where the query asked for one"
        ),
    ] = "set"
    max_concurrent_requests: Annotated[int, Meta(description="kept for older scripts")] = 1024


class _Result(Struct, frozen=True, kw_only=True):
    """`rows` None: the query failed, for `why`; `refused`: it never ran."""

    rows: list[list[Any]] | None = None
    why: str = ""
    refused: bool = False


class BirdGrader(CodeGrader):
    """Row: `gt_sql`, and `database` (path below the sandbox's data folder) or `db_id`. Fields written: `res` 0 or 1.

    Both queries run on the database, which nothing in the sandbox can write to. An answer without a query is 0.
    """

    name: ClassVar[str] = "bird"
    answer_keys: ClassVar[tuple[str, ...]] = ("generation",)
    Config = BirdConfig

    def __init__(self, config: BirdConfig = BirdConfig()) -> None:  # noqa: B008 - frozen
        """Compile the `extraction_regex`. Raises ConfigError for one that is none, or has no group where one is
        needed."""
        self.config = config
        try:
            flags = re.DOTALL if config.regex_dotall else 0
            self._pattern = re.compile(config.extraction_regex, flags)
        except re.error as error:
            raise ConfigError(
                f"extraction_regex '{config.extraction_regex}' is not a regular expression: {error}."
            ) from error
        if config.answer_format == "USE_REGEX" and not self._pattern.groups:
            raise ConfigError("answer_format=USE_REGEX needs an extraction_regex with a group.")

    def language(self, record: Row) -> str:
        return "sql"

    def gold_reply(self, record: Row) -> str | None:
        if self.config.answer_format == "USE_REGEX" or "gt_sql" not in record:
            return None
        gold = str(record["gt_sql"])
        if self.config.answer_format == "BOXED":
            return f"\\boxed{{{gold}}}"
        return f"```sql\n{gold}\n```"

    def verdict_fields(self, passed: bool | None) -> Row:
        res = None if passed is None else int(passed)
        return {"res": res}

    def extract(self, record: Row) -> ExtractedCode:
        text = str(record.get("generation") or "")
        if self.config.answer_format == "CODEBLOCK":
            extracted = extract_code(text, "sql")
            return ExtractedCode(code=_without_bold_headers(extracted.code), how=extracted.how)
        text = without_thinking(text)
        if self.config.answer_format == "BOXED":
            code = extract_by_policy(text, ExtractionPolicy()).answer or ""
        else:
            code = next((match[1] or "" for match in reversed(list(self._pattern.finditer(text)))), "")
        how = "language" if code else "empty"
        return ExtractedCode(code=_without_bold_headers(code), how=how)

    def is_answer(self, extracted: ExtractedCode) -> bool:
        return _LETTER.search(extracted.code) is not None

    async def judge(self, code: str, record: Row, sandbox: Sandbox) -> CodeFinding:
        database = str(record.get("database") or "{0}/{0}.sqlite".format(record["db_id"]))
        gold = str(record["gt_sql"])
        wanted = await self._run_query(gold, database, sandbox)
        if wanted.rows is None:
            kind = "the reference query"
            return unjudged_finding(f"{kind}: {wanted.why}", "sandbox" if wanted.refused else "data")
        answer_rows = await self._run_query(code, database, sandbox)
        if answer_rows.rows is None:
            return CodeFinding(passed=False, why=answer_rows.why, unread="syntax error" in answer_rows.why)
        right = self._are_same_rows(answer_rows.rows, wanted.rows, gold)
        return CodeFinding(
            passed=right, why="" if right else f"{len(answer_rows.rows)} rows, not the {len(wanted.rows)} expected"
        )

    async def _run_query(self, query: str, database: str, sandbox: Sandbox) -> _Result:
        try:
            result = await sandbox.execute(
                Execution(
                    code=query,
                    language="sql",
                    database=database,
                    timeout=self.config.timeout,
                    max_output_characters=_LONGEST,
                )
            )
        except ExecutionRefusedError as error:
            return _Result(why=f"{error} Give the folder of the databases as ++sandbox.data_dir.", refused=True)
        if result.status != "completed":
            last = result.stderr.strip().splitlines()[-1:] or [result.status]
            if result.status == "error":
                why = last[0][:300]
            else:
                why = result.status.replace("_", " ")
            return _Result(why=why)
        report = result.stdout.rstrip("\n").rpartition("\n")[2]
        try:
            rows = msgspec.json.decode(report, type=list[list[Any]]) if report else []
            return _Result(rows=rows)
        except (msgspec.DecodeError, RecursionError):
            return _Result(why="more rows than can leave the sandbox")

    def _are_same_rows(self, answer_rows: list[list[Any]], wanted: list[list[Any]], gold: str) -> bool:
        left, right = ([tuple(map(_hashable_cell, row)) for row in rows] for rows in (answer_rows, wanted))
        if self.config.comparison == "set":
            return set(left) == set(right)
        if _ORDERED.search(gold):
            return left == right
        return Counter(left) == Counter(right)


def _hashable_cell(value: Any) -> Any:
    """Return a cell as what a set can hold: blobs and infinities come as objects."""
    if isinstance(value, dict):
        return tuple(value.items())
    return value


def _without_bold_headers(code: str) -> str:
    """Remove bold headers that strayed into the block; comments are SQLite's affair."""
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith("**")).strip()
