# SPDX-License-Identifier: Apache-2.0
"""The forms of sources: several addresses, repositories from a mirror or as an archive, hub data sets, assets."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.benchmarks.web import Web, archive

from newskills.base.benchmark import Asset, Benchmark, Source
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.downloads.patterns import expand_braces, select_names

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TREE = {
    "data/a/task.json": b'{"q": "a", "train": [1]}',
    "data/a/note.txt": b"about a",
    "data/b/task.json": b'{"q": "b", "train": []}',
    "images/a.png": b"\x89PNG a",
    "images/b.png": b"\x89PNG b",
    "other.txt": b"not wanted",
}


def bench(*sources: Source, **given: Any) -> Benchmark:
    return Benchmark(name="tiny", category="x", title="x", sources=sources, **given)


def rows(benchmark: Benchmark, folder: Path, mirror: Path | None = None, **options: Any) -> list[Row]:
    fetch = FetchOptions(retries=0, pause=0.01, mirror=str(mirror or ""), **options)
    (done,) = prepare(benchmark, data_dir=folder, options=fetch).splits
    return [{name: value for name, value in row.items() if name != "id"} for row in read_rows(done.path)]


def make_mirror(folder: Path, files: dict[str, bytes], place: str, commit: str = "") -> Path:
    listed = []
    for name, data in files.items():
        path = folder / place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        entry = {"path": f"{place}/{name}", "sha256": hashlib.sha256(data).hexdigest(), "commit": commit}
        listed.append(entry)
    (folder / "MANIFEST.json").write_text(json.dumps({"files": listed}))
    return folder


def together(*pairs: tuple[str, bytes]) -> str:
    text = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in pairs)
    return hashlib.sha256(text.encode()).hexdigest()


TASKS = Source(github="o/r", ref="main", members="data/*/task.json", format="object")
TASKS_SHA = together(*((name, data) for name, data in TREE.items() if name.endswith("task.json")))
TASK_ROWS = [
    {"q": "a", "train": [1], "_file": "data/a/task.json"},
    {"q": "b", "train": [], "_file": "data/b/task.json"},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("x{b,a}y", ["xby", "xay"]),
        ("{a,b}/{1,2}", ["a/1", "a/2", "b/1", "b/2"]),
        ("x{,s}", ["x", "xs"]),
        ("{one}", ["one"]),
        ("{}", ["{}"]),
        (r"x{a\,b,c}", ["xa,b", "xc"]),
    ],
)
def test_braces(text: str, expected: list[str]) -> None:
    assert expand_braces(text) == expected


def test_select_keeps_the_order_of_the_lists() -> None:
    names = ["d/2/x.json", "d/1/y.json", "d/1/x.json", "d/1/._x.json", "e/x.json"]
    assert select_names(names, "d/{2,1}/*.json") == ["d/2/x.json", "d/1/x.json", "d/1/y.json"]
    assert select_names(names, "*/x.json") == ["d/1/x.json", "d/2/x.json", "e/x.json"]


def test_several_addresses_in_order(web: Web, tmp_path: Path) -> None:
    web.files.update({"/d/b/t.jsonl": b'{"n": 1}\n{"n": 2}\n', "/d/a/t.jsonl": b'{"n": 3}\n'})
    source = Source(url=web.url("/d/{b,a}/t.jsonl"))
    expected = [{"n": 1, "_file": "b/t.jsonl"}, {"n": 2, "_file": "b/t.jsonl"}, {"n": 3, "_file": "a/t.jsonl"}]
    assert rows(bench(source), tmp_path) == expected
    cut = bench(Source(url=source.url, span=(1, 3)))
    assert rows(cut, tmp_path / "cut") == expected[1:]
    web.files["/x1"], web.files["/x2"] = b'{"n": 1}\n', b'{"n": 2}\n'
    sha = together(("x2", web.files["/x2"]), ("x1", web.files["/x1"]))
    flat = bench(Source(url=web.url("/x{2,1}"), sha256=sha))
    assert [row["_file"] for row in rows(flat, tmp_path / "flat")] == ["x2", "x1"]
    with pytest.raises(DataError, match=f"expected {'0' * 64}"):
        rows(bench(Source(url=web.url("/x{2,1}"), sha256="0" * 64)), tmp_path / "wrong")


@pytest.mark.parametrize(
    ("place", "commit", "source"),
    [
        ("main", "", TASKS),
        ("refs/heads/main", "", TASKS),
        (COMMIT, "", Source(github="o/r", ref=COMMIT, members=TASKS.members, format="object")),
        ("main", COMMIT, Source(github="o/r", revision=COMMIT, members=TASKS.members, format="object")),
        ("main", COMMIT, Source(github="o/r", ref=COMMIT[:8], members=TASKS.members, format="object")),
        ("trunk", COMMIT, Source(github="o/r", members=TASKS.members, format="object", sha256=TASKS_SHA)),
    ],
)
def test_a_repository_in_a_mirror(tmp_path: Path, place: str, commit: str, source: Source) -> None:
    mirror = make_mirror(tmp_path / "m", TREE, f"raw.githubusercontent.com/o/r/{place}", commit)
    assert rows(bench(source), tmp_path / "d", mirror, offline=True) == TASK_ROWS
    (mirror / "MANIFEST.json").unlink()
    if not commit:
        assert rows(bench(source), tmp_path / "d2", mirror, offline=True) == TASK_ROWS


def test_another_commit_is_not_taken(web: Web, tmp_path: Path) -> None:
    mirror = make_mirror(tmp_path / "m", TREE, "raw.githubusercontent.com/o/r/main", COMMIT)
    other = Source(github="o/r", revision="f" * 40, members=TASKS.members, format="object")
    with pytest.raises(DataError, match="Offline"):
        rows(bench(other), tmp_path / "d", mirror, offline=True)


def test_a_mirror_that_lacks_a_listed_file_is_not_taken(web: Web, tmp_path: Path) -> None:
    mirror = make_mirror(tmp_path / "m", TREE, "raw.githubusercontent.com/o/r/main")
    listed = Source(github="o/r", ref="main", members="data/{a,c}/task.json", format="object")
    with pytest.raises(DataError, match="Offline"):
        rows(bench(listed), tmp_path / "d", mirror, offline=True)


def test_damage_in_a_mirrored_tree(tmp_path: Path) -> None:
    mirror = make_mirror(tmp_path / "m", TREE, "raw.githubusercontent.com/o/r/main")
    damaged = mirror / "raw.githubusercontent.com/o/r/main/data/b/task.json"
    damaged.write_bytes(b'{"q": "B"}')
    with pytest.raises(DataError, match=r"data/b/task.json is damaged"):
        rows(bench(TASKS), tmp_path / "d", mirror, offline=True)
    damaged.unlink()
    with pytest.raises(DataError, match=r"data/b/task.json is missing, though"):
        rows(bench(TASKS), tmp_path / "d", mirror, offline=True)


def test_a_repository_over_the_network_is_one_download(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWSKILLS_GITHUB_ARCHIVES", web.url(""))
    web.files["/o/r/tar.gz/main"] = archive(TREE)
    source = Source(github="o/r", ref="main", members=TASKS.members, format="object", sha256=TASKS_SHA)
    assert rows(bench(source), tmp_path) == TASK_ROWS
    assert [path for path, _ in web.asked] == ["/o/r/tar.gz/main"]
    wrong = Source(github="o/r", ref="main", members=TASKS.members, format="object", sha256="0" * 64)
    with pytest.raises(DataError, match=f"its sha256 is {TASKS_SHA}"):
        rows(bench(wrong, version="2"), tmp_path)
    with pytest.raises(DataError, match="has no file like 'none/"):
        rows(bench(Source(github="o/r", ref="main", members="none/*")), tmp_path / "none")
    web.files["/o/r/tar.gz/broken"] = web.files["/o/r/tar.gz/main"][:60]
    with pytest.raises(DataError, match="cannot be read as an archive"):
        rows(bench(Source(github="o/r", ref="broken", members="*")), tmp_path / "broken")


def test_an_archive_cannot_write_elsewhere(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWSKILLS_GITHUB_ARCHIVES", web.url(""))
    web.files["/o/r/tar.gz/main"] = archive({"../../evil.txt": b"x"})
    with pytest.raises(DataError, match="leads out of its folder"):
        rows(bench(Source(github="o/r", ref="main", members="*", format="text")), tmp_path)


def picture(raw: Row, index: int) -> Row:
    name = raw["_file"].split("/")[1]
    return {"q": raw["q"], "image": Asset(f"images/{name}.png"), "images": [Asset(f"images/{name}.png"), "x"]}


def test_assets_lie_beside_the_rows(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = make_mirror(tmp_path / "m", TREE, "raw.githubusercontent.com/o/r/main")
    source = Source(github="o/r", ref="main", members=TASKS.members, format="object", assets="images/*.png")
    monkeypatch.setenv("NEWSKILLS_GITHUB_ARCHIVES", web.url(""))
    web.files["/o/r/tar.gz/main"] = archive(TREE)
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as zipped:
        for name, data in TREE.items():
            zipped.writestr(name, data)
    web.files["/all.zip"] = packed.getvalue()
    zip_source = Source(url=web.url("/all.zip"), members=TASKS.members, format="object", assets="images/*.png")
    for number, (one, place) in enumerate([(source, mirror), (source, None), (zip_source, None)]):
        folder = tmp_path / str(number)
        made = rows(bench(one, row=picture), folder, place)
        assert [row["image"] for row in made] == ["assets/test/images/a.png", "assets/test/images/b.png"]
        assert made[0]["images"] == ["assets/test/images/a.png", "x"]
        assert (folder / "tiny" / made[1]["image"]).read_bytes() == TREE["images/b.png"]
    (folder / "tiny" / made[1]["image"]).unlink()
    rows(bench(zip_source, row=picture), folder)
    assert (folder / "tiny" / made[1]["image"]).read_bytes() == TREE["images/b.png"]


def test_files_that_are_samples(tmp_path: Path) -> None:
    mirror = make_mirror(tmp_path / "m", TREE, "raw.githubusercontent.com/o/r/main")
    source = Source(github="o/r", ref="main", members="images/*.png", format="asset")
    assert rows(bench(source), tmp_path / "d", mirror) == [
        {"_file": f"images/{name}.png", "asset": f"assets/test/images/{name}.png"} for name in "ab"
    ]


@pytest.mark.parametrize(
    ("assets", "message"),
    [
        ([Asset("gone.png")], "no file 'gone.png' among its assets"),
        ([Asset("../x.png", b"")], "'../x.png' cannot be the name of a file"),
        ([Asset("x.png", b"1"), Asset("x.png", b"2")], "another content"),
    ],
)
def test_assets_that_cannot_be(web: Web, tmp_path: Path, assets: list[Asset], message: str) -> None:
    web.files["/a"] = b'{"n": 1}\n'
    benchmark = bench(Source(url=web.url("/a")), row=lambda raw, index: {"image": assets})
    with pytest.raises(DataError, match=message):
        rows(benchmark, tmp_path)


def test_samples_spread_over_files_are_joined(tmp_path: Path) -> None:
    def join(raw: Iterable[Row]) -> list[Row]:
        by_folder: dict[str, Row] = {}
        for row in raw:
            folder, _, kind = row["_file"].rpartition("/")
            by_folder.setdefault(folder, {})[kind] = row["text"]
        return [{"task": files["task.json"], "note": files["note.txt"]} for files in by_folder.values()]

    mirror = make_mirror(tmp_path / "m", TREE, "raw.githubusercontent.com/o/r/main")
    source = Source(github="o/r", ref="main", members="data/a/*", format="text")
    benchmark = bench(source, join=join, row=lambda raw, index: {"n": raw["note"]})
    assert rows(benchmark, tmp_path / "d", mirror) == [{"n": "about a"}]
    unfit = bench(source, join=lambda raw: list(raw)[:1], row=lambda raw, index: {"n": raw["note"]})
    with pytest.raises(DataError, match=r"tiny, joined row 1 \(data/a/note\.txt\): the field 'note' is missing"):
        rows(unfit, tmp_path / "d1", mirror)
    both = bench(Source(github="o/r", ref="main", members="data/*", format="text"), join=join)
    with pytest.raises(DataError, match=r"do not fit together: the key 'note\.txt' is missing"):
        rows(both, tmp_path / "d2", mirror)


def parquet(*values: Row) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    sink = io.BytesIO()
    writer.write_table(pyarrow.Table.from_pylist(list(values)), sink)
    return sink.getvalue()


def test_several_configurations_of_a_hub_data_set(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    place = "/api/datasets/o/d/parquet"
    for config in ("de", "en"):
        web.files[f"{place}/{config}/train"] = json.dumps([web.url(f"{place}/{config}/train/0.parquet")]).encode()
        web.files[f"{place}/{config}/train/0.parquet"] = parquet({"q": config})
    source = Source(hf="o/d", config="{en,de}", hf_split="train")
    expected = [
        {"q": config, "_config": config, "_split": "train", "_file": f"{config}/train/0.parquet"}
        for config in ("en", "de")
    ]
    assert rows(bench(source), tmp_path / "d") == expected
    assert rows(bench(Source(hf="o/d", config="de", hf_split="train")), tmp_path / "one") == [
        {"q": "de", "_file": "de/train/0.parquet"}
    ]
    pinned = Source(hf="{o/d:de/train,o/d:en/train}")
    assert rows(bench(pinned), tmp_path / "pinned") == [
        {**row, "_hf": "o/d", "_file": f"o/d/{row['_file']}"} for row in reversed(expected)
    ]
    host = web.url("")[7:]
    shards = {f"{c}/train/0.parquet": web.files[f"{place}/{c}/train/0.parquet"] for c in ("de", "en")}
    mirror = make_mirror(tmp_path / "m", shards, f"{host}{place}")
    asked = len(web.asked)
    assert rows(bench(source), tmp_path / "mirrored", mirror, offline=True) == expected
    assert len(web.asked) == asked


def test_what_was_never_verified_says_so(web: Web, tmp_path: Path) -> None:
    web.files["/a"] = b'{"n": 1}\n'
    benchmark = bench(Source(url=web.url("/a")), unverified=True)
    (done,) = prepare(benchmark, data_dir=tmp_path).splits
    assert done.notices == ["not verified against the live source"]


def test_shared_data_is_prepared_once(web: Web, tmp_path: Path) -> None:
    web.files["/a"] = b'{"n": 1}\n'
    source = Source(url=web.url("/a"))
    first = prepare(bench(source), data_dir=tmp_path).splits[0]
    other = Benchmark(name="other", category="x", title="x", sources=(source,), data="tiny")
    second = prepare(other, data_dir=tmp_path).splits[0]
    assert (second.path, second.fresh) == (first.path, False)


def test_the_file_of_a_row_has_one_form_wherever_it_comes_from(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWSKILLS_GITHUB_ARCHIVES", web.url(""))
    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    tree = {"de/test.jsonl": b'{"n": 1}\n', "fr/test.jsonl": b'{"n": 2}\n'}
    for name, data in tree.items():
        place = tmp_path / "here" / name
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        web.files[f"/d/{name}"] = data
    web.files["/o/r/tar.gz/main"] = web.files["/d/all.tgz"] = archive(tree)
    pattern = "{de,fr}/test.jsonl"
    kinds = {
        "addresses": Source(url=web.url(f"/d/{pattern}")),
        "files": Source(path=f"{tmp_path}/here/{pattern}"),
        "folder": Source(path=f"{tmp_path}/here", members=pattern),
        "repository": Source(github="o/r", ref="main", members=pattern),
    }
    for kind, source in kinds.items():
        assert [row["_file"] for row in rows(bench(source), tmp_path / kind)] == list(tree), kind
    alone = {
        "address": (Source(url=web.url("/d/de/test.jsonl")), "test.jsonl"),
        "listed": (Source(url=web.url("/d/{de}/test.jsonl")), "de/test.jsonl"),
        "file": (Source(path=f"{tmp_path}/here/de/test.jsonl"), "test.jsonl"),
        "archive": (Source(url=web.url("/d/all.tgz"), members="*de/test.jsonl"), "r-0123/de/test.jsonl"),
        "archives": (Source(url=web.url("/d/{all}.tgz"), members="*de/*"), "all.tgz/r-0123/de/test.jsonl"),
    }
    for kind, (source, name) in alone.items():
        assert [row["_file"] for row in rows(bench(source), tmp_path / f"one {kind}")] == [name], kind
    mapped = bench(kinds["addresses"], row=lambda raw, index: dict(raw))
    assert rows(mapped, tmp_path / "mapped") == [{"n": 1}, {"n": 2}]


def test_a_source_may_name_several_kinds_of_places(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    place = "/api/datasets/o/d/parquet/default/test"
    web.files[place] = json.dumps([web.url(f"{place}/0.parquet")]).encode()
    web.files[f"{place}/0.parquet"] = parquet({"q": "hub"})
    web.files["/x.jsonl"] = b'{"q": "address"}\n'
    both = Source(hf="o/d", url=web.url("/x.jsonl"))
    assert [row["q"] for row in rows(bench(both), tmp_path)] == ["hub", "address"]
    assert [row["q"] for row in rows(bench(structs.replace(both, span=(1, 2))), tmp_path / "cut")] == ["address"]
    made = prepare(bench(both), data_dir=tmp_path).splits[0].provenance
    assert [origin["url"] for origin in made.sources] == [web.url(f"{place}/0.parquet"), web.url("/x.jsonl")]


LOCAL = """
from newskills.base.benchmark import Asset, Benchmark, Source

