# SPDX-License-Identifier: Apache-2.0
"""One sample: the prompt as it was sent, the reply with its reasoning and tool calls, and why the grader decided so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError
from newskills.base.reading.reply_text import split_thinking
from newskills.base.records import Row
from newskills.view.faces import face_of, vote_block
from newskills.view.files import finite_number
from newskills.view.index import FileIndex
from newskills.view.library import IndexedBenchmark, Library
from newskills.view.media import media_in
from newskills.view.records import (
    LONGEST_TEXT,
    as_text,
    gold_of,
    messages_in,
    read_record,
    require_index,
    shorten_texts,
)
from newskills.view.rows import NO_TOKENS, OUTCOME_NAMES
from newskills.view.scans.viewed import marks_of
from newskills.view.sent import judge_prompt_sent, prompt_sent, settings_sent
from newskills.view.verdicts import verdict_of

MOST_VOTES = 256
LONGEST_ANSWER = 2_000
LONGEST_FIELD = 20_000
"""Characters of a text within the record; its file has all of them."""
_REASONING = ("reasoning_content", "_reasoning", "thinking")


def sample_page(library: Library, run: str, benchmark: str, file: int, number: int) -> Row:
    """Return the page of a record. Raises UnknownNameError, DataError."""
    indexed = library.indexed(run, benchmark)
    index = require_index(indexed.indexes, file)
    record = read_record(index, number)
    page: Row = {
        "run": run,
        "benchmark": benchmark,
        "file": file,
        "number": number,
        "name": str(library.folders.name(index.file.path)),
        "seed": index.file.seed,
        "bytes": record.bytes,
        "siblings": sibling_samples(indexed, index, number),
    }
    if record.row is None:
        return page | {"damaged": record.problem, "raw": record.raw}
    row = record.row
    sent = prompt_sent(library.folders, indexed.run, index.file, row)
    reasoning, reply = reply_of(row)
    return page | {
        "id": as_text(row.get("id", f"#{number}")),
        "prompt": {
            "messages": shorten_texts(without_media(sent.messages)),
            "exact": sent.exact,
            "note": sent.note,
        },
        "settings": settings_sent(library.folders, index.file),
        "reasoning": shorten_texts(reasoning),
        "reply": shorten_texts(reply),
        "turns": shorten_texts(without_media(_later_turns(row))),
        "tools": shorten_texts(row.get("tools") or []),
        "media": [item.summary() for item in media_in(sent.messages, row)],
        "verdict": shorten_texts(verdict_of(row, reply[:LONGEST_TEXT])),
        "face": shorten_texts(
            [
                *face_of(row),
                *_judge_prompt_blocks(library, row),
                *_vote_blocks(indexed, page["siblings"], row),
            ]
        ),
        "tokens": finite_number(row.get("num_generated_tokens")),
        "finish": row.get("finish_reason"),
        "scans": shorten_texts(marks_of(library.folders, indexed, file, number)),
        "record": shorten_texts(without_media(row), LONGEST_FIELD),
    }


def _judge_prompt_blocks(library: Library, row: Row) -> list[Row]:
    """Return what the judge was asked as a block, where it can be rendered again."""
    sent = judge_prompt_sent(library.folders, row)
    if not sent.messages:
        return []
    items = [
        {"title": as_text(message.get("role")), "text": as_text(message.get("content"))}
        for message in sent.messages
    ]
    return [{"kind": "question", "title": "Prompt of the judge", "items": items, "note": sent.note}]


def _vote_blocks(indexed: IndexedBenchmark, samples: Sequence[Row], row: Row) -> list[Row]:
    """Return the answers of all samples of the problem as a block, where it has several."""
    if not 1 < len(samples) <= MOST_VOTES:
        return []
    answers = []
    for sample in samples:
        other = read_record(indexed.indexes[sample["file"]], sample["number"]).row or {}
        answer = other.get("predicted_answer")
        answers.append(None if answer is None else as_text(answer)[:LONGEST_ANSWER])
    _, gold = gold_of(row) or ("", None)
    return vote_block(answers, gold)


def reply_of(row: Row) -> tuple[str, str]:
    """Return (reasoning, reply); reasoning that the reply begins with counts as such."""
    reply = as_text(row.get("generation"))
    reasoning = next((as_text(row[name]) for name in _REASONING if row.get(name)), "")
    if reasoning:
        return (reasoning, reply)
    return split_thinking(reply)


def _later_turns(row: Row) -> list[Row]:
    """Return the turns that followed the prompt, where it is more than one reply: calls, results, further replies."""
    messages = messages_in(row)
    first = next(
        (number for number, message in enumerate(messages) if message.get("role") == "assistant"), len(messages)
    )
    turns = messages[first:]
    if len(turns) > 1 or any(turn.get("tool_calls") for turn in turns):
        return turns
    return []


def sibling_samples(indexed: IndexedBenchmark, index: FileIndex, number: int) -> list[Row]:
    """Return all samples of the same problem, this one among them: file, record, seed, outcome, tokens; empty where
    there is one file."""
    if len(indexed.indexes) < 2:
        return []
    (own,) = index.columns("id")
    wanted = own[number]
    made = []
    for place, other in enumerate(indexed.indexes):
        ids, outcomes, tokens = other.columns("id", "outcome", "tokens")
        if number < len(ids) and ids[number] == wanted:
            at = number
        else:
            try:
                at = ids.index(wanted)
            except ValueError:
                continue
        count = tokens[at]
        token_count = None if count == NO_TOKENS else count
        made.append(
            {
                "file": place,
                "number": at,
                "seed": other.file.seed,
                "outcome": OUTCOME_NAMES[outcomes[at]],
                "tokens": token_count,
            }
        )
    return made


def without_media(value: Any) -> Any:
    """Replace images and sound in messages by their names: the page shows them apart."""
    if isinstance(value, list):
        return [without_media(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "image_url":
        return {"type": "media", "text": "[image]"}
    if value.get("type") == "input_audio" or (value.get("type") == "audio_url"):
        return {"type": "media", "text": "[sound]"}
    return {name: without_media(item) for name, item in value.items()}


def media_bytes(
    library: Library, run: str, benchmark: str, file: int, number: int, item: int
) -> tuple[bytes, str]:
    """Read (content, type) of an image or a sound of a record. Raises UnknownNameError, DataError."""
    indexed = library.indexed(run, benchmark)
    index = require_index(indexed.indexes, file)
    row = read_record(index, number).row or {}
    sent = prompt_sent(library.folders, indexed.run, index.file, row)
    media = media_in(sent.messages, row)
    if not 0 <= item < len(media):
        raise DataError(f"This record has {len(media)} images and sounds.")
    return media[item].content(library.folders, Path(index.file.path).parent)
