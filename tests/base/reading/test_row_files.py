# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.base.reading.row_forms import FORMS, json_lines, table

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import read_rows

ROWS = [
    {"id": f"row-{n}", "problem": f'Zeile {n}: "é, \t{"x" * n}"\nzweite', "expected_answer": str(n)}
    for n in range(7)
]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=20)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name](ROWS))
    assert list(read_rows(path)) == ROWS


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_no_text_is_changed_by_its_form(tmp_path: Path, name: str, texts: list[tuple[str, str]]) -> None:
    rows = [{"problem": problem, "expected_answer": answer} for problem, answer in texts]
    path = tmp_path / name
    path.write_bytes(FORMS[name](rows))
    assert list(read_rows(path)) == rows


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.jsonl.gz", gzip.compress(json_lines(ROWS))[:-20], ("a.jsonl.gz, line ", "gzip data end too early")),
        ("a.jsonl.gz", b"\x1f\x8b" + b"no gzip at all", ("a.jsonl.gz, line 1: the gzip data are damaged",)),
        ("a.jsonl.gz", gzip.compress(json_lines(ROWS)) + b"more", ("a.jsonl.gz, line 8", "damaged")),
        (
            "a.jsonl.zst",
            zstandard.compress(json_lines(ROWS))[:-9],
            ("a.jsonl.zst, line ", "zstd data end too early"),
        ),
        ("a.jsonl.zst", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff" * 9, ("a.jsonl.zst, line 1", "damaged")),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", ("a.csv, line 3: 2 columns are expected, there are 3",)),
        ("a.csv", b'a,b\n"1\n2",3\n4\n', ("a.csv, line 4: 2 columns are expected, there are 1",)),
        ("a.csv", b'a,b\n1,"2\n3,4\n', ("a.csv, line 3: unexpected end of data",)),
        ("a.csv", b"a,a\n1,2\n", ("a.csv, line 1: the column 'a' occurs twice",)),
        (
            "a.csv",
            "a\ncaf\xe9\n".encode("latin-1"),
            ("a.csv: it is not in UTF-8, or damaged, at 'a\\ncaf", "encoding: cp1252"),
        ),
        ("a.tsv", b"a\tb\n1,2\n", ("a.tsv, line 2: 2 columns are expected, there are 1",)),
        ("a.json", b"[1, 2]", ("a.json, line 1, item 1: expected a JSON object, got a whole number",)),
        ("a.json", b'[\n  {"a": 1},\n  "b"\n]', ("a.json, line 3, item 2: expected a JSON object, got text",)),
        ("a.json", b'[\n  {"a": 1},\n  {"b" 2}\n]', ("a.json, line 3: invalid JSON",)),
        ("a.json", b'[{"a": 1},\n{"a": 2}', ("a.json, line 2: invalid JSON",)),
        ("a.json", b'[{"a": 1}]\n[{"a": 2}]', ("a.json, line 2: invalid JSON",)),
        ("a.parquet", b"PAR1 and no more", ("a.parquet: invalid parquet",)),
        ("a.jsonl", b"\xff\xfea", ("a.jsonl, line 1: the text is not UTF-16",)),
        ("a.jsonl", b'{"a": 1}\n{"a": NaN}\n', ("a.jsonl, line 2: invalid JSON", "Write null")),
    ],
)
def test_what_is_damaged_is_named_with_file_and_line(
    tmp_path: Path, name: str, data: bytes, words: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(read_rows(path))
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_before_the_damage_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    noise = [{"n": n, "text": f"{n * 7919:x}" * 20} for n in range(20_000)]
    path.write_bytes(gzip.compress(json_lines(noise))[:-1000])
    rows = read_rows(path)
    assert [next(rows)["n"] for _ in range(10_000)] == list(range(10_000))
    with pytest.raises(DataError):
        list(rows)


@pytest.mark.parametrize(("module", "name"), [("zstandard", "rows.jsonl.zst"), ("pyarrow", "rows.parquet")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name](ROWS))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"pip install 'newskills\["):
        list(read_rows(path))


@pytest.mark.parametrize("form", ["gz", "zst"])
def test_packed_rows_are_streamed(tmp_path: Path, form: str) -> None:
    """200 MB of rows, packed to almost nothing, are never in memory together."""
    line = json.dumps({"text": "x" * 10_000}).encode() + b"\n"
    path = tmp_path / f"a.jsonl.{form}"
    pack = gzip.compress if form == "gz" else zstandard.compress
    path.write_bytes(pack(line * 2_000) * 10)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_rows(path)) == 20_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20


def test_a_table_written_with_the_first_column_unnamed(tmp_path: Path) -> None:
    """As pandas writes its index."""
    path = tmp_path / "a.csv"
    path.write_bytes(table([{"": "0", "problem": "p"}], ","))
    assert list(read_rows(path)) == [{"": "0", "problem": "p"}]


@pytest.mark.parametrize(
    "data",
    [
        b'a;b\r\n1,5;x\r\n2;"y;z"\r\n',
        b"\xef\xbb\xbfsep=;\r\na;b\r\n1,5;x\r\n2;y;z\r\n".replace(b"y;z", b'"y;z"'),
        "a\tb\r\n1,5\tx\r\n2\ty;z\r\n".encode("utf-16"),
        b'a,b,,\r\n"1,5",x,,\r\n,,,\r\n2,y;z,,\r\n',
    ],
)
def test_a_table_as_excel_writes_it(tmp_path: Path, data: bytes) -> None:
    """With semicolons where commas stand in numbers, a line that says so, tabs in UTF-16, empty rows and columns."""
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    assert list(read_rows(path)) == [{"a": "1,5", "b": "x"}, {"a": "2", "b": "y;z"}]
