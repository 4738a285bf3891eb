# SPDX-License-Identifier: Apache-2.0
"""Starts a zygote on the strongest rung that this machine allows, and sessions in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError, SandboxError
from newskills.sandbox.cgroups import Cgroups, Group
from newskills.sandbox.config import BLOCK_NETWORK_VARIABLE, SandboxConfig
from newskills.sandbox.languages import toolchain_folders
from newskills.sandbox.zygote import Channel, Zygote, environment

NOBODY = 65534
FIRST_SESSION_USER, SESSION_USERS = 600_000, 65_536
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
MEBI = 1 << 20
_FACTS = """
import json, site, sys, sysconfig
places = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, sysconfig.get_path("stdlib")]
json.dump({"places": places, "sites": site.getsitepackages(), "path": [p for p in sys.path if p]}, sys.stdout)
"""


class Launched:
    """A zygote and what its sessions left outside of it."""

    def __init__(self, zygote: Zygote, rung: str, config: SandboxConfig, cgroups: Cgroups | None) -> None:
        self.zygote, self.rung = zygote, rung
        self._config, self._cgroups = config, cgroups
        self._groups: dict[int, Group] = {}
        self._kills: dict[int, int] = {}
        self._folders: dict[int, str] = {}
        self._count = 0

    async def session(self, *, eager: bool) -> Channel:
        """A session that is ready for requests. Raises SandboxError."""
        self._count += 1
        message: dict[str, Any] = {"eager": eager}
        folder = "" if self.rung == "a" else self._folder(message)
        group = self._group()
        descriptors = group.enter_fds() if group else []
        try:
            channel = await self.zygote.spawn(message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if group:
            self._groups[channel.number] = group
        if folder:
            self._folders[channel.number] = folder
        await channel.ready()
        return channel

    def _folder(self, message: dict[str, Any]) -> str:
        folder = tempfile.mkdtemp(prefix="newskills-sandbox-")
        message["folder"] = folder
        if os.geteuid() == 0 and self.rung != "none":
            message["uid"] = FIRST_SESSION_USER + self._count % SESSION_USERS
            os.chown(folder, message["uid"], message["uid"])
        return folder

    def _group(self) -> Group | None:
        if self._cgroups is None:
            return None
        limits = self._config.limits
        name = f"newskills-{os.getpid()}-{id(self):x}-{self._count}"
        return self._cgroups.create(name, limits.memory_mb * MEBI, limits.processes + 2)

    def forget(self, number: int) -> None:
        """Removes what session `number`, which has ended, left in files and control groups."""
        self._kills.pop(number, None)
        group = self._groups.pop(number, None)
        if group is not None:
            group.remove()
        folder = self._folders.pop(number, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def out_of_memory(self, number: int) -> bool:
        """Whether the kernel has ended something of the session for its memory since the last time this was asked."""
        group = self._groups.get(number)
        if group is None:
            return False
        before, self._kills[number] = self._kills.get(number, 0), group.oom_kills()
        return self._kills[number] > before

    async def close(self) -> None:
        await self.zygote.close()
        for number in (*self._groups, *self._folders):
            self.forget(number)


async def launch(config: SandboxConfig, environ: Mapping[str, str]) -> Launched:
    """Raises SandboxError with the reason why a rung cannot be had, ConfigError for settings that contradict."""
    if config.network and environ.get(BLOCK_NETWORK_VARIABLE, "") not in ("", "0", "false"):
        raise ConfigError(f"{BLOCK_NETWORK_VARIABLE} is set, so the sandbox's network cannot be opened.")
    python = config.python or sys.executable
    facts = await _facts(python)
    reasons = []
    for rung in ("a", "b") if config.isolation == "auto" else (config.isolation,):
        settings = _settings(config, rung, facts)
        cgroups = await asyncio.to_thread(Cgroups.find) if rung != "none" else None
        try:
            zygote = await Zygote.start(python, settings)
            launched = Launched(zygote, rung, config, cgroups)
            await _prove(launched)
        except SandboxError as error:
            reasons.append(f"rung {rung}: {error.message}")
        else:
            return launched
    raise SandboxError(
        f"Code cannot be isolated on this machine ({' '.join(reasons)})",
        hint="`ns sandbox doctor` shows what is missing; --sandbox=none runs code without isolation, at your risk.",
    )


async def _prove(launched: Launched) -> None:
    """One session from beginning to end."""
    try:
        channel = await launched.session(eager=False)
        channel.close()
        await launched.zygote.ended(channel.number)
        launched.forget(channel.number)
    except BaseException:
        await launched.close()
        raise


async def _facts(python: str) -> dict[str, list[str]]:
    """Where the interpreter keeps what it needs. Raises SandboxError."""
    try:
        process = await asyncio.create_subprocess_exec(
            python, "-I", "-c", _FACTS, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        output, _ = await process.communicate()
        facts: dict[str, list[str]] = msgspec.json.decode(output)
    except (OSError, msgspec.DecodeError) as error:
        raise SandboxError(f"{python} is no Python interpreter that starts.") from error
    return facts


def _settings(config: SandboxConfig, rung: str, facts: Mapping[str, list[str]]) -> dict[str, Any]:
    limits = config.limits
    visible = [*facts["places"], *facts["path"], *toolchain_folders(config)]
    data_dir = str(Path(config.data_dir).resolve()) if config.data_dir else ""
    variables = environment(config.python or sys.executable)
    if data_dir:
        variables["DATA_DIR"] = "/data" if rung == "a" else data_dir
    return {
        "rung": rung,
        "uid": NOBODY,
        "network": config.network,
        "visible": visible,
        "readable": [*SYSTEM_FOLDERS, *visible, *([data_dir] if data_dir else [])],
        "packages": {},
        "data_dir": data_dir,
        "preload": list(config.preload),
        "environment": variables,
        "limits": {
            "memory": limits.memory_mb * MEBI,
            "disk": limits.disk_mb * MEBI,
            "files": limits.files,
            "processes": limits.processes,
            "open_files": limits.open_files,
            "address_space": True,
        },
    }
