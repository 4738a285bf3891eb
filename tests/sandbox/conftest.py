# SPDX-License-Identifier: Apache-2.0
"""An interpreter that every user of this machine may start: root's own often lies in root's home."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox.driver import as_ordinary

import newskills

_PROOF = "import newskills.cli, msgspec, numpy, sympy"


@pytest.fixture(scope="session")
def ordinary_python() -> Iterator[str]:
    """Finds newskills, numpy and sympy as any user. Skips where there is none and none can be made."""
    if _works(sys.executable):
        yield sys.executable
        return
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if not os.path.exists(system):
        pytest.skip(f"{sys.executable} is not for other users to read, and there is no {system}")
    with tempfile.TemporaryDirectory(prefix="newskills-python-") as folder:
        os.chmod(folder, 0o755)
        subprocess.run([system, "-m", "venv", "--without-pip", folder], check=True, capture_output=True)
        site = next(Path(folder).glob("lib/python*/site-packages"))
        packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        source = str(Path(newskills.__file__).resolve().parents[1])
        (site / "tests.pth").write_text("\n".join([*packages, source]) + "\n")
        python = f"{folder}/bin/python"
        if not _works(python):
            pytest.skip("the packages of this environment are not for other users to read")
        yield python


def _works(python: str) -> bool:
    try:
        tried = subprocess.run(
            [python, "-I", "-c", _PROOF], capture_output=True, timeout=60, check=False, **as_ordinary(True)
        )
    except OSError:
        return False
    return tried.returncode == 0
