# SPDX-License-Identifier: Apache-2.0
"""Lean 4: the toolchain or project that is configured, else `lean` on PATH, else elan's default.

elan itself cannot work in the sandbox (it wants a home and the network), so its shims are followed to the toolchain
they stand for. For a project the search path is what `lake env` would set, read from its manifest: lake itself would
write there.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newskills_sandbox.errors import ExecutionRefusedError, SettingsError
from newskills_sandbox.execution import Execution
from newskills_sandbox.inside.programs import HERE
from newskills_sandbox.languages.language import Language, Message, installation_paths, program
from newskills_sandbox.settings import SandboxSettings

THREADS = "-j4"
"""Lean takes one per core, which on a large machine is more than a session may have, or cannot count cores here."""
_FILE = "main.lean"
_LAKE_FILES = ("lakefile.toml", "lakefile.lean")
_BUILT = (".lake/build/lib/lean", ".lake/build/lib", "build/lib")


@dataclass(frozen=True)
class _Lean:
    """`path`: folders of compiled modules (LEAN_PATH). `folders`: what sessions must see."""

    program: str
    path: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def _lean_request(execution: Execution, settings: SandboxSettings) -> Message:
    try:
        lean = _find_lean(settings)
    except SettingsError as error:
        raise ExecutionRefusedError(str(error)) from error
    if lean is None:
        raise ExecutionRefusedError(f"Lean is not installed on this machine; {_how_to_install(settings)}")
    environment = {"LEAN_PATH": os.pathsep.join(lean.path)} if lean.path else {}
    argv = (lean.program, THREADS, f"{HERE}{_FILE}")
    return program({_FILE: execution.code}, argv, environment=environment, unlimited_addresses=True)


def _lean_folders(settings: SandboxSettings) -> Sequence[str]:
    lean = _find_lean(settings)
    if lean:
        return lean.folders
    return ()


def _how_to_install(settings: SandboxSettings) -> str:
    return (
        "install it with elan (https://lean-lang.org/install), or name a Lean program, toolchain or project as "
        f"{settings.words.name('lean')}."
    )


def _find_lean(settings: SandboxSettings) -> _Lean | None:
    """Find Lean; None where nothing is configured and nothing installed. Raises SettingsError for a place without
    Lean."""
    place = settings.lean
    if not place:
        return _installed_lean()
    named = Path(place).expanduser().absolute()
    if os.path.isfile(named):
        return _lean_program(named)
    if os.path.isfile(named / "bin" / "lean"):
        return _lean_program(named / "bin" / "lean")
    if any(os.path.isfile(named / name) for name in _LAKE_FILES):
        return _lean_project(named, settings)
    raise SettingsError(
        f"{settings.words.name('lean')} is {place}, which is not a Lean program, toolchain (bin/lean) or project "
        "(lakefile)."
    )


def _installed_lean() -> _Lean | None:
    lean_path = shutil.which("lean")
    if lean_path and not os.path.exists(Path(lean_path).with_name("elan")):
        return _lean_program(Path(lean_path))
    lean = _default_toolchain()
    if lean:
        return _lean_program(lean)
    return None


def _lean_program(lean: Path) -> _Lean:
    return _Lean(str(lean), folders=tuple(installation_paths(str(lean))))


def _lean_project(project: Path, settings: SandboxSettings) -> _Lean:
    lean = _wanted_toolchain(project, settings)
    packages = _package_folders(project)
    path = [str(package / built) for package in packages for built in _BUILT if (package / built).is_dir()]
    return _Lean(lean.program, tuple(path), (*lean.folders, *map(str, packages)))


def _wanted_toolchain(project: Path, settings: SandboxSettings) -> _Lean:
    """Return the toolchain that the project names, or the installed one where it names none. Raises SettingsError."""
    file = project / "lean-toolchain"
    name = file.read_text("utf-8").strip() if file.is_file() else ""
    if not name:
        lean = _installed_lean()
        if lean is None:
            raise SettingsError(
                f"{project} is a Lean project, but Lean is not installed; {_how_to_install(settings)}"
            )
        return lean
    place = _toolchains_folder() / _folder_name(name) / "bin" / "lean"
    if not os.path.isfile(place):
        raise SettingsError(
            f"{project} needs the Lean toolchain {name}, which is not installed.",
            hint=f"`elan toolchain install {name}` installs it.",
        )
    return _lean_program(place.resolve())


def _package_folders(project: Path) -> list[Path]:
    """Return the folders of the project and of what it needs, named in lake-manifest.json. Raises SettingsError."""
    file = project / "lake-manifest.json"
    try:
        manifest = json.loads(file.read_bytes()) if file.is_file() else {}
        folder = project / manifest.get("packagesDir", ".lake/packages")
        return [project, *(_package_place(package, project, folder) for package in manifest.get("packages", ()))]
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read ({error}); `lake update` writes a new one.") from error


def _package_place(package: Mapping[str, Any], project: Path, folder: Path) -> Path:
    if package.get("type", "git") == "path":
        return Path(project, package.get("dir", "")).resolve()
    return Path(folder, package.get("name", ""), package.get("subDir") or "")


def _toolchains_folder() -> Path:
    home = os.environ.get("ELAN_HOME")
    return Path(home or os.path.expanduser("~/.elan")) / "toolchains"


def _default_toolchain() -> Path | None:
    """Find `lean` of elan's default toolchain; where that is only a channel ("stable"), of the newest one installed."""
    toolchains = _toolchains_folder()
    settings = toolchains.with_name("settings.toml")
    try:
        named = tomllib.loads(settings.read_text("utf-8")).get("default_toolchain", "")
    except (OSError, tomllib.TOMLDecodeError):
        named = ""
    default = toolchains / _folder_name(named) / "bin" / "lean"
    if named and os.path.isfile(default):
        return default.resolve()
    lean_paths = map(Path, glob.glob(f"{glob.escape(str(toolchains))}/*/bin/lean"))
    newest = max(lean_paths, key=lambda lean: _version_numbers(lean.parents[1].name), default=None)
    if newest:
        return newest.resolve()
    return None


def _folder_name(toolchain: str) -> str:
    """Write a toolchain's name as elan writes it: leanprover/lean4:v4.12.0 → leanprover--lean4---v4.12.0."""
    return toolchain.replace("/", "--").replace(":", "---")


def _version_numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name.rpartition("---")[2])]


LEAN = Language(name="lean4", request=_lean_request, folders=_lean_folders, failure="failed")
