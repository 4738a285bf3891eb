# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.benchmarks.web import Web, serving

from newskills.base.benchmark import Source
from newskills.base.errors import DataError
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions, pinned_url

BODY = bytes(range(256)) * 5000
SHA = hashlib.sha256(BODY).hexdigest()


def fetcher(cache: Path, retries: int = 3, **options: object) -> Fetcher:
    return Fetcher(cache, FetchOptions(retries=retries, pause=0.01, timeout=5, **options))


def leftovers(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.rglob("*") if p.is_file() and not p.name.endswith(".lock"))


def test_a_file_is_fetched_once(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY
    seen: list[tuple[int, int | None]] = []
    getter = fetcher(tmp_path, progress=lambda what, done, total: seen.append((done, total)))
    first = getter.fetch(web.url("/data.bin"), Source(url=web.url("/data.bin")))
    again = getter.fetch(web.url("/data.bin"), Source(url=web.url("/data.bin"), sha256=SHA))
    assert (first.origin, again.origin, first.sha256, again.sha256) == ("network", "cache", SHA, SHA)
    assert first.path.read_bytes() == BODY
    assert len(web.asked) == 1
    assert seen[-1] == (len(BODY), len(BODY))
    assert leftovers(tmp_path) == ["data.bin"]


def test_a_cut_download_goes_on_where_it_ended(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY
    web.plan["/data.bin"] = ["cut", "cut"]
    got = fetcher(tmp_path).fetch(web.url("/data.bin"), Source(sha256=SHA))
    assert got.sha256 == SHA
    half = len(BODY) // 2
    assert web.ranges() == ["", f"bytes={half}-", f"bytes={half + (len(BODY) - half) // 2}-"]


def test_a_later_call_goes_on_too(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY
    web.plan["/data.bin"] = ["cut"]
    with pytest.raises(DataError, match="the line was cut after"):
        fetcher(tmp_path, retries=0).fetch(web.url("/data.bin"), Source())
    assert "data.bin" not in leftovers(tmp_path)
    assert fetcher(tmp_path, retries=0).fetch(web.url("/data.bin"), Source()).sha256 == SHA
    assert web.ranges()[1].startswith("bytes=")


def test_a_partial_file_of_another_version_is_thrown_away(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY[::-1]
    web.plan["/data.bin"] = ["cut"]
    with pytest.raises(DataError):
        fetcher(tmp_path, retries=0).fetch(web.url("/data.bin"), Source())
    web.files["/data.bin"] = BODY
    assert fetcher(tmp_path).fetch(web.url("/data.bin"), Source(sha256=SHA)).path.read_bytes() == BODY


def test_a_partial_file_that_is_already_whole(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY
    web.plan["/data.bin"] = ["cut"]
    with pytest.raises(DataError):
        fetcher(tmp_path, retries=0).fetch(web.url("/data.bin"), Source())
    (part,) = tmp_path.rglob("data.bin.part")
    part.write_bytes(BODY)
    assert fetcher(tmp_path).fetch(web.url("/data.bin"), Source(sha256=SHA)).sha256 == SHA


def test_a_damaged_partial_file_is_fetched_anew(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY
    web.plan["/data.bin"] = ["cut"]
    with pytest.raises(DataError):
        fetcher(tmp_path, retries=0).fetch(web.url("/data.bin"), Source())
    (part,) = tmp_path.rglob("data.bin.part")
    part.write_bytes(b"\0" * part.stat().st_size)
    assert fetcher(tmp_path).fetch(web.url("/data.bin"), Source(sha256=SHA)).sha256 == SHA


@pytest.mark.parametrize("status", ["500", "502", "503", "429"])
def test_server_troubles_are_waited_for(web: Web, tmp_path: Path, status: str) -> None:
    web.files["/data.bin"] = BODY
    web.plan["/data.bin"] = [status, status]
    assert fetcher(tmp_path).fetch(web.url("/data.bin"), Source()).sha256 == SHA
    assert len(web.asked) == 3


def test_the_attempts_are_bounded(web: Web, tmp_path: Path) -> None:
    web.plan["/data.bin"] = ["500"] * 9
    with pytest.raises(DataError, match=r"\(3 attempts\): HTTP 500"):
        fetcher(tmp_path, retries=2).fetch(web.url("/data.bin"), Source())
    assert len(web.asked) == 3


def test_another_content_is_refused_and_not_kept(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = BODY + b"!"
    with pytest.raises(DataError, match=f"expected {SHA}"):
        fetcher(tmp_path).fetch(web.url("/data.bin"), Source(sha256=SHA))
    assert "data.bin" not in leftovers(tmp_path)
    assert "data.bin.part" not in leftovers(tmp_path)


def test_a_git_lfs_pointer_is_refused(web: Web, tmp_path: Path) -> None:
    web.files["/data.bin"] = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    with pytest.raises(DataError, match="git-LFS pointer"):
        fetcher(tmp_path).fetch(web.url("/data.bin"), Source())


def test_a_missing_file_is_not_asked_for_again(web: Web, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="HTTP 404"):
        fetcher(tmp_path).fetch(web.url("/none"), Source())
    assert len(web.asked) == 1


def test_no_network_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEWSKILLS_MIRROR", raising=False)
    with serving() as web:
        url = web.url("/data.bin")
    with pytest.raises(DataError, match="Cannot fetch") as caught:
        fetcher(tmp_path, retries=1).fetch(url, Source())
    assert "NEWSKILLS_MIRROR" in caught.value.hint
    assert "HTTPS_PROXY" in caught.value.hint


def test_offline_asks_nobody(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web.files["/data.bin"] = BODY
    with pytest.raises(DataError, match="Offline"):
        fetcher(tmp_path, offline=True).fetch(web.url("/data.bin"), Source())
    monkeypatch.setenv("NEWSKILLS_OFFLINE", "1")
    with pytest.raises(DataError, match="Offline"):
        fetcher(tmp_path).fetch(web.url("/data.bin"), Source())
    assert web.asked == []


def test_a_gated_set_names_page_and_token(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    source = Source(gated=True, note="https://example.org/terms")
    for token, said in (("", "no HF_TOKEN is set"), ("secret", "the account of HF_TOKEN has no access")):
        monkeypatch.setenv("HF_TOKEN", token)
        web.plan["/datasets/x/y/resolve/main/a.csv"] = ["401"]
        with pytest.raises(DataError, match=said) as caught:
            fetcher(tmp_path).fetch(web.url("/datasets/x/y/resolve/main/a.csv"), source)
        assert "https://example.org/terms" in caught.value.hint
        assert "secret" not in str(caught.value)


def test_the_token_stays_with_its_host(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", web.url(""))
    monkeypatch.setenv("HF_TOKEN", "secret")
    with serving() as storage:
        storage.files["/blob"] = BODY
        web.redirects["/a"] = "/b"
        web.redirects["/b"] = storage.url("/blob")
        assert fetcher(tmp_path).fetch(web.url("/a"), Source()).sha256 == SHA
        assert [headers.get("authorization") for _, headers in web.asked] == ["Bearer secret"] * 2
        assert [headers.get("authorization") for _, headers in storage.asked] == [None]
        fetcher(tmp_path / "other").fetch(storage.url("/blob"), Source())
        assert storage.asked[-1][1].get("authorization") is None


def test_a_proxy_of_the_environment_is_used(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web.files["http://data.example/set.jsonl"] = BODY
    monkeypatch.setenv("http_proxy", web.url(""))
    assert fetcher(tmp_path).fetch("http://data.example/set.jsonl", Source()).sha256 == SHA


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x"])
def test_only_web_addresses(web: Web, tmp_path: Path, url: str) -> None:
    with pytest.raises(DataError):
        fetcher(tmp_path).fetch(url, Source())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "https://raw.githubusercontent.com/o/r/main/a/b.txt",
            "https://raw.githubusercontent.com/o/r/SHA/a/b.txt",
        ),
        ("https://raw.githubusercontent.com/o/r/refs/heads/main/b", "https://raw.githubusercontent.com/o/r/SHA/b"),
        (
            "https://huggingface.co/datasets/o/n/resolve/main/x",
            "https://huggingface.co/datasets/o/n/resolve/SHA/x",
        ),
        ("https://example.org/a/b/c/d", "https://example.org/a/b/c/d"),
    ],
)
def test_a_revision_replaces_the_branch(url: str, expected: str) -> None:
    assert pinned_url(url, "SHA") == expected
    assert pinned_url(url, "") == url
