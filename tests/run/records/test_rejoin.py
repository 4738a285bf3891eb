# SPDX-License-Identifier: Apache-2.0
"""Judgements are kept exactly where the judge would be asked the same today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.run.support import make_unit

from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Request, Row, Sample
from newskills.base.store import write_rows
from newskills.run.engine.unit import REFUSED_FIELD, request_key
from newskills.run.planning.spec import Unit
from newskills.run.records.damage import SEAL_FIELD
from newskills.run.records.log import KEY_FIELD, SETTINGS_FIELD, log_line, log_records
from newskills.run.records.rejoin import rejoin_judgements
from newskills.solve.judges.judge import ASKED

POSITION = "_async_position"


class Asks:
    """Asks about the field `answer`; a row without one cannot be asked about."""

    def request(self, sample: Sample) -> Request:
        if "answer" not in sample.row:
            raise DataError("no answer")
        return Request(prompt=f"Is {sample.row['answer']} right?")

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        raise AssertionError("nothing is asked here")


def sample(position: int, **row: Any) -> Sample:
    return Sample(id=f"r{position}", row={"id": f"r{position}", **row}, position=position)


def judged(position: int, answer: str, **more: Any) -> Row:
    """A record of the time when the answer was `answer`, with all that may stand in one."""
    key = request_key(Request(prompt=f"Is {answer} right?"))
    verdict = {"generation": f"Judgement of {answer}", "judge_model": "j", ASKED: key, "outcome": "correct"}
    return {"id": f"r{position}", "answer": answer, "old": 1, **verdict, **more}


SAMPLES = [
    sample(0, answer="a", new=2),
    sample(1, answer="b"),
    sample(2, answer="c"),
    sample(3),
    sample(4, answer="e"),
]
RECORDS = [judged(4, "e"), judged(0, "a"), judged(1, "other"), judged(2, "c", **{REFUSED_FIELD: "no"})]


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    unit = make_unit(tmp_path, "http://h/v1")
    unit.merged.parent.mkdir()
    for path in (unit.paths.grades, unit.paths.grades_index, unit.paths.index, unit.paths.done):
        path.touch()
    return unit


def rejoined(unit: Unit) -> list[Row]:
    rejoin_judgements(unit, SAMPLES, Asks(), "0123abcd")
    found = list(log_records(unit.paths.log))
    for path in (unit.paths.grades, unit.paths.grades_index, unit.paths.index, unit.paths.done):
        assert not path.exists()
    assert all(row.pop(SEAL_FIELD) and row.pop(SETTINGS_FIELD) == "0123abcd" for row in found)
    return found


def kept(position: int, answer: str, **row: Any) -> Row:
    """The row as it is now with the judgement, and no verdict: that is made again."""
    key = request_key(Request(prompt=f"Is {answer} right?"))
    judgement = {"generation": f"Judgement of {answer}", "judge_model": "j", ASKED: key}
    return {"id": f"r{position}", "answer": answer, **row, **judgement, POSITION: position, KEY_FIELD: key}


@pytest.mark.parametrize("recorded", ["a log", "a finished file"])
def test_what_would_be_asked_the_same_keeps_its_judgement(unit: Unit, recorded: str) -> None:
    if recorded == "a log":
        lines = (log_line(row, POSITION, 0, row[ASKED], "ffffffff") for row in RECORDS)
        unit.paths.log.write_bytes(b"".join(lines))
        write_rows(unit.paths.output, [])
    else:
        write_rows(unit.paths.output, RECORDS)
    assert rejoined(unit) == [kept(0, "a", new=2), kept(4, "e")]


def test_the_key_of_the_log_counts_before_the_field_of_the_judge(unit: Unit) -> None:
    unit.paths.log.write_bytes(
        log_line(judged(0, "a"), POSITION, 0, request_key(Request(prompt="something else")))
        + log_line({**judged(1, "b"), ASKED: "something else"}, POSITION, 1, judged(1, "b")[ASKED])
        + log_line(judged(2, "c"), POSITION, 2, "")
    )
    assert [row["id"] for row in rejoined(unit)] == ["r1", "r2"]


def test_a_row_that_cannot_be_asked_about_never_matches_one_without_a_record(unit: Unit) -> None:
    write_rows(unit.paths.output, [])
    assert rejoined(unit) == []
