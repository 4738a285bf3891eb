# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.benchmarks.web import Web

from newskills.base.benchmark import Source
from newskills.base.errors import ConfigError, DataError
from newskills.benchmarks.fetch import Fetcher, FetchOptions
from newskills.benchmarks.mirror import Mirror, mirror_path


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
    with pytest.raises(ConfigError, match="is no folder"):
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
