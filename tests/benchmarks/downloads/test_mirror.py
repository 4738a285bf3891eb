# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.web import Web, archive

from newskills.base.benchmark import Benchmark, Source
from newskills.base.errors import ConfigError, DataError, LockedError
from newskills.base.store import hold_lock
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.mirror import Mirror, mirror_path
from newskills.benchmarks.downloads.mirror_build import MirroredBenchmark, build_mirror, check_mirror


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Example.org/a%20b/c.txt?download=1#x", "example.org/a b/c.txt"),
        ("https://raw.githubusercontent.com/o/r/refs/heads/main/f", "raw.githubusercontent.com/o/r/main/f"),
        ("https://raw.githubusercontent.com/o/r/main/f", "raw.githubusercontent.com/o/r/main/f"),
        ("https://huggingface.co/datasets/o/n/resolve/main/d/f.csv", "huggingface.co/datasets/o/n/d/f.csv"),
        ("https://huggingface.co/datasets/o/n/resolve/refs/convert/parquet/f", "huggingface.co/datasets/o/n/f"),
    ],
)
def test_addresses_become_places(url: str, expected: str) -> None:
    assert mirror_path(url) == expected


@pytest.mark.parametrize("url", ["https://h/../x", "https://h/a/%2e%2e/b", "no-address", "https://h/a%00b"])
def test_addresses_that_would_leave_the_folder(url: str) -> None:
    with pytest.raises(DataError):
        mirror_path(url)


def make(folder: Path, place: str, body: bytes, sha256: str | None = None) -> Mirror:
    path = folder / place
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    entry = {"path": place, "sha256": hashlib.sha256(body).hexdigest() if sha256 is None else sha256, "rows": 1}
    (folder / "MANIFEST.json").write_text(json.dumps({"layout": "x", "files": [entry]}))
    return Mirror(folder)


@pytest.mark.parametrize("stored", ["refs/heads/main", "main"])
@pytest.mark.parametrize("asked", ["refs/heads/main", "main"])
def test_both_spellings_of_a_branch(tmp_path: Path, stored: str, asked: str) -> None:
    mirror = make(tmp_path, f"raw.githubusercontent.com/o/r/{stored}/f.txt", b"data")
    found = mirror.find(f"https://raw.githubusercontent.com/o/r/{asked}/f.txt")
    assert found is not None
    assert found[0].read_bytes() == b"data"


def test_without_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "f").write_bytes(b"data")
    mirror = Mirror(tmp_path)
    assert mirror.find("https://h/f") == (tmp_path / "h" / "f", hashlib.sha256(b"data").hexdigest())
    assert mirror.find("https://h/g") is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    mirror = make(tmp_path, "h/f", b"data", sha256="0" * 64)
    with pytest.raises(DataError, match="is damaged"):
        mirror.find("https://h/f")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        Mirror(tmp_path / "none")


def test_the_mirror_comes_before_the_network(web: Web, tmp_path: Path) -> None:
    host = web.url("")[7:]
    make(tmp_path / "m", f"{host}/f", b"from the mirror")
    web.files.update({"/f": b"from the web", "/g": b"from the web"})
    fetcher = Fetcher(tmp_path / "cache", FetchOptions(mirror=str(tmp_path / "m")))
    assert fetcher.fetch(web.url("/f"), Source()).path.read_bytes() == b"from the mirror"
    assert fetcher.fetch(web.url("/g"), Source()).path.read_bytes() == b"from the web"
    offline = Fetcher(tmp_path / "cache2", FetchOptions(mirror=str(tmp_path / "m"), offline=True))
    with pytest.raises(DataError, match="not in the mirror"):
        offline.fetch(web.url("/g"), Source())


def published(web: Web, name: str, path: str, **changes: Any) -> Benchmark:
    return Benchmark(
        name=name, category="x", title="x", licence="MIT", sources=(Source(url=web.url(path)),), **changes
    )


