# SPDX-License-Identifier: Apache-2.0
"""What a release consists of, built and installed as users get it; and what a checkout installs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from newskills import __version__
from tests.night import NIGHTLY

ROOT = Path(__file__).parents[1]
LIBRARIES = {
    path.parent.name: path.parent.name.replace("-", "_") for path in sorted(ROOT.glob("libs/*/pyproject.toml"))
}
"""Folder of libs → its package."""
APPLICATIONS = {
    path.parent.name: path.parent.name.replace("-", "_") for path in sorted(ROOT.glob("apps/*/pyproject.toml"))
}
"""Folder of apps → its package."""

MADE = ("src/newskills/_api/__init__.pyi",)
"""Files of the package that git does not have."""
LINKS = ("src/newskills/aimo", "src/newskills/interop", "src/core_evals")
"""To what applications have beside their packages."""

pytestmark = pytest.mark.slow


def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd="/", env=environ)
    assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distributions of newskills and its libraries, and the wheels that are built from them; at night, as
    for a release, with nothing but what each says that its build needs."""
    pytest.importorskip("build", reason="no build here: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    words = ["--outdir", str(folder)]
    if not NIGHTLY:
        pytest.importorskip("hatchling", reason="no hatchling here: pip install -e '.[dev]'")
        words.append("--no-isolation")
    for place in (ROOT, *ROOT.glob("libs/*"), *ROOT.glob("apps/*")):
        run(sys.executable, "-m", "build", *words, place)
    return folder


PATIENT = {"CI": "true"}
"""For tests of hypothesis that have no settings of this checkout: no deadline, since the machine may be busy."""


def wheel_of(dist: Path, name: str = "newskills") -> Path:
    return next(dist.glob(f"{name}-*.whl"))


@pytest.fixture(scope="module")
def python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/pip", "install", "--quiet", "--no-compile", "--find-links", dist, wheel_of(dist))
    return folder / "bin/python"


@pytest.mark.nightly
def test_an_index_would_take_them(dist: Path) -> None:
    pytest.importorskip("twine", reason="no twine here: pip install -e '.[dev]'")
    files = sorted(dist.iterdir())
    ends = ("-py3-none-any.whl", ".tar.gz")
    packages = ("newskills", *LIBRARIES.values(), *APPLICATIONS.values())
    names = [f"{name}-{__version__}{end}" for name in packages for end in ends]
    assert [file.name for file in files] == sorted(names)
    run(sys.executable, "-m", "twine", "check", "--strict", *files)


def tracked(folder: str) -> set[str]:
    """Files below `folder`, relative to it, links aside."""
    listed = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("no checkout of git here, which tells what belongs to the package")
    names = [name for name in (*listed.stdout.split("\0"), *MADE) if name and (ROOT / name).is_file()]
    return {name.removeprefix(f"{folder}/") for name in names if name.startswith(folder)}


def held(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def required(wheel: Path) -> list[str]:
    """What the wheel needs beside packages of others."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: newskills-")]


def test_they_have_all_files_of_the_package_and_no_others(dist: Path) -> None:
    source = tracked("src")
    assert held(wheel_of(dist)) == source
    with tarfile.open(next(dist.glob("newskills-*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in source} - names == set()
    assert {"LICENSE", "README.md", "CHANGELOG.md", "tests/conftest.py"} <= names
    assert not [
        name
        for name in names
        if name.startswith((".venv", "results/", "libs/", "apps/", "src/newskills_", *LINKS))
    ]


@pytest.mark.parametrize(("name", "package"), LIBRARIES.items())
def test_libraries_are_distributions_of_their_own(dist: Path, name: str, package: str) -> None:
    assert held(wheel_of(dist, package)) == tracked(f"libs/{name}/src")
    assert required(wheel_of(dist, package)) == []
    assert required(wheel_of(dist)) == [f"{name}=={__version__}" for name in LIBRARIES]
    assert import_module(package).__version__ == __version__


@pytest.mark.parametrize(("name", "package"), APPLICATIONS.items())
def test_applications_are_distributions_beside_newskills(
    dist: Path, python: Path, name: str, package: str
) -> None:
    wheel = wheel_of(dist, package)
    assert held(wheel) == tracked(f"apps/{name}/src")
    assert held(wheel) & held(wheel_of(dist)) == set()
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(file for file in archive.namelist() if file.endswith(".dist-info/METADATA"))
        assert f"Requires-Dist: newskills=={__version__}\n" in archive.read(metadata).decode()
    assert import_module(package).__version__ == __version__


LINES = {
    "newskills_aimo": {"aimo train --stage=rl --base-model=smollm2 --dry_run": "ns grpo --model="},
    "newskills_evaluator": {
        "evaluate -t gsm8k target.api_endpoint.url=http://localhost:1/v1 target.api_endpoint.model_id=m --dry-run": (
            "newskills.interop.artifacts"
        ),
    },
    "newskills_tinker": {
        "serve_tinker --model=smollm2 --output_dir=states --dry_run": "training runs and their checkpoints",
        "tinker sft model_name=m log_dir=out dataset_name=rows.jsonl --dry_run": "LoRA of rank 64",
    },
}
"""Application → `ns` lines that work where nothing but it and newskills is installed, with part of what they print."""


@pytest.fixture(scope="module")
def applications(
    dist: Path, python: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    """A Python with the wheels of the applications beside what `python` has, and the variables that it needs."""
    folder = tmp_path_factory.mktemp("applications")
    run(python, "-m", "venv", "--without-pip", folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    theirs = next(python.parents[1].glob("lib/python*/site-packages"))
    wheels = [wheel_of(dist), *(wheel_of(dist, package) for package in APPLICATIONS.values())]
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", packages, *wheels)
    return folder / "bin/python", {"PYTHONPATH": f"{packages}{os.pathsep}{theirs}"}


def test_applications_add_their_commands_and_names(
    python: Path, applications: tuple[Path, dict[str, str]]
) -> None:
    own, paths = applications
    for lines in LINES.values():
        for line, printed in lines.items():
            assert printed in run(own, "-m", "newskills", *line.split(), **paths).stdout
    said = run(own, "-c", "from newskills.aimo import verify_answer as v; print(v('#### 7', '7'))", **paths)
    assert said.stdout == "True\n"


@pytest.mark.parametrize("package", LINES)
def test_commands_of_an_application_say_what_to_install(python: Path, package: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for line in LINES[package]:
        words = [str(python.with_name("ns")), *line.split()]
        lacking = subprocess.run(words, capture_output=True, text=True, cwd="/", env=environ, check=False)
        install = f"pip install {package.replace('_', '-')}"
        assert (lacking.returncode, install in lacking.stderr) == (2, True), lacking.stderr
        assert "Traceback" not in lacking.stderr


def test_nemo_evaluator_finds_its_harness(applications: tuple[Path, dict[str, str]]) -> None:
    """In its namespace, and at the address that Dockerfiles name."""
    own, paths = applications
    assert run(own, "-m", "newskills.interop.harness", "--check", **paths).stderr == ""
    place = "from core_evals.newskills import __file__ as file; from newskills.interop.harness import target; "
    told = run(own, "-c", f"{place}print(file, target())", **paths).stdout.split()
    folder = next(own.parents[1].glob("lib/*/site-packages")) / "core_evals/newskills"
    assert [Path(path).parent for path in told] == [folder, folder]


ALONE = {
    "newskills-math": """
import sys
from concurrent.futures import ThreadPoolExecutor
from newskills_math import compare, parse, verify
golds = ["$x+1$", "0.5", "(-1,1)"]
replies = [r"So \\boxed{1+x}.", r"It is \\boxed{\\frac{1}{3}}.", r"\\boxed{-1<x<1}"]
with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(lambda gold, reply: verify(parse(gold), parse(reply)), golds, replies)))
print(compare("52_8", "52_9").equal, "newskills" in sys.modules, "sympy" in sys.modules)
""",
    "newskills-sandbox": """
