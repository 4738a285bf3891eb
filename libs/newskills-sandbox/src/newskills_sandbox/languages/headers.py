# SPDX-License-Identifier: Apache-2.0
"""`#include <bits/stdc++.h>` compiled once for all programs that begin with it, as answers to contests do: reading it
is four fifths of what compiling such a program costs.

GCC takes the compiled header only where a program's own flags and macros cannot make a difference, and reads the
text otherwise. https://gcc.gnu.org/onlinedocs/gcc/Precompiled-Headers.html
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path

from newskills_sandbox.cache import cache_folder

COMPILER = "g++"
VARIABLE = "CPLUS_INCLUDE_PATH"
FLAGS = ("-O2", "-std=c++17", "-pipe", "-w")
HEADER = "bits/stdc++.h"
SHOWN = "/cpp-headers"
"""Where sessions see the folder: what is around it on this machine is no business of theirs."""


@cache
def header_folder() -> str:
    """Return where the compiled header of this machine's compiler lies, or will; empty without a compiler or such a
    folder.

    Sandboxes show this folder, so it is made before what is in it, and sessions may have a user of their own.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        return ""
    try:
        real = os.path.realpath(compiler)
        state = os.stat(real)
        key = f"{real} {state.st_size} {state.st_mtime_ns} {FLAGS}"
        folder = cache_folder() / "cpp-headers" / hashlib.sha256(key.encode()).hexdigest()[:16]
        for each in (folder, folder / Path(HEADER).parent):
            each.mkdir(parents=True, exist_ok=True)
            each.chmod(0o755)
        _write_text(folder / HEADER)
    except OSError:
        return ""
    return os.path.realpath(folder)


def _write_text(place: Path) -> None:
    """Write the file that GCC reads where a program includes the header again: it looks for the text that was
    compiled."""
    if not place.exists():
        new = place.with_name(f".{os.getpid()}")
        new.write_text(f"#include_next <{HEADER}>\n")
        new.chmod(0o644)
        new.rename(place)


@cache
def precompile_header() -> threading.Thread | None:
    """Compile the header in the background, where that has not been done; None where there is nothing to do."""
    folder = header_folder()
    if not folder or Path(folder, f"{HEADER}.gch").exists():
        return None
    thread = threading.Thread(
        target=_compile_header, args=(Path(folder),), name="newskills-cpp-header", daemon=True
    )
    thread.start()
    return thread


def _compile_header(folder: Path) -> None:
    """Compile the header quietly: without the compiled header programs are compiled as ever."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as place:
            source, made = Path(place, "all.hpp"), Path(place, "all.gch")
            source.write_text(f"#include <{HEADER}>\n")
            argv = ["nice", COMPILER, *FLAGS, "-x", "c++-header", str(source), "-o", str(made)]
            ran = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, capture_output=True)
            if ran.returncode == 0:
                made.chmod(0o644)
                made.rename(folder / f"{HEADER}.gch")
    except OSError:
        return
