# SPDX-License-Identifier: Apache-2.0
"""Which system calls code of a model may make: a filter written as BPF by hand, for x86_64 and aarch64.

A deny-list, because programs need most calls, closed at its end: a number above the newest call known here answers
ENOSYS, so that a new kernel opens nothing by itself. Every call that names other processes, mounts, name spaces, the
kernel's own state or memory that no limit counts is refused. Format: linux/seccomp.h, linux/filter.h; since Linux 5.11
the kernel keeps one bit per call that is always allowed, so most calls never reach the filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from newskills_sandbox.inside import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    # Argument number, mask over its low 32 bits, values, whether it must be one of these, the answer if that fails.
    Check = tuple[int, int, tuple[int, ...], bool, int]

# AUDIT_ARCH_*, column in the table below, first and last number of the gap between the old and the common calls.
_MACHINES = {"x86_64": (0xC000003E, 0, 335, 423), "aarch64": (0xC00000B7, 1, 295, 423)}
_NEWEST = 469  # file_setattr, Linux 6.17

# Numbers on x86_64 and aarch64 (None: the call does not exist there).
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "mmap": (9, 222),
    "ioctl": (16, 29),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "setsockopt": (54, 208),
    "clone": (56, 220),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "shmdt": (67, 197),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "mknod": (133, None),
    "uselib": (134, None),
    "personality": (135, 92),
    "ustat": (136, None),
    "sysfs": (139, None),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "vhangup": (153, 58),
    "modify_ldt": (154, None),
    "pivot_root": (155, 41),
    "_sysctl": (156, None),
    "adjtimex": (159, 171),
    "chroot": (161, 51),
    "sync": (162, 81),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "mount": (165, 40),
    "umount2": (166, 39),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "create_module": (174, None),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "get_kernel_syms": (177, None),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "nfsservctl": (180, 42),
    "sched_setaffinity": (203, 122),
    "io_setup": (206, 0),
    "lookup_dcookie": (212, 18),
    "remap_file_pages": (216, 234),
    "semtimedop": (220, 192),
    "clock_settime": (227, 112),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ioprio_set": (251, 30),
    "inotify_init": (253, None),
    "migrate_pages": (256, 238),
    "mknodat": (259, 33),
    "unshare": (272, 97),
    "move_pages": (279, 239),
    "inotify_init1": (294, 26),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "prlimit64": (302, 261),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "clock_adjtime": (305, 266),
    "syncfs": (306, 267),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "finit_module": (313, 273),
    "sched_setattr": (314, 274),
    "seccomp": (317, 277),
    "memfd_create": (319, 279),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "clone3": (435, 435),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "memfd_secret": (447, 447),
    "process_mrelease": (448, 448),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "lsm_set_self_attr": (460, 460),
    "open_tree_attr": (467, 467),
}

# Refused whatever the arguments are, by the error they answer. One line per reason.
_REFUSED: dict[int, tuple[str, ...]] = {
    errno.EPERM: (
        # other processes' memory, descriptors and state
        *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise"),
        *("process_mrelease", "migrate_pages", "move_pages"),
        # mounts, roots, name spaces
        *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen"),
        *("fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount", "setns", "unshare"),
        # files by handle pass by every path check; notifications see other processes' files
        *("open_by_handle_at", "name_to_handle_at", "fanotify_init", "fanotify_mark"),
        # where most holes of the kernel were
        *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
        *("modify_ldt", "keyctl", "add_key", "request_key", "lsm_set_self_attr", "nfsservctl", "lookup_dcookie"),
        # the machine itself
        *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon"),
        *(
            "swapoff",
            "sethostname",
            "setdomainname",
            "iopl",
            "ioperm",
            "acct",
            "quotactl",
            "quotactl_fd",
            "syslog",
        ),
        *("vhangup", "settimeofday", "adjtimex", "clock_settime", "clock_adjtime"),
        # shared memory and queues that outlive their processes and that no quota counts
        *("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl"),
        *("msgget", "msgsnd", "msgrcv", "msgctl"),
        *("mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
    ),
    errno.ENOSYS: (
        "clone3",  # its flags lie in memory, which a filter cannot read; libc falls back to clone
        *("memfd_create", "memfd_secret"),  # files outside the disk quota
        *(
            "landlock_create_ruleset",
            "landlock_add_rule",
        ),  # kernel memory without bound; call landlock before this
        *("io_setup", "inotify_init", "inotify_init1"),  # one small pool for the whole machine, or for a user
        *("remap_file_pages", "uselib", "ustat", "sysfs", "_sysctl"),
        *("create_module", "get_kernel_syms", "query_module"),
    ),
    # "Done": there is nothing of ours to write out, and the host's disks are not to be made busy.
    0: ("sync", "syncfs"),
}

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
_STREAM, _DGRAM, _SEQPACKET = 1, 2, 5
_TYPE_MASK = 0xF  # the rest are SOCK_NONBLOCK and SOCK_CLOEXEC
_PROTOCOLS = (0, 1, 6, 17)  # default, ICMP echo (or AF_UNIX's own), TCP, UDP; never SCTP, MPTCP, SMC ...
_ALL = 0xFFFFFFFF
_CLONE_REFUSED = 0x7E028000  # CLONE_NEW*, and CLONE_PARENT: children that the supervisor did not make
_MAP_SHARED_ANONYMOUS = 0x21
_FILE_KINDS = (0, 0x1000, 0x8000, 0xC000)  # regular by default, FIFO, regular, socket; never a device
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423  # type into, speak to, and reprogram a terminal
_SOL_SOCKET, _SO_SNDBUF, _SO_RCVBUF = 1, 7, 8
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1

_LD_WORD, _AND, _JUMP, _JEQ, _JGT, _JGE, _RET = 0x20, 0x54, 0x05, 0x15, 0x25, 0x35, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16
_SET_MODE_FILTER, _FLAG_TSYNC = 1, 1


def _allow_only(argument: int, values: Sequence[int], mask: int = _ALL, error: int = errno.EPERM) -> Check:
    return argument, mask, tuple(values), True, _ERRNO | error


def _refuse_values(argument: int, values: Sequence[int], mask: int = _ALL, error: int = errno.EPERM) -> Check:
    return argument, mask, tuple(values), False, _ERRNO | error


def _limit_to(argument: int, value: int) -> Check:
    """Return a check that limits those that follow to this value; with other values the call is allowed."""
    return argument, _ALL, (value,), True, _ALLOW


def _socket_checks(network: bool, namespaced: bool) -> dict[str, tuple[Check, ...]]:
    """Return the checks of socket families by reach: in a network of its own a session may talk to itself; else only
    pairs are left.

    With the host's network AF_UNIX is refused, as its abstract names and paths lead to services of the host. A datagram
    pair is refused with it: such a socket can be sent from to any address, paired or not.
    """
    own_network = namespaced and not network
    families = (AF_INET, AF_INET6) if namespaced or network else ()
    types = (_STREAM, _DGRAM, _SEQPACKET)
    socket_types = types if own_network else (_STREAM, _SEQPACKET)
    return {
        "socket": (
            _allow_only(0, (*families, *((AF_UNIX,) if own_network else ())), error=errno.EAFNOSUPPORT),
            _allow_only(1, types, _TYPE_MASK),
            _allow_only(2, _PROTOCOLS, error=errno.EPROTONOSUPPORT),
        ),
        "socketpair": (
            _allow_only(0, (AF_UNIX,), error=errno.EAFNOSUPPORT),
            _allow_only(1, socket_types, _TYPE_MASK),
        ),
    }


def _checked_calls(network: bool, namespaced: bool) -> dict[str, tuple[Check, ...]]:
    """Return the checks of calls that depend on their arguments, the most frequent calls first."""
    own = _allow_only(0, (0,))  # process id 0: the caller
    return {
        "mmap": (
            _refuse_values(3, (_MAP_SHARED_ANONYMOUS,), _MAP_SHARED_ANONYMOUS),
        ),  # pages that belong to no process
        "ioctl": (_refuse_values(1, (_TIOCSTI, _TIOCLINUX, _TIOCSETD)),),
        "clone": (_allow_only(0, (0,), _CLONE_REFUSED),),
        "prlimit64": (own,),
        **_socket_checks(network, namespaced),
        # "Done": buffers of 4 MiB per socket would be memory that shows in no process, so the default stays.
        "setsockopt": (_limit_to(1, _SOL_SOCKET), _refuse_values(2, (_SO_SNDBUF, _SO_RCVBUF), error=0)),
        "sched_setaffinity": (own,),
        "sched_setscheduler": (own,),
        "sched_setparam": (own,),
        "sched_setattr": (own,),
        "setpriority": (_allow_only(0, (_PRIO_PROCESS,)), _allow_only(1, (0,))),
        "ioprio_set": (_allow_only(0, (_IOPRIO_WHO_PROCESS,)), _allow_only(1, (0,))),
        "mknod": (_allow_only(1, _FILE_KINDS, 0xF000),),
        "mknodat": (_allow_only(2, _FILE_KINDS, 0xF000),),
        "personality": (_allow_only(0, (0, _ALL)),),  # others switch off defences: randomised addresses, null page
    }


def _encode_op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Encode one `struct sock_filter`; a jump of more than 255 steps raises struct.error."""
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _check_code(check: Check) -> bytes:
    """Encode a check: fall through where the argument is fine, else return the answer."""
    argument, mask, values, wanted, answer = check
    code = [_encode_op(_LD_WORD, _OFFSET_ARGS + 8 * argument)]  # low half: the kernel too takes these as 32 bits
    if mask != _ALL:
        code.append(_encode_op(_AND, mask))
    left = len(values)
    for value in values:
        left -= 1
        code.append(_encode_op(_JEQ, value, left + 1))
    if not wanted:
        code.append(_encode_op(_JUMP, 1))
    code.append(_encode_op(_RET, answer))
    return b"".join(code)