import sys
from newskills_sandbox import Sandbox
with Sandbox() as sandbox, sandbox.session() as session:
    session.run("x = 20 + 1")
    session.write_file("factor.txt", "2")
    result = session.run("print(x * int(open('factor.txt').read()))")
    print(result.status, result.stdout.strip(), result.isolation_level in ("a", "b"))
    print(sandbox.run("open('/etc/shadow')").exit_code)
print("newskills" in sys.modules, "msgspec" in sys.modules)
""",
}
"""Library → a script that works where nothing else is installed, and says at the end what it has not loaded."""
PRINTED = {
    "newskills-math": "[True, False, True]\nFalse False False\n",
    "newskills-sandbox": "completed 42 True\n1\nFalse False\n",
}


@pytest.mark.parametrize(("name", "package"), LIBRARIES.items())
def test_a_library_is_used_without_the_rest(dist: Path, tmp_path: Path, name: str, package: str) -> None:
    run(sys.executable, "-m", "venv", tmp_path)
    python = tmp_path / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel_of(dist, package))
    assert run(python, "-c", ALONE[name]).stdout == PRINTED[name]
    assert "newskills " not in run(python, "-m", "pip", "list").stdout


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "package"), LIBRARIES.items())
def test_a_library_as_it_is_installed_passes_its_tests(
    dist: Path, tmp_path: Path, name: str, package: str
) -> None:
    """In a folder without the checkout's sources."""
    words = ("-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path)
    run(sys.executable, *words, wheel_of(dist, package))
    tests = ROOT / "libs" / name / "tests"
    where = run(sys.executable, "-c", f"import {package} as m; print(m.__file__)", PYTHONPATH=str(tmp_path))
    assert Path(where.stdout.strip()).is_relative_to(tmp_path)
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, PYTHONPATH=str(tmp_path), **PATIENT)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "package"), APPLICATIONS.items())
def test_an_application_as_it_is_installed_passes_its_tests(
    dist: Path, tmp_path: Path, name: str, package: str
) -> None:
    """With newskills and its libraries as they are installed."""
    wheels = [wheel_of(dist), *(wheel_of(dist, each) for each in (*LIBRARIES.values(), package))]
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, *wheels)
    where = run(sys.executable, "-c", f"import {package} as m; print(m.__file__)", PYTHONPATH=str(tmp_path))
    assert Path(where.stdout.strip()).is_relative_to(tmp_path)
    tests = ROOT / "apps" / name / "tests"
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, PYTHONPATH=str(tmp_path), **PATIENT)


def test_a_checkout_brings_its_libraries_along(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="no build here: pip install -e '.[dev]'")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT)
    wheel = next(tmp_path.glob("*.whl"))
    libraries = {file for name in LIBRARIES for file in tracked(f"libs/{name}/src")}
    applications = {file for name in APPLICATIONS for file in tracked(f"apps/{name}/src")}
    assert libraries
    assert applications
    assert held(wheel) == tracked("src") | libraries | applications
    assert required(wheel) == []


@pytest.mark.parametrize("kind", ["*.whl", pytest.param("*.tar.gz", marks=pytest.mark.nightly)])
def test_what_is_installed_works(dist: Path, python: Path, kind: str) -> None:
    if kind == "*.tar.gz":  # the wheel is installed already
        words = ("-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall")
        run(python, *words, next(dist.glob(f"newskills-{kind}")))
    ns = python.with_name("ns")
    assert run(ns, "--version").stdout == f"newskills {__version__}\n"
    assert "gsm8k" in run(ns, "list", "benchmarks").stdout
    for package in ("newskills", *LIBRARIES.values()):
        place = run(python, "-c", f"import {package}; print({package}.__file__)").stdout
        assert Path(place.strip()).is_relative_to(python.parents[1])
