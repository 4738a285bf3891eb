# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.web import Web

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Source
from newskills.base.errors import DataError, NewskillsError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare, prepare_many, read_provenance
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.folders import data_dir

QUICK = FetchOptions(retries=0, pause=0.01)


def to_row(raw: Row, index: int) -> Row:
    return {"problem": raw["q"], "expected_answer": raw["a"]}


def lines(*rows: Row) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def bench(web: Web, body: bytes = b"", **changes: Any) -> Benchmark:
    web.files["/set.jsonl"] = body or lines({"q": "1+1?", "a": "2"}, {"q": "2+2?", "a": "4"})
    given: dict[str, Any] = {"row": to_row, "licence": "MIT", "sources": (Source(url=web.url("/set.jsonl")),)}
    return Benchmark(name="tiny", category="math-natural", title="tiny", **{**given, **changes})


def test_prepared_file_and_its_record(web: Web, tmp_path: Path) -> None:
    benchmark = bench(web)
    (done,) = prepare(benchmark, data_dir=tmp_path, options=QUICK).splits
    assert done.fresh
    assert done.path == tmp_path / "tiny" / "test.jsonl" == load_rows(benchmark, data_dir=tmp_path)
    assert list(read_rows(done.path)) == [
        {"id": "tiny-test-0", "problem": "1+1?", "expected_answer": "2"},
        {"id": "tiny-test-1", "problem": "2+2?", "expected_answer": "4"},
    ]
    made = read_provenance(done.path)
    assert made is not None
    assert (made.rows, made.source_rows, made.dropped, made.licence) == (2, 2, {}, "MIT")
    assert made.sha256 == hashlib.sha256(done.path.read_bytes()).hexdigest()
    (source,) = made.sources
    assert source["url"] == web.url("/set.jsonl")
    assert source["sha256"] == hashlib.sha256(web.files["/set.jsonl"]).hexdigest()


def test_a_second_call_does_nothing_until_something_changes(web: Web, tmp_path: Path) -> None:
    benchmark = bench(web)
    prepare(benchmark, data_dir=tmp_path, options=QUICK)
    (again,) = prepare(benchmark, data_dir=tmp_path, options=QUICK).splits
    assert not again.fresh
    assert len(web.asked) == 1
    again.path.write_text("{}\n")
    assert prepare(benchmark, data_dir=tmp_path, options=QUICK).splits[0].fresh
    assert len(list(read_rows(again.path))) == 2
    changed = bench(web, version="2")
    assert prepare(changed, data_dir=tmp_path, options=QUICK).splits[0].fresh


def test_names_with_dots_are_folders(web: Web, tmp_path: Path) -> None:
    benchmark = Benchmark(name="g.m", category="x", title="x", generate_rows=lambda split: [{"a": split}])
    prepare(benchmark, data_dir=tmp_path)
    assert (tmp_path / "g" / "m" / "test.jsonl").is_file()


