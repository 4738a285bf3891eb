# SPDX-License-Identifier: Apache-2.0
"""The process all sessions are forked from: confined first, then loaded with packages, so that a session starts in
milliseconds with everything imported.

Level a: process 1 of a pid name space, in the sandbox's own file tree, without privileges. When it ends, the kernel
ends every session. Level b and none: the reaper of all that sessions leave behind.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys

from newskills_sandbox.inside import landlock, linux, processes, root, supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MESSAGE = 1 << 16
DESCRIPTORS = 8
NAMESPACES = linux.CLONE_NEWPID | linux.CLONE_NEWNS
SESSION_NAMESPACES = (
    linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
)


def main(descriptor: int) -> None:
    """Serve the control socket `descriptor` until the host closes it."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    linux.close_descriptors({0, 1, 2, descriptor})
    settings: dict[str, Any] = json.loads(control.recv(MESSAGE))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host to act upon
    os.umask(0o022)  # the tree must be readable for the user that sessions run as
    try:
        if settings["isolation_level"] == "a":
            _enter_namespaces(settings)
        elif settings["isolation_level"] == "b" and (
            weak := landlock.too_weak(landlock.landlock_version(), os.geteuid())
        ):
            raise OSError(weak)
        sys.path[:] = [settings["links"].get(os.path.realpath(place), place) for place in sys.path]
        _load_modules(settings["preload"])
        control.send(json.dumps({"ready": True}).encode())
    except (OSError, ImportError) as error:
        control.send(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)
    ForkServer(control, settings).serve()
    os._exit(0)


def _enter_namespaces(settings: dict[str, Any]) -> None:
    """Continue as process 1 of new name spaces; the caller stays behind and ends when that process ends."""
    user, group = os.geteuid(), os.getegid()
    privileged = user == 0
    flags = NAMESPACES if privileged else NAMESPACES | linux.CLONE_NEWUSER
    child = linux.clone(flags)
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    linux.die_with_parent()
    if not privileged:
        map_user(user, group, user)
    settings["covered"] = root.build(
        settings["visible"], settings["packages"], settings["bound"], network=settings["network"]
    )
    if privileged:
        nobody = settings["uid"]
        os.setgroups([])
        os.setresgid(nobody, nobody, nobody)
        os.setresuid(nobody, nobody, nobody)
        linux.die_with_parent()  # the kernel forgets it when the user changes
    linux.drop_capabilities()
    linux.no_new_privileges()
    linux.set_dumpable(True)


def map_user(user: int, group: int, inside: int) -> None:
    """Map `user` and `group` outside to `inside` in the user name space that this process has just entered."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside} {user} 1"),
        ("gid_map", f"{inside} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _load_modules(modules: list[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    # What is loaded is never collected: the pages stay shared by all sessions.
    gc.collect()
    gc.freeze()


class ForkServer:
    """Forks supervisors as the host asks for them and says when one has ended."""

    def __init__(self, control: socket.socket, settings: dict[str, Any]) -> None:
        self._control, self._settings = control, settings
        self._children: dict[int, int] = {}
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake_writer = wake
        if settings["isolation_level"] != "a":
            linux.subreaper()

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._wake.fileno():
                    processes.drain(self._wake)
                    processes.reap(self._note_end)
                elif not self._obey_host():
                    self._end_all()
                    return

    def _obey_host(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE, DESCRIPTORS)
        if not data:
            return False
        message = json.loads(data)
        if message["do"] == "spawn":
            self._spawn_session(message, descriptors)
        elif message["do"] == "kill":
            for pid, number in self._children.items():
                if number == message["session"]:
                    os.kill(pid, signal.SIGKILL)
        return True

    def _spawn_session(self, message: dict[str, Any], descriptors: list[int]) -> None:
        number = message["session"]
        try:
            pid = self._fork_supervisor()
        except OSError as error:
            self._tell_host({"ended": number, "error": str(error)})
        else:
            if pid == 0:
                supervisor.main(self._settings, message, descriptors)
            self._children[pid] = number
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork_supervisor(self) -> int:
        if self._settings["isolation_level"] != "a":
            return os.fork()
        user, group = os.geteuid(), os.getegid()
        network = 0 if self._settings["network"] else linux.CLONE_NEWNET
        pid = linux.clone(SESSION_NAMESPACES | network)
        if pid == 0:
            map_user(user, group, root.USER)
        return pid

    def _note_end(self, pid: int, status: int) -> None:
        number = self._children.pop(pid, None)
        if number is not None:
            self._tell_host({"ended": number, "status": os.waitstatus_to_exitcode(status)})
            if self._settings["isolation_level"] != "a":
                self._end_orphans()

    def _tell_host(self, message: dict[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except OSError:
            sys.exit(0)  # the host is gone

    def _end_orphans(self) -> None:
        """End what a supervisor that was killed has left behind: it has become our child."""
        processes.end(lambda: processes.below(self._children))

    def _end_all(self) -> None:
        if self._settings["isolation_level"] != "a":
            processes.end(processes.below)