def program(machine: str, *, network: bool, namespaced: bool) -> bytes:
    """Return the filter as an array of `struct sock_filter`. Raises OSError (ENOSYS) for another kind of processor."""
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no system call filter for {machine} (supported: {', '.join(_MACHINES)})")
    arch, column, gap_start, gap_end = _MACHINES[machine]
    code = [
        _encode_op(_LD_WORD, _OFFSET_ARCH),
        _encode_op(_JEQ, arch, 1),
        _encode_op(
            _RET, _KILL_PROCESS
        ),  # 32-bit calls have other numbers, so that no row below would mean what it says
        _encode_op(_LD_WORD, _OFFSET_NUMBER),
    ]
    for name, checks in _checked_calls(network, namespaced).items():
        number = _NUMBERS[name][column]
        if number is not None:
            body = b"".join(map(_check_code, checks)) + _encode_op(_RET, _ALLOW)
            code += [_encode_op(_JEQ, number, 0, len(body) // 8), body]
    code += [
        _encode_op(_JGT, _NEWEST, 2),  # also all of x32, whose numbers have bit 30
        _encode_op(_JGT, gap_end, 2),
        _encode_op(_JGE, gap_start, 0, 1),
        _encode_op(_RET, _ERRNO | errno.ENOSYS),
    ]
    for error, names in _REFUSED.items():
        left = 1 + sum(_NUMBERS[name][column] is not None for name in names)
        for name in names:
            number = _NUMBERS[name][column]
            if number is not None:
                left -= 1
                code.append(_encode_op(_JEQ, number, left))
        code += [_encode_op(_JUMP, 1), _encode_op(_RET, _ERRNO | error)]
    code.append(_encode_op(_RET, _ALLOW))
    return b"".join(code)


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install(*, network: bool, namespaced: bool) -> None:
    """Install the filter for this process and all it starts, for good. `namespaced`: it has process and network name
    spaces of its own, except that with `network` the network is the host's. Raises OSError.
    """
    machine = os.uname().machine
    code = program(machine, network=network, namespaced=namespaced)
    linux.no_new_privileges()
    number = _NUMBERS["seccomp"][_MACHINES[machine][1]]
    assert number is not None
    filter_ = _Program(len(code) // 8, code)
    if linux.syscall(number, _SET_MODE_FILTER, _FLAG_TSYNC, ctypes.addressof(filter_)):
        raise OSError(errno.EBUSY, "a thread of this process has another system call filter")
