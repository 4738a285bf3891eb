# SPDX-License-Identifier: Apache-2.0
"""Installation by the real npm and pip: once, whole or not at all, and offline from a mirror."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.commands.running import ns

from newskills.agents.definition import AgentDefinition, read_definition
from newskills.agents.installing import RECORD, find_installed, folders_of, install_agent, place_of
from newskills.base.errors import ConfigError, DataError

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
REST = 'protocol: chat\ncommand: [x, "{task}", "{url}"]\n'


def definition(folder: Path, install: str) -> AgentDefinition:
    path = folder / "mine.yaml"
    path.write_text(f"install: {{{install}}}\n{REST}")
    return read_definition(path)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with one wheel, whose module prints 7."""
    wheels = tmp_path / "mirror" / "pip"
    wheels.mkdir(parents=True)
    info = "tiny_agent-1.0.dist-info"
    with zipfile.ZipFile(wheels / "tiny_agent-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_agent.py", "print(7)\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-agent\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return tmp_path / "mirror"


def test_a_package_of_a_mirror_is_installed_once_without_a_network(mirror: Path, tmp_path: Path) -> None:
    agent = definition(tmp_path, f"pip: tiny-agent, version: 1.0, python: {PYTHON}")
    folder = tmp_path / "agents"
    assert find_installed(agent, folder) is None
    said: list[str] = []
    made = install_agent(agent, folder, mirror=mirror, offline=True, say=said.append)
    assert (made.name, made.version, len(said)) == ("mine", "1.0", 1)
    python = place_of(agent, folder) / "venv/bin/python"
    done = subprocess.run([python, "-m", "tiny_agent"], capture_output=True, text=True, check=True)
    assert done.stdout == "7\n"
    before = (place_of(agent, folder) / RECORD).stat().st_mtime_ns
    assert install_agent(agent, folder, offline=True, mirror=mirror) == made == find_installed(agent, folder)
    assert (place_of(agent, folder) / RECORD).stat().st_mtime_ns == before
    other = definition(tmp_path, f"pip: tiny-agent, version: 1.0, python: {PYTHON}, more: [another]")
    assert find_installed(other, folder) is None


@pytest.mark.nightly
def test_what_was_torn_is_made_anew(mirror: Path, tmp_path: Path) -> None:
    agent = definition(tmp_path, f"pip: tiny-agent, version: 1.0, python: {PYTHON}")
    folder = tmp_path / "agents"
    (place_of(agent, folder) / "venv").mkdir(parents=True)
    (place_of(agent, folder) / "venv/torn").write_text("")
    assert find_installed(agent, folder) is None
    install_agent(agent, folder, mirror=mirror, offline=True)
    assert not (place_of(agent, folder) / "venv/torn").exists()


def test_what_is_missing_is_said(mirror: Path, tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    absent = definition(tmp_path, f"pip: absent-agent, version: 1.0, python: {PYTHON}")
    with pytest.raises(DataError, match="absent-agent"):
        install_agent(absent, folder, mirror=mirror, offline=True)
    assert find_installed(absent, folder) is None
    with pytest.raises(ConfigError, match="packages come from a mirror"):
        install_agent(absent, folder, offline=True)
    old = definition(tmp_path, "pip: tiny-agent, version: 1.0, python: '3.1'")
    with pytest.raises(ConfigError, match=r"mine needs Python 3\.1, which is not on this machine"):
        install_agent(old, folder, mirror=mirror, offline=True)
    npm = definition(tmp_path, "npm: absent, version: 1.0.0")
    with pytest.raises(ConfigError, match="npm is not on this machine"):
        install_agent(npm, folder, environ={"PATH": "/nonexistent"})
    gone = definition(tmp_path, "folder: /no/such, version: 1.0")
    with pytest.raises(ConfigError, match="the folder /no/such is not there"):
        install_agent(gone, folder)


def test_one_that_cannot_be_installed_keeps_no_other_back(mirror: Path, tmp_path: Path) -> None:
    for name, python in (("a", "'3.1'"), ("b", PYTHON), ("c", "'3.2'")):
        install = f"install: {{pip: tiny-agent, version: 1.0, python: {python}}}\n"
        (tmp_path / f"{name}.yaml").write_text(f"{install}{REST}")
    base = f"ns agents install --mirror={mirror} --folder=agents --offline"
    done = ns(f"{base} ./a.yaml ./b.yaml ./c.yaml", cwd=tmp_path, timeout=300)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "b 1.0 is in" in done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    assert "a needs Python 3.1, which is not on this machine" in said
    assert "c needs Python 3.2, which is not on this machine" in said
    assert (tmp_path / "agents/b/1.0" / RECORD).exists()
    assert not (tmp_path / "agents/a/1.0" / RECORD).exists()
    only = ns(f"{base} ./a.yaml", cwd=tmp_path, timeout=300)
    assert (only.returncode, "install python3.1" in " ".join(only.stderr.split())) == (2, True)


def test_a_python_of_no_system_comes_along(tmp_path: Path) -> None:
    agent = definition(tmp_path, f"pip: tiny-agent, version: 1.0, python: {PYTHON}")
    place = place_of(agent, tmp_path)
    (place / "venv").mkdir(parents=True)
    (place / "venv/pyvenv.cfg").write_text("home = /opt/pythons/3.12/bin\nversion = 3.12\n")
    assert folders_of(agent, tmp_path) == {
        str(place): "/newskills-program",
        "/opt/pythons/3.12": "/opt/pythons/3.12",
    }
    (place / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    assert list(folders_of(agent, tmp_path)) == [str(place)]


@pytest.mark.slow
def test_npm_fills_a_mirror_from_which_it_installs_offline(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm here: apt-get install npm")
    # As it is meant, with a cache of its own: what the usual one holds says nothing of the network.
    words = [
        "npm",
        "install",
        f"--prefix={tmp_path / 'probe'}",
        f"--cache={tmp_path / 'probe'}",
        "is-number@7.0.0",
    ]
    (tmp_path / "probe").mkdir()
    probe = subprocess.run(words, cwd=tmp_path / "probe", capture_output=True, check=False, timeout=120)
    if probe.returncode:
        pytest.skip("the registry of npm cannot be reached")
    (tmp_path / "tiny.yaml").write_text(f"install: {{npm: is-number, version: 7.0.0}}\n{REST}")
    base = f"ns agents install ./tiny.yaml --mirror={tmp_path}/mirror"
    done = ns(f"{base} --folder=first", cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    again = ns(f"{base} --folder=second --offline", cwd=tmp_path, timeout=300)
    assert again.returncode == 0, again.stderr
    package = Path("tiny/7.0.0/node_modules/is-number/index.js")
    assert (tmp_path / "first" / package).read_bytes() == (tmp_path / "second" / package).read_bytes()
    shown = ns("ns agents list ./tiny.yaml --folder=second", cwd=tmp_path)
    assert "7.0.0" in shown.stdout
    assert "no: ns agents install" not in shown.stdout
