# SPDX-License-Identifier: Apache-2.0
"""Processes that share the tests (`tests.workers`), by real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = """
import os, pytest

with open("collected", "a") as file:
    file.write("once\\n")

@pytest.fixture(scope="session")
def session_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    yield folder
    with open("torn-down", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""
WHOLE = """
import os, pytest

@pytest.mark.parametrize("n", [1, 2])
def test_folders_and_outputs_are_a_workers_own(n, session_folder, tmp_path, capfd):
    assert session_folder.parent.name == "popen-" + os.environ["PYTEST_XDIST_WORKER"]
    assert session_folder.parent in tmp_path.parents
    os.system("echo said")
    assert capfd.readouterr().out == "said\\n"

@pytest.mark.skip(reason="why it is skipped")
def test_skipped(): pass
"""
DIES = """
import os

def test_before(): pass

def test_dies():
    os._exit(3)

def test_wrong():
    print("what it printed")
    assert 1 == 2
"""


def test_each_test_runs_once_and_who_dies_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SHARED)
    for name, text in {"test_a": WHOLE, "test_b": DIES, "test_c": WHOLE}.items():
        (tmp_path / f"{name}.py").write_text(text)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    options = [
        "-p",
        "tests.workers",
        "--workers=2",
        "-ra",
        "-c",
        os.devnull,
        "--rootdir=.",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--basetemp=base", "."],
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 5 passed, 2 skipped" in done.stdout
    assert "FAILED test_b.py::test_dies - worker gw" in done.stdout
    assert "what it printed" in done.stdout
    assert "why it is skipped" in done.stdout
    assert (tmp_path / "collected").read_text() == "once\n"
    torn_down = (tmp_path / "torn-down").read_text().split()
    assert 1 <= len(torn_down) == len(set(torn_down)) <= 3
