# SPDX-License-Identifier: Apache-2.0
"""What the commands say before they load a trainer."""

import subprocess
import sys
from pathlib import Path

import pytest

from newskills.cli import main

LIGHT = """
import sys
from newskills.cli import main
code = main(sys.argv[1:])
print("loaded:", sorted({"torch", "numpy", "google.protobuf", "tinker"} & sys.modules.keys()))
sys.exit(code)
"""


@pytest.mark.parametrize(
    "line",
    [
        "serve_tinker --help=all",
        "tinker rl --help",
        "tinker sft --help",
        "serve_tinker --model=smollm2 --output_dir=states --dry_run",
        "tinker sft model_name=m log_dir=out dataset_name=rows.jsonl --dry_run",
        "tinker rl model_name=m log_dir=out dataset_name=rows.jsonl --explain",
    ],
)
def test_help_and_dry_runs_load_no_trainer(line: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", LIGHT, *line.split()]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("loaded: []\n")
    assert list(tmp_path.iterdir()) == []


def test_a_service_without_protobuf_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for module in ("torch", "safetensors", "tokenizers"):
        pytest.importorskip(module, reason="needs newskills[train]")
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    assert main(["serve_tinker", "--model=smollm2", f"--output_dir={tmp_path}"]) == 2
    printed = capsys.readouterr().err
    assert "This needs protobuf" in printed
    assert "pip install protobuf" in printed


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("tinker rl log_dir=out", "model_name is missing"),
        ("tinker sft model_name=m", "log_dir is missing"),
        ("serve_tinker --model=a,b --model_name=c --output_dir=out", "--model has 2 models"),
    ],
)
def test_lines_that_lack_something(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert sentence in capsys.readouterr().err
