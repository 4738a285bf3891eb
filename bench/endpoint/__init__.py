# SPDX-License-Identifier: Apache-2.0
"""The endpoint that all benches talk to: `endpoint.c` where there is a C compiler, else `fallback.py`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Self

FOLDER = Path(__file__).parent
_BUILT = FOLDER.parent / "results"


class Endpoint:
    """Canned replies after `latency_ms` milliseconds, on a free port of the loopback.

    `share` (0–1) of the requests get `status` at once, and so do those above `rate` a second (0 = no limit).
    """

    def __init__(self, latency_ms: int = 0, *, status: int = 503, share: float = 0.0, rate: float = 0.0) -> None:
        argv = [*program(), "0", str(latency_ms), str(status), str(100 * share), str(rate)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        self.base_url = f"{self.url}/v1"

    @property
    def served(self) -> int:
        """Model requests answered so far: no bench believes a client's own count."""
        return self._counts()["served"]

    @property
    def refused(self) -> int:
        """Model requests refused so far."""
        return self._counts()["refused"]

    def _counts(self) -> dict[str, int]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/served", timeout=30) as reply:
            counts: dict[str, int] = json.load(reply)
            return counts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def program() -> list[str]:
    """The command that starts an endpoint; compiles the C one at first use and whenever its source changes."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return [sys.executable, str(FOLDER / "fallback.py")]
    source = FOLDER / "endpoint.c"
    binary = _BUILT / f"endpoint-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not binary.exists():
        _BUILT.mkdir(parents=True, exist_ok=True)
        building = binary.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-o", str(building), str(source)], check=True)
        building.replace(binary)
    return [str(binary)]
