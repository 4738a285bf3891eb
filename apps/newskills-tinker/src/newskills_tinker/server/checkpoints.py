# SPDX-License-Identifier: Apache-2.0
"""Where the service keeps what is saved: `tinker://RUN/weights/NAME` is the folder RUN/weights/NAME below its root.

A run is a model that was trained; `run.json` describes it. `weights` hold states (with the optimizer),
`sampler_weights` only what is needed to sample, `external_weights` what others can load. Folders appear whole or not
at all.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.records import Row
from newskills.base.store import write_json

T = TypeVar("T", bound=Struct)
SCHEME = "tinker://"
KINDS = {"weights": "training", "sampler_weights": "sampler", "external_weights": "external"}
RUN_FILE, INFO_FILE = "run.json", "checkpoint.json"
NEXT, OLD = ".next", ".old"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", re.ASCII)
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_-]{0,199}", re.ASCII)


class StoredRun(Struct, frozen=True, kw_only=True):
    """What a run trains. `base` is the model's folder."""

    run_id: str
    base_model: str
    base: str
    rank: int
    alpha: float
    seed: int
    created: datetime
    user_metadata: Row | None = None


class CheckpointInfo(Struct, frozen=True, kw_only=True):
    """Of one checkpoint."""

    created: datetime
    expires: datetime | None = None
    user_metadata: dict[str, str] | None = None


class Address(Struct, frozen=True):
    """The parts of a tinker:// path."""

    run_id: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.run_id}/{self.kind}/{self.name}"


def parse_address(path: str) -> Address:
    """Parse the path of a checkpoint. Raises DataError for what is no path of a checkpoint."""
    parts = path.removeprefix(SCHEME).split("/")
    fits = path.startswith(SCHEME) and len(parts) == 3 and parts[1] in KINDS
    if not fits or not _RUN.fullmatch(parts[0]) or not _NAME.fullmatch(parts[2]):
        raise DataError(f"'{path[:200]}' is not a checkpoint; expected {SCHEME}RUN/weights/NAME.")
    return Address(*parts)


class Checkpoints:
    """All runs below one folder."""

    def __init__(self, root: Path) -> None:
        """Finish replacements that a killed server began, and remove what has expired."""
        self.root = root
        for kept in root.glob(f"*/*/.*{NEXT}"):
            final = kept.with_name(kept.name[1:].removesuffix(NEXT))
            if (kept / INFO_FILE).is_file() and not final.exists():
                kept.replace(final)
        for left in [*root.glob(f"*/*/.*{NEXT}"), *root.glob(f"*/*/.*{OLD}"), *root.glob("*/*/.*.tmp")]:
            shutil.rmtree(left, ignore_errors=True)
        self._purge()

    def add_run(self, run: StoredRun) -> None:
        """Write the file of a run. Raises StorageError."""
        write_json(self.root / run.run_id / RUN_FILE, run)

    def read_run(self, run_id: str) -> StoredRun:
        """Read the file of a run. Raises UnknownNameError."""
        path = self.root / run_id / RUN_FILE
        if not _RUN.fullmatch(run_id) or not path.is_file():
            raise UnknownNameError("training run", run_id[:200], self.run_ids())
        return _read_struct(path, StoredRun)

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, the latest first."""
        files = sorted(self.root.glob(f"*/{RUN_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
        return [path.parent.name for path in files]

    def save(
        self, address: Address, about: CheckpointInfo, write: Callable[[Path], None], *, overwrite: bool = False
    ) -> None:
        """Let `write` make its folder, whole or not at all. Raises ConfigError for a name that is taken."""
        if not _NAME.fullmatch(address.name):
            raise ConfigError(
                f"'{address.name[:100]}' is not a valid checkpoint name: use letters, digits, '.', '_' and '-'."
            )
        folder = self._folder(address)
        if folder.exists() and not overwrite:
            raise ConfigError(f"{address} already exists.", hint="Pass overwrite=True, or choose another name.")
        new, old = (folder.with_name(f".{folder.name}{suffix}") for suffix in (NEXT, OLD))
        shutil.rmtree(new, ignore_errors=True)
        write(new)
        write_json(new / INFO_FILE, about)
        if folder.exists():
            folder.replace(old)
        new.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
        self._purge(address.run_id)

    def find(self, path: str) -> Path:
        """Return the folder of a checkpoint. Raises DataError, UnknownNameError."""
        address = parse_address(path)
        folder = self._folder(address)
        if not (folder / INFO_FILE).is_file() or _is_expired(self.read_info(address)):
            raise UnknownNameError("checkpoint", path, map(str, self._iter_addresses()))
        return folder

    def list_checkpoints(self, run_id: str) -> list[Address]:
        """Return a run's checkpoints that have not expired, in the order of their making."""
        checkpoints = [
            checkpoint
            for checkpoint in self._iter_addresses(run_id)
            if not _is_expired(self.read_info(checkpoint))
        ]
        return sorted(checkpoints, key=lambda checkpoint: self.read_info(checkpoint).created)

    def read_info(self, address: Address) -> CheckpointInfo:
        return _read_struct(self._folder(address) / INFO_FILE, CheckpointInfo)

    def size(self, address: Address) -> int:
        """Return the bytes on the disk."""
        return sum(file.stat().st_size for file in self._folder(address).rglob("*") if file.is_file())

    def remove(self, address: Address) -> None:
        """Remove a checkpoint. Raises UnknownNameError where there is none."""
        folder = self._folder(address)
        if not folder.is_dir():
            raise UnknownNameError("checkpoint", str(address), map(str, self._iter_addresses(address.run_id)))
        gone = folder.with_name(f".{folder.name}{OLD}")
        folder.replace(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _folder(self, address: Address) -> Path:
        return self.root / address.run_id / address.kind / address.name

    def _purge(self, run_id: str = "*") -> None:
        for address in list(self._iter_addresses(run_id)):
            if _is_expired(self.read_info(address)):
                self.remove(address)

    def _iter_addresses(self, run_id: str = "*") -> Iterator[Address]:
        for kind in KINDS:
            for about in self.root.glob(f"{run_id}/{kind}/*/{INFO_FILE}"):
                if not about.parent.name.startswith("."):
                    yield Address(about.parts[-4], kind, about.parts[-2])


def utc_now() -> datetime:
    return datetime.now(UTC)


def new_checkpoint_info(ttl_seconds: int | None, user_metadata: dict[str, str] | None) -> CheckpointInfo:
    """Describe a checkpoint that is being made."""
    created = utc_now()
    expires = None
    if ttl_seconds:
        expires = created + timedelta(seconds=ttl_seconds)
    return CheckpointInfo(created=created, expires=expires, user_metadata=user_metadata)


def _is_expired(about: CheckpointInfo) -> bool:
    return about.expires is not None and about.expires < utc_now()


def _read_struct(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
