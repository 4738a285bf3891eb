# SPDX-License-Identifier: Apache-2.0
"""What a release consists of, built and installed as users get it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from newskills import __version__

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd="/", env=environ)
    assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, and the wheel that is built from it."""
    pytest.importorskip("build", reason="no build here: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/pip", "install", "--quiet", "--no-compile", next(dist.glob("*.whl")))
    return folder / "bin/python"


@pytest.mark.nightly
def test_an_index_would_take_them(dist: Path) -> None:
    pytest.importorskip("twine", reason="no twine here: pip install -e '.[dev]'")
    files = sorted(dist.iterdir())
    assert [file.name for file in files] == [
        f"newskills-{__version__}-py3-none-any.whl",
        f"newskills-{__version__}.tar.gz",
    ]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)


def test_they_have_all_files_of_the_package_and_no_others(dist: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "src"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("no checkout of git here, which tells what belongs to the package")
    source = {name.removeprefix("src/") for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert source - shipped == set()
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in source} - names == set()
    assert {"LICENSE", "README.md", "CHANGELOG.md", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "results/"))]


@pytest.mark.parametrize("kind", ["*.whl", pytest.param("*.tar.gz", marks=pytest.mark.nightly)])
def test_what_is_installed_works(dist: Path, python: Path, kind: str) -> None:
    if kind == "*.tar.gz":  # the wheel is installed already
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", next(dist.glob(kind)))
    ns = python.with_name("ns")
    assert run(ns, "--version").stdout == f"newskills {__version__}\n"
    assert "gsm8k" in run(ns, "list", "benchmarks").stdout
    place = run(python, "-c", "import newskills; print(newskills.__file__)").stdout
    assert Path(place.strip()).is_relative_to(python.parents[1])
