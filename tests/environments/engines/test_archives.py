# SPDX-License-Identifier: Apache-2.0
"""What comes out of an environment is unpacked alike by all versions of Python: nothing leads out of the folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from newskills.base.errors import DataError
from newskills.environments.archives import pack_folder, unpack_folder

HOSTILE = [
    ("../out.txt", tarfile.REGTYPE, ""),
    ("link", tarfile.SYMTYPE, "/etc/passwd"),
    ("link", tarfile.SYMTYPE, "../../out"),
    ("below/link", tarfile.SYMTYPE, "../../out"),
    ("hard", tarfile.LNKTYPE, "../out.txt"),
    ("device", tarfile.CHRTYPE, ""),
    ("pipe", tarfile.FIFOTYPE, ""),
]


@pytest.fixture(params=["as this Python does it", "as Python 3.11.2 does it"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "as Python 3.11.2 does it":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


def archive_of(name: str, kind: bytes, linkname: str) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as packed:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, linkname
        packed.addfile(member)
    return made


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(("name", "kind", "linkname"), HOSTILE)
def test_nothing_leads_out(name: str, kind: bytes, linkname: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(DataError, match="cannot be copied"):
        unpack_folder(archive_of(name, kind, linkname), target, "/o", 1000)
    assert [path.name for path in tmp_path.rglob("*")] == ["target"]


@pytest.mark.usefixtures("version")
def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below/file").write_text("text")
    (source / "below/run.sh").write_text("#!/bin/sh")
    (source / "below/run.sh").chmod(0o755)
    (source / "link").symlink_to("below/file")
    (source / "up").symlink_to("below/../link")
    with (tmp_path / "archive").open("w+b") as archive:
        pack_folder(source, archive)
        unpack_folder(archive, tmp_path / "target", "/o", 10_000)
    target = tmp_path / "target"
    assert (target / "up").read_text() == "text"
    assert (target / "link").is_symlink()
    assert (target / "below/run.sh").stat().st_mode & 0o777 == 0o755
    assert (target / "below/file").stat().st_mode & 0o111 == 0
