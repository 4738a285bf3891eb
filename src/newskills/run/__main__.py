# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.run DIR`: executes `DIR/run.json`."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from newskills.base.errors import ConfigError, NewskillsError

if TYPE_CHECKING:
    from newskills.run.spec import RunSpec

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check_servers(spec: RunSpec) -> None:
    """Refuses servers of this machine that are gone: a server that was started for a run ends with it."""
    for url in dict.fromkeys(unit.config.server.base_url for unit in spec.units):
        address = urlsplit(url or "")
        if address.hostname not in LOOPBACK or address.port is None:
            continue
        try:
            socket.create_connection((address.hostname, address.port), timeout=5).close()
        except OSError as error:
            again = f", or type: {spec.resume_with}" if spec.resume_with else ""
            raise ConfigError(
                f"No server answers at {url}: a server that was started for a run ends with it.",
                hint=f"Start it there again{again}.",
            ) from error


def main(argv: list[str]) -> int:
    """Exit code of the run."""
    try:
        if len(argv) != 1:
            raise ConfigError("usage: python -m newskills.run DIR   (DIR holds run.json)")
        from newskills.run.execute import execute
        from newskills.run.spec import load_spec

        spec = load_spec(Path(argv[0]))
        if spec.working_dir and Path(spec.working_dir).is_dir():
            os.chdir(spec.working_dir)
        check_servers(spec)
        result = execute(spec)
    except NewskillsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if result.message:
        sys.stderr.write(f"{result.message}\n")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
