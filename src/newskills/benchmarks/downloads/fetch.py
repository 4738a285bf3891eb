# SPDX-License-Identifier: Apache-2.0
"""Address → verified file on disk: from the mirror, from the download cache, or over HTTPS.

Downloads survive a cut line (Range requests on the partial file), are retried with growing pauses, honour
`Retry-After` and the proxy variables of the environment, and appear under their name only when they are whole.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from newskills.base.benchmark import Source
from newskills.base.errors import DataError, TransportError, storage_error
from newskills.base.http.blocking import BlockingResponse, open_url
from newskills.base.store import waiting_lock
from newskills.benchmarks.downloads.mirror import HUB, ChangedFileError, Mirror, file_sha256, mirror_path

T = TypeVar("T")
Progress = Callable[[str, int, int | None], None]
"""(what, bytes so far, total bytes or None); called from download threads."""

_BLOCK = 1 << 18
_LFS_MARK = b"version https://git-lfs.github.com/spec/"
_LONGEST_PAUSE = 60.0


class FetchOptions(Struct, frozen=True, kw_only=True):
    """How data is fetched.

    mirror        folder of an offline mirror; empty: `NEWSKILLS_MIRROR`, if set
    offline       never use the network; None: `NEWSKILLS_OFFLINE` or `HF_HUB_OFFLINE` is 1
    retries       further attempts after a failed one
    parallelism   benchmarks prepared at the same time
    pause         seconds before the first further attempt, doubled for each next one
    timeout       seconds without any byte before an attempt is given up
    """

    mirror: str = ""
    offline: bool | None = None
    retries: int = 3
    parallelism: int = 20
    pause: float = 1.0
    timeout: float = 60.0
    progress: Progress | None = None

    def open_mirror(self) -> Mirror | None:
        folder = self.mirror or os.environ.get("NEWSKILLS_MIRROR", "")
        if folder:
            return Mirror(folder)
        return None

    def is_offline(self) -> bool:
        if self.offline is not None:
            return self.offline
        return any(os.environ.get(name) in ("1", "true") for name in ("NEWSKILLS_OFFLINE", "HF_HUB_OFFLINE"))


class FetchedFile(Struct, frozen=True, kw_only=True):
    """A file and where it came from; `url` is the address that was (or would have been) asked."""

    path: Path
    url: str
    sha256: str
    origin: Literal["mirror", "cache", "network"]


class _Temporary(Exception):
    """Worth another attempt, after `pause` seconds if the server names a time."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class _PartMisfit(_Temporary):
    """The server has nothing after the partial file: it is whole, or of another file."""


