# SPDX-License-Identifier: Apache-2.0
"""What git says about a repository. Nothing is written to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import ConfigError, StorageError

_SUBMODULE = "160000"
_UNTRACKED = "?? "


class GitCommit(Struct, frozen=True, kw_only=True):
    """HEAD of the repository at `root`.

    tree         git's hash of the content
    files        paths of all committed files, links included
    submodules   paths of those, whose files are not among `files`
    uncommitted  paths that differ from HEAD, and untracked ones that git does not ignore
    untracked    those of them that git does not know yet
    """

    root: Path
    commit: str
    tree: str
    files: tuple[str, ...]
    submodules: tuple[str, ...]
    uncommitted: tuple[str, ...]
    untracked: frozenset[str] = frozenset()

    def uncommitted_files_in(self, folders: Sequence[str]) -> list[str]:
        """Return files in those folders that are not committed, also ignored ones."""
        pathspecs = [f":(literal){folder}" for folder in folders]
        if pathspecs:
            return _split_names(_run_git(self.root, "ls-files", "-z", "--others", "--", *pathspecs))
        return []


def repository_of(folder: Path) -> Path | None:
    """Return the root of the working tree around `folder`; None where there is none. Raises ConfigError where git
    refuses it."""
    marked = any((parent / ".git").exists() for parent in (folder.absolute(), *folder.absolute().parents))
    if not marked:
        return None
    return Path(os.fsdecode(_run_git(folder, "rev-parse", "--show-toplevel")).removesuffix("\n"))


def read_commit(root: Path) -> GitCommit:
    """Read the commit that is checked out. Raises ConfigError for a repository without a commit."""
    try:
        commit, tree = _run_git(root, "rev-parse", "HEAD^{commit}", "HEAD^{tree}").decode().split()
    except ConfigError as error:
        raise ConfigError(f"The git repository {root} has no commit yet.", hint="Make one: git commit.") from error
    files: list[str] = []
    submodules: list[str] = []
    for line in _split_names(_run_git(root, "ls-tree", "-r", "-z", "HEAD")):
        entry, _, name = line.partition("\t")
        if entry.startswith(_SUBMODULE):
            submodules.append(name)
        else:
            files.append(name)
    status = _split_names(
        _run_git(root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    )
    return GitCommit(
        root=root,
        commit=commit,
        tree=tree,
        files=tuple(files),
        submodules=tuple(submodules),
        uncommitted=tuple(line[3:] for line in status),
        untracked=frozenset(line[3:] for line in status if line.startswith(_UNTRACKED)),
    )


def extract_commit(commit: GitCommit, target: Path) -> None:
    """Write the committed files below `target`. Raises StorageError."""
    target.mkdir(parents=True, exist_ok=True)
    archive = subprocess.Popen(
        ["git", "-C", str(commit.root), "-c", "tar.umask=0022", "archive", "--format=tar", commit.commit],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert archive.stdout is not None
    with archive:
        tar = subprocess.run(
            ["tar", "-x", "-C", str(target)], stdin=archive.stdout, capture_output=True, check=False
        )
        tar_errors = archive.stderr.read() if archive.stderr else b""
    if tar.returncode != 0 or archive.returncode != 0:
        text = (tar.stderr or tar_errors).decode(errors="replace").strip()
        raise StorageError(f"Cannot export the committed files of {commit.root}: {text}")


def _run_git(folder: Path, *words: str) -> bytes:
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, env=environ, check=False)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{folder} is in a git repository, but `git` is not installed on this machine.",
            hint="Install it, for example: apt install git",
        ) from error
    if done.returncode != 0:
        error_lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = error_lines[0] if error_lines else done.returncode
        raise ConfigError(f"git {words[0]} failed in {folder}: {reason}")
    return done.stdout


def _split_names(data: bytes) -> list[str]:
    """Split output of `-z`; names that are not UTF-8 survive."""
    return [os.fsdecode(line) for line in data.split(b"\0") if line]
