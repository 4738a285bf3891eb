# SPDX-License-Identifier: Apache-2.0
"""What this machine lets a sandbox do, found out by doing it: each trial in a process of its own, with a deadline.

Prints one JSON list of [name, ok, detail]. Run by the interpreter that the sandbox will use.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys

from newskills_sandbox.inside import landlock, linux, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY = 65534
DEADLINE = 5.0  # seconds of one trial
_ALL_NAMESPACES = (
    linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
)
_PLACE = "/mnt"
_PR_GET_NO_NEW_PRIVS = 39
# What each version of Landlock added, for the detail of an older one.
_LANDLOCK_ADDED = (
    (2, "moving files between folders"),
    (3, "denying truncation"),
    (4, "denying TCP"),
    (5, "denying device ioctls"),
    (6, "denying signals to and abstract sockets of outsiders"),
)


class Refused(Exception):
    """A trial that went through but shows that the thing does not hold."""


def become_nobody() -> None:
    """Change, as root, to the unprivileged user that sessions belong to. Others stay who they are."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        linux.set_dumpable(True)  # lost with the change of user; without it /proc/self belongs to root


def _run_forked(action: Callable[[], str], flags: int | None = None) -> str:
    """Return the result of `action` in a child, in new name spaces if `flags` are given. Raises Refused with what it
    raised."""
    reader, writer = os.pipe()
    pid = os.fork() if flags is None else linux.clone(flags)
    if pid == 0:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, DEADLINE)  # its default action ends the process
            text = action()
            code = 0
        except BaseException as error:  # noqa: BLE001 - a child must not return into its parent's code
            text = str(error) or type(error).__name__
        os.write(writer, text.encode("utf-8", "replace")[:4096])
        os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        output = pipe.read().decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGALRM:
        raise Refused(f"no answer within {DEADLINE:g} s")
    if status:
        raise Refused(output or f"ended by signal {-status}")
    return output


