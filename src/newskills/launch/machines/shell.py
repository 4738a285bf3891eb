# SPDX-License-Identifier: Apache-2.0
"""Commands and files on the machine that submits jobs, be it this one or one behind ssh (`ssh.py`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from newskills.base.errors import DataError, storage_error
from newskills.base.replacing import replacing_file


class ShellCall(Struct, frozen=True, kw_only=True):
    """One command. No shell reads `argv`: every character arrives.

    stdin    text that it reads
    secrets  variables that are fed through stdin of ssh and never stand in an argv
    folder   working folder; empty: the home folder behind ssh, the current one here
    """

    argv: tuple[str, ...]
    stdin: str = ""
    secrets: Mapping[str, str] = {}
    folder: str = ""

    def __repr__(self) -> str:
        return f"Call(argv={self.argv!r}, secrets={sorted(self.secrets)!r}, folder={self.folder!r})"


class CommandResult(Struct, frozen=True, kw_only=True):
    """What a command did: its exit code (127: there is no such program) and both outputs, decoded as UTF-8."""

    code: int
    out: str = ""
    err: str = ""


class CopyResult(Struct, frozen=True):
    """Files that were new or changed, and bytes of content that went over."""

    files: int = 0
    bytes: int = 0


class Shell(Protocol):
    """A machine. All methods raise RemoteError where it cannot be reached."""

    name: str

    def run(
        self, argv: Sequence[str], *, stdin: str = "", secrets: Mapping[str, str] | None = None, folder: str = ""
    ) -> CommandResult:
        """Run one command to its end."""
        ...

    def run_all(self, calls: Sequence[ShellCall]) -> list[CommandResult]:
        """Run commands one after the other, whatever their exit codes, in one trip."""
        ...

    def exists(self, paths: Sequence[str]) -> list[bool]:
        """Return which of the absolute `paths` exist, in one trip."""
        ...

    def read(self, paths: Sequence[str]) -> list[str | None]:
        """Read the texts of small files in one trip; None for those that do not exist."""
        ...

    def put(self, source: Path, target: str) -> CopyResult:
        """Copy a file to the path `target`, or the contents of a folder into the folder `target`, which is created.

        Nothing is deleted there; modes and links are kept. Raises StorageError, DataError.
        """
        ...

    def get(self, source: str, target: Path) -> CopyResult:
        """Copy a file or the contents of a folder from there to `target` here."""
        ...

    def write(self, texts: Mapping[str, str], folder: str) -> None:
        """Write small files by their paths below `folder`, in one trip; new folders below it are the user's alone.

        What is there is replaced, not rewritten. Raises StorageError.
        """
        ...

    def converse(self, script: str) -> subprocess.Popen[bytes]:
        """Start bash with `script`; its stdin and stdout are open, and its stderr joins stdout.

        The script must end when its stdin does: it is how it learns that nobody listens any more.
        """
        ...

    def close(self) -> None: ...


class LocalMachine:
    """This machine."""

    name = "this machine"

    def run(
        self, argv: Sequence[str], *, stdin: str = "", secrets: Mapping[str, str] | None = None, folder: str = ""
    ) -> CommandResult:
        call = ShellCall(argv=tuple(argv), stdin=stdin, secrets=secrets or {}, folder=folder)
        return self.run_all([call])[0]

    def run_all(self, calls: Sequence[ShellCall]) -> list[CommandResult]:
        return [_run_here(call) for call in calls]

    def exists(self, paths: Sequence[str]) -> list[bool]:
        return [os.path.exists(path) for path in paths]

    def read(self, paths: Sequence[str]) -> list[str | None]:
        return [_read_text(path) for path in paths]

    def put(self, source: Path, target: str) -> CopyResult:
        return _copy_here(source, Path(target))

    def get(self, source: str, target: Path) -> CopyResult:
        return _copy_here(Path(source), target)

    def write(self, texts: Mapping[str, str], folder: str) -> None:
        root = Path(folder)
        made: set[Path] = set()
        try:
            root.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                for parent in reversed(Path(name).parents[:-1]):
                    if parent not in made:
                        (root / parent).mkdir(mode=0o700, exist_ok=True)
                        made.add(parent)
                with replacing_file(root / name, durable=False) as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise storage_error(error, error.filename or root) from error

    def converse(self, script: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us; closing stdin is for them
        )

    def close(self) -> None:
        return None


def _run_here(call: ShellCall) -> CommandResult:
    env = {**os.environ, **call.secrets} if call.secrets else None
    try:
        done = subprocess.run(
            call.argv,
            input=call.stdin.encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=False,
            cwd=call.folder or None,
            env=env,
        )
    except FileNotFoundError as error:
        return CommandResult(code=127, err=f"{error.filename}: {error.strerror}")
    except OSError as error:
        return CommandResult(code=126, err=f"{call.argv[0]}: {error.strerror}")
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return CommandResult(
        code=code, out=done.stdout.decode(errors="replace"), err=done.stderr.decode(errors="replace")
    )


def _read_text(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return None


def _copy_here(source: Path, target: Path) -> CopyResult:
    if not source.exists():
        raise DataError(f"There is no {source} to copy.")
    counted: list[int] = []

    def copy(old: str, new: str) -> str:
        shutil.copy2(old, new, follow_symlinks=False)
        size = 0 if os.path.islink(old) else os.stat(old).st_size
        counted.append(size)
        return new

    try:
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, copy_function=copy)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            copy(str(source), str(target))
    except shutil.Error as error:  # a list of single failures
        first = error.args[0][0]
        raise storage_error(OSError(0, str(first[2])), first[1]) from error
    except OSError as error:
        raise storage_error(error, error.filename or target) from error
    return CopyResult(len(counted), sum(counted))
