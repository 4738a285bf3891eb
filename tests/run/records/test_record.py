# SPDX-License-Identifier: Apache-2.0
"""What a record takes from its row: all fields but others' verdicts, and no media where the row holds messages."""

from __future__ import annotations

from typing import Any

import pytest

from newskills.base.records import Row, Sample
from newskills.run.planning.config import GenerationConfig
from newskills.run.records.record import VERDICT_FIELDS, record_of

PLAIN, OPENAI = GenerationConfig(), GenerationConfig(prompt_format="openai")


def record(row: Row, fields: Row, config: GenerationConfig = PLAIN, identity: str = "r1") -> Row:
    return record_of(config, Sample(id=identity, row=row, position=0), fields)


def test_fields_of_the_answer_win_and_the_row_is_left_as_it_is() -> None:
    row = {"id": "r1", "a": 1, "generation": "old"}
    assert record(row, {"generation": "new"}) == {"id": "r1", "a": 1, "generation": "new"}
    assert row["generation"] == "old"


@pytest.mark.parametrize("name", VERDICT_FIELDS)
def test_a_verdict_of_others_is_left_out_and_our_own_kept(name: str) -> None:
    assert name not in record({"id": "r1", name: "theirs"}, {"generation": "x"})
    assert record({"id": "r1", name: "theirs"}, {name: "ours"})[name] == "ours"
    assert record({"id": "r1"}, {name: "ours"})[name] == "ours"


@pytest.mark.parametrize(("row", "identity"), [({"id": 1}, 1), ({"id": "x"}, "1"), ({}, "1"), ({"id": 2}, "1")])
def test_a_record_has_the_identity_of_its_sample(row: Row, identity: str | int) -> None:
    """A number that reads the same stays a number."""
    assert record(row, {}, identity="1")["id"] == identity


TEXT, PICTURE, SOUND = (
    {"type": "text", "text": "see"},
    {"type": "image_url", "image_url": "data:…"},
    {"type": "audio_url", "audio_url": "data:…"},
)
CASES: list[tuple[Any, Any]] = [
    ([{"role": "user", "content": [TEXT, PICTURE, SOUND]}], [{"role": "user", "content": [TEXT, PICTURE]}]),
    ([{"role": "user", "content": ["words", SOUND]}, "x"], [{"role": "user", "content": ["words"]}, "x"]),
    ([{"role": "user", "content": "audio_url"}], [{"role": "user", "content": "audio_url"}]),
    ("audio_url", "audio_url"),
]


@pytest.mark.parametrize(("messages", "kept"), CASES)
def test_parts_of_some_kinds_do_not_belong_into_records(messages: Any, kept: Any) -> None:
    row = {"id": "r1", "messages": messages}
    assert record(row, {}, OPENAI)["messages"] == kept
    assert record(row, {}, PLAIN)["messages"] == messages
    everything = GenerationConfig(prompt_format="openai", drop_content_types=())
    assert record(row, {}, everything)["messages"] == messages
    assert record({"id": "r1", "a": 1}, {}, OPENAI) == {"id": "r1", "a": 1}
