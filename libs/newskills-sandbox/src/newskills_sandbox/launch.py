# SPDX-License-Identifier: Apache-2.0
"""Starts a zygote on the strongest isolation level that this machine allows, and sessions in it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from newskills_sandbox.cgroups import Cgroups, ControlGroup
from newskills_sandbox.errors import SandboxError, SettingsError
from newskills_sandbox.inside.folders import remove
from newskills_sandbox.languages import toolchain_folders
from newskills_sandbox.languages.headers import SHOWN, VARIABLE, header_folder
from newskills_sandbox.packages import Interpreter, examine_interpreter, link_folders, narrow_places
from newskills_sandbox.settings import SandboxSettings
from newskills_sandbox.variables import BLOCK_NETWORK_VARIABLE
from newskills_sandbox.zygote import Channel, Zygote, sandbox_environment

NOBODY = 65534
FIRST_SESSION_USER, SESSION_USERS = 600_000, 65_536
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
MEBI = 1 << 20
_PROOF = {"do": "script", "code": "import wave", "stdin": "", "timeout": 30.0, "characters": 4000}
"""`wave`: any module of the standard library that no one else imports."""


def session_users(uid_map: str) -> range:
    """Choose user ids for sessions: far from those of people, or, in a container that maps few, the upper ones of
    these.

    `uid_map` is the text of /proc/self/uid_map. Raises SandboxError where there is no second user.
    """
    spans = [tuple(map(int, line.split())) for line in uid_map.splitlines()]
    usual = range(FIRST_SESSION_USER, FIRST_SESSION_USER + SESSION_USERS)
    if any(first <= usual.start and usual.stop <= first + count for first, _, count in spans):
        return usual
    first, _, count = max(spans, key=lambda span: span[2])
    user_ids = range(first + count // 2, min(first + count, NOBODY))
    if not user_ids or not user_ids.start:
        raise SandboxError("This container maps only one user, so sessions cannot get users of their own.")
    return user_ids


class LaunchedZygote:
    """A zygote and what its sessions left outside of it.

    missing  modules that would have been preloaded by default but are not installed
    links    folders that go when the zygote goes
    """

    def __init__(self, zygote: Zygote, level: str, settings: SandboxSettings, cgroups: Cgroups | None) -> None:
        self.zygote, self.isolation_level = zygote, level
        self._settings, self._cgroups = settings, cgroups
        self._groups: dict[int, ControlGroup] = {}
        self._kills: dict[int, int] = {}
        self._unsettled: set[int] = set()
        self._folders: dict[int, str] = {}
        self._count = 0
        self.missing: tuple[str, ...] = ()
        self.links: tuple[str, ...] = ()

    async def session(self, *, eager: bool) -> Channel:
        """Start a session, and return its channel when it is ready for requests. Raises SandboxError."""
        self._count += 1
        message: dict[str, Any] = {"eager": eager}
        folder = "" if self.isolation_level == "a" else self._make_folder(message)
        group = self._make_group()
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

    def _make_folder(self, message: dict[str, Any]) -> str:
        own_user = os.geteuid() == 0 and self.isolation_level != "none"
        if own_user:
            users = session_users(Path("/proc/self/uid_map").read_text(encoding="ascii"))
            message["uid"] = users[self._count % len(users)]
        folder = tempfile.mkdtemp(prefix="newskills-sandbox-")
        message["folder"] = folder
        if own_user:
            os.chown(folder, message["uid"], message["uid"])
        return folder

    def _make_group(self) -> ControlGroup | None:
        if self._cgroups is None:
            return None
        limits = self._settings.limits
        name = f"newskills-{os.getpid()}-{id(self):x}-{self._count}"
        return self._cgroups.create(name, limits.memory_mb * MEBI, limits.processes + 2)

    def forget(self, number: int) -> None:
        """Remove what session `number`, which has ended, left in files and control groups."""
        self._kills.pop(number, None)
        self._unsettled.discard(number)
        group = self._groups.pop(number, None)
        if group is not None:
            group.remove()
        folder = self._folders.pop(number, None)
        if folder is not None:
            remove(folder)

    def out_of_memory(self, number: int) -> bool:
        """Return whether the kernel has ended something of the session for its memory since the last time this was
        asked.
        """
        group = self._groups.get(number)
        if group is None:
            return False
        before, self._kills[number] = self._kills.get(number, 0), group.oom_kills()
        if more := self._kills[number] > before:
            self._unsettled.add(number)
        return more

    def settle(self, number: int) -> None:
        """Forget, before a request, what the kernel ended for the kernel still ended after the last one's excess is not
        this one's doing."""
        if number in self._unsettled:
            self._unsettled.discard(number)
            self._kills[number] = self._groups[number].oom_kills()

    async def close(self) -> None:
        await self.zygote.close()
        for number in (*self._groups, *self._folders):
            self.forget(number)
        _remove_folders(self.links)


