# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.run DIR [--server URL]`: executes `DIR/run.json`.

`--server` is where the server answers that was started beside this run: for units that name no server of their own.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import structs

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


def with_server(spec: RunSpec, address: str) -> RunSpec:
    """`spec` with `address` (http://host:port) where no server is named."""
    units = []
    for unit in spec.units:
        if (server := unit.config.server).base_url is None:
            server = structs.replace(server, base_url=f"{address.rstrip('/')}/v1")
        units.append(structs.replace(unit, config=structs.replace(unit.config, server=server)))
    return structs.replace(spec, units=tuple(units))


def _arguments(argv: list[str]) -> tuple[Path, str]:
    """(folder, address or nothing). Raises ConfigError."""
    folder, *rest = argv or [""]
    if not folder or (rest and (rest[0] != "--server" or len(rest) != 2)):
        raise ConfigError("usage: python -m newskills.run DIR [--server URL]   (DIR holds run.json)")
    return Path(folder), rest[1] if rest else ""


def main(argv: list[str]) -> int:
    """Exit code of the run."""
    try:
        folder, address = _arguments(argv)
        from newskills.run.execute import execute
        from newskills.run.spec import load_spec

        spec = load_spec(folder)
        again = structs.replace(spec, rerun_done=False)
        if address:
            spec = with_server(spec, address)
        if spec.working_dir and Path(spec.working_dir).is_dir():
            os.chdir(spec.working_dir)
        check_servers(spec)
        # Once the old results are gone, whoever takes this run up again goes on with the new ones.
        result = execute(spec, begin=partial(again.save, folder) if spec.rerun_done else None)
    except NewskillsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if result.message:
        sys.stderr.write(f"{result.message}\n")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
