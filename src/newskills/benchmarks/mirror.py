# SPDX-License-Identifier: Apache-2.0
"""An offline mirror: a folder that holds downloads under `<host>/<url path, percent-decoded>`, queries dropped.

`refs/heads/<branch>` and `<branch>` are the same; the revision part of Hugging Face file addresses is left out.
A `MANIFEST.json` (`{"files": [{"path", "sha256"}]}`) at its top makes every file verified before use.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError

_BRANCH = re.compile(r"/refs/heads/")
_HUB_REVISION = re.compile(r"\A((?:datasets/)?[^/]+/[^/]+)/(?:resolve|raw)/(?:refs/convert/)?[^/]+/(.+)\Z")
HUB = "huggingface.co"


class _File(Struct):
    path: str
    sha256: str = ""


class _Manifest(Struct):
    files: list[_File]


def mirror_path(url: str) -> str:
    """The place of `url` below a mirror folder. Raises DataError for an address that would leave it."""
    parts = urlsplit(url)
    path = unquote(parts.path).strip("/")
    if not parts.netloc or "\0" in path or {"..", "."} & set(path.split("/")):
        raise DataError(f"Not an address of a file: {url}.")
    return _folded(f"{parts.netloc.lower()}/{path}")


def file_sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file, in constant memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Mirror:
    """A mirror folder. Raises ConfigError where there is no such folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).expanduser()
        if not self.folder.is_dir():
            raise ConfigError(
                f"The mirror {self.folder} is no folder.", hint="Check --mirror and NEWSKILLS_MIRROR."
            )

    def find(self, url: str) -> tuple[Path, str] | None:
        """(file, its sha256), or None where the mirror has no such file.

        Raises DataError if the file is not the one that the manifest promises.
        """
        path, known = self._place(url)
        if not path.is_file():
            return None
        sha256 = file_sha256(path)
        if known and known.sha256 and known.sha256 != sha256:
            raise DataError(
                f"{path} is damaged: its sha256 is {sha256}, the mirror's MANIFEST.json says {known.sha256}.",
                hint="Copy the file into the mirror again.",
            )
        return path, sha256

    def holds(self, url: str) -> bool:
        return self._place(url)[0].is_file()

    def _place(self, url: str) -> tuple[Path, _File | None]:
        key = mirror_path(url)
        known = self._manifest.get(key)
        return self.folder / (known.path if known else key), known

    @cached_property
    def _manifest(self) -> dict[str, _File]:
        path = self.folder / "MANIFEST.json"
        if not path.is_file():
            return {}
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=_Manifest)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        return {_folded(file.path): file for file in manifest.files}


def _folded(path: str) -> str:
    host, _, rest = _BRANCH.sub("/", path, count=1).partition("/")
    if host == HUB and (match := _HUB_REVISION.match(rest)):
        rest = f"{match[1]}/{match[2]}"
    return f"{host}/{rest}"
