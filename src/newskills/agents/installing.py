# SPDX-License-Identifier: Apache-2.0
"""Installed agents: a folder for each, made once, which environments see read-only.

FOLDER/NAME/VERSION/node_modules/…   packages of npm, without the scripts that they would run
FOLDER/NAME/VERSION/venv/…           packages of PyPI, in a Python of its own
FOLDER/NAME/VERSION/installed.json   written last: what is there is whole
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.agents.definition import PROGRAM, AgentDefinition, fill_placeholders, placeholder_values
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError
from newskills.base.store import hold_lock

RECORD = "installed.json"
UV = ("uv", "--quiet")
SYSTEM_PYTHONS = frozenset({"/usr/bin", "/usr/local/bin", "/bin"})


class InstalledAgent(Struct, frozen=True, kw_only=True):
    """What `installed.json` says; `digest`: that of the data file's `install`."""

    name: str
    version: str
    digest: str
    mb: int = 0


def place_of(definition: AgentDefinition, folder: Path) -> Path:
    """Return the folder of a program, installed or not."""
    install = definition.install
    if install.folder:
        return Path(install.folder).expanduser().resolve()
    return folder / definition.name / install.version


def folders_of(definition: AgentDefinition, folder: Path) -> dict[str, str]:
    """Return what environments have to see of this machine: folder → place. A Python that belongs to no system comes
    along, at its own path."""
    place = place_of(definition, folder)
    folders = {str(place): PROGRAM}
    with contextlib.suppress(OSError):
        for line in (place / "venv/pyvenv.cfg").read_text("utf-8").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip() not in SYSTEM_PYTHONS:
                prefix = str(Path(value.strip()).parent)
                folders[prefix] = prefix
    return folders


def find_installed(definition: AgentDefinition, folder: Path) -> InstalledAgent | None:
    """Return what is installed for a data file; None where nothing is, or what an earlier state of the file says."""
    place = place_of(definition, folder)
    if definition.install.folder:
        version = definition.install.version or "here"
        digest = definition.digest
        if place.is_dir():
            return InstalledAgent(name=definition.name, version=version, digest=digest)
        return None
    try:
        installed = msgspec.json.decode((place / RECORD).read_bytes(), type=InstalledAgent)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    if installed.digest == definition.digest:
        return installed
    return None


def install_agent(
    definition: AgentDefinition,
    folder: Path,
    *,
    mirror: Path | None = None,
    offline: bool = False,
    environ: Mapping[str, str] = os.environ,
    say: PrintLine = print,
) -> InstalledAgent:
    """Install a program, unless it is. Packages are kept in `mirror`; with `offline` they come from there alone.

    Raises ConfigError: a tool or a package is missing.
    """
    if (installed := find_installed(definition, folder)) is not None:
        return installed
    place = place_of(definition, folder)
    if definition.install.folder:
        raise ConfigError(
            f"{definition.display_name}: the folder {place} is not there, which install.folder names."
        )
    if offline and mirror is None:
        raise ConfigError("Without the network packages come from a mirror.", hint="Name it: --mirror=FOLDER")
    with hold_lock(folder / f".{definition.name}.lock", f"The installation of {definition.name} in {folder}"):
        if (installed := find_installed(definition, folder)) is not None:
            return installed
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        say(f"Installing {definition.display_name} {definition.install.version} in {place}.")
        if definition.install.npm:
            _install_npm(definition, place, mirror, offline, environ)
        else:
            _install_pip(definition, place, mirror, offline, environ)
        size = sum(file.lstat().st_size for file in place.rglob("*") if file.is_file())
        installed = InstalledAgent(
            name=definition.name,
            version=definition.install.version,
            digest=definition.digest,
            mb=round(size / 1e6),
        )
        (place / RECORD).write_bytes(msgspec.json.encode(installed))
    return installed


def _install_npm(
    definition: AgentDefinition, place: Path, mirror: Path | None, offline: bool, environ: Mapping[str, str]
) -> None:
    """Install packages of npm. Raises ConfigError."""
    install = definition.install
    packages = [f"{install.npm}@{install.version}", *fill_placeholders(install.more, placeholder_values())]
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--no-save", f"--prefix={place}"]
    if mirror is not None:
        options += [f"--cache={mirror / 'npm'}", "--offline" if offline else "--prefer-offline"]
    (place / "package.json").write_text("{}\n")
    _run_step(
        ["npm", "install", *options, *packages], place, environ, hint="npm comes with Node.js: apt-get install npm"
    )


def _install_pip(
    definition: AgentDefinition, place: Path, mirror: Path | None, offline: bool, environ: Mapping[str, str]
) -> None:
    """Install packages of PyPI into an environment of their own. Raises ConfigError."""
    install = definition.install
    packages = [f"{install.pip}=={install.version}", *fill_placeholders(install.more, placeholder_values())]
    _make_venv(definition, place, offline, environ)
    python = str(place / "venv/bin/python")
    options = ["--disable-pip-version-check", "--quiet"]
    if mirror is not None:
        wheels = str(mirror / "pip")
        if not offline:
            download = [python, "-m", "pip", "download", *options, f"--dest={wheels}", *packages]
            _run_step(download, place, environ)
        options += ["--no-index", f"--find-links={wheels}"]
    _run_step([python, "-m", "pip", "install", *options, *packages], place, environ)
    subprocess.run([python, "-m", "compileall", "-q", str(place / "venv/lib")], check=False, capture_output=True)


def _make_venv(definition: AgentDefinition, place: Path, offline: bool, environ: Mapping[str, str]) -> None:
    """Make an environment: by uv with a Python that lies beside it, which images need not have; else by a Python of
    this machine, which images need at the same path. Raises ConfigError where there is neither."""
    version = definition.install.python
    if shutil.which("uv", path=environ.get("PATH")) and not offline:
        own = {**environ, "UV_PYTHON_INSTALL_DIR": str(place / "python")}
        words = [*UV, "venv", "--seed", "--managed-python", f"--python={version}", str(place / "venv")]
        if subprocess.run(words, env=own, cwd=place, check=False, capture_output=True).returncode == 0:
            return
    for program in (f"python{version}", sys.executable):
        python = shutil.which(program, path=environ.get("PATH"))
        if python and _version_of(python) == version:
            _run_step([python, "-m", "venv", str(place / "venv")], place, environ)
            return
    raise ConfigError(
        f"{definition.display_name} needs Python {version}, which is not on this machine.",
        hint=f"pip install uv, which brings one; or install python{version}.",
    )


def _version_of(python: str) -> str:
    words = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout.strip()
    return ""


def _run_step(words: Sequence[str], place: Path, environ: Mapping[str, str], hint: str = "") -> None:
    """Run a step of an installation. Raises ConfigError with what it said last."""
    if shutil.which(words[0], path=environ.get("PATH")) is None:
        raise ConfigError(f"{words[0]} is not on this machine.", hint=hint)
    done = subprocess.run(
        words, cwd=place, env={**environ}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reason = " ".join(lines[:3]) or f"exit code {done.returncode}"
        raise DataError(f"`{' '.join(words[:2])}` failed: {reason[:500]}")
