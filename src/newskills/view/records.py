# SPDX-License-Identifier: Apache-2.0
"""A record out of its file, and the parts of it that people look at. Long texts are cut, with what is missing said."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import LONGEST_LINE
from newskills.view.index import FileIndex

MAX_RAW_CHARS = 20_000
"""Bytes shown of a line that is no record."""
LONGEST_TEXT = 200_000
"""Characters of one text; `cut` says how many are missing."""
MOST_RAW = 32 << 20
"""Bytes of records of one answer, beside the last of them."""
MAX_SNIPPET_CHARS = 200
QUESTION_FIELDS = (
    "problem",
    "question",
    "prompt",
    "instruction",
    "input",
    "query",
    "text",
    "informal_statement",
    "turns",
)
"""Fields that hold what is asked, the usual ones first."""
GOLD_FIELDS = (
    "expected_answer",
    "answer",
    "gold",
    "target",
    "reference",
    "expected_judgement",
    "canonical_solution",
)
_decoder = msgspec.json.Decoder(dict[str, Any])


class Record(Struct, kw_only=True):
    """`row` None: the line is no record; `raw` is the beginning of it, `problem` says what is wrong."""

    row: Row | None
    bytes: int
    raw: str = ""
    problem: str = ""


def read_record(index: FileIndex, number: int) -> Record:
    """Read the record with the verdict that a run at work keeps apart. Raises DataError for a number that there is
    not."""
    line, length = index.line(number, LONGEST_LINE)
    if length > LONGEST_LINE:
        problem = f"This line has {length:,} bytes, more than the {LONGEST_LINE:,} that are read. It begins:"
        return Record(row=None, bytes=length, raw=_line_text(line[:MAX_RAW_CHARS]), problem=problem)
    try:
        row = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"This line is no record ({error}). It begins:"
        return Record(row=None, bytes=length, raw=_line_text(line[:MAX_RAW_CHARS]), problem=problem)
    for name in ("_async_position", "_async_key", "_async_settings"):
        row.pop(name, None)
    if verdict := index.verdict(number):
        row |= _verdict_fields(verdict)
    return Record(row=row, bytes=length)


def raw_records(indexes: list[FileIndex], places: list[list[int]]) -> list[str | None]:
    """Return records as they stand in their files, with the verdict that a run at work keeps apart; None for a line
    that is no record. The list ends where it has more than `MOST_RAW` bytes. Raises DataError."""
    texts: list[str | None] = []
    size = 0
    for file, number in places:
        index = require_index(indexes, file)
        record = read_record(index, number)
        if record.row is None:
            texts.append(None)
        elif index.file.unfinished:
            texts.append(as_text(record.row))
        else:
            texts.append(_line_text(index.line(number, LONGEST_LINE)[0]).strip())
        size += record.bytes
        if size > MOST_RAW:
            break
    return texts


def _line_text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _verdict_fields(line: bytes) -> Row:
    score = _decoder.decode(line).get("score", {})
    fields = {**score.get("fields", {}), "outcome": score.get("outcome"), "grader": score.get("grader")}
    return fields | {"why": score.get("why", ""), "outcome_cause": score.get("cause")}


def shorten_texts(value: Any, most: int = LONGEST_TEXT) -> Any:
    """Return `value` with long texts cut: each ends with how many characters are missing."""
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]}\n… {len(value) - most:,} more characters are not shown."
    if isinstance(value, list):
        return [shorten_texts(item, most) for item in value[:2_000]]
    if isinstance(value, dict):
        return {name: shorten_texts(item, most) for name, item in list(value.items())[:2_000]}
    return value


def as_text(value: Any) -> str:
    """Return `value` as a text: itself, or JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return msgspec.json.encode(value).decode("utf-8", "replace")


def question_of(row: Row) -> str:
    """Return the question of a record; empty where it has none."""
    for name in QUESTION_FIELDS:
        if row.get(name):
            return as_text(row[name])
    for message in messages_in(row):
        if message.get("role") == "user":
            return as_text(message.get("content"))
    return ""


def gold_of(row: Row) -> tuple[str, str] | None:
    """Return (field, text) of the right answer, where the record has one."""
    return next(((name, as_text(row[name])) for name in GOLD_FIELDS if row.get(name) not in (None, "")), None)


def messages_in(row: Row) -> list[Row]:
    """Return a conversation that the record holds; empty where it holds none."""
    for name in ("conversation", "messages", "serialized_output"):
        value = row.get(name)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return value
    return []


def turns_of(row: Row) -> tuple[list[Row], bool]:
    """Return the turns with the reply at their end, and whether the prompt among them is what was sent."""
    reply = {"role": "assistant", "content": row.get("generation")}
    if turns := messages_in(row):
        is_answered = any(turn.get("role") == "assistant" for turn in turns[-1:]) or "conversation" in row
        if is_answered or row.get("generation") is None:
            all_turns = turns
        else:
            all_turns = [*turns, reply]
        return all_turns, True
    prompt = row.get("_prompt", row.get("rendered_prompt"))
    is_sent = isinstance(prompt, str)
    if not is_sent:
        prompt = question_of(row)
    return [{"role": "user", "content": prompt or None}, reply], is_sent


def brief_row(index: FileIndex, number: int) -> Row:
    """Return a line of a list: id, question, answer, gold, and why the grader judged so."""
    record = read_record(index, number)
    if record.row is None:
        return {"id": f"line {number + 1}", "question": record.raw[:MAX_SNIPPET_CHARS], "problem": record.problem}
    row = record.row
    _, gold = gold_of(row) or ("", "")
    return {
        "id": as_text(row.get("id", f"#{number}"))[:MAX_SNIPPET_CHARS],
        "question": question_of(row)[:MAX_SNIPPET_CHARS],
        "answer": as_text(row.get("predicted_answer"))[:MAX_SNIPPET_CHARS],
        "gold": gold[:MAX_SNIPPET_CHARS],
        "why": as_text(row.get("why"))[:MAX_SNIPPET_CHARS],
    }


def require_index(index: list[FileIndex], file: int) -> FileIndex:
    """Return the index of the file with this number. Raises DataError where there is none."""
    if not 0 <= file < len(index):
        raise DataError(f"There are {len(index)} files; there is none with number {file}.")
    return index[file]
