# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.run DIR [--server URL] [--server ROLE=URL …]`: executes `DIR/run.json`.

`--server` is where a server answers that was started beside this run: for units that name no server of their own, or
none for the model of that role.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import structs

from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.garbage import collect_less_often, keep_imports

if TYPE_CHECKING:
    from newskills.run.planning.config import EndpointConfig
    from newskills.run.planning.spec import RunSpec

JOB = "NEWSKILLS_JOB"
"""Variable that says: nobody sits before this run, and its server may come up after it."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check_servers(spec: RunSpec) -> None:
    """Refuse servers of this machine that are gone: a server that was started for a run ends with it.

    Raises ConfigError.
    """
    servers = [server for unit in spec.units for server in (unit.config.server, *unit.config.models.values())]
    for url in dict.fromkeys(server.base_url for server in servers):
        address = urlsplit(url or "")
        if address.hostname not in LOOPBACK or address.port is None:
            continue
        try:
            socket.create_connection((address.hostname, address.port), timeout=5).close()
        except OSError as error:
            again = f", or type: {spec.resume_with}" if spec.resume_with else ""
            raise ConfigError(
                f"No server answers at {url}: a server that was started for a run stops with the run.",
                hint=f"Start it again there{again}.",
            ) from error


def with_servers(spec: RunSpec, addresses: Mapping[str, str]) -> RunSpec:
    """Return `spec` with addresses (http://host:port) by role where no server is named; the main model's role is
    empty."""

    from newskills.run.planning.config import REPLICA

    further = [f"{url.rstrip('/')}/v1" for role, url in addresses.items() if role.startswith(REPLICA)]

    def placed(server: EndpointConfig, role: str) -> EndpointConfig:
        if server.base_url is not None or role not in addresses:
            return server
        server = structs.replace(server, base_url=f"{addresses[role].rstrip('/')}/v1")
        if role:
            return server
        return server.beside(*further)

    units = []
    for unit in spec.units:
        models = {role: placed(server, role) for role, server in unit.config.models.items()}
        config = structs.replace(unit.config, server=placed(unit.config.server, ""), models=models)
        units.append(structs.replace(unit, config=config))
    return structs.replace(spec, units=tuple(units))


def _parse_arguments(argv: list[str]) -> tuple[Path, dict[str, str]]:
    """Parse the command line into (folder, addresses by role). Raises ConfigError."""
    folder, *rest = argv or [""]
    if not folder or len(rest) % 2 or any(word != "--server" for word in rest[::2]):
        raise ConfigError(
            "usage: python -m newskills.run DIR [--server URL] [--server ROLE=URL …]   (DIR holds run.json)"
        )
    named = [word.partition("=")[::2] if not word.startswith("http") else ("", word) for word in rest[1::2]]
    return Path(folder), dict(named)


def main(argv: list[str]) -> int:
    """Exit code of the run."""
    collect_less_often()
    try:
        folder, addresses = _parse_arguments(argv)
        from newskills.run.engine.execute import execute
        from newskills.run.engine.work_queue import execute_shared
        from newskills.run.planning.spec import load_spec

        keep_imports()
        spec = load_spec(folder)
        again = structs.replace(spec, rerun_done=False)
        spec = with_servers(spec, addresses)
        if spec.working_dir and Path(spec.working_dir).is_dir():
            os.chdir(spec.working_dir)
        check_servers(spec)
        # Once the old results are gone, whoever takes this run up again goes on with the new ones.
        begin = partial(again.save, folder) if spec.rerun_done else None
        environ = {**os.environ, JOB: "1"}
        work = execute_shared if spec.shared else execute
        result = work(spec, begin=begin, environ=environ)
    except NewskillsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if result.message:
        sys.stderr.write(f"{result.message}\n")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
