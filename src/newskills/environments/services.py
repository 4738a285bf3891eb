# SPDX-License-Identifier: Apache-2.0
"""The containers beside the agent's in an environment of several: started in order, removed with it."""

from __future__ import annotations

import asyncio
import ipaddress
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from msgspec import structs

from newskills.base.aio import wait_until_healthy
from newskills.base.environment import (
    AllowedHosts,
    EnvironmentSpec,
    GroupNetwork,
    TaskService,
)
from newskills.base.errors import ConfigError, EnvironmentFailedError
from newskills.environments.allowed_hosts import HostProxy, HostRules
from newskills.environments.archives import pack_files
from newskills.environments.engines.engine import Argv, EngineProgram, GroupProgram
from newskills.environments.programs import EndedProgram, last_line, run_program

HOUSEKEEPING = 120.0
COPYING = 1800.0
FIRST_HOST = 2
"""Number in its network of the first service; the one before is the way out, which this network has not."""


def group_program(engine: EngineProgram, spec: EnvironmentSpec) -> GroupProgram:
    """Return what runs the group of an environment. Raises ConfigError for an engine that knows no groups."""
    if engine.groups is None:
        names = ", ".join(service.name for service in spec.group.services) if spec.group is not None else ""
        why = f"needs several containers ({names}), which {engine.program} cannot join"
        if spec.allowed is not None:
            why = f"allows some hosts of the network only, which {engine.program} cannot keep to"
        raise ConfigError(
            f"The task {why}.",
            hint="Use ++environment.engine=podman or docker.",
        )
    return engine.groups


