# SPDX-License-Identifier: Apache-2.0
"""What jobs will find below /nemo_run/code, known before anything is packaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, suggest
from newskills.config.command_line import Parsed
from newskills.config.packaged_path import with_code_at
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.mounts import CODE, clean_path, is_inside
from newskills.launch.experiments import ExperimentRecords, job_root
from newskills.launch.git import repository_of
from newskills.launch.machines.ssh import shell_of
from newskills.launch.package import Package, PackageOptions, in_place, make_package
from newskills.pipelines.options import PlacementOptions

O = TypeVar("O", bound=Struct)  # noqa: E741 - O as in options
S = TypeVar("S", bound=Struct)


def is_code(path: str) -> bool:
    """Return whether the path is inside the packaged code, as containers call it."""
    return path.startswith("/") and is_inside(path, CODE)


class PackagedCode:
    """The package of the commit that jobs of `cluster` will get. Raises as `make_package` when it is first asked."""

    def __init__(self, cluster: ClusterConfig, options: PlacementOptions | None = None) -> None:
        self._cluster = cluster
        self._reused = options.reuse_code_exp if options is not None else None
        self._options = PackageOptions(
            allow_uncommitted=options is not None and options.allow_uncommitted, dry_run=True
        )

    @cached_property
    def _found_content(self) -> tuple[Package, frozenset[str] | None]:
        """Return what is packaged, and the names of its files; None: the folder itself tells."""
        cluster = self._cluster
        if self._reused is not None and not in_place(cluster):
            return ExperimentRecords(os.environ).find(self._reused).package, None
        root = job_root(cluster, os.environ)
        content_package, content = make_package(
            cluster, shell_of(cluster, os.environ), root, os.environ, self._options
        )
        return content_package, None if in_place(cluster) else frozenset(content.files())

    def path_on_host(self, path: str) -> str:
        """Return where a path below /nemo_run/code lies on the submitting machine; it may not exist yet."""
        return os.path.normpath(f"{self._found_content[0].path}/{_path_below_code(path)}")

    def local_source(self, path: str) -> str | None:
        """Return a file of this machine with the same content as `path` (below /nemo_run/code, or its `path_on_host`).

        None: there is none, or it has changed since the commit.
        """
        package, files = self._found_content
        if not is_code(path):
            if not is_inside(path, package.path):
                return None
            path = f"{CODE}/{os.path.relpath(path, package.path)}"
        rest = _path_below_code(path)
        if files is None:
            here = self.path_on_host(path)
            if self._cluster.ssh_tunnel is None and os.path.exists(here):
                return here
            return None
        here = os.path.normpath(f"{package.repository}/{rest}")
        changed = any(is_inside(f"/{name}", f"/{rest}") for name in package.uncommitted)
        if package.repository and not changed and os.path.exists(here):
            return here
        return None

    def check_path(self, path: str, option: str) -> None:
        """Raise ConfigError where the package does not have `path`."""
        package, files = self._found_content
        rest = _path_below_code(path)
        if files is None:
            [there] = shell_of(self._cluster, os.environ).exists([self.path_on_host(path)])
            if there:
                return
            raise ConfigError(f"{option}: there is no {rest} in {package.path}, which jobs see as {CODE}.")
        if not rest or any(name == rest or name.startswith(f"{rest}/") for name in files):
            return
        if not package.repository:
            raise ConfigError(
                f"{option}: this folder is not in a git repository, so jobs find only newskills itself at {CODE}.",
                hint="Go to the repository that has the file, or: git init; git add; git commit.",
            )
        if os.path.exists(os.path.join(package.repository, rest)):
            raise ConfigError(
                f"{option}: {rest} is not in the commit that jobs get ({package.commit[:12]} of "
                f"{package.repository}).",
                hint=f"Commit it: git add -f {rest} && git commit",
            )
        raise ConfigError(
            f"{option}: there is no {rest} in the commit that jobs get ({package.commit[:12]} of "
            f"{package.repository}){suggest(rest, files)}"
        )

    def read_here(self, text: str, option: str) -> str:
        """Replace packaged files in comma-separated names by those of this machine, for what is read before
        anything is submitted. Raises ConfigError."""
        parts = []
        for part in text.split(","):
            path, ending, rest = part.strip().partition(".py")
            if not is_code(path):
                parts.append(part)
                continue
            self.check_path(path + ending, option)
            if (local := self.local_source(path + ending)) is None:
                raise ConfigError(
                    f"{option}: {path}{ending} has changed since the commit; the changed file is used here."
                )
            parts.append(local + rest)
        return ",".join(parts)


def at_repository(parsed: Parsed[O]) -> Parsed[O]:
    """Replace paths below /nemo_run/code by those of the repository that the user stands in, for work of this
    process.

    Within a job they are what they say, or those of the package that it starts in.
    """

    def placed(text: str) -> str:
        if not is_code(text.partition("::")[0]) or os.path.isdir(CODE):
            return text
        root = Path.cwd()
        if not (root / _path_below_code(text.partition("::")[0])).exists():
            root = repository_of(root) or root
        return os.path.normpath(f"{root}/{_path_below_code(text)}")

    options = {
        name: map_json_texts(value, lambda text: within_repository(placed(text)))
        for name, value in msgspec.structs.asdict(parsed.options).items()
        if isinstance(value, str | list)
    }
    overrides = dict(parsed.overrides)
    for key, text in parsed.overrides.items():
        if (new := placed(str(text))) != text:
            overrides[key] = type(text)(new)
    return msgspec.structs.replace(
        parsed, options=msgspec.structs.replace(parsed.options, **options), overrides=overrides
    )


def within_repository(text: str) -> str:
    """Replace /nemo_run/code in a text, such as a command of the user's, by the repository that the user stands
    in, for work of this process."""
    if CODE not in text or os.path.isdir(CODE):
        return text
    return with_code_at(text, str(repository_of(Path.cwd()) or Path.cwd()))


def map_texts(struct: S, change: Callable[[str], str]) -> S:
    """Return `struct` with `change` made to all texts in it."""
    plain = map_json_texts(msgspec.json.decode(msgspec.json.encode(struct)), change)
    return msgspec.json.decode(msgspec.json.encode(plain), type=type(struct))


def map_json_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON-like `value` with `change` made to all texts in it, keys aside."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_json_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {key: map_json_texts(item, change) for key, item in value.items()}
    return value


def local_sources(struct: S, code: PackagedCode) -> tuple[S, bool]:
    """Return `struct` with files of this machine in place of those of the packaged code, and whether all of them
    are here.

    Raises ConfigError where the package lacks one.
    """
    missing = []

    def here(text: str) -> str:
        path, colons, name = text.partition("::")
        if not is_code(path):
            return text
        code.check_path(path, path)
        if (local := code.local_source(path)) is None:
            missing.append(path)
            return text
        return f"{local}{colons}{name}"

    return map_texts(struct, here), not missing


def code_paths(struct: Struct) -> bool:
    """Return whether any text in `struct` begins like a path of the packaged code."""
    return f'"{CODE}/'.encode() in msgspec.json.encode(struct)


def below_working_folder(text: str) -> str:
    """Return a path of the packaged code as processes without a container find it: relative to the folder that they
    start in.

    Unlike the folder's own path, this is the same for each commit, so that a run can go on after another one.
    """
    path, colons, name = text.partition("::")
    if is_code(path):
        return f"{_path_below_code(path) or '.'}{colons}{name}"
    return text


def _path_below_code(path: str) -> str:
    """Return the part of a path below /nemo_run/code; empty for that folder itself."""
    return clean_path(path)[len(CODE) + 1 :]
