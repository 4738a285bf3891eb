# SPDX-License-Identifier: Apache-2.0
"""Packages that a module of the user's declares for itself: `REQUIREMENTS = ["rapidfuzz>=3"]`.

They are installed before the module is first imported, into a folder of their own that is named by what is in it; the
environment in which newskills runs stays as it is. What that already has is taken from there.
"""

from __future__ import annotations

import ast
import contextlib
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextvars import ContextVar
from hashlib import blake2b
from importlib import invalidate_caches, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.cache import cache_folder
from newskills.base.errors import ConfigError, DataError

DECLARATION = "REQUIREMENTS"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
_may_install: ContextVar[bool] = ContextVar("may_install", default=True)


class NotInstalledError(ConfigError):
    """Packages are missing, and nothing is to be installed now."""


@contextlib.contextmanager
def installing_nothing() -> Iterator[None]:
    """Install nothing within the context, for dry runs and modules that only jobs elsewhere will run: what is
    missing is a NotInstalledError."""
    token = _may_install.set(False)
    try:
        yield
    finally:
        _may_install.reset(token)


def bring_requirements(where: str) -> None:
    """Make importable what the module `where` (a dotted name or a `.py` file) declares; install what is missing.

    Raises ConfigError for a declaration that is none, or that this environment cannot meet; NotInstalledError.
    """
    wanted = declared_requirements(where)
    if not wanted:
        return
    folder = _environment_folder(wanted)
    if not folder.is_dir():
        if not _may_install.get():
            raise NotInstalledError(
                f"{where} declares {', '.join(wanted)}, which a run installs first; nothing is installed now."
            )
        _install_all(wanted, where, folder)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        invalidate_caches()


def declared_requirements(where: str) -> tuple[str, ...]:
    """Return what the module declares, read without importing it; empty: nothing, or there is no such module."""
    path = source_of(where)
    if path is None:
        return ()
    try:
        text = path.read_text("utf-8")
        if DECLARATION not in text:
            return ()
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):  # importing it says what is wrong
        return ()
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            names = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            names = [statement.target]
        else:
            continue
        if any(isinstance(name, ast.Name) and name.id == DECLARATION for name in names):
            return _declared_texts(statement.value, where)
    return ()


def source_of(where: str) -> Path | None:
    """Return the file of a dotted module name or a path, found without importing the module itself; None: there is
    none."""
    if where.endswith(".py"):
        path = Path(where).expanduser()
        if path.is_file():
            return path
        return None
    try:
        spec = find_spec(where)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _declared_texts(value: ast.expr | None, where: str) -> tuple[str, ...]:
    try:
        literal = ast.literal_eval(value) if value is not None else None
    except ValueError:
        literal = None
    if not isinstance(literal, list | tuple) or not all(
        isinstance(text, str) and text.strip() for text in literal
    ):
        raise ConfigError(
            f'{where}: {DECLARATION} must be a list of texts, for example {DECLARATION} = ["rapidfuzz>=3"].'
        )
    if wrong := [text for text in literal if text.lstrip().startswith("-")]:
        raise ConfigError(f"{where}: {DECLARATION} has '{wrong[0]}', which is an option of pip, not a package.")
    return tuple(text.strip() for text in literal)


def _environment_folder(wanted: tuple[str, ...]) -> Path:
    """Return the folder of an installation: the same for the same packages in the same environment."""
    environment = (sys.prefix, sysconfig.get_platform(), *map(str, sys.version_info[:2]))
    name = blake2b("\0".join([*environment, *sorted(wanted)]).encode(), digest_size=10).hexdigest()
    return cache_folder() / "requirements" / name


def _install_all(wanted: tuple[str, ...], where: str, folder: Path) -> None:
    from newskills.base.store import waiting_lock

    what = ", ".join(wanted)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with waiting_lock(folder.with_suffix(".lock"), f"The installation of {what}"):
        if folder.is_dir():
            return
        missing = _missing_distributions(wanted, where)
        temporary = folder.with_suffix(".new")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        if missing:
            sys.stderr.write(f"note: installing {', '.join(missing)} for {where} into {folder}\n")
            _run_pip(["--no-deps", "--target", str(temporary), *missing], what, where)
        temporary.rename(folder)


def _missing_distributions(wanted: tuple[str, ...], where: str) -> list[str]:
    """Return what pip would install, with its versions: what is wanted, and what that needs, unless it is here."""
    report = _run_pip(["--dry-run", "--report", "-", *wanted], ", ".join(wanted), where)
    try:
        distributions: list[dict[str, Any]] = msgspec.json.decode(report)["install"]
    except (msgspec.DecodeError, KeyError) as error:
        raise DataError(f"pip's report cannot be read: {error}.") from error
    ours = {_normalized_name(name) for name in _own_distributions()}
    if taken := [
        distribution["metadata"]
        for distribution in distributions
        if _normalized_name(distribution["metadata"]["name"]) in ours
    ]:
        name, version = taken[0]["name"], taken[0]["version"]
        raise ConfigError(
            f"{where} declares {', '.join(wanted)}, which means {name} {version}; newskills itself runs with "
            f"{name} {metadata.version(name)}, and one process cannot have both.",
            hint="Allow that version, or run what needs the other version in a separate process.",
        )
    return [_pinned_requirement(distribution) for distribution in distributions]


def _pinned_requirement(distribution: dict[str, Any]) -> str:
    name, version = distribution["metadata"]["name"], distribution["metadata"]["version"]
    if distribution.get("is_direct") and (url := distribution["download_info"]["url"]):
        return f"{name} @ {url}"
    return f"{name}=={version}"


def _own_distributions() -> list[str]:
    """Return the distributions that newskills cannot be without."""
    try:
        needs = metadata.requires("newskills") or ()
    except metadata.PackageNotFoundError:
        return []
    names = ("".join(ch if ch.isalnum() or ch in "-_." else " " for ch in need).split() for need in needs)
    return [words[0] for words, need in zip(names, needs, strict=True) if words and "extra ==" not in need]


def _normalized_name(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _run_pip(words: list[str], what: str, where: str) -> bytes:
    try:
        done = subprocess.run([*PIP, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"{where} declares {what}: {sys.executable} does not run ({error.strerror}).") from error
    if done.returncode == 0:
        return done.stdout
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        raise ConfigError(
            f"{where} declares {what}, but this environment has no pip to install it with.",
            hint=f"Install it yourself: uv pip install --python {sys.executable} "
            f"{' '.join(map(repr, words[-1:]))}, or install pip: {sys.executable} -m ensurepip",
        )
    reasons = [line for line in lines if line.startswith("ERROR:")] or lines or [f"exit code {done.returncode}"]
    raise ConfigError(
        f"{where} declares {what}, which pip cannot install: {reasons[-1].removeprefix('ERROR: ')[:300].rstrip('.')}.",
        hint="Without a network, install it beforehand: in the image or environment of the jobs, or with "
        "--installation_command.",
    )
