# SPDX-License-Identifier: Apache-2.0
"""The untrusted side: a process that gives up its rights and then runs what a model wrote.

A worker holds no secret and its supervisor believes nothing it says but "this cell is over".
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys

from newskills_sandbox.inside import cell, linux, processes, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

REQUEST = struct.Struct("!16sBIII")
"""Nonce, index of the traceback style, number of the cell, bytes of standard input, bytes of code."""
REPLY = struct.Struct("!16sB")
"""Nonce, 1 where an exception ended the cell."""
STYLES = ("Plain", "Context", "Verbose", "Minimal")
BETWEEN_LOOKS = 1024
"""Processes that an ordinary user's code may start on level b until the supervisor looks and ends it."""
SPARE_OUT, SPARE_ERR, CONTROL = 240, 241, 242


def become(
    settings: dict[str, Any], out: int, err: int, stdin: int = -1, control: int = -1, failure: int = -1
) -> None:
    """Turn a fresh child into a worker: descriptors, signals, limits, system calls. Raises OSError."""
    os.setsid()
    for group in settings["groups"]:
        os.write(group, b"0")
    if stdin < 0:
        stdin = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((stdin, 0), (out, 1), (err, 2), (control, CONTROL)):
        if source >= 0:
            os.dup2(source, target, inheritable=target < 3)
    keep = {0, 1, 2, failure}
    if control >= 0:
        os.dup2(1, SPARE_OUT, inheritable=False)
        os.dup2(2, SPARE_ERR, inheritable=False)
        keep |= {SPARE_OUT, SPARE_ERR, CONTROL}
    linux.close_descriptors(keep)
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ, 32, 33):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:  # `random` reseeds itself after a fork; numpy's global generator does not
        numpy_random.seed()
    confine(settings)


def confine(settings: dict[str, Any]) -> None:
    """Set limits, then remove the rights that no child can have again."""
    limits = settings["limits"]
    files = limits["disk"]
    rows = [
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_FSIZE, files),
        # One byte: a core pattern that pipes to a program of the host runs at 0, and is left out at 1 (core(5)).
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_SIGPENDING, 1024),
    ]
    if limits["address_space"]:
        rows.append((resource.RLIMIT_AS, processes.virtual_size() + limits["memory"]))
    if settings["isolation_level"] == "a" or settings["uid"]:
        rows.append((resource.RLIMIT_NPROC, limits["processes"]))
    elif (
        settings["isolation_level"] == "b"
    ):  # the user's other processes count, too; the supervisor's look finds the rest
        rows.append((resource.RLIMIT_NPROC, processes.of_user(os.getuid()) + BETWEEN_LOOKS))
    for which, most in rows:
        hard = resource.getrlimit(which)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (value, value))
    linux.set_dumpable(True)  # inherited from the supervisor, who hides; /proc/self must be readable
    with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(b"900")  # where memory runs out all the same, the kernel takes this process first
    if settings["isolation_level"] == "b":
        _confine_without_namespaces(settings)
    if settings["isolation_level"] != "none":
        seccomp.install(network=settings["network"], namespaced=settings["isolation_level"] == "a")


def _confine_without_namespaces(settings: dict[str, Any]) -> None:
    from newskills_sandbox.inside import landlock

    if os.geteuid() == 0:
        user = settings["uid"]
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        linux.drop_capabilities()
        linux.set_dumpable(True)
    devices = [f"/dev/{name}" for name in ("null", "full", "random", "urandom")]
    landlock.restrict_process(
        read=settings["readable"],
        write=[settings["folder"], *devices],
        network=settings["network"],
        listed=settings["listed"],
    )


def cells(settings: dict[str, Any], control: socket.socket, out: int, err: int) -> None:
    """Run cells in one lasting namespace until the control socket ends. Never returns."""
    become(settings, out, err, control=control.fileno())
    control.detach()
    session = cell.Session()
    read, write, leave, pid = os.read, os.write, os._exit, os.getpid
    own = pid()
    while True:
        try:
            head = _read_exactly(read, REQUEST.size)
            nonce, style, number, input_size, size = REQUEST.unpack(head)
            stdin, code = _read_exactly(read, input_size), _read_exactly(read, size)
            os.dup2(SPARE_OUT, 1)
            os.dup2(SPARE_ERR, 2)
            failed = session.run(code.decode(), stdin.decode(), STYLES[style], number)
            if pid() != own:  # a fork that came out of the cell
                leave(0)
            write(CONTROL, REPLY.pack(nonce, failed))
        except BaseException:  # noqa: BLE001 - the cell broke its own worker; the supervisor starts another
            leave(70)


def _read_exactly(read: Any, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        piece = read(CONTROL, min(size - len(pieces), 1 << 20))
        if not piece:
            os._exit(0)
        pieces += piece
    return bytes(pieces)


def script(settings: dict[str, Any], code: str, stdin: int, out: int, err: int) -> None:
    """Run `code` as the interpreter runs a file given to it, with everything preloaded. Never returns."""
    become(settings, out, err, stdin=stdin)
    cell.run_script(code)


def program(settings: dict[str, Any], argv: list[str], stdin: int, out: int, err: int, failure: int) -> None:
    """Execute another program. Never returns; where there is no such program, `failure` (closed on exec) says why."""
    become(settings, out, err, stdin=stdin, failure=failure)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by this interpreter, expected by others
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, settings["environment"])  # noqa: S606 - an argument list, no shell
    except OSError as error:
        os.write(failure, f"{argv[0]}: {error.strerror}".encode())
    os._exit(127)
