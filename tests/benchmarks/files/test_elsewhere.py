# SPDX-License-Identifier: Apache-2.0
"""Described benchmarks whose questions come from an address or the hub, or need packages that are not there."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from tests.benchmarks.web import Web

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare, ready_rows


def prepared(here: Path, text: str, split: str = "") -> list[Row]:
    (here / "mine.yaml").write_text(text)
    benchmark = get_benchmark(str(here / "mine.yaml"))
    prepare(benchmark, data_dir=here / "data")
    return list(read_rows(load_rows(benchmark, split, here / "data")))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "json"])
def test_an_address(ending: str, web: Web, tmp_path: Path) -> None:
    rows = [{"q": f"Add {n} and 1.", "a": n + 1} for n in range(3)]
    tables = {
        "csv": "q,a\n" + "".join(f"{row['q']},{row['a']}\n" for row in rows),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "json": json.dumps(rows, indent=1),
    }
    data = tables[ending.removesuffix(".gz")].encode()
    web.files[f"/sets/mine.{ending}"] = gzip.compress(data) if ending.endswith("gz") else data
    text = f"data: {web.url(f'/sets/mine.{ending}')}\nkind: math\ncolumns: {{question: q, answer: a}}\n"
    assert [(row["problem"], row["expected_answer"]) for row in prepared(tmp_path, text)] == [
        (row["q"], str(row["a"])) for row in rows
    ]
    (tmp_path / "mine.yaml").write_text(text)
    ready_rows(get_benchmark(str(tmp_path / "mine.yaml")), "", tmp_path / "data")
    asked = len(web.asked)
    (tmp_path / "mine.yaml").write_text(text + "fields: {more: 1}\n")
    with pytest.raises(DataError, match=r"changed\. Run: ns prepare_data \./mine\.yaml"):
        ready_rows(get_benchmark(str(tmp_path / "mine.yaml")), "", tmp_path / "data", asked_name="./mine.yaml")
    assert len(web.asked) == asked


def test_a_data_set_of_the_hub(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    place = "/api/datasets/owner/set/parquet/main"
    for split, first in (("validation", 10), ("train", 0)):
        rows = [
            {"question": f"{n}?", "choices": ["x", f"{n}", "z"], "answer": n % 3} for n in range(first, first + 4)
        ]
        file = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(rows), file)
        web.files[f"{place}/{split}/0.parquet"] = file.getvalue()
        web.files[f"{place}/{split}"] = json.dumps([web.url(f"{place}/{split}/0.parquet")]).encode()
    text = (
        "data: {hf: owner/set, config: main, split: validation}\nkind: choice\n"
        "columns: {options: choices}\nanswer_as: from_0\nfew_shot: {split: train, count: 2}\n"
    )
    assert [row["expected_answer"] for row in prepared(tmp_path, text)] == ["B", "C", "A", "B"]
    assert [row["problem"].partition("?")[0] for row in prepared(tmp_path, text, "examples")] == [
        "0",
        "1",
        "2",
        "3",
    ]
    with pytest.raises(DataError, match="can be read in several ways; write answer_as: from_0"):
        prepared(tmp_path, text.replace("answer_as: from_0\n", ""))


@pytest.mark.parametrize(
    ("name", "module", "hint"),
    [("a.csv.zst", "zstandard", "newskills[inspect]"), ("a.parquet", "pyarrow", "newskills[hf]")],
)
def test_a_package_that_is_not_there_is_named(
    name: str, module: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = pytest.importorskip(module)
    if module == "zstandard":
        (tmp_path / name).write_bytes(package.ZstdCompressor().compress(b"question,answer\n1 + 1,2\n"))
    else:
        from pyarrow import parquet

        parquet.write_table(package.Table.from_pylist([{"question": "1 + 1", "answer": 2}]), tmp_path / name)
    assert get_benchmark(str(tmp_path / name)).grader == "math"
    (tmp_path / name).rename(tmp_path / f"b{name}")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as error:
        get_benchmark(str(tmp_path / f"b{name}"))
    assert hint in str(error.value)
