# SPDX-License-Identifier: Apache-2.0
"""Lines that are too long to be read: left out, counted, and never held in memory."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.view.comparison.runs import record, write_run

from newskills.base.store import bounded_lines

MEGABYTE = 1 << 20
LONG = 160
PEAK = """
import sys
from pathlib import Path
from newskills.view.comparison.paired_runs import compare_run_folders
found = compare_run_folders([Path(name) for name in sys.argv[1:]])
status = Path("/proc/self/status").read_text()  # ru_maxrss begins with what the parent of the process had
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
print("|".join(found.notes))
print(found.benchmarks[0].problems)
"""


@pytest.mark.parametrize("most", [4, 5, 6, 7, 100])
def test_lines_at_the_bound(most: int) -> None:
    text = b"12345\n1234\n\n123456789\n12\n123456"
    lines = text.splitlines(keepends=True)
    assert list(bounded_lines(io.BytesIO(text), most)) == [
        line if len(line) < most or (len(line) == most and line.endswith(b"\n")) else None for line in lines
    ]


def test_a_comparison_leaves_them_out_says_so_and_holds_none(tmp_path: Path) -> None:
    for name, right in (("a", 2), ("b", 3)):
        write_run(tmp_path / name, {None: [record(n, n % right == 0) for n in range(30)]})
    output = tmp_path / "b" / "eval-results" / "gsm8k" / "output.jsonl"
    lines = output.read_text().splitlines(keepends=True)
    with output.open("w") as file:
        file.writelines(lines[:10])
        file.write(json.dumps(record(99, True, generation=""))[:-1] + ', "more": "')
        for _ in range(LONG):
            file.write("x" * MEGABYTE)
        file.write('"}\n')
        file.writelines(lines[10:])
    folders = [str(tmp_path / name) for name in ("a", "b")]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *folders], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    peak, notes, problems = done.stdout.splitlines()
    assert int(peak) < LONG
    assert "1 line longer than 32 MB" in notes
    assert problems == "30"
