# SPDX-License-Identifier: Apache-2.0
"""The forwarder that environments get: compiled of `inside/forward.c` once, where this machine has a C compiler."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from newskills.base.cache import cache_folder

SOURCE = Path(__file__).parent / "inside" / "forward.c"
IN_PYTHON = SOURCE.with_suffix(".py")
COMPILERS = ("cc", "gcc", "clang", "musl-gcc")
WAITING = 120.0


def compiled_forwarder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the compiled forwarder, which needs nothing of an image; None where it cannot be compiled here."""
    text = SOURCE.read_bytes()
    name = f"forward-{platform.machine()}-{blake2b(text, digest_size=6).hexdigest()}"
    place = cache_folder(environ) / "programs" / name
    if place.is_file():
        return place
    for compiler in COMPILERS:
        if shutil.which(compiler, path=environ.get("PATH")) and _compile_forwarder(compiler, place, environ):
            return place
    return None


def _compile_forwarder(compiler: str, place: Path, environ: Mapping[str, str]) -> bool:
    """Compile to `place` in one step, so that a second process never sees half of it."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            made = Path(scratch, "forward")
            words = [compiler, "-O2", "-static", "-o", str(made), str(SOURCE)]
            done = subprocess.run(words, env={**environ}, check=False, capture_output=True, timeout=WAITING)
            if done.returncode != 0:
                return False
            made.chmod(0o755)
            made.replace(place)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True
