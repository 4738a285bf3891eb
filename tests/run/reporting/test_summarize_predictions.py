# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.run.reporting.predictions import read_problems

FIELDS = {"n": int | None}


def read(tmp_path: Path, *seeds: list[Row] | bytes) -> list[Any]:
    files = [tmp_path / f"output-rs{number}.jsonl" for number in range(len(seeds))]
    for file, rows in zip(files, seeds, strict=True):
        if isinstance(rows, bytes):
            file.write_bytes(rows)
        else:
            write_rows(file, rows)
    return list(read_problems(files, FIELDS))


def rows(ids: Iterable[Any], **more: Any) -> list[dict[str, Any]]:
    return [{"id": i, "n": position, **more} for position, i in enumerate(ids)]


def test_only_the_wanted_fields_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, rows("ab", generation="long")) == [[{"id": "a", "n": 0}], [{"id": "b", "n": 1}]]


def test_samples_are_joined_by_id_whatever_their_order(tmp_path: Path) -> None:
    found = read(tmp_path, rows("abcd"), rows("adcb"), rows("abdc"))
    assert [[sample["id"] for sample in problem] for problem in found] == [[i] * 3 for i in "abcd"]
    assert [[sample["n"] for sample in problem] for problem in found] == [
        [0, 0, 0],
        [1, 3, 1],
        [2, 2, 3],
        [3, 1, 2],
    ]


def test_rows_that_share_an_id_keep_their_order(tmp_path: Path) -> None:
    found = read(tmp_path, rows("aab"), rows("baa"))
    assert [[sample["n"] for sample in problem] for problem in found] == [[0, 1], [1, 2], [2, 0]]


def test_files_without_ids_belong_together_by_line(tmp_path: Path) -> None:
    numbered = [{"n": 0}, {"n": 1}]
    assert read(tmp_path, rows("ab"), numbered) == [
        [{"id": "a", "n": 0}, {"n": 0}],
        [{"id": "b", "n": 1}, {"n": 1}],
    ]
    with pytest.raises(DataError, match=r"Problem in line 2 has no prediction in output-rs1\.jsonl of"):
        read(tmp_path, numbered, numbered[:1])


@pytest.mark.parametrize("short", ["ab", "ac", "acb", ""])
def test_a_problem_that_a_file_lacks_is_named(tmp_path: Path, short: str) -> None:
    lacking = next(i for i in "abcd" if i not in short)
    message = "in line 1" if not short else f"'{lacking}'"
    with pytest.raises(DataError, match=rf"Problem {message} has no prediction in output-rs1\.jsonl of"):
        read(tmp_path, rows("abcd"), rows(short), rows("abcd"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "b", "n": 1', "line 3: invalid JSON"),
        (b'{"id": "b", "text": "\n', "line 3: invalid JSON"),
        (b"[1, 2]\n", "line 3: expected an object, got a list"),
        (b'{"id": "b", "n": "one"}\n', "line 3: n: expected a whole number, got text"),
        (b'{"id": "b", "x": NaN, "n": "one"}\n', "line 3: n: expected a whole number"),
        (b'{"id": "\xff"}\n', "line 3: invalid JSON"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=rf"output-rs0\.jsonl, {message}"):
        read(tmp_path, b'{"id": "a"}\n\n' + line)


def test_what_other_programs_write_is_read(tmp_path: Path) -> None:
    text = b'{"id": "a", "n": 1, "generation": "\\ud83d", "logprobs": [NaN, -Infinity]}\n  \n{"id": "b"}'
    assert read(tmp_path, text) == [[{"id": "a", "n": 1}], [{"id": "b"}]]


def test_reading_can_stop_early(tmp_path: Path) -> None:
    file = tmp_path / "output.jsonl"
    file.write_bytes(b'{"id": "a"}\nbroken')
    problems = read_problems([file], {"id": Any})
    assert next(problems) == [{"id": "a"}]
    problems.close()  # type: ignore[attr-defined]
