# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.benchmark import Source
from newskills.base.errors import ConfigError, DataError
from newskills.benchmarks.downloads.readers import read_source


def rows(path: Path, **source: Any) -> list[dict[str, Any]]:
    return [raw.row for raw in read_source(path, Source(**source))]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_json_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", '{"a": 1}\n\n{"a": 2}\n')
    raw = list(read_source(path, Source()))
    assert [r.row for r in raw] == [{"a": 1}, {"a": 2}]
    assert [r.where for r in raw] == [f"{path}, line 1", f"{path}, line 3"]


def test_gzip_is_seen_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert rows(tmp_path / "a.jsonl") == [{"a": 1}]


def test_json_forms(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "l", '[{"a": 1.5}]'), format="json") == [{"a": 1.5}]
    assert rows(write(tmp_path / "n", '{"x": {"y": [{"a": 1}]}}'), format="json", records=("x", "y")) == [{"a": 1}]
    assert rows(write(tmp_path / "k", '{"p": {"a": 1}}'), format="json") == [{"_key": "p", "a": 1}]


@pytest.mark.parametrize(
    ("text", "source", "message"),
    [
        ("[1]", {"format": "object"}, "expected an object, not list"),
        ("a: [", {"format": "yaml"}, "invalid YAML"),
        ("5", {"format": "json"}, "expected a list of objects, not int"),
        ("[{", {"format": "json"}, "invalid JSON"),
        ("{}", {"format": "json", "records": ("x",)}, "there is no 'x'"),
        ('{"a":1}\n{"a"\n', {}, "line 2: invalid JSON"),
        ("a,b\n1,2\n1\n", {"format": "csv"}, "line 3: 2 columns are expected, there are 1"),
        ("<a><b></a>", {"format": "xml", "records": ("b",)}, "invalid XML"),
        ('<!DOCTYPE a [<!ENTITY e "x">]><a/>', {"format": "xml", "records": ("b",)}, "declarations of entities"),
        ("", {"format": "generated"}, "no reader"),
        ("x", {"format": "csv", "members": "*"}, "neither a zip nor a tar"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, source: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        rows(write(tmp_path / "file", text), **source)


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ('["x", 2]', {"format": "json"}, [{"value": "x"}, {"value": 2}]),
        ('{"a": "x", "b": {"n": 1}}', {"format": "json"}, [{"_key": "a", "value": "x"}, {"_key": "b", "n": 1}]),
        ("- q: x\n  a: 1\n- plain\n", {"format": "yaml"}, [{"q": "x", "a": 1}, {"value": "plain"}]),
        ("data:\n  k: {q: x}\n", {"format": "yaml", "records": ("data",)}, [{"_key": "k", "q": "x"}]),
        ('{"n": 1, "list": [2]}', {"format": "object"}, [{"n": 1, "list": [2]}]),
        ("one\r\n\ntwo", {"format": "lines"}, [{"text": "one"}, {"text": ""}, {"text": "two"}]),
        ('\ufeff{"n": 1}\n', {}, [{"n": 1}]),
    ],
)
def test_forms_of_files(tmp_path: Path, text: str, source: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert rows(write(tmp_path / "file", text), **source) == expected


def test_gzipped_members(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr("d/x.jsonl.gz", gzip.compress(b'{"n": 1}\n'))
    assert rows(tmp_path / "a.zip", members="*.gz") == [{"n": 1, "_file": "d/x.jsonl.gz"}]


def test_arrow(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow here: pip install 'newskills[hf]'")
    table = pyarrow.Table.from_pylist([{"a": 1}, {"a": 2}])
    for maker, name in ((pyarrow.ipc.new_stream, "s.arrow"), (pyarrow.ipc.new_file, "f.arrow")):
        with pyarrow.OSFile(str(tmp_path / name), "wb") as sink, maker(sink, table.schema) as writer:
            writer.write_table(table)
        assert rows(tmp_path / name, format="arrow") == [{"a": 1}, {"a": 2}]
    with pytest.raises(DataError, match="invalid Arrow"):
        rows(write(tmp_path / "bad.arrow", "no arrow at all"), format="arrow")


def test_csv_with_and_without_header(tmp_path: Path) -> None:
    headed = write(tmp_path / "h.csv", '\ufeffq,a\n"x, ""y""\nz",1\n')
    assert rows(headed, format="csv") == [{"q": 'x, "y"\nz', "a": "1"}]
    bare = write(tmp_path / "b.tsv", "x\t1\n")
    assert rows(bare, format="tsv", columns=("q", "a")) == [{"q": "x", "a": "1"}]


def test_cells_of_other_traditions(tmp_path: Path) -> None:
    semicolons = tmp_path / "s.csv"
    semicolons.write_bytes("f;a\nGrün?;5,0\n".encode("cp1252"))
    assert rows(semicolons, format="csv", separator=";", encoding="cp1252") == [{"f": "Grün?", "a": "5,0"}]
    stray = write(tmp_path / "t.tsv", 'q\ta\n"Oh," he said\tx\n"\ty\n')
    assert rows(stray, format="tsv", quoted=False) == [{"q": '"Oh," he said', "a": "x"}, {"q": '"', "a": "y"}]
    with pytest.raises(DataError, match="utf-8"):
        rows(semicolons, format="lines")


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_csv_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]]
) -> None:
    cells = [(a.replace("\0", ""), b.replace("\0", "")) for a, b in cells]
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(cells)
    path = tmp_path_factory.mktemp("csv") / "f.csv"
    path.write_bytes(buffer.getvalue().encode("utf-8", "surrogatepass"))
    got = rows(path, format="csv", columns=("a", "b"))
    assert [(row["a"], row["b"]) for row in got] == [(a, b) for a, b in cells]


def test_xml(tmp_path: Path) -> None:
    text = '<r><P ID="1"><Body>a &lt; b</Body><Answer>9 (apples)</Answer></P><P ID="2"><Body/></P></r>'
    assert rows(write(tmp_path / "x", text), format="xml", records=("P",)) == [
        {"ID": "1", "Body": "a < b", "Answer": "9 (apples)"},
        {"ID": "2", "Body": ""},
    ]


def test_xml_of_nested_elements(tmp_path: Path) -> None:
    text = """<!DOCTYPE r SYSTEM "r.dtd"><r xmlns="urn:x"><q id="1"><p>Why?</p>
      <o right="yes">so</o><o right="no">th<b>us</b></o></q></r>"""
    assert rows(write(tmp_path / "x", text), format="xml", records=("q",)) == [
        {"id": "1", "p": "Why?", "o": [{"right": "yes", "text": "so"}, {"right": "no", "text": "thus", "b": "us"}]}
    ]


def archive(path: Path, files: dict[str, str]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as zipped:
            for name, text in files.items():
                zipped.writestr(name, text)
    else:
        with tarfile.open(path, "w:gz") as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_members_of_archives(tmp_path: Path, name: str) -> None:
    files = {"d/test/b.csv": "1\n", "d/test/a.csv": "2\n", "d/test/._a.csv": "junk\n", "d/dev/a.csv": "3\n"}
    path = archive(tmp_path / name, files)
    got = rows(path, format="csv", columns=("n",), members="*test/*.csv")
    assert got == [{"n": "2", "_file": "d/test/a.csv"}, {"n": "1", "_file": "d/test/b.csv"}]
    assert rows(path, format="text", members="*dev/*") == [{"text": "3\n", "_file": "d/dev/a.csv"}]
    with pytest.raises(DataError, match="no member like"):
        rows(path, format="csv", members="*.xml")


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow here: pip install 'newskills[hf]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = [{"a": 1, "b": ["x", "y"]}, {"a": 2, "b": []}]
    parquet.write_table(pyarrow.Table.from_pylist(data), tmp_path / "f.parquet")
    assert rows(tmp_path / "f.parquet", format="parquet") == data
    with pytest.raises(DataError, match="invalid parquet"):
        rows(write(tmp_path / "g.parquet", json.dumps(data)), format="parquet")


def test_parquet_without_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"newskills\[hf\]"):
        rows(write(tmp_path / "g.parquet", ""), format="parquet")


@pytest.mark.parametrize("form", ["text", "jsonl", "rows", "csv"])
def test_packed_files_that_are_cut_or_damaged(tmp_path: Path, form: str) -> None:
    whole = gzip.compress(b'{"text": "The quick brown fox"}\n' * 1000)
    for data in (whole[:60], whole[:-8], whole[:30] + b"zzzz" + whole[34:], whole[:-8] + b"zzzzzzzz"):
        path = tmp_path / "cut.gz"
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"cut\.gz"):
            list(read_source(path, Source(format=form)))