def _as_session(flags: int, action: Callable[[], str]) -> Callable[[], str]:
    """Return `action` as it runs in a user name space made without privileges, together with the name spaces
    `flags`."""

    def outer() -> str:
        become_nobody()
        user, group = os.geteuid(), os.getegid()

        def inner() -> str:
            maps = (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"))
            for name, text in maps:
                with open(f"/proc/self/{name}", "wb") as file:
                    file.write(text.encode())
            return action()

        return _run_forked(inner, linux.CLONE_NEWUSER | flags)

    return outer


def _try_nothing() -> str:
    return ""


def _try_hostname() -> str:
    linux.set_hostname("sandbox")
    return ""


def _try_loopback() -> str:
    linux.loopback_up()
    with open("/proc/self/net/dev", encoding="utf-8") as table:
        names = [line.split(":")[0].strip() for line in table if ":" in line]
    if names != ["lo"]:
        raise Refused(f"the new network has {', '.join(names)}")
    return "loopback only"


def _first_process() -> str:
    if os.getpid() != 1:
        raise Refused(f"the first process has number {os.getpid()}")
    return ""


def _private_mounts() -> str:
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    return ""


def _try_tmpfs() -> str:
    _private_mounts()
    linux.mount("tmpfs", _PLACE, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=64k,nr_inodes=8,mode=755")
    try:
        with open(f"{_PLACE}/full", "wb") as file:
            file.write(b"x" * (1 << 17))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return "size and nr_inodes hold"
    raise Refused("size= is not enforced")


def _pivot_root() -> str:
    _private_mounts()
    linux.mount("tmpfs", _PLACE, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=64k,nr_inodes=8,mode=755")
    os.chdir(_PLACE)
    linux.pivot_root(".", ".")
    linux.umount(".", linux.MNT_DETACH)
    if os.listdir("/"):
        raise Refused("the old files are still there")
    return ""


def _try_proc() -> str:
    _private_mounts()
    try:
        linux.mount("proc", _PLACE, "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    except PermissionError as error:
        masks = _masked_places()
        if not masks:
            raise
        raise Refused(
            f"{error}: a container hides {', '.join(masks)}; then no fresh /proc may be mounted"
        ) from None
    numbers = [name for name in os.listdir(_PLACE) if name.isdigit()]
    if numbers != ["1"]:
        raise Refused(f"a fresh /proc shows {len(numbers)} processes")
    return ""


def _masked_places() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as table:
        return sorted({place for line in table if (place := line.split(" ", 5)[4]).startswith("/proc/")})


def _try_whole() -> str:
    """Try the sandbox's own shape: name spaces of the first process, and inside them those of a session."""

    def session() -> str:
        _try_proc()
        return _pivot_root()

    if os.geteuid() == 0:
        return _run_forked(_as_session(_ALL_NAMESPACES, session), linux.CLONE_NEWPID | linux.CLONE_NEWNS)
    nested = _as_session(_ALL_NAMESPACES, session)
    return _as_session(linux.CLONE_NEWPID | linux.CLONE_NEWNS, lambda: _run_forked(nested))()


def _try_seccomp() -> str:
    seccomp.install(network=False, namespaced=False)
    try:
        linux.umount("/nowhere")
    except PermissionError:
        return os.uname().machine
    except FileNotFoundError:
        pass
    raise Refused("the filter lets umount through")


def _no_new_privileges() -> str:
    linux.no_new_privileges()
    if linux.prctl(_PR_GET_NO_NEW_PRIVS) != 1:
        raise Refused("it does not stay set")
    return ""


def _try_landlock() -> str:
    version = landlock.landlock_version()
    if version == 0:
        raise Refused("not in this kernel, or switched off (lsm= at boot)")
    if weak := landlock.too_weak(version, os.geteuid()):
        raise Refused(weak)
    become_nobody()
    landlock.restrict_process(read=["/usr"], write=[], network=False)
    try:
        os.listdir("/")
    except PermissionError:
        missing = [what for since, what in _LANDLOCK_ADDED if version < since]
        without = f", without {', '.join(missing)}" if missing else ""
        return f"version {version}" + without
    raise Refused("it does not hide /")


def _try_limits() -> str:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = 1 << 30 if hard == resource.RLIM_INFINITY else min(1 << 30, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        bytearray(2 << 30)
    except MemoryError:
        return ""
    raise Refused("RLIMIT_AS is not enforced")


def _user_name() -> str:
    if os.geteuid() == 0:
        return "root"
    return f"uid {os.geteuid()}"


def _try_python() -> str:
    """Tell whether the session's user can read the interpreter where it lies."""
    places = [os.path.realpath(sys.executable), sys.prefix, *(path for path in sys.path if os.path.exists(path))]
    become_nobody()
    for place in places:
        if os.path.isdir(place) or place == places[0]:
            needed_rights = os.R_OK | os.X_OK
        else:
            needed_rights = os.R_OK
        if not os.access(place, needed_rights):
            parts = place.split("/")
            folders = ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]
            closed = next((each for each in folders if not os.access(each, os.X_OK)), place)
            raise Refused(
                f"{place} cannot be read by uid {os.geteuid()}: {closed} is closed to it (matters at "
                "isolation level b)"
            )
    return places[0]


TRIALS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("user", _user_name),
    ("python", _try_python),
    ("user name space", _as_session(0, _try_nothing)),
    ("pid name space", _as_session(linux.CLONE_NEWPID, _first_process)),
    ("mount name space", _as_session(linux.CLONE_NEWNS, _private_mounts)),
    ("network name space", _as_session(linux.CLONE_NEWNET, _try_loopback)),
    ("ipc name space", _as_session(linux.CLONE_NEWIPC, _try_nothing)),
    ("uts name space", _as_session(linux.CLONE_NEWUTS, _try_hostname)),
    ("tmpfs", _as_session(linux.CLONE_NEWNS, _try_tmpfs)),
    ("pivot_root", _as_session(linux.CLONE_NEWNS, _pivot_root)),
    ("fresh /proc", _as_session(linux.CLONE_NEWNS | linux.CLONE_NEWPID, _try_proc)),
    ("nested name spaces", _try_whole),
    ("seccomp", _try_seccomp),
    ("no_new_privs", _no_new_privileges),
    ("landlock", _try_landlock),
    ("resource limits", _try_limits),
)


def main() -> None:
    results = []
    for name, action in TRIALS:
        try:
            results.append((name, True, _run_forked(action)))
        except (Refused, OSError) as error:
            results.append((name, False, str(error)))
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
