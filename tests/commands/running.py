# SPDX-License-Identifier: Apache-2.0
"""Runs `ns` as a person does: a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tests import forkserver


def ns(
    line: str,
    *more: str,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = 600,
) -> subprocess.CompletedProcess[str]:
    """`ns <line>`; `line` is split as a shell splits it, `more` are further words."""
    words = shlex.split(line)
    assert words[0] == "ns"
    words = [*words[1:], *more]
    return forkserver.ns(words, cwd=cwd, env={**os.environ, **(env or {})}, stdin=stdin, timeout=timeout)


def chatted(said: str) -> str:
    """What the page whose address `ns start_server` has `said` answers."""
    address = re.search(r"in the browser: (\S+)", said)
    assert address is not None
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}]}).encode()
    request = urllib.request.Request(f"{address[1]}/chat", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as reply:
        events = [json.loads(line[5:]) for line in reply if line.startswith(b"data: {")]
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