def _remove_folders(folders: Iterable[str]) -> None:
    for folder in folders:
        remove(folder)


async def launch_zygote(settings: SandboxSettings, environ: Mapping[str, str]) -> LaunchedZygote:
    """Start the process that makes sessions, at the first isolation level of `settings` that can be had. Raises
    SandboxError with the reasons why none can, SettingsError for settings that contradict."""
    if settings.network and environ.get(BLOCK_NETWORK_VARIABLE, "") not in ("", "0", "false"):
        raise SettingsError(f"{BLOCK_NETWORK_VARIABLE} is set, so the sandbox cannot use the network.")
    interpreter = await examine_interpreter(settings)
    reasons = []
    levels = ("a", "b") if settings.isolation == "auto" else (settings.isolation,)
    for level in levels:
        orders = _zygote_orders(settings, level, interpreter)
        cgroups = await asyncio.to_thread(Cgroups.find) if level != "none" else None
        try:
            zygote = await Zygote.start(interpreter.program, orders)
            launched = LaunchedZygote(zygote, level, settings, cgroups)
            launched.missing, launched.links = interpreter.missing, tuple(orders["links"].values())
            await _prove_session(launched)
        except SandboxError as error:
            _remove_folders(orders["links"].values())
            reasons.append(f"isolation level {level}: {error.message}")
        else:
            return launched
    raise SandboxError(
        f"Code cannot be isolated on this machine ({' '.join(reasons)})",
        hint=settings.words.doctor,
    )


async def _prove_session(launched: LaunchedZygote) -> None:
    """Run one session from beginning to end, with a script that needs the interpreter's own files."""
    try:
        channel = await launched.session(eager=False)
        outcome = await channel.ask(_PROOF)
        if outcome is None or outcome["exit"] != 0:
            tail = outcome["err"].strip().splitlines() if outcome else []
            reason = tail[-1] if tail else "it printed nothing"
            raise SandboxError(
                f"its first script failed ({reason}); every user must be "
                "able to read the interpreter and its packages."
            )
        channel.close()
        await launched.zygote.await_end(channel.number)
        launched.forget(channel.number)
    except BaseException:
        await launched.close()
        raise


def _zygote_orders(settings: SandboxSettings, level: str, interpreter: Interpreter) -> dict[str, Any]:
    """Return what the zygote is told."""
    limits = settings.limits
    visible = [*interpreter.visible, *toolchain_folders(settings)]
    data_dir = str(Path(settings.data_dir).resolve()) if settings.data_dir else ""
    variables = sandbox_environment(interpreter.program)
    bound = {"/data": data_dir} if data_dir else {}
    bound |= {place: os.path.realpath(folder) for place, folder in settings.folders.items()}
    if level == "a" and (headers := header_folder()):
        bound[SHOWN] = headers
        variables[VARIABLE] = SHOWN
    if data_dir:
        variables["DATA_DIR"] = "/data" if level == "a" else data_dir
    if level == "b":
        readable, listed = narrow_places([*SYSTEM_FOLDERS, *visible], interpreter.shown)
    else:
        readable, listed = ([], [])
    links_shown = link_folders(interpreter.shown) if level != "a" else {}
    return {
        "isolation_level": level,
        "uid": NOBODY,
        "network": settings.network,
        "visible": visible,
        "readable": [*readable, *links_shown.values(), *([data_dir] if data_dir else [])],
        "listed": listed,
        "packages": interpreter.shown,
        "links": links_shown,
        "bound": bound,
        "preload": interpreter.preload,
        "environment": variables,
        "limits": {
            "memory": limits.memory_mb * MEBI,
            "disk": limits.disk_mb * MEBI,
            "files": limits.files,
            "processes": limits.processes,
            "open_files": limits.open_files,
            "address_space": settings.address_space,
        },
    }