class Fetcher:
    """Fetches files into `cache`. Safe for threads and for several processes with one cache."""

    def __init__(self, cache: Path, options: FetchOptions) -> None:
        self.cache = cache
        self.options = options
        self.mirror = options.open_mirror()

    def fetch(self, url: str, source: Source) -> FetchedFile:
        """Return the file at `url`. Raises DataError: absent, refused, no network, not the expected content."""
        if self.mirror and (mirrored := self.mirror.find(url)):
            return check_fetched_file(
                FetchedFile(path=mirrored[0], url=url, sha256=mirrored[1], origin="mirror"), source
            )
        address = pinned_url(url, source.revision)
        target = self.cache / mirror_path(address)
        with waiting_lock(target.with_name(f".{target.name}.lock"), url):
            if target.is_file():
                cached = FetchedFile(path=target, url=address, sha256=file_sha256(target), origin="cache")
                if not source.sha256 or cached.sha256 == source.sha256:
                    return cached
                target.unlink()
            if self.options.is_offline():
                raise self._offline_error(f"{url} was never fetched", source)
            sha256 = self._download(address, target, source)
        return FetchedFile(path=target, url=address, sha256=sha256, origin="network")

    def has_mirrored(self, url: str) -> bool:
        """Return whether the mirror holds the file at `url` (not yet verified)."""
        return bool(self.mirror and self.mirror.holds(url))

    def listing(self, url: str, source: Source) -> bytes:
        """Fetch a small answer of the hub's API. Raises DataError."""
        if self.options.is_offline():
            raise self._offline_error(f"{source.hf} has to be asked for at {url}", source)

        def attempt() -> bytes:
            with _open_response(url, {}, self.options.timeout, source) as reply:
                return _receive_block(reply, None)

        return self._persistently(url, source, attempt)

    def _offline_error(self, what: str, source: Source) -> DataError:
        """Make the error for what cannot be fetched offline: `what`, and where it was looked for."""
        where = "No mirror is set."
        if self.mirror:
            where = f"It is not in the mirror {self.mirror.folder}."
        return DataError(f"Offline, and {what}. {where}", hint=_offline_hint(source))

    def _download(self, url: str, target: Path, source: Source) -> str:
        part = target.with_name(f"{target.name}.part")
        resumed = part.exists()
        self._persistently(url, source, lambda: self._attempt(url, part, source))
        sha256 = file_sha256(part)
        if source.sha256 and sha256 != source.sha256 and resumed:
            part.unlink()
            self._persistently(url, source, lambda: self._attempt(url, part, source))
            sha256 = file_sha256(part)
        try:
            check_fetched_file(FetchedFile(path=part, url=url, sha256=sha256, origin="network"), source)
        except DataError:
            part.unlink()
            raise
        part.replace(target)
        _validator_file(part).unlink(missing_ok=True)
        return sha256

    def _persistently(self, url: str, source: Source, attempt: Callable[[], T]) -> T:
        pause = self.options.pause
        for left in range(self.options.retries, -1, -1):
            try:
                return attempt()
            except _Temporary as error:
                if not left:
                    tries = self.options.retries + 1
                    raise DataError(
                        f"Cannot fetch {url} ({tries} attempts): {error}.", hint=_offline_hint(source)
                    ) from error
                wait = pause if error.pause is None else error.pause
                time.sleep(min(_LONGEST_PAUSE, wait))
                pause *= 2
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _attempt(self, url: str, part: Path, source: Source) -> None:
        """Send one request that starts, or continues, the partial file."""
        have = part.stat().st_size if part.exists() else 0
        validator = _validator_file(part)
        headers: dict[str, str] = {}
        if have and validator.exists() and (validator_text := validator.read_text()):
            headers = {"Range": f"bytes={have}-", "If-Range": validator_text}
        with _drop_misfit(part), _open_response(url, headers, self.options.timeout, source) as reply:
            continues = reply.status == 206 and str(reply.headers.get("Content-Range", "")).startswith(
                f"bytes {have}-"
            )
            if not continues:
                have = 0
                validator.write_text(reply.headers.get("ETag") or reply.headers.get("Last-Modified") or "")
            length = reply.headers.get("Content-Length")
            total = have + int(length) if length and length.isdigit() else None
            self._copy(reply, part, url, start=have, total=total)

    def _copy(self, reply: BlockingResponse, part: Path, url: str, *, start: int, total: int | None) -> None:
        done = start
        try:
            with part.open("r+b" if start else "wb") as file:
                file.seek(start)
                while block := _receive_block(reply):
                    file.write(block)
                    done += len(block)
                    if self.options.progress:
                        self.options.progress(url, done, total)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(error, part) from error
        if total is not None and done != total:
            raise _Temporary(f"the line was cut after {done} of {total} bytes")


def check_fetched_file(fetched: FetchedFile, source: Source) -> FetchedFile:
    """Return `fetched` once it is checked. Raises DataError for a git-LFS pointer, and for another content than
    `source` promises."""
    with fetched.path.open("rb") as file:
        if file.read(len(_LFS_MARK)) == _LFS_MARK:
            raise DataError(f"{fetched.url} gave a git-LFS pointer instead of the file.")
    check_sha256(fetched.url, fetched.origin, fetched.sha256, source)
    return fetched


