# SPDX-License-Identifier: Apache-2.0
"""How far benchmarks are proven: by whom, from what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from newskills.benchmarks import CatalogEntry, State, list_all, state_of

ENTRY = CatalogEntry("a.b", (), "math", "m", "T", "test", 1, "p", "g", "m", "MIT", "", False)


@pytest.mark.parametrize(
    ("entry", "differences", "state"),
    [
        (ENTRY, None, "verified"),
        (ENTRY._replace(verified=False), None, "not verified"),
        (ENTRY._replace(verified=False, evidence=True), None, "schema checked"),
        (ENTRY._replace(verified=False, evidence=True), [], "checked here"),
        (ENTRY._replace(verified=False), [], "checked here"),
        (ENTRY, [{"what": "1 row, expected 2", "advice": "look"}], "differs here"),
    ],
)
def test_a_check_on_this_machine_counts_more_than_what_was_read(
    entry: CatalogEntry, differences: list[object] | None, state: State, tmp_path: Path
) -> None:
    if differences is not None:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a/b/test.jsonl.check.json").write_text(json.dumps({"differences": differences}))
    assert state_of(entry, tmp_path) == state


def test_rows_of_another_benchmark_are_checked_for_each(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/test.jsonl.check.json").write_text('{"differences": []}')
    shared = ENTRY._replace(data="other", verified=False)
    assert state_of(shared, tmp_path) == "not verified"
    (tmp_path / "other/test.jsonl.a.b.check.json").write_text('{"differences": []}')
    assert state_of(shared, tmp_path) == "checked here"


def test_a_damaged_check_is_none(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a/b/test.jsonl.check.json").write_text('{"differences"')
    assert state_of(ENTRY, tmp_path) == "verified"


def test_a_group_is_proven_as_far_as_its_least_member(tmp_path: Path) -> None:
    groups = [entry for entry in list_all() if entry.members]
    states = {entry.name: state_of(entry, tmp_path) for entry in list_all() if not entry.members}
    for group in groups:
        members = {states[member] for member in group.members if member in states}
        assert state_of(group, tmp_path) in members
        if "not verified" in members:
            assert state_of(group, tmp_path) == "not verified"
