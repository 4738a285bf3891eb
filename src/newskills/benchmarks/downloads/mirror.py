# SPDX-License-Identifier: Apache-2.0
"""An offline mirror: a folder that holds downloads under `<host>/<url path, percent-decoded>`, queries dropped.

`refs/heads/<branch>` and `<branch>` are the same; the revision part of Hugging Face file addresses is left out.
A `MANIFEST.json` (`{"files": [{"path", "sha256"}]}`) at its top makes every file verified before use.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError

_BRANCH = re.compile(r"/refs/heads/")
_HUB_REVISION = re.compile(r"\A((?:datasets/)?[^/]+/[^/]+)/(?:resolve|raw)/(?:refs/convert/)?[^/]+/(.+)\Z")
HUB = "huggingface.co"
RAW = "raw.githubusercontent.com"
_SHORTEST_COMMIT = 7


MANIFEST = "MANIFEST.json"
LAYOUT = "<folder>/<host>/<url path, percent-decoded>; query strings dropped"


class ChangedFileError(DataError):
    """A file is there, but it is not the one that was promised."""


class ManifestEntry(Struct, omit_defaults=True):
    """One file in the manifest; `benchmarks`: that need it; `commit`: of its repository, where it is known."""

    path: str
    sha256: str = ""
    commit: str = ""
    url: str = ""
    bytes: int = -1
    benchmarks: list[str] = []
    licence: str = ""


class Manifest(Struct):
    files: list[ManifestEntry]
    layout: str = LAYOUT


def mirror_path(url: str) -> str:
    """Return the place of `url` below a mirror folder. Raises DataError for an address that would leave it."""
    parts = urlsplit(url)
    path = unquote(parts.path).strip("/")
    if not parts.netloc or "\0" in path or {"..", "."} & set(path.split("/")):
        raise DataError(f"Not an address of a file: {url}.")
    return _normalize_path(f"{parts.netloc.lower()}/{path}")


def file_sha256(path: Path) -> str:
    """Return the hexadecimal sha256 of a file, in constant memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Mirror:
    """A mirror folder. Raises ConfigError where there is no such folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).expanduser()
        if not self.folder.is_dir():
            raise ConfigError(
                f"The mirror {self.folder} is not a folder.", hint="Check --mirror and NEWSKILLS_MIRROR."
            )

    def find(self, url: str) -> tuple[Path, str] | None:
        """Find (file, its sha256), or None where the mirror has no such file.

        Raises DataError if the file is not the one that the manifest promises.
        """
        path, original = self._place(url)
        if not path.is_file():
            return None
        sha256 = original.sha256 if original else ""
        return path, verify_file(path, sha256)

    def tree(self, repository: str, ref: str, commit: str = "") -> dict[str, tuple[Path, str]]:
        """Return a map of path in the repository → (file, sha256 that the manifest promises, or ""); empty: the mirror
        has none.

        Taken are the files that lie under `ref` or `commit`, or whose manifest entry names that commit; for the ref
        HEAD without a commit those of every branch there is, of HEAD, main and master before others.
        """
        paths = list(self._repository(repository))
        refs = [ref, commit]
        if ref == "HEAD" and not commit:
            there = {rest.partition("/")[0] for rest, _, _ in paths}
            refs = sorted(there, key=lambda name: (name == "HEAD", name == "main", name == "master", name))
        files = {}
        for wanted in filter(None, refs):
            for rest, path, original in paths:
                if (name := _path_below_ref(rest, original.commit, wanted)) is not None:
                    files[name] = (path, original.sha256)
        return files

    def _repository(self, repository: str) -> Iterator[tuple[str, Path, ManifestEntry]]:
        """Yield (path from the ref on, file, its entry) of the files of a GitHub repository."""
        place = f"{RAW}/{repository}/"
        listed = [(key, file) for key, file in self._manifest.items() if key.startswith(place)]
        for key, file in listed:
            yield key.removeprefix(place), self.folder / file.path, file
        if not listed:
            top = self.folder / RAW / repository
            for path in sorted(top.rglob("*")):
                if path.is_file():
                    key = _normalize_path(f"{place}{path.relative_to(top).as_posix()}")
                    yield key.removeprefix(place), path, ManifestEntry(path=key)

    def files_below(self, url: str) -> list[str]:
        """Return the names of the files in the folder that stands for `url`, shortest first, then sorted."""
        folder = self.folder / mirror_path(url)
        if not folder.is_dir():
            return []
        names = [path.name for path in folder.iterdir() if path.is_file()]
        return sorted(names, key=lambda name: (len(name), name))

    def holds(self, url: str) -> bool:
        return self._place(url)[0].is_file()

    def _place(self, url: str) -> tuple[Path, ManifestEntry | None]:
        key = mirror_path(url)
        original = self._manifest.get(key)
        return self.folder / (original.path if original else key), original

    @cached_property
    def _manifest(self) -> dict[str, ManifestEntry]:
        return {_normalize_path(file.path): file for file in read_manifest(self.folder).files}


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a mirror, empty where it has none. Raises DataError for one that cannot be read."""
    path = folder / MANIFEST
    if not path.is_file():
        return Manifest(files=[])
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error


def verify_file(path: Path, expected: str) -> str:
    """Return the sha256 of a file of a mirror. Raises DataError where it is gone, or not what the manifest promises."""
    if not path.is_file():
        raise DataError(
            f"{path} is missing, though the mirror's MANIFEST.json lists it.",
            hint="Copy the file into the mirror again.",
        )
    sha256 = file_sha256(path)
    if expected and expected != sha256:
        raise ChangedFileError(
            f"{path} is damaged: its sha256 is {sha256}, the mirror's MANIFEST.json says {expected}.",
            hint="Copy the file into the mirror again.",
        )
    return sha256


def _path_below_ref(path: str, commit: str, ref: str) -> str | None:
    """Return what follows `ref` in `path`, or what follows the first folder where the file is of the commit `ref`; else
    None."""
    if path.startswith(f"{ref}/"):
        return path.removeprefix(f"{ref}/")
    if len(ref) >= _SHORTEST_COMMIT and commit.startswith(ref):
        return path.partition("/")[2]
    return None


def _normalize_path(path: str) -> str:
    host, _, rest = _BRANCH.sub("/", path, count=1).partition("/")
    if host == HUB and (match := _HUB_REVISION.match(rest)):
        rest = f"{match[1]}/{match[2]}"
    return f"{host}/{rest}"
