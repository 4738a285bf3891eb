# SPDX-License-Identifier: Apache-2.0
"""What a module declares to need is there when it is imported, and the environment stays as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.base.wheels import index, wheel

from newskills.base.errors import ConfigError
from newskills.base.registry import load_attr
from newskills.base.requirements import NotInstalledError, declared_requirements, installing_nothing

LOUD, OLD = "REQUIREMENTS = ['nsloud']", "REQUIREMENTS = ['msgspec==0.1']"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    wheel(tmp_path / "wheels", "nsdeep", "1.0", "WORD = 'deep'\n")
    wheel(tmp_path / "wheels", "nsloud", "1.5", "import nsdeep\nSAID = nsdeep.WORD.upper()\n", ["nsdeep"])
    for name, value in {**index(tmp_path / "wheels"), "NEWSKILLS_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("nsloud", "nsdeep"):
        sys.modules.pop(name, None)


def module(folder: Path, declaration: str, code: str = "import nsloud\nSOLVER = nsloud.SAID\n") -> str:
    path = folder / "mine.py"
    path.write_text(f"{declaration}\n{code}")
    return str(path)


def test_what_is_declared_is_there_with_what_it_needs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = module(folder, "REQUIREMENTS = ['nsloud>=1']")
    assert declared_requirements(where) == ("nsloud>=1",)
    assert load_attr(f"{where}::SOLVER") == "DEEP"
    said = capfd.readouterr().err
    assert "note: installing " in said
    assert "nsdeep==1.0" in said
    [place] = (folder / "cache/requirements").glob("*[!k]/")
    assert (place / "nsloud.py").is_file()
    assert str(place) in sys.path


def test_it_is_installed_once(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_attr(f"{module(folder, LOUD)}::SOLVER")
    capfd.readouterr()
    (folder / "second").mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert load_attr(f"{module(folder / 'second', LOUD)}::SOLVER") == "DEEP"
    assert capfd.readouterr().err == ""


def test_what_is_here_is_not_installed_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = module(folder, "REQUIREMENTS: list[str] = ['msgspec']", "SOLVER = 1\n")
    assert load_attr(f"{where}::SOLVER") == 1
    assert capfd.readouterr().err == ""


def test_nothing_is_installed_where_nothing_may_be(folder: Path) -> None:
    where = module(folder, "REQUIREMENTS = ['nsloud']")
    with (
        installing_nothing(),
        pytest.raises(NotInstalledError, match="declares nsloud, which a run installs first"),
    ):
        load_attr(f"{where}::SOLVER")
    assert not (folder / "cache").exists()
    assert load_attr(f"{where}::SOLVER") == "DEEP"


@pytest.mark.parametrize(
    ("declaration", "sentence"),
    [
        ("REQUIREMENTS = ['nsnothing']", "which pip cannot install: No matching distribution found for nsnothing"),
        ("REQUIREMENTS = 'nsloud'", "must be a list of texts"),
        ("REQUIREMENTS = [name() for name in ()]", "must be a list of texts"),
        ("REQUIREMENTS = ['--index-url=http://x']", "which is an option of pip"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder: Path, declaration: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_attr(f"{module(folder, declaration)}::SOLVER")


def test_another_version_of_what_newskills_runs_with_is_refused(folder: Path) -> None:
    wheel(folder / "wheels", "msgspec", "0.1", "")
    with pytest.raises(
        ConfigError, match=rf"means msgspec 0.1; newskills itself runs with msgspec {msgspec.__version__}"
    ):
        load_attr(f"{module(folder, OLD)}::SOLVER")


def test_modules_without_a_declaration_cost_nothing(folder: Path) -> None:
    assert declared_requirements("json.decoder") == ()
    assert declared_requirements("no.such.module") == ()
    assert declared_requirements(str(folder / "none.py")) == ()
    assert load_attr(f"{module(folder, '# no REQUIREMENTS here', 'SOLVER = 2')}::SOLVER") == 2