def test_a_mirror_is_built_and_used(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWSKILLS_GITHUB_ARCHIVES", web.url(""))
    tree = {"d/a.json": b'{"n": 1}', "d/b.json": b'{"n": 2}', "i/a.png": b"PNG", "other": b"x"}
    web.files.update({"/o/r/tar.gz/main": archive(tree), "/set.jsonl": b'{"n": 3}\n'})
    source = Source(github="o/r", ref="main", members="d/*", assets="i/*", format="object")
    repository = Benchmark(name="repository", category="x", title="x", sources=(source,))
    plain = published(web, "plain", "/set.jsonl")
    folder = tmp_path / "m"
    results = build_mirror([repository, plain], folder)
    assert [(r.files, r.fresh) for r in results if isinstance(r, MirroredBenchmark)] == [(3, 3), (1, 1)]
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    entries = {entry["url"]: entry for entry in manifest["files"]}
    assert set(entries) == {web.url("/set.jsonl")} | {
        f"https://raw.githubusercontent.com/o/r/main/{name}" for name in ("d/a.json", "d/b.json", "i/a.png")
    }
    assert (entries[web.url("/set.jsonl")]["benchmarks"], entries[web.url("/set.jsonl")]["licence"]) == (
        ["plain"],
        "MIT",
    )
    assert not (folder / ".downloads").exists()
    asked = len(web.asked)
    again = build_mirror([repository, plain, published(web, "twin", "/set.jsonl")], folder)
    assert [r.fresh for r in again if isinstance(r, MirroredBenchmark)] == [0, 0, 0]
    assert len(web.asked) == asked
    offline = FetchOptions(mirror=str(folder), offline=True)
    second = tmp_path / "m2"
    copied = build_mirror([repository, plain], second, options=offline)
    assert [r.fresh for r in copied if isinstance(r, MirroredBenchmark)] == [3, 1]
    for place in (folder, second):
        assert check_mirror(place).problems == []
        for one in (repository, plain):
            prepare(
                one, data_dir=tmp_path / place.name / "data", options=FetchOptions(mirror=str(place), offline=True)
            )
    assert len(web.asked) == asked


def test_a_cut_build_goes_on(web: Web, tmp_path: Path) -> None:
    web.files.update({"/one": b'{"n": 1}\n', "/two": b'{"n": 2}\n' * 1000})
    web.plan["/two"] = ["cut"]
    one, two = published(web, "one", "/one"), published(web, "two", "/two")
    options = FetchOptions(retries=0, pause=0.01)
    first, failed = build_mirror([one, two], tmp_path, options=options)
    assert isinstance(first, MirroredBenchmark)
    assert isinstance(failed, DataError)
    assert [entry["benchmarks"] for entry in json.loads((tmp_path / "MANIFEST.json").read_text())["files"]] == [
        ["one"]
    ]
    build_mirror([one, two], tmp_path, options=options)
    assert [path for path, _ in web.asked].count("/one") == 1
    assert web.ranges()[-1].startswith("bytes=")
    assert check_mirror(tmp_path).problems == []


def test_damage_is_found_and_mended(web: Web, tmp_path: Path) -> None:
    names = ("whole", "cut", "changed", "gone")
    web.files.update({f"/{name}": f'{{"n": "{name}"}}\n'.encode() for name in names})
    benchmarks = [published(web, name, f"/{name}") for name in names]
    build_mirror(benchmarks, tmp_path)
    host = tmp_path / web.url("")[7:]
    (host / "cut").write_bytes((host / "cut").read_bytes()[:3])
    (host / "changed").write_bytes((host / "changed").read_bytes().upper())
    (host / "gone").unlink()
    (host / "more").write_bytes(b"")
    seen: list[int] = []
    found = check_mirror(tmp_path, progress=lambda path, done, total: seen.append(done))
    assert len(found.problems) == 3
    assert any("cut has 3 bytes" in problem for problem in found.problems)
    assert any("changed is damaged" in problem for problem in found.problems)
    assert any("gone is missing" in problem for problem in found.problems)
    assert found.unlisted == [str((host / "more").relative_to(tmp_path))]
    assert max(seen) == found.size
    build_mirror(benchmarks, tmp_path)
    assert check_mirror(tmp_path).problems == []


def test_what_cannot_be_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        check_mirror(tmp_path / "none")
    with pytest.raises(DataError, match="nothing says what they should be"):
        check_mirror(tmp_path)
    (tmp_path / "MANIFEST.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        check_mirror(tmp_path)


def test_two_builds_of_one_folder(tmp_path: Path) -> None:
    with hold_lock(tmp_path / ".lock", "x"), pytest.raises(LockedError, match="is in use"):
        build_mirror([], tmp_path)
