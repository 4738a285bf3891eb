# SPDX-License-Identifier: Apache-2.0
"""One address for several instances of a deployment.

With an image in `execution.proxy` that is HAProxy, as in NVIDIA's launcher. Without, it is this file: each connection
goes to the instance that has the fewest. `python -m newskills_evaluator.deployments.balancer PORT HOST:PORT…`
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Sequence

from newskills.base.plan import Ready, Ref, Script, Word
from newskills_evaluator.deployments.programs import BALANCER

CHUNK = 1 << 16
HAPROXY = r"""
port=$1 health=$2 number=0
shift 2
config=${TMPDIR:-/tmp}/haproxy-$port.$$.cfg
{
    printf 'global\n  maxconn 8192\ndefaults\n  mode http\n  timeout connect 10s\n  timeout client 12h\n'
    printf '  timeout server 12h\nfrontend all\n  bind *:%s\n  default_backend instances\n' "$port"
    printf 'backend instances\n  balance leastconn\n  option httpchk GET %s\n' "$health"
    for one; do printf '  server s%s %s check\n' "$((number += 1))" "${one#http://}"; done
} >"$config" || exit 1
exec haproxy -f "$config"
"""


def proxy_script(name: str, instances: Sequence[str], health: str, *, python: str, image: str | None) -> Script:
    """Return the script of the command `name`, a proxy in front of the servers `instances`."""
    own: Word = Ref(name, "port")
    targets: list[Word] = [Ref(instance, "address") for instance in instances]
    ready = Ready(path=health, patience=300.0)
    if image:
        return Script(argv=("bash", "-c", HAPROXY, "bash", own, health, *targets), port=0, ready=ready)
    argv = (python, "-m", BALANCER, own, *targets)
    return Script(argv=argv, port=0, ready=ready)


async def balance_connections(port: int, instances: Sequence[tuple[str, int]]) -> None:
    """Serve on `port` until cancelled. Raises OSError where the port is taken."""
    used: Counter[tuple[str, int]] = Counter(dict.fromkeys(instances, 0))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for target in sorted(instances, key=lambda instance: used[instance]):
            try:
                there, back = await asyncio.open_connection(*target)
            except OSError:
                continue
            used[target] += 1
            try:
                await asyncio.gather(_copy_stream(reader, back), _copy_stream(there, writer))
            finally:
                used[target] -= 1
            return
        writer.close()

    server = await asyncio.start_server(serve, None, port)
    async with server:
        await server.serve_forever()


async def _copy_stream(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy until one side ends; the other then learns it."""
    with contextlib.suppress(ConnectionError):
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
    with contextlib.suppress(ConnectionError, RuntimeError):
        target.close()
        await target.wait_closed()


def main(words: Sequence[str]) -> None:
    pairs = [word.removeprefix("http://").rpartition(":") for word in words[1:]]
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(balance_connections(int(words[0]), [(host, int(port)) for host, _, port in pairs]))


if __name__ == "__main__":
    main(sys.argv[1:])
