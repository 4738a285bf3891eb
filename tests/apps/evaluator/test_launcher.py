# SPDX-License-Identifier: Apache-2.0
"""A launcher that cannot read configurations is found before anything is handed to it.

Needs a Python with Hydra: NEWSKILLS_VERL_PYTHON (or NEWSKILLS_LAUNCHER_PYTHON) names one.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from newskills.base.errors import NewskillsError
from newskills_evaluator.launcher import check_parser

ROOT = Path(__file__).parents[3]
PYTHON = os.environ.get("NEWSKILLS_LAUNCHER_PYTHON") or os.environ.get("NEWSKILLS_VERL_PYTHON", "")


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "nemo-evaluator-launcher"
    path.write_text(f"#!{PYTHON}\n")
    return str(path)


@pytest.mark.skipif(not PYTHON, reason="no Python with Hydra is named by NEWSKILLS_LAUNCHER_PYTHON")
def test_a_parser_of_another_version_is_told_with_its_mending(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_parser(program)
    spec = importlib.util.find_spec("antlr4")
    if spec is None or spec.origin is None or version("antlr4-python3-runtime").startswith("4.9"):
        pytest.skip("needs newskills[math] with an antlr4 of another version than Hydra's")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/antlr4").symlink_to(Path(spec.origin).parent)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"))
    wanted = f"ATN.*Run: {re.escape(PYTHON)} -m pip install antlr4-python3-runtime==4.9.3"
    with pytest.raises(NewskillsError, match=wanted):
        check_parser(program)


def test_a_launcher_that_is_no_script_of_python_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "launcher"
    path.write_text("#!/bin/sh\nexit 1\n")
    check_parser(str(path))


def test_the_extra_math_leaves_hydra_its_parser() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(line) for line in project["optional-dependencies"]["math"]]
    antlr = next(one for one in wanted if one.name == "antlr4-python3-runtime")
    assert antlr.specifier.contains("4.9.3")
    assert antlr.specifier.contains("4.13.2")
    assert not antlr.specifier.contains("4.13.0")