def check_sha256(what: str, origin: str, sha256: str, source: Source) -> None:
    """Raise DataError where `sha256` is not the one that `source` promises."""
    if source.sha256 and sha256 != source.sha256:
        raise ChangedFileError(
            f"{what} ({origin}) is not the file that this benchmark is defined on: "
            f"its sha256 is {sha256}, expected {source.sha256}.",
            hint="It was changed or damaged on the way; scores on it would not be comparable.",
        )


def _offline_hint(source: Source) -> str:
    instead = f"; or give the rows: {source.instead}" if source.instead else ""
    return (
        f"Without a network, point --mirror (or NEWSKILLS_MIRROR) to a folder with the files{instead}; "
        "behind a proxy, set HTTPS_PROXY."
    )


def pinned_url(url: str, revision: str) -> str:
    """Return `url` with the branch replaced by the commit `revision`, for addresses of GitHub's raw files and the
    hub."""
    if not revision:
        return url
    parts = urlsplit(url)
    steps = parts.path.replace("/refs/heads/", "/", 1).split("/")
    at = {"raw.githubusercontent.com": 3}.get(parts.netloc)
    if at is None and "resolve" in steps:
        at = steps.index("resolve") + 1
    if at is None or at >= len(steps):
        return url
    steps[at] = revision
    return parts._replace(path="/".join(steps)).geturl()


def _open_response(url: str, headers: dict[str, str], timeout: float, source: Source) -> BlockingResponse:
    if urlsplit(url).scheme not in ("https", "http"):
        raise DataError(f"Only http(s) addresses are fetched, not {url}.")
    token = os.environ.get("HF_TOKEN", "")
    # hubs redirect to storage that must not see the token
    if token and urlsplit(url).netloc == urlsplit(hub_url()).netloc:
        private = {"Authorization": f"Bearer {token}"}
    else:
        private = {}
    try:
        reply = open_url(url, headers=headers, private=private, timeout=timeout)
    except TransportError as error:
        raise _Temporary(str(error)) from error
    if reply.status >= 300:
        with reply:
            raise _refusal_error(reply, url, source, token=bool(token))
    return reply


def hub_url() -> str:
    """Return the address of the Hugging Face hub, or the one in `HF_ENDPOINT`."""
    return os.environ.get("HF_ENDPOINT", f"https://{HUB}").rstrip("/")


def archives_url() -> str:
    """Return the address that has repositories of GitHub as archives, or the one in
    `NEWSKILLS_GITHUB_ARCHIVES`."""
    return os.environ.get("NEWSKILLS_GITHUB_ARCHIVES", "https://codeload.github.com").rstrip("/")


def _refusal_error(reply: BlockingResponse, url: str, source: Source, *, token: bool) -> Exception:
    if reply.status in (401, 403) and (source.gated or source.hf or url.startswith(hub_url())):
        page = f"{hub_url()}/datasets/{source.hf}" if source.hf else url
        say = "the account of HF_TOKEN has no access" if token else "no HF_TOKEN is set"
        return DataError(
            f"{url} is only given to people who accepted its terms (HTTP {reply.status}; {say}).",
            hint=f"Accept them at {source.note or page}, then set HF_TOKEN to a read token of that account.",
        )
    if reply.status == 416:
        return _PartMisfit("the partial file does not fit the one on the server")
    if reply.status in (408, 425, 429) or reply.status >= 500:
        wait = reply.headers.get("Retry-After", "")
        pause = float(wait) if wait.isdigit() else None
        return _Temporary(f"HTTP {reply.status} {reply.reason}", pause)
    return DataError(f"{url} answered HTTP {reply.status} {reply.reason}.")


def _receive_block(reply: BlockingResponse, size: int | None = _BLOCK) -> bytes:
    try:
        return reply.read(size)
    except TransportError as error:
        raise _Temporary(f"the line was cut: {error}") from error


@contextlib.contextmanager
def _drop_misfit(part: Path) -> Iterator[None]:
    try:
        yield
    except _PartMisfit:
        part.unlink(missing_ok=True)
        raise


def _validator_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")
