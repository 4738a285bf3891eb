# SPDX-License-Identifier: Apache-2.0
"""The files on the page of grading code are a benchmark that passes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.commands.running import ns

PAGE = (Path(__file__).parents[2] / "docs" / "grading-code.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_functions_in_another_language_as_on_the_page(tmp_path: Path) -> None:
    files = dict(FILE.findall(PAGE))
    for name in ("functions.jsonl", "functions.py"):
        (tmp_path / name).write_text(files[name], encoding="utf-8")
    done = ns("ns validate ./functions.py", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")})
    assert done.returncode == 0, done.stderr
    assert "1 of 1 benchmarks pass" in done.stdout
    assert "cannot be graded" not in done.stderr
