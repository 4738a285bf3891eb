# SPDX-License-Identifier: Apache-2.0
"""Mounts: which host folder is seen where in a container. Paths are compared by whole components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from posixpath import normpath
from typing import Literal

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.config import packaged_path

CODE = packaged_path.CODE
"""Where containers see the packaged code."""


class Mount(Struct, frozen=True):
    """`src` of the host is `dst` in the container; both absolute and without `..`."""

    src: str
    dst: str
    mode: Literal["rw", "ro"] = "rw"

    def __str__(self) -> str:
        mode_suffix = ":ro" if self.mode == "ro" else ""
        return f"{self.src}:{self.dst}" + mode_suffix


def parse_mount(text: str) -> Mount:
    """Parse `src:dst[:ro|rw]`. Raises ConfigError."""
    parts = text.split(":")
    if len(parts) == 3 and parts[2] in ("ro", "rw"):
        src, dst, mode = parts
    elif len(parts) == 2:
        (src, dst), mode = parts, "rw"
    else:
        raise ConfigError(f"The mount '{text}' must have the form src:dst, src:dst:ro or src:dst:rw.")
    for what, path in (("source", src), ("destination", dst)):
        if not path.startswith("/"):
            raise ConfigError(f"The {what} of the mount '{text}' must be an absolute path.")
        if "," in path or any(not ch.isprintable() for ch in path):
            raise ConfigError(f"The {what} of the mount '{text}' has a comma or a control character in it.")
    return Mount(clean_path(src), clean_path(dst), "ro" if mode == "ro" else "rw")


def parse_mounts(texts: Iterable[str]) -> tuple[Mount, ...]:
    """Parse all mounts. Raises ConfigError, also for a destination used twice or the place of the code."""
    by_destination: dict[str, Mount] = {}
    for text in texts:
        mount = parse_mount(text)
        other = by_destination.setdefault(mount.dst, mount)
        if other != mount:
            raise ConfigError(f"The mounts '{other}' and '{mount}' have the same destination.")
        if is_inside(CODE, mount.dst) or is_inside(mount.dst, CODE):
            raise ConfigError(f"The mount '{mount}' would hide the packaged code at {CODE}.")
    return tuple(by_destination.values())


def clean_path(path: str) -> str:
    """Return `path` without `.`, `..`, and doubled or trailing slashes."""
    return "/" + normpath(path).lstrip("/")


def is_inside(path: str, folder: str) -> bool:
    """Return whether `path` is `folder` or lies below it. Both absolute."""
    path, folder = clean_path(path), clean_path(folder)
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_reachable(path: str, mounts: Sequence[Mount]) -> bool:
    """Return whether a container with `mounts` sees the host's files at its own absolute `path`."""
    return to_host(path, mounts) is not None


def to_host(path: str, mounts: Sequence[Mount]) -> str | None:
    """Return the host's path of a container's `path`; None: only the container has it. The deepest mount counts."""
    over = [mount for mount in mounts if is_inside(path, mount.dst)]
    if not over:
        return None
    mount = max(over, key=lambda mount: len(mount.dst))
    return _move_path(path, mount.dst, mount.src)


def to_container(path: str, mounts: Sequence[Mount]) -> str | None:
    """Return where a container sees the host's `path`; None where it does not (also where another mount hides
    it)."""
    over = [mount for mount in mounts if is_inside(path, mount.src)]
    for mount in sorted(over, key=lambda mount: -len(mount.src)):
        moved = _move_path(path, mount.src, mount.dst)
        if to_host(moved, mounts) == clean_path(path):
            return moved
    return None


def _move_path(path: str, old: str, new: str) -> str:
    rest = clean_path(path)[len(old.rstrip("/")) :].strip("/")
    return clean_path(f"{new}/{rest}")
