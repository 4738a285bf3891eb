# SPDX-License-Identifier: Apache-2.0
"""The example of docs/python.md runs as it stands there, and prints what stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "python" / "evaluate_sums.py"
SUMS = {f"What is {number} + {number}?": str(2 * number) for number in range(1, 21)}


def test_the_example_prints_what_the_page_shows(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="table", table={**SUMS, "What is 7 + 7?": "15"})))
    variables = {**os.environ, "MY_KEY": "secret", "NEWSKILLS_DATA_DIR": "data"}
    words = [sys.executable, str(EXAMPLE), f"{server.url}/v1"]
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    assert f"```python\n{EXAMPLE.read_text(encoding='utf-8')}```\n" in page
    shown = page.partition("it prints:\n\n```text\n")[2].partition("```")[0]
    # the speed of the machine is no part of the example
    assert [
        line.split("|")[0::4] if "pass@1  " in line else line for line in done.stdout.rstrip().splitlines()
    ] == [line.split("|")[0::4] if "pass@1  " in line else line for line in shown.rstrip().splitlines()]
    assert {record.headers["authorization"] for record in server.records} == {"Bearer secret"}
