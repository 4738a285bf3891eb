# SPDX-License-Identifier: Apache-2.0
"""Processes of newskills look for cycles less often than Python does by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHOW = """
import gc

gc.set_threshold({before})
from newskills.cli import main

main(["--version"])
print(*gc.get_threshold())
"""


@pytest.mark.parametrize(
    ("before", "after"), [("700, 10, 10", "10000 10 10"), ("99999, 5, 5", "99999 5 5"), ("0, 5, 5", "0 5 5")]
)
def test_a_command_collects_less_often(before: str, after: str) -> None:
    words = [sys.executable, "-c", SHOW.format(before=before)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == after


def test_what_a_command_imports_is_not_looked_at_again() -> None:
    code = "import gc; from newskills.cli import main; main(['list', 'graders']); print(gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert int(done.stdout.splitlines()[-1]) > 10_000, done.stderr