def row(raw, index):
    return {"n": raw["n"], "from": raw.get("_file", "")}

def picture(raw, index):
    return {"image": Asset("a.png")}

ONE = Benchmark(name="one", category="x", title="x", sources=(Source(path="raw/one.jsonl"),), row=row)
TWO = Benchmark(name="two", category="x", title="x", sources=(Source(path="raw/{two,one}.jsonl"),), row=row)
TREE = Benchmark(
    name="tree", category="x", title="x", sources=(Source(path="raw", members="*.jsonl", assets="*.png"),), row=picture
)
PICS = Benchmark(
    name="pics", category="x", title="x", sources=(Source(path="raw/{two,one}.jsonl", assets="*.png"),), row=picture
)
GONE = Benchmark(name="gone", category="x", title="x", sources=(Source(path="raw/gone.jsonl"),), row=row)
NONE = Benchmark(name="none", category="x", title="x", sources=(Source(path="raw", members="*.csv"),), row=row)
"""
NAMES = ("ONE", "TWO", "TREE", "PICS", "GONE", "NONE")


def test_files_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for name, text in {"one.jsonl": '{"n": 1}\n', "two.jsonl": '{"n": 2}\n', "a.png": "PNG"}.items():
        (tmp_path / "raw" / name).write_text(text)
    (tmp_path / "mine.py").write_text(LOCAL)
    here = {name: get_benchmark(f"{tmp_path}/mine.py::{name}") for name in NAMES}
    assert rows(here["ONE"], tmp_path) == [{"n": 1, "from": "one.jsonl"}]
    assert rows(here["TWO"], tmp_path) == [{"n": 2, "from": "two.jsonl"}, {"n": 1, "from": "one.jsonl"}]
    assert rows(here["TREE"], tmp_path) == [{"image": "assets/test/a.png"}] * 2
    assert rows(here["PICS"], tmp_path) == [{"image": "assets/test/a.png"}] * 2
    with pytest.raises(DataError, match=r"There is no file .*gone\.jsonl"):
        rows(here["GONE"], tmp_path)
    with pytest.raises(DataError, match=r"has no file like '\*\.csv'"):
        rows(here["NONE"], tmp_path)
    assert not prepare(here["ONE"], data_dir=tmp_path).splits[0].fresh
    (tmp_path / "raw/one.jsonl").write_text('{"n": 11}\n')
    assert rows(here["ONE"], tmp_path) == [{"n": 11, "from": "one.jsonl"}]
