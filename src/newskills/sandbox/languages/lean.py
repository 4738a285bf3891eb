# SPDX-License-Identifier: Apache-2.0
"""Lean 4: the toolchain or project that is configured, else `lean` on PATH, else elan's default.

elan itself cannot work in the sandbox (it wants a home and the network), so its shims are followed to the toolchain
they stand for. For a project the search path is what `lake env` would set, read from its manifest: lake itself would
write there.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, ExecutionRefusedError
from newskills.base.protocols import Execution
from newskills.sandbox.config import SandboxConfig
from newskills.sandbox.inside.programs import HERE
from newskills.sandbox.languages.language import Language, Message, installation, program

INSTALL = (
    "install it with elan (https://lean-lang.org/install), or name a Lean program, toolchain or project as "
    "++sandbox.lean."
)
THREADS = "-j4"
"""Lean takes one per core, which on a large machine is more than a session may have, or cannot count cores here."""
_FILE = "main.lean"
_LAKE_FILES = ("lakefile.toml", "lakefile.lean")
_BUILT = (".lake/build/lib/lean", ".lake/build/lib", "build/lib")


class _Lean(Struct, frozen=True):
    """`path`: folders of compiled modules (LEAN_PATH). `folders`: what sessions must see."""

    program: str
    path: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class _Package(Struct, frozen=True):
    name: str = ""
    type: str = "git"
    dir: str = ""
    sub_dir: str | None = msgspec.field(default=None, name="subDir")


class _Manifest(Struct, frozen=True):
    """What lake-manifest.json says of where packages are."""

    folder: str = msgspec.field(default=".lake/packages", name="packagesDir")
    packages: tuple[_Package, ...] = ()


def _request(execution: Execution, config: SandboxConfig) -> Message:
    try:
        lean = _find(config.lean)
    except ConfigError as error:
        raise ExecutionRefusedError(str(error)) from error
    if lean is None:
        raise ExecutionRefusedError(f"Lean is not installed on this machine; {INSTALL}")
    environment = {"LEAN_PATH": os.pathsep.join(lean.path)} if lean.path else {}
    argv = (lean.program, THREADS, f"{HERE}{_FILE}")
    return program({_FILE: execution.code}, argv, environment=environment, unlimited_addresses=True)


def _folders(config: SandboxConfig) -> Sequence[str]:
    lean = _find(config.lean)
    return lean.folders if lean else ()


def _find(place: str) -> _Lean | None:
    """None where nothing is configured and nothing installed. Raises ConfigError for a `place` without Lean."""
    if not place:
        return _installed()
    named = Path(place).expanduser().absolute()
    if os.path.isfile(named):
        return _program(named)
    if os.path.isfile(named / "bin" / "lean"):
        return _program(named / "bin" / "lean")
    if any(os.path.isfile(named / name) for name in _LAKE_FILES):
        return _project(named)
    raise ConfigError(
        f"++sandbox.lean is {place}, which is not a Lean program, toolchain (bin/lean) or project (lakefile)."
    )


def _installed() -> _Lean | None:
    lean_path = shutil.which("lean")
    if lean_path and not os.path.exists(Path(lean_path).with_name("elan")):
        return _program(Path(lean_path))
    lean = _default_toolchain()
    return _program(lean) if lean else None


def _program(lean: Path) -> _Lean:
    return _Lean(str(lean), folders=tuple(installation(str(lean))))


def _project(project: Path) -> _Lean:
    lean = _wanted(project)
    packages = _packages(project)
    path = [str(package / built) for package in packages for built in _BUILT if (package / built).is_dir()]
    return _Lean(lean.program, tuple(path), (*lean.folders, *map(str, packages)))


def _wanted(project: Path) -> _Lean:
    """Return the toolchain that the project names, or the installed one where it names none. Raises ConfigError."""
    file = project / "lean-toolchain"
    name = file.read_text("utf-8").strip() if file.is_file() else ""
    if not name:
        lean = _installed()
        if lean is None:
            raise ConfigError(f"{project} is a Lean project, but Lean is not installed; {INSTALL}")
        return lean
    place = _toolchains() / _folder_name(name) / "bin" / "lean"
    if not os.path.isfile(place):
        raise ConfigError(
            f"{project} needs the Lean toolchain {name}, which is not installed.",
            hint=f"`elan toolchain install {name}` installs it.",
        )
    return _program(place.resolve())


def _packages(project: Path) -> list[Path]:
    file = project / "lake-manifest.json"
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=_Manifest) if file.is_file() else _Manifest()
    except msgspec.DecodeError as error:
        raise ConfigError(f"{file} cannot be read ({error}); `lake update` writes a new one.") from error
    projects = [project]
    for package in manifest.packages:
        if package.type == "path":
            projects.append((project / package.dir).resolve())
        else:
            projects.append(project / manifest.folder / package.name / (package.sub_dir or ""))
    return projects


def _toolchains() -> Path:
    home = os.environ.get("ELAN_HOME")
    return Path(home or os.path.expanduser("~/.elan")) / "toolchains"


def _default_toolchain() -> Path | None:
    """`lean` of elan's default toolchain; where that is only a channel ("stable"), of the newest one installed."""
    toolchains = _toolchains()
    settings = toolchains.with_name("settings.toml")
    try:
        named = tomllib.loads(settings.read_text("utf-8")).get("default_toolchain", "")
    except (OSError, tomllib.TOMLDecodeError):
        named = ""
    default = toolchains / _folder_name(named) / "bin" / "lean"
    if named and os.path.isfile(default):
        return default.resolve()
    lean_paths = map(Path, glob.glob(f"{glob.escape(str(toolchains))}/*/bin/lean"))
    newest = max(lean_paths, key=lambda lean: _version(lean.parents[1].name), default=None)
    return newest.resolve() if newest else None


def _folder_name(toolchain: str) -> str:
    """As elan writes it: leanprover/lean4:v4.12.0 → leanprover--lean4---v4.12.0."""
    return toolchain.replace("/", "--").replace(":", "---")


def _version(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name.rpartition("---")[2])]


LEAN = Language(name="lean4", request=_request, folders=_folders, failure="failed")
