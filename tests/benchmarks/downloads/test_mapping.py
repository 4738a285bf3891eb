# SPDX-License-Identifier: Apache-2.0
"""Whatever the functions of a benchmark's file do, it is one sentence with the row, and the other benchmarks go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.store import read_rows
from newskills.benchmarks import expand_benchmarks
from newskills.benchmarks.data import PreparedData, prepare_many

CSV = 'question,answer,kind\n"Add 2 and 2.",4,easy\n"Add 19 and 23.",42,hard\n'
FILE = """\
from newskills.base.benchmark import Benchmark, Source
TABLE = {{"easy": "1"}}
{code}
BENCHMARK = Benchmark(name="{name}", category="math-natural", title="Sums", {origin}, prompt="generic/math",
                      grader="math", metric="math")
"""
ROW = 'sources=(Source(path="sums.csv", format="csv"),), row=row'
MAPPINGS = {
    "field": (
        'return {"problem": raw["frage"]}',
        2,
        "the field 'frage' is missing, which field expects; the row has ",
    ),
    "key": (
        'return {"problem": TABLE[raw["kind"]]}',
        3,
        "does not fit key: the key 'hard' is missing (key.py, line 4)",
    ),
    "several": ('yield {"problem": raw["frage"]}', 2, "the field 'frage' is missing, which several expects"),
    "nothing": (
        '{"problem": raw["question"]}',
        2,
        "the mapping of nothing gave None, which is not a row; it returns ",
    ),
    "texts": ('return ["text"]', 2, "the mapping of texts gave 'text', which is not a row"),
    "typo": (
        'return {"problem": answr}',
        2,
        "does not fit typo: NameError: name 'answr' is not defined (typo.py, line 4)",
    ),
    "check": (
        'assert raw["kind"] == "easy"; return raw',
        3,
        "does not fit check: AssertionError (check.py, line 4)",
    ),
    "own": ('raise ValueError("no such kind")', 2, "does not fit own: no such kind (own.py, line 4)"),
    "end": ("raise StopIteration", 2, "does not fit end: StopIteration (end.py, line 4)"),
    "file": ('return {"problem": open("none").read()}', 2, "does not fit file: FileNotFoundError: "),
}
"""Name → the body of its `row`, the line of the data that it ends at, and what is said of it."""
MAKERS = {
    "generated": (
        'def made(split):\n    yield {"problem": "1", "expected_answer": "1"}\n    yield TABLE["x"]',
        "generate_rows=made",
        "generated: its rows cannot be made: the key 'x' is missing (generated.py, line 5)",
    ),
    "joined": (
        "def join(rows):\n    yield list(rows)[0].nothing",
        'sources=(Source(path="sums.csv", format="csv"),), join=join',
        "joined: its files do not fit together: AttributeError: ",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sums.csv").write_text(CSV)
    good = 'return {"problem": raw["question"], "expected_answer": raw["answer"]}'
    for name, body in [("good", good), *((name, body) for name, (body, _, _) in MAPPINGS.items())]:
        code = f"def row(raw, index):\n    {body}"
        (tmp_path / f"{name}.py").write_text(FILE.format(code=code, name=name, origin=ROW))
    for name, (code, origin, _) in MAKERS.items():
        (tmp_path / f"{name}.py").write_text(FILE.format(code=code, name=name, origin=origin))
    return tmp_path


def test_a_mapping_that_fails_is_one_sentence_and_the_others_go_on(folder: Path) -> None:
    names = [*MAPPINGS, *MAKERS, "good"]
    benchmarks = [benchmark for name in names for benchmark in expand_benchmarks(str(folder / f"{name}.py"), None)]
    *failures, good = prepare_many(benchmarks, data_dir=folder / "data")
    for (_, line, text), failure in zip(MAPPINGS.values(), failures, strict=False):
        assert str(failure).startswith(f"{folder / 'sums.csv'}, line {line}: ")
        assert text in str(failure)
        assert "newer newskills" not in str(failure), "it is the user's own file"
    for (_, _, text), failure in zip(MAKERS.values(), failures[len(MAPPINGS) :], strict=True):
        assert text in str(failure)
    assert isinstance(good, PreparedData)
    still_open = [link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert "sums.csv" not in still_open, "nor while what was raised is kept"


DROPPING = """\
from newskills.base.benchmark import Drop
def row(raw, index):
    yield Drop("a pun") if raw["kind"] == "hard" else {"problem": raw["question"], "expected_answer": raw["answer"]}
    yield Drop("an echo")"""


def test_single_ones_of_several_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "sums.csv").write_text(CSV)
    (tmp_path / "some.py").write_text(FILE.format(code=DROPPING, name="some", origin=ROW))
    (done,) = prepare_many(list(expand_benchmarks(str(tmp_path / "some.py"), None)), data_dir=tmp_path / "data")
    assert isinstance(done, PreparedData)
    (split,) = done.splits
    assert [row["expected_answer"] for row in read_rows(split.path)] == ["4"]
    assert "1 rows left out: a pun" in split.notices
    assert "2 rows left out: an echo" in split.notices
