# SPDX-License-Identifier: Apache-2.0
"""System calls that Python has no name for: mounts, name spaces, capabilities. Each raises OSError when refused.

Numbers are those of x86_64 and aarch64 Linux (linux/sched.h, linux/mount.h, linux/prctl.h, linux/capability.h).
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False  # `typing` itself is not imported: every session pays for what is loaded here
if TYPE_CHECKING:
    from collections.abc import Collection

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2

_SIGCHLD = 17
# struct sigaction of libc: a pointer, a set of 128 bytes, the flags, a pointer.
_SIGACTION_FLAGS, _SIGACTION_SIZE = 136, 152
_SA_NOCLDSTOP = 1

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
# NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, and each of them locked.
_SECUREBITS = 0b1110_1111
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9

_AARCH64 = os.uname().machine == "aarch64"
_NR_CLONE = 220 if _AARCH64 else 56
_NR_CAPSET = 91 if _AARCH64 else 126
_NR_PIVOT_ROOT = 41 if _AARCH64 else 155
_NR_CLOSE_RANGE = 436

_AF_INET = 2
_SOCK_DGRAM = 2
_SOCK_CLOEXEC = 0o2000000
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1

_libc = ctypes.CDLL(None, use_errno=True)
# PyDLL keeps the interpreter lock during the call, as os.fork does: no other thread runs between its hooks.
_held = ctypes.PyDLL(None, use_errno=True)
_held.syscall.restype = ctypes.c_long
_libc.syscall.restype = ctypes.c_long


def _system_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def syscall(number: int, *args: int | bytes) -> int:
    """Make a raw system call, and return its result; bytes are passed by their address, for the kernel to read."""
    whole = (each if isinstance(each, bytes) else ctypes.c_long(each) for each in args)
    result: int = _libc.syscall(ctypes.c_long(number), *whole)
    if result == -1:
        raise _system_error(f"system call {number}")
    return result


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Call mount(2); an empty `kind` or `data` is passed as NULL."""
    kind_bytes = kind.encode() if kind else None
    data_bytes = os.fsencode(data) if data else None
    if _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind_bytes,
        ctypes.c_ulong(flags),
        data_bytes,
    ):
        raise _system_error(f"mount {kind or source} on {target}")


