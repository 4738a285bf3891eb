# SPDX-License-Identifier: Apache-2.0
"""Megatron-Bridge is called as it is today; what it writes is there whole or not at all."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from newskills.train.pipelines.megatron_bridge import MODULE

PLAYED = Path(__file__).with_name("megatron_stand_in")
VARIABLE = "NEWSKILLS_VERL_PYTHON"


def convert(*words: str, path: Path | None = PLAYED, **more: str) -> subprocess.CompletedProcess[str]:
    places = [str(path)] if path is not None else []
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*places, *sys.path]), **more}
    return subprocess.run(
        [sys.executable, "-m", MODULE, *words], capture_output=True, text=True, env=env, timeout=120
    )


def test_models_go_both_ways(tmp_path: Path) -> None:
    done = convert("import", "--hf-model=a/b", f"--megatron-path={tmp_path}/new/m", "--dtype=fp16")
    assert done.returncode == 0, done.stderr
    called = json.loads((tmp_path / "new/m/called.json").read_text())
    assert called == {"hf_model_id": "a/b", "torch_dtype": "torch.float16", "device_map": "cpu"}
    words = ["--hf-model=a/b", f"--megatron-path={tmp_path}/new/m", f"--hf-path={tmp_path}/hf"]
    done = convert("export", *words)
    assert done.returncode == 0, done.stderr
    called = json.loads((tmp_path / "hf/called.json").read_text())
    assert called == {"model": "a/b", "megatron_path": f"{tmp_path}/new/m", "strict": True}
    again = convert("export", *words)
    assert again.returncode == 1
    assert "hf already exists" in again.stderr


def test_a_conversion_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    done = convert("import", "--hf-model=a", f"--megatron-path={tmp_path}/m", BREAKS="1")
    assert done.returncode != 0
    assert "half-way" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_container_without_it_says_what_is_missing(tmp_path: Path) -> None:
    done = convert("import", "--hf-model=a", f"--megatron-path={tmp_path}/m", path=None)
    assert done.returncode == 1
    assert "pip install megatron-bridge" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_package_has_what_is_called() -> None:
    """Its source, not its import, which needs GPUs' libraries."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} names no Python with megatron-bridge (pip install --no-deps megatron-bridge)")
    find = "import importlib.util as u; print(u.find_spec('megatron').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", find], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{VARIABLE} names no Python with megatron-bridge (pip install --no-deps megatron-bridge)")
    folder = Path(done.stdout.strip()) / "bridge"
    exported = ast.parse((folder / "__init__.py").read_text())
    assert any(
        isinstance(node, ast.ImportFrom) and any(alias.name == "AutoBridge" for alias in node.names)
        for node in exported.body
    )
    tree = ast.parse((folder / "models/conversion/auto_bridge.py").read_text())
    takes = {
        node.name: ([name.arg for name in (*node.args.args, *node.args.kwonlyargs)], node.args.kwarg is not None)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert takes["import_ckpt"][0][1:3] == ["hf_model_id", "megatron_path"]
    assert takes["import_ckpt"][1]
    assert takes["from_hf_pretrained"] == (["cls", "path"], True)
    assert takes["export_ckpt"][0][1:5] == ["megatron_path", "hf_path", "show_progress", "strict"]
