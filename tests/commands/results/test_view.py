# SPDX-License-Identifier: Apache-2.0
"""`ns view` as it is typed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.view.results import benchmark, mixed

from newskills.cli import main

NS = [sys.executable, "-m", "newskills", "view"]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    benchmark(tmp_path / "results", "sums", [mixed(20, 5)])
    return tmp_path / "results"


def test_it_prints_an_address_that_answers_and_ends_with_ctrl_c(results: Path) -> None:
    process = subprocess.Popen([*NS, str(results)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    with urllib.request.urlopen(address, timeout=300) as page:
        assert b"newskills" in page.read()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "ssh -L" in told
    assert "Traceback" not in told


def test_an_export_is_a_folder_to_open(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(results), "--export", str(tmp_path / "page"), "--export_samples=5"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"{tmp_path / 'page/index.html'}: 5 samples")
    assert "5 of 20 samples are exported" in told.err
    assert main(["view", str(results), "--export", str(tmp_path / "page")]) != 0
    assert "not overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "There is no folder nowhere. Name a folder that `ns eval`"),
        (["{results}", "--port=70000"], "port"),
    ],
)
def test_mistakes_are_told(results: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    assert main(["view", *(word.format(results=results) for word in words)]) == 2
    assert told in capsys.readouterr().err


def test_a_dry_run_says_what_is_read_and_written(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(results), "--dry_run"]) == 0
    assert ".view" in capsys.readouterr().out
    assert not list(results.rglob(".view"))


def test_without_the_extra_it_says_what_to_install(results: Path, tmp_path: Path) -> None:
    """In a process in which starlette cannot be found."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'starlette' else real(name, package)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*NS, str(results)], env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert "pip install 'newskills[view]'" in done.stderr
