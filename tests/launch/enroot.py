# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `enroot`, which no distribution has: it records what it is asked, and dies half way when told to."""

from __future__ import annotations

import os
import shlex
import shutil
import struct
from pathlib import Path

STUB = r"""#!/bin/bash
stub='THIS FOLDER'
printf '%q ' "$(id -un)" "$(hostname)" "$@" >>"$stub/calls"; echo >>"$stub/calls"
[[ $1 == import && $2 == --output ]] || exit 64
half=$(($(stat -c %s "$stub/good") / 2))
head -c "$half" "$stub/good" >"$3" || exit 70
case $(<"$stub/mode") in
    killed) kill -9 $$ ;;
    failing) echo "[ERROR] URL https://registry/ returned error code: 401" >&2; exit 1 ;;
    truncated) exit 0 ;;
    blank) head -c 100000 /dev/zero >"$3"; exit 0 ;;
    slow) for ((n = 0; n < 600; n++)); do [[ ! -e $stub/go ]] || break; sleep 0.1; done ;;
esac
tail -c +"$((half + 1))" "$stub/good" >>"$3"
"""


def squashfs(size: int = 9000, mark: bytes = b"x") -> bytes:
    """Bytes that begin as a squashfs 4.0 does; `mark` tells images apart."""
    head = bytearray(96)
    struct.pack_into("<4sIIIIHHHHHHQQ", head, 0, b"hsqs", 3, 0, 131072, 0, 1, 17, 192, 1, 4, 0, 0, size)
    return bytes(head) + mark * (size - 96)


class Enroot:
    """`folder`/enroot, for anybody; `mode` says how its next import goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        folder.chmod(0o777)
        program = folder / "enroot"
        program.write_text(STUB.replace("THIS FOLDER", str(folder)))
        program.chmod(0o755)
        (folder / "calls").touch()
        (folder / "calls").chmod(0o666)
        self.mode("well")
        self.content(b"x")

    @property
    def path(self) -> str:
        """bash that puts it in front of everything else."""
        return f"export PATH={shlex.quote(str(self.folder))}:$PATH"

    def mode(self, how: str) -> None:
        """well, killed, failing, truncated, blank, or slow: until `go`."""
        (self.folder / "mode").write_text(how)

    def go(self) -> None:
        (self.folder / "go").touch()

    def content(self, mark: bytes) -> None:
        (self.folder / "good").write_bytes(squashfs(mark=mark))
        os.chmod(self.folder / "good", 0o644)

    def calls(self) -> list[list[str]]:
        """User, node, argv of each call."""
        return [shlex.split(line) for line in (self.folder / "calls").read_text().splitlines()]


WITHOUT_PYXIS = r"""#!/bin/bash
words=() images=()
for word; do
    case $word in
        --container-image=*) images+=("${word#*=}") ;;
        --container-*|--no-container-*) ;;
        *) words+=("$word") ;;
    esac
done
for image in "${images[@]}"; do
    [[ $(head -c 4 -- "$image") == hsqs ]] || { echo "srun: $image is no image" >&2; exit 1; }
    printf '%s\n' "$image" >>'THIS FOLDER/images'
done
exec 'REAL' "${words[@]}"
"""


def srun_without_pyxis(enroot: Enroot) -> None:
    """Beside the stand-in for enroot, an `srun` for clusters without Pyxis: what has an image runs on the node itself.

    It insists that images are whole squashfs files, and keeps their paths in `images`.
    """
    real = shutil.which("srun")
    assert real is not None
    program = enroot.folder / "srun"
    program.write_text(WITHOUT_PYXIS.replace("THIS FOLDER", str(enroot.folder)).replace("REAL", real))
    program.chmod(0o755)
    (enroot.folder / "images").touch()
    (enroot.folder / "images").chmod(0o666)