class Companions:
    """Of one environment, whose container bears `name`; the names of all that is made here begin with it."""

    def __init__(
        self, engine: EngineProgram, spec: EnvironmentSpec, name: str, environ: Mapping[str, str]
    ) -> None:
        assert spec.group is not None
        self._engine, self._spec, self._name, self._environ = engine, spec, name, environ
        self._group = spec.group
        self._program = group_program(engine, spec)
        place = self._group.services.index(self._group.main_service)
        self._before, self._after = self._group.services[:place], self._group.services[place + 1 :]
        self._containers = {service.name: f"{name}.{service.name}" for service in self._before + self._after}
        self._containers[self._group.main] = name
        allowed = spec.allowed
        self._online = not spec.offline and (allowed is None or allowed.first is None)
        self._proxy: HostProxy | None = None

    async def start_before(self, timeout: float) -> EnvironmentSpec:
        """Start what comes before the agent's container and return the specification of that one. Raises ConfigError
        (image), EnvironmentFailedError."""
        await self._do(self._program.make_network(self._name), "make a network")
        shown = await self._do(self._program.subnet(self._name), "tell the network's addresses")
        network = ipaddress.ip_network(last_line(shown.output))
        if self._spec.allowed is not None:
            await self._do(self._program.remove_network(self._name), "remove a network")
            await self._do(self._program.make_network(self._name, str(network)), f"make the network {network}")
        addresses = {
            service.name: str(network[number]) for number, service in enumerate(self._group.services, FIRST_HOST)
        }
        for service in self._group.services:
            addresses |= dict.fromkeys(service.aliases, addresses[service.name])
        if self._spec.allowed is not None and not self._spec.offline:
            await self._open_proxy(str(network[1]), list(addresses), self._spec.allowed)
            addresses |= {host: str(network[1]) for host in self._spec.allowed.named if host not in addresses}
        self._spec = structs.replace(self._spec, network=GroupNetwork(name=self._name, addresses=addresses))
        for volume in sorted({name for service in self._group.services for name in service.volumes}):
            await self._do(self._program.make_volume(f"{self._name}.{volume}"), f"make the volume {volume}")
        for service in self._before:
            await self._start(service, timeout)
        await self._await_needs(self._group.main_service, timeout)
        return self._spec

    async def start_after(self, timeout: float) -> None:
        """Prepare the agent's container, which runs by now, start what needs it, and wait until all are healthy.
        Raises as `start_before`."""
        main = self._group.main_service
        if self._proxy is not None:
            self._proxy.check()
        await self._copy_files(main)
        if self._online:
            await self._connect(main.name, online=True)
        for service in self._after:
            await self._start(service, timeout)
        for service in self._group.services:
            await self._await_health(service)

    async def set_network(self, *, online: bool, hosts: Sequence[str]) -> None:
        """Give the network to all containers, or these hosts alone. Raises EnvironmentFailedError."""
        if self._proxy is not None:
            self._proxy.rules = HostRules(None if online else hosts)
        if online != self._online:
            for service in self._group.services:
                await self._connect(service.name, online=online)
            self._online = online

    async def remove(self) -> None:
        """Remove the containers but the agent's, the network and the volumes. What is not there is passed over."""
        others = [self._containers[service.name] for service in self._before + self._after]
        for name in others:
            for argv in self._engine.remove(name):
                await self._call(argv, HOUSEKEEPING)

    async def remove_places(self) -> None:
        """Remove the network and the volumes, once no container uses them."""
        if self._proxy is not None:
            await self._proxy.close()
        await remove_places(self._program, [self._name], self._environ)

    async def _open_proxy(self, place: str, own: list[str], allowed: AllowedHosts) -> None:
        """Open the way to allowed hosts, and tell all containers of it. Raises EnvironmentFailedError."""
        self._proxy = HostProxy(place)
        await self._proxy.start()
        self._proxy.rules = HostRules(allowed.first)
        variables = self._proxy.variables(own)
        self._spec = structs.replace(self._spec, variables={**variables, **self._spec.variables})
        self._before, self._after = (
            [structs.replace(service, variables={**variables, **service.variables}) for service in services]
            for services in (self._before, self._after)
        )

    async def _start(self, service: TaskService, timeout: float) -> None:
        await self._await_needs(service, timeout)
        name = self._containers[service.name]
        made = await self._call(self._program.make_service(name, service, self._spec), timeout)
        if made.exit_code != 0:
            raise EnvironmentFailedError(
                f"{self._engine.program} cannot make the container of service {service.name} of image "
                f"'{service.image}': {made.last_line}",
                hint=self._engine.image_hint(),
            )
        await self._copy_files(service)
        if self._online:
            await self._connect(service.name, online=True)
        await self._do(self._program.start_service(name), f"start service {service.name}")

    async def _copy_files(self, service: TaskService) -> None:
        if not service.files:
            return
        with tempfile.TemporaryFile() as archive:
            await asyncio.to_thread(pack_files, service.files, archive)
            argv = self._engine.unpack(self._containers[service.name], self._spec, "/")
            await self._do(argv, f"copy files to service {service.name}", archive)

    async def _connect(self, service: str, *, online: bool) -> None:
        argv = self._engine.connect(self._containers[service], online=online)
        action = "open" if online else "close"
        await self._do(argv, f"{action} the network of service {service}")

    async def _await_needs(self, service: TaskService, timeout: float) -> None:
        for needed, condition in service.needs.items():
            if condition == "healthy":
                await self._await_health(next(other for other in self._group.services if other.name == needed))
            elif condition == "completed":
                ended = await self._call(self._program.wait_for_end(self._containers[needed]), timeout)
                if ended.exit_code != 0 or ended.last_line != "0":
                    raise await self._failure_of(needed, "has not ended well")

    async def _await_health(self, service: TaskService) -> None:
        check = service.health
        if check is None:
            return
        argv = self._program.enter_service(self._containers[service.name], shlex.split(check.command))
        failed = await wait_until_healthy(lambda timeout: self._call(argv, timeout), check)
        if failed is not None:
            raise await self._failure_of(service.name, f"is not healthy (`{check.command}`: {failed.last_line})")

    async def _failure_of(self, service: str, why: str) -> EnvironmentFailedError:
        shown = await self._call(self._program.last_words(self._containers[service]), HOUSEKEEPING)
        return EnvironmentFailedError(f"Service {service} of the task {why}; its output ends: {shown.last_line}")

    async def _do(self, argv: Argv, what: str, stdin: IO[bytes] | bytes = b"") -> EndedProgram:
        done = await self._call(argv, COPYING if stdin else HOUSEKEEPING, stdin)
        if done.exit_code != 0:
            raise EnvironmentFailedError(f"{self._engine.program} cannot {what}: {done.last_line}")
        return done

    async def _call(self, argv: Argv, timeout: float, stdin: IO[bytes] | bytes = b"") -> EndedProgram:
        try:
            return await run_program(argv, timeout=timeout, environ=self._environ, stdin=stdin)
        except OSError as error:
            raise EnvironmentFailedError(f"{argv[0]} cannot be started: {error}.") from error


async def places_of(program: GroupProgram, environ: Mapping[str, str]) -> list[tuple[str, Argv]]:
    """Return (name, what removes it) of the networks and volumes of all environments on this machine."""
    places: list[tuple[str, Argv]] = []
    for listing, removing in program.others():
        shown = await run_program(listing, timeout=HOUSEKEEPING, environ=environ)
        places += [(name, [*removing, name]) for name in shown.output.decode("utf-8", "replace").split()]
    return places


async def remove_places(program: GroupProgram, owners: list[str], environ: Mapping[str, str]) -> list[str]:
    """Remove the networks and volumes of these environments; return their names."""
    removed: list[str] = []
    for name, argv in await places_of(program, environ):
        if any(name == owner or name.startswith(f"{owner}.") for owner in owners):
            await run_program(argv, timeout=HOUSEKEEPING, environ=environ)
            removed.append(name)
    return removed