def umount(target: str, flags: int = 0) -> None:
    if _libc.umount2(os.fsencode(target), flags):
        raise _system_error(f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Call pivot_root(2); `pivot_root(".", ".")` followed by `umount(".", MNT_DETACH)` needs no folder for the old
    root.
    """
    syscall(_NR_PIVOT_ROOT, os.fsencode(new), os.fsencode(old))


def unshare(flags: int) -> None:
    if _libc.unshare(flags):
        raise _system_error(f"unshare {flags:#x}")


def clone(flags: int) -> int:
    """Start a process, as `os.fork()` does, in new name spaces (`CLONE_NEW*`): 0 in the child, its process id in the
    parent.

    For processes of one thread: libc's own fork hooks (its locks) do not run.
    """
    api = ctypes.pythonapi
    number, mode, zero = ctypes.c_long(_NR_CLONE), ctypes.c_long(flags | _SIGCHLD), ctypes.c_long(0)
    api.PyOS_BeforeFork()
    # Nothing here may allocate threads or import: in 3.13 the runtime's list of threads is locked until the hook below.
    pid: int = _held.syscall(number, mode, zero, zero, zero, zero)
    if pid == 0:
        api.PyOS_AfterFork_Child()
        return 0
    failure = _system_error(f"clone {flags:#x}") if pid == -1 else None
    api.PyOS_AfterFork_Parent()
    if failure is not None:
        raise failure
    return pid


def prctl(option: int, *args: int) -> int:
    """Call prctl(2); arguments that are not given are zero, as the newer options demand."""
    padded = [ctypes.c_ulong(each) for each in (*args, 0, 0, 0, 0)[:4]]
    result: int = _libc.prctl(option, *padded)
    if result == -1:
        raise _system_error(f"prctl {option}")
    return result


def no_new_privileges() -> None:
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_dumpable(value: bool) -> None:
    """Set whether processes of the same user may trace this one and read its /proc entries. Inherited by fork."""
    prctl(_PR_SET_DUMPABLE, int(value))


def die_with_parent() -> None:
    """Get SIGKILL when the thread that made this process ends; cleared by changes of uid and by set-uid programs."""
    prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def subreaper() -> None:
    """Make this process the parent of every orphan below."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def drop_capabilities() -> None:
    """Give up every capability for good: also a set-uid-root program could not bring one back."""
    for option, value in ((_PR_SET_SECUREBITS, _SECUREBITS), *((_PR_CAPBSET_DROP, each) for each in range(64))):
        try:
            prctl(option, value)
        except OSError:  # no CAP_SETPCAP (then capset below is all there is), or past the kernel's last capability
            break
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    nothing = struct.pack("=6I", 0, 0, 0, 0, 0, 0)
    syscall(_NR_CAPSET, header, nothing)


def only_ends_of_children() -> None:
    """Stop SIGCHLD for children that stop or go on. Its handler must be set before, and not again afterwards."""
    action = ctypes.create_string_buffer(_SIGACTION_SIZE)
    if _libc.sigaction(_SIGCHLD, None, action):
        raise _system_error("action of SIGCHLD")
    flags = struct.unpack_from("=I", action, _SIGACTION_FLAGS)[0] | _SA_NOCLDSTOP
    struct.pack_into("=I", action, _SIGACTION_FLAGS, flags)
    if _libc.sigaction(_SIGCHLD, action, None):
        raise _system_error("action of SIGCHLD")


def close_descriptors(keep: Collection[int]) -> None:
    """Close every descriptor that is not in `keep`."""
    start = 0
    for fd in (*sorted(set(keep)), 2**31 - 1):
        if fd > start:
            _close_range(start, fd - 1)
        start = fd + 1


def _close_range(first: int, last: int) -> None:
    try:
        syscall(_NR_CLOSE_RANGE, first, last, 0)
    except OSError:  # Linux before 5.9, or a container's filter that does not know the call
        os.closerange(first, min(last, os.sysconf("SC_OPEN_MAX")) + 1)


def set_hostname(text: str) -> None:
    name = text.encode()
    if _libc.sethostname(name, ctypes.c_size_t(len(name))):
        raise _system_error(f"sethostname {text}")


def loopback_up() -> None:
    """Bring up `lo` of a new network name space, so that 127.0.0.1 and ::1 work inside it."""
    sock = _libc.socket(_AF_INET, _SOCK_DGRAM | _SOCK_CLOEXEC, 0)
    if sock < 0:
        raise _system_error("socket")
    try:
        request = ctypes.create_string_buffer(struct.pack("=16sH22x", b"lo", 0))  # struct ifreq: name, flags
        if _libc.ioctl(sock, ctypes.c_ulong(_SIOCGIFFLAGS), request):
            raise _system_error("flags of lo")
        flags = struct.unpack_from("=H", request, 16)[0] | _IFF_UP
        struct.pack_into("=H", request, 16, flags)
        if _libc.ioctl(sock, ctypes.c_ulong(_SIOCSIFFLAGS), request):
            raise _system_error("bring up lo")
    finally:
        os.close(sock)


def small_tcp_buffers() -> None:
    """Limit what each TCP connection inside a new network name space may keep in the kernel, where no watch on
    processes sees it: 64 KiB a direction, not megabytes. Needs a /proc with /proc/sys.
    """
    for name in ("tcp_wmem", "tcp_rmem"):
        with open(f"/proc/sys/net/ipv4/{name}", "wb", buffering=0) as file:
            file.write(b"4096 16384 65536")  # bytes: least, at first, most