def test_rows_are_split_left_out_and_counted(web: Web, tmp_path: Path) -> None:
    def mapper(raw: Row, index: int) -> Row | list[Row] | Drop:
        if raw["a"] == "bad":
            return Drop("the answer is bad")
        return [{"n": 1}, {"n": 2}] if raw["a"] == "two" else {"n": 0}

    body = lines(*({"a": kind} for kind in ("one", "bad", "two", "bad")))
    benchmark = bench(web, body, row=mapper, items={"test": 5})
    (done,) = prepare(benchmark, data_dir=tmp_path, options=QUICK).splits
    assert [row["id"] for row in read_rows(done.path)] == ["tiny-test-0", "tiny-test-2-0", "tiny-test-2-1"]
    assert (done.provenance.source_rows, done.provenance.dropped) == (4, {"the answer is bad": 2})
    assert any("3 rows, but 5 are known" in notice for notice in done.notices)
    assert any("2 rows left out" in notice for notice in done.notices)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lines({"q": "x", "a": "1"}, {"q": "y"}), r"line 2: the field 'a' is missing.*the row has q"),
        (lines({"q": "x", "a": ""}), "line 1: the field 'expected_answer' is empty"),
        (lines({"q": "x", "a": None}), "line 1: the field 'expected_answer' is empty"),
        (b'{"q": "x", "a": "1"}\n{"q": ', "line 2: invalid JSON"),
        (b"\n", "has no rows"),
    ],
)
def test_a_row_that_does_not_fit_leaves_no_file(web: Web, tmp_path: Path, body: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        prepare(bench(web, body), data_dir=tmp_path, options=QUICK)
    assert [p.name for p in (tmp_path / "tiny").iterdir()] == [".test.lock"]


def test_an_id_used_twice(web: Web, tmp_path: Path) -> None:
    body = lines({"id": 7}, {"id": 8}, {"id": "7"})
    with pytest.raises(DataError, match=r"line 3: the id '7' is used before, at .*line 1"):
        prepare(bench(web, body, row=None), data_dir=tmp_path, options=QUICK)


def test_rows_of_other_splits_are_counted_and_not_told_about(web: Web, tmp_path: Path) -> None:
    def odd(raw: Row, index: int) -> Row | Drop:
        return OTHER_SPLIT if index % 2 else to_row(raw, index)

    (done,) = prepare(bench(web, row=odd), data_dir=tmp_path, options=QUICK).splits
    assert (done.provenance.rows, done.provenance.dropped, done.notices) == (1, {OTHER_SPLIT.reason: 1}, [])


def test_a_split_may_be_mapped_in_its_own_way(web: Web, tmp_path: Path) -> None:
    def loud(raw: Row, index: int) -> Row:
        return {"problem": raw["q"].upper()}

    web.files["/d.jsonl"] = lines({"q": "a", "a": 1})
    sources = tuple(Source(split=split, url=web.url("/d.jsonl")) for split in ("test", "loud"))
    prepare(bench(web, sources=sources, row=to_row, variants={"loud": loud}), data_dir=tmp_path)
    problems = {
        split: next(read_rows(tmp_path / "tiny" / f"{split}.jsonl"))["problem"] for split in ("test", "loud")
    }
    assert problems == {"test": "a", "loud": "A"}


def test_unknown_split(web: Web, tmp_path: Path) -> None:
    benchmark = bench(web, items={"test": 2, "train": 0})
    with pytest.raises(DataError, match="no split 'dev'; the choices are test, train"):
        prepare(benchmark, data_dir=tmp_path, splits=["dev"], options=QUICK)
    with pytest.raises(DataError, match="no split 'dev'"):
        load_rows(benchmark, "dev", tmp_path)


def test_all_splits(web: Web, tmp_path: Path) -> None:
    sources = (Source(url=web.url("/set.jsonl")), Source(split="train", url=web.url("/set.jsonl")))
    done = prepare(bench(web, sources=sources), data_dir=tmp_path, splits=["all"], options=QUICK)
    assert [split.split for split in done.splits] == ["test", "train"]
    own = bench(web, sources=(*sources, Source(split="all", url=web.url("/set.jsonl"))))
    done = prepare(own, data_dir=tmp_path, splits=["all"], options=QUICK)
    assert [split.split for split in done.splits] == ["all"], "a split that is called so is meant"


def test_only_the_default_split_has_to_succeed(web: Web, tmp_path: Path) -> None:
    sources = (Source(url=web.url("/set.jsonl")), Source(split="train", url=web.url("/gone")))
    benchmark = bench(web, sources=sources)
    done = prepare(benchmark, data_dir=tmp_path, options=QUICK)
    assert [split.split for split in done.splits] == ["test"]
    assert "HTTP 404" in done.missing["train"]
    with pytest.raises(DataError, match="404"):
        prepare(benchmark, data_dir=tmp_path, splits=["train"], options=QUICK)


def test_sources_are_alternatives(web: Web, tmp_path: Path) -> None:
    benchmark = bench(web, sources=(Source(url=web.url("/gone")), Source(url=web.url("/set.jsonl"))))
    (done,) = prepare(benchmark, data_dir=tmp_path, options=QUICK).splits
    assert done.provenance.sources[0]["url"] == web.url("/set.jsonl")
    neither = bench(web, sources=(Source(url=web.url("/gone")), Source(url=web.url("/away"))))
    with pytest.raises(DataError, match=r"/gone answered HTTP 404.*/away answered HTTP 404"):
        prepare(neither, data_dir=tmp_path / "other", options=QUICK)


def test_data_that_is_not_there_names_the_command(tmp_path: Path, web: Web) -> None:
    with pytest.raises(DataError, match="is not prepared") as caught:
        load_rows(bench(web), data_dir=tmp_path)
    assert caught.value.hint == f"Run: ns prepare_data tiny --data_dir={tmp_path}"


def test_problems_that_users_bring(tmp_path: Path) -> None:
    benchmark = get_benchmark("icpc")
    place = tmp_path / "icpc" / "test.jsonl"
    with pytest.raises(DataError, match=rf"yours to bring, and there is no file {place}"):
        prepare(benchmark, data_dir=tmp_path)
    place.parent.mkdir()
    place.write_bytes(lines({"id": "sum", "name": "sum", "question": "Add."}))
    assert prepare(benchmark, data_dir=tmp_path).folder == place.parent
    assert load_rows(benchmark, data_dir=tmp_path) == place
    place.write_bytes(lines({"name": "sum", "question": "Add."}))
    with pytest.raises(DataError, match="has no id"):
        prepare(benchmark, data_dir=tmp_path)


def test_hub_data_sets_are_read_as_parquet(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow here: pip install 'newskills[hf]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    parts = []
    for part, answers in enumerate((["1", "2"], ["3"])):
        buffer = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.Table.from_pylist([{"q": "?", "a": a} for a in answers]), buffer)
        web.files[f"/datasets/o/n/resolve/refs%2Fconvert%2Fparquet/{part}.parquet"] = (
            buffer.getvalue().to_pybytes()
        )
        parts.append(web.url(f"/datasets/o/n/resolve/refs%2Fconvert%2Fparquet/{part}.parquet"))
    web.files["/api/datasets/o/n/parquet/main/test"] = json.dumps(parts).encode()
    benchmark = bench(web, sources=(Source(hf="o/n", config="main", format="parquet"),))
    (done,) = prepare(benchmark, data_dir=tmp_path, options=QUICK).splits
    assert [row["expected_answer"] for row in read_rows(done.path)] == ["1", "2", "3"]
    assert [source["url"] for source in done.provenance.sources] == parts


def test_several_at_once_and_one_that_fails(web: Web, tmp_path: Path) -> None:
    good = bench(web)
    bad = bench(web, sources=(Source(url=web.url("/gone")),))
    seen: list[Any] = []
    results = prepare_many([good, bad], data_dir=tmp_path, options=QUICK, report=lambda b, r: seen.append(r))
    # One name twice: the second waits for the first, then finds or makes the file itself.
    assert isinstance(results[1], NewskillsError)
    assert not isinstance(results[0], NewskillsError)
    assert len(seen) == 2


def test_where_data_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NEWSKILLS_DATA_DIR", "NEMO_SKILLS_DATA_DIR", "NEWSKILLS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_dir().is_relative_to(tmp_path)
    monkeypatch.setenv("NEWSKILLS_CACHE", "/c")
    assert data_dir() == Path("/c/data")
    monkeypatch.setenv("NEMO_SKILLS_DATA_DIR", "/n")
    assert data_dir() == Path("/n")
    monkeypatch.setenv("NEWSKILLS_DATA_DIR", "/m")
    assert data_dir() == Path("/m")
    assert data_dir("/given") == Path("/given")


SLOW = """
import sys, time
from pathlib import Path
from newskills.base.benchmark import Benchmark
from newskills.benchmarks.data import prepare

def rows(split):
    for number in range(200):
        Path(sys.argv[2]).open("a").write("x")
        time.sleep(float(sys.argv[3]))
        yield {"n": number, "text": "y" * 20000}

done = prepare(Benchmark(name="slow", category="x", title="x", generate_rows=rows), data_dir=sys.argv[1])
print(done.splits[0].fresh)
"""


def start(script: Path, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(script), *map(str, args)], stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_make_it_once(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    both = [start(script, tmp_path / "data", tmp_path / "calls", 0.002) for _ in range(2)]
    said = sorted(process.communicate(timeout=300)[0].strip() for process in both)
    assert said == ["False", "True"]
    assert (tmp_path / "calls").stat().st_size == 200
    assert sum(1 for _ in read_rows(tmp_path / "data" / "slow" / "test.jsonl")) == 200


def test_killed_on_the_way_leaves_no_half_file(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    process = start(script, tmp_path / "data", tmp_path / "calls", 0.01)
    while not (tmp_path / "calls").exists() or (tmp_path / "calls").stat().st_size < 100:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    folder = tmp_path / "data" / "slow"
    assert not (folder / "test.jsonl").exists()
    assert any(path.suffix == ".tmp" for path in folder.iterdir())
    assert start(script, tmp_path / "data", tmp_path / "again", 0).communicate(timeout=300)[0].strip() == "True"
    assert sum(1 for _ in read_rows(folder / "test.jsonl")) == 200
    assert not any(path.suffix == ".tmp" for path in folder.iterdir())


def test_a_prepared_file_that_was_only_partly_copied(web: Web, tmp_path: Path) -> None:
    benchmark = bench(web)
    path = prepare(benchmark, data_dir=tmp_path, options=QUICK).splits[0].path
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match="only partly copied") as caught:
        load_rows(benchmark, data_dir=tmp_path)
    assert "ns prepare_data tiny" in caught.value.hint
    assert prepare(benchmark, data_dir=tmp_path, options=QUICK).splits[0].fresh
    assert load_rows(benchmark, data_dir=tmp_path) == path
