# SPDX-License-Identifier: Apache-2.0
"""Files that a program is made of, in a folder that nothing of the session's can be in the way of."""

from __future__ import annotations

import contextlib
import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HERE = "@/"
"""Begins the words of argv that name something in the folder."""


class Folder:
    """A new folder in the working directory. Raises OSError (code of an earlier request has filled the disk)."""

    def __init__(self, files: Mapping[str, str]) -> None:
        number = 0
        while True:
            self.path = os.path.abspath(f".run-{number}")
            try:
                os.mkdir(self.path)
                break
            except FileExistsError:
                number += 1
        for name, text in files.items():
            descriptor = os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)

    def argv(self, words: Iterable[str]) -> list[str]:
        return [f"{self.path}/{word.removeprefix(HERE)}" if word.startswith(HERE) else word for word in words]

    def remove(self) -> None:
        """Remove the folder and its files; what the program itself has put there may stay until its session ends."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path):
                os.unlink(f"{self.path}/{name}")
            os.rmdir(self.path)


def sealed_file(text: str) -> int:
    """Return an unnamed file that holds `text` and cannot be changed: it would grow outside of every limit."""
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    data = memoryview(text.encode())
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    fcntl.fcntl(
        descriptor,
        fcntl.F_ADD_SEALS,
        fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
    )
    return descriptor
