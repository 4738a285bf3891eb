# SPDX-License-Identifier: Apache-2.0
"""Which packages the code may import: an interpreter with packages made here, on both levels."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.children import need
from tests.sandbox.driver import drive

from newskills_sandbox.errors import SandboxError, SettingsError
from newskills_sandbox.packages import Interpreter, examine_interpreter, narrow_places
from newskills_sandbox.settings import SandboxSettings

REQUIREMENTS = {
    "alpha": ["Beta_Two>=1", 'gamma; extra == "more"', 'delta; python_version < "3"', "not-installed-here"],
    "beta-two": [],
    "gamma": [],
    "single": [],
}


@pytest.fixture(scope="module")
def python(ordinary_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An environment with small distributions of our own, for every user to read (pytest's folders are not)."""
    with tempfile.TemporaryDirectory(prefix="newskills-environment-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        subprocess.run([ordinary_python, "-m", "venv", "--without-pip", folder], check=True, capture_output=True)
        site = next(folder.glob("lib/python*/site-packages"))
        _fill(site)
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        _write(site / "source-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: source\nVersion: 1.0\n")
        _write(site / "source-1.0.dist-info" / "RECORD", "source.pth,,\nsource-1.0.dist-info/METADATA,,\n")
        _write(site / "source.pth", f"{elsewhere}\n")
        _write(elsewhere / "source" / "__init__.py", "")
        yield f"{folder}/bin/python"


def _fill(site: Path) -> None:
    for name, requirements in REQUIREMENTS.items():
        module = "single.py" if name == "single" else f"{name.replace('-', '_')}/__init__.py"
        _write(site / module, f"NAME = {name!r}\n")
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
        _write(site / info / "METADATA", "\n".join([*lines, *(f"Requires-Dist: {each}" for each in requirements)]))
        _write(
            site / info / "RECORD", f"{module},,\n../../../bin/{name},,\n{info}/METADATA,,\n__pycache__/x.pyc,,\n"
        )


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def examined(**settings: Any) -> Interpreter:
    return asyncio.run(examine_interpreter(SandboxSettings(**settings)))


def test_the_closure_of_requirements_is_shown_and_nothing_else(python: str) -> None:
    found = examined(python=python, packages=("ALPHA", "single"))
    (entries,) = [entries for site, entries in found.shown.items() if entries]
    infos = [f"{name}-1.0.dist-info" for name in ("alpha", "beta_two", "single")]
    assert sorted(entries) == sorted(["alpha", "beta_two", "single.py", *infos])
    assert (found.preload, found.missing) == ((), ("numpy", "sympy"))
    assert not any("elsewhere" in place for place in found.visible)


def test_what_is_not_there_is_named_with_the_line_that_installs_it(python: str) -> None:
    with pytest.raises(
        SettingsError, match=r"packages names nope, which .* `.*python -m pip install nope` installs it"
    ):
        examined(python=python, packages=("alpha", "nope"))
    with pytest.raises(SettingsError, match="packages names source"):
        examined(python=python, packages=("source",))
    with pytest.raises(SettingsError, match=r"preload names nope\.deep, which .* pip install"):
        examined(python=python, preload=("json.tool", "nope.deep"))
    with pytest.raises(SettingsError, match=r"preload names gamma, which packages does not include"):
        examined(python=python, packages=("alpha",), preload=("gamma", "beta_two", "json"))
    with pytest.raises(SandboxError, match="does not start: No such file"):
        examined(python="/nowhere/python")
    with pytest.raises(SandboxError, match="/bin/true is not a working Python interpreter"):
        examined(python="/bin/true")


IMPORTS = """
import importlib.metadata, json, sqlite3
for name in ("alpha", "beta_two", "single", "gamma", "source"):
    try:
        __import__(name)
        print(name)
    except ModuleNotFoundError:
        print("no", name)
print(sorted(each.name for each in importlib.metadata.distributions()))
try:
    print(open(SITE + "/gamma/__init__.py").read())
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("level", ["a", "b"])
@pytest.mark.parametrize("ordinary", [False, True])
def test_code_imports_what_is_shown_and_cannot_read_the_rest(
    level: str, ordinary: bool, python: str, ordinary_python: str
) -> None:
    need("nested name spaces" if level == "a" else "landlock")
    site = next(Path(python).parents[1].glob("lib/python*/site-packages"))
    cell = {"code": f"SITE = {str(site)!r}\n{IMPORTS}", "timeout": 20}
    script = {**cell, "language": "python"}
    settings: dict[str, Any] = {"python": python, "isolation": level}
    limited, everything = (
        drive(ordinary_python, {**settings, **more}, [cell, script], ordinary=ordinary)
        for more in ({"packages": ["alpha", "single"], "preload": ["beta_two"]}, {})
    )
    unread = "FileNotFoundError" if level == "a" else "PermissionError"
    names = "['alpha', 'beta-two', 'single']"
    for result in limited:
        assert result.get("stdout") == f"alpha\nbeta_two\nsingle\nno gamma\nno source\n{names}\n{unread}\n", result
    for result in everything:
        assert result["stdout"].startswith("alpha\nbeta_two\nsingle\ngamma\nno source\n"), result
        assert result["stdout"].endswith("NAME = 'gamma'\n\n")


def test_numpy_and_sympy_bring_what_they_need() -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("sympy")
    settings = {"packages": ["numpy", "sympy"]}
    code = "import numpy, sympy, mpmath\nfloat(numpy.linalg.norm([3, 4])), sympy.sqrt(8)"
    results = drive(sys.executable, settings, [{"code": code}, {"code": "import msgspec"}])
    assert results[0]["stdout"] == "(5.0, 2*sqrt(2))\n"
    assert "ModuleNotFoundError" in results[1]["stdout"]


def test_a_narrowed_list_reads_around_what_is_hidden(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    for name in ("lib/site-packages/shown/x", "lib/site-packages/hidden/x", "lib/other/x", "bin/x"):
        _write(tmp_path / name, "")
    (tmp_path / "lib64").symlink_to("lib")
    readable, listed = narrow_places([str(tmp_path), f"{site}/hidden", "/bin/sh"], {str(site): ["shown"]})
    assert sorted(readable) == sorted(
        [str(site / "shown"), str(tmp_path / "lib/other"), str(tmp_path / "bin"), os.path.realpath("/bin/sh")]
    )
    assert sorted(listed) == sorted([str(tmp_path), str(tmp_path / "lib"), str(site)])
