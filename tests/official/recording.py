# SPDX-License-Identifier: Apache-2.0
"""Attempts and what the original said about them, one per line after a head that says which release was run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
Case = dict[str, Any]
"""What our grader gets, and under `official` what the original said about the same."""


def write(name: str, source: str, release: str, cases: Iterable[Case]) -> int:
    """Returns how many attempts were recorded."""
    lines = [{"original": source, "release": release}, *cases]
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    (RECORDED / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return len(lines) - 1


def read(name: str) -> Iterator[Case]:
    lines = (RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    yield from map(json.loads, lines[1:])


def commit(checkout: Path) -> str:
    """The commit of a checkout, or what its file COMMIT says."""
    if (file := checkout / "COMMIT").exists():
        return file.read_text().strip()
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
