# SPDX-License-Identifier: Apache-2.0
"""Scanners by model: a question in plain words with labels, from a YAML file, and how replies count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Row
from newskills.base.type_errors import type_fault
from newskills.view.records import as_text
from newskills.view.scans.files import check_name
from newskills.view.scans.finding import NO_FINDING, Finding, ScanLine, fault_of
from newskills.view.scans.transcript import Transcript, content_text

PROMPT = "judge/transcript-question"
_LONGEST_REPLY, _MOST_OBJECTS = 20_000, 50
_WORDS = {True: "yes", False: NO_FINDING}
"""Labels yes and no, which YAML reads as truth values."""


class TranscriptQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scanner by model.

    labels           label → what it means; the label `no` is that of transcripts in which nothing is reported
    quotes           quotes that each other label needs
    orders           2: asked with the labels in both orders, and valid only where both replies agree
    most_characters  of a transcript that the model is shown: its beginning and its end
    """

    name: str
    question: str
    labels: Annotated[dict[str, str], Meta(min_length=2, max_length=20)]
    quotes: Annotated[int, Meta(ge=0, le=10)] = 1
    orders: Literal[1, 2] = 1
    most_characters: Annotated[int, Meta(ge=1_000)] = 40_000

    @property
    def digest(self) -> str:
        """16 hex digits that change when the question does."""
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=8).hexdigest()


def load_question(path: Path) -> TranscriptQuestion:
    """Read a question of a YAML file; it is called as the file unless it says otherwise. Raises ConfigError."""
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"The question {path} cannot be read: {error}.") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected the keys question and labels.", hint="See docs/scan.md.")
    labels = data.get("labels")
    if isinstance(labels, dict):
        data["labels"] = {_WORDS.get(label, label): meaning for label, meaning in labels.items()}
    try:
        question = msgspec.convert({"name": path.stem, **data}, TranscriptQuestion)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {type_fault(error)}.", hint="See docs/scan.md.") from error
    check_name(question.name)
    return question


def request_rows(question: TranscriptQuestion, number: int, transcript: Transcript) -> list[Row]:
    """Return the rows that ask the question of the transcript with this number, one for each order of the labels."""
    labels = [f"- {label}: {meaning}" for label, meaning in question.labels.items()]
    text = shorten_middle(render_transcript(transcript), question.most_characters)
    others = [label for label in question.labels if label != NO_FINDING]
    if question.quotes:
        needed = f"The label {' or '.join(others)} needs at least {question.quotes}."
    else:
        needed = ""
    return [
        {
            "id": f"{number}-{order}",
            "question": question.question,
            "labels": "\n".join(ordered),
            "quotes_needed": needed,
            "transcript": text,
        }
        for order, ordered in enumerate([labels, labels[::-1]][: question.orders], 1)
    ]


def render_transcript(transcript: Transcript) -> str:
    """Return the transcript as a model is shown it."""
    blocks = []
    for turn in transcript.turns:
        blocks.append(
            f"[{as_text(turn.get('role') or turn.get('type') or 'message')}]\n{content_text(turn.get('content'))}"
        )
        if turn.get("tool_calls"):
            blocks.append(f"[calls]\n{as_text(turn['tool_calls'])}")
    if transcript.reasoning and transcript.reasoning not in as_text(transcript.row.get("generation")):
        blocks.insert(-1, f"[reasoning]\n{transcript.reasoning}")
    if transcript.gold:
        blocks.append(f"[expected answer]\n{transcript.gold}")
    if transcript.answer:
        blocks.append(f"[extracted answer]\n{transcript.answer}")
    if transcript.outcome:
        blocks.append(f"[verdict]\n{transcript.outcome}")
    return "\n\n".join(blocks)


def shorten_middle(text: str, most: int) -> str:
    """Return a text's beginning and end where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are left out …]\n{text[-half:]}"


def read_reply(question: TranscriptQuestion, reply: str | None, transcript: Transcript) -> Finding | str:
    """Return what a reply says, or why it does not count."""
    if not reply:
        return "no reply"
    answer = last_object(reply, "label")
    if answer is None:
        return "unreadable: the reply has no JSON object with a label"
    labels = {label.casefold(): label for label in question.labels}
    label = labels.get(as_text(answer.get("label")).strip().casefold())
    if label is None:
        return f"label: {as_text(answer.get('label'))[:60]!r} is none of the labels"
    quotes = answer.get("quotes", [])
    if isinstance(quotes, str):
        quotes = [quotes]
    if not isinstance(quotes, list):
        return "quotes: expected a list of texts"
    if label == NO_FINDING:
        quotes = []
    elif len(quotes) < question.quotes:
        return f"quotes: {len(quotes)} instead of {question.quotes}"
    finding = Finding(label=label, value=float(label != NO_FINDING), quotes=tuple(quotes))
    return fault_of(finding, transcript) or finding


def combine_verdicts(identity: str, verdicts: Mapping[str, Finding | str]) -> ScanLine:
    """Return the line of a sample: the label that all replies give (asker → what it said), else an invalid one."""
    for asker, verdict in verdicts.items():
        if isinstance(verdict, str):
            invalid = verdict if len(verdicts) == 1 else f"{verdict} ({asker})"
            return ScanLine(id=identity, label=None, invalid=invalid)
    findings: Sequence[Finding] = [verdict for verdict in verdicts.values() if isinstance(verdict, Finding)]
    if len({finding.label for finding in findings}) > 1:
        views = ", ".join(f"{finding.label} ({asker})" for asker, finding in zip(verdicts, findings, strict=True))
        return ScanLine(id=identity, label=None, invalid=f"disagreement: {views}")
    quotes = tuple(dict.fromkeys(quote for finding in findings for quote in finding.quotes))
    return ScanLine(id=identity, label=findings[0].label, value=findings[0].value, quotes=quotes)


def last_object(reply: str, key: str) -> dict[str, Any] | None:
    """Return the last JSON object of a reply that has the key; None without one. Reasoning does not count."""
    text = without_thinking(reply)[-_LONGEST_REPLY:]
    decoder = json.JSONDecoder()
    last_value, start = None, text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        if isinstance(value, dict) and key in value:
            last_value = value
        start = text.find("{", end)
    return last_value
