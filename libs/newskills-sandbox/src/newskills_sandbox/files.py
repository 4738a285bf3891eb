# SPDX-License-Identifier: Apache-2.0
"""Files of a session, written and read by code that runs in it: whatever it could not touch, this cannot either.

What comes back may be forged by what else runs in the session, as the files may: it is data of the session's.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import NamedTuple

from newskills_sandbox.errors import SandboxError
from newskills_sandbox.execution import ExecutionResult

SECONDS = 60.0
PIECE_BYTES = 3 << 20
CHARACTERS = 8 << 20

_WRITE = """import binascii, os, sys
path = {path!r}
os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
with open(path, {mode!r}) as file:
    file.write(binascii.a2b_base64(sys.stdin.read()))
"""
_READ = """import binascii, sys
with open({path!r}, "rb") as file:
    file.seek({start})
    print(binascii.b2a_base64(file.read({size}), newline=False).decode())
"""
_LIST = """import json, os
sizes = {}
for folder, _, names in os.walk("."):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not folder.startswith("./.run-"):
            sizes[os.path.relpath(path)] = os.path.getsize(path)
print(json.dumps(sizes))
"""


class FileStep(NamedTuple):
    """A script for the session, and its input."""

    code: str
    stdin: str = ""


def write_steps(path: str, content: bytes) -> Iterator[FileStep]:
    """Yield the steps that write a file, a piece at a time."""
    for start in range(0, max(1, len(content)), PIECE_BYTES):
        piece = base64.b64encode(content[start : start + PIECE_BYTES]).decode()
        mode = "ab" if start else "wb"
        yield FileStep(_WRITE.format(path=path, mode=mode), piece)


def read_step(path: str, start: int) -> FileStep:
    """Return the step that prints the piece of a file from `start` on."""
    return FileStep(_READ.format(path=path, start=start, size=PIECE_BYTES))


def listing_step() -> FileStep:
    """Return the step that prints which files there are."""
    return FileStep(_LIST)


def check_step(result: ExecutionResult, path: str) -> None:
    """Raise SandboxError where a step has not done its work."""
    if result.status != "completed" or result.exit_code != 0:
        lines = result.stderr.strip().splitlines()
        reason = lines[-1] if lines else result.status
        raise SandboxError(f"{path}: {reason}")


def read_piece(result: ExecutionResult, path: str) -> bytes:
    """Return the piece that a step has printed. Raises SandboxError."""
    check_step(result, path)
    try:
        return base64.b64decode(result.stdout.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SandboxError(f"{path}: the session printed something else than the file.") from error


def read_listing(result: ExecutionResult) -> dict[str, int]:
    """Return path → bytes. Raises SandboxError."""
    check_step(result, "the session's files")
    try:
        sizes = json.loads(result.stdout)
    except ValueError as error:
        raise SandboxError("The session printed something else than its files.") from error
    if not isinstance(sizes, dict) or not all(isinstance(size, int) for size in sizes.values()):
        raise SandboxError("The session printed something else than its files.")
    return sizes
