# SPDX-License-Identifier: Apache-2.0
"""The filter, read by an interpreter of BPF for both processors, and tried on real processes of this one."""

from __future__ import annotations

import errno
import itertools
import os
import re
import signal
import struct
from pathlib import Path

import pytest
from tests.sandbox import children

from newskills_sandbox.inside import seccomp

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003, "arm": 0x40000028}
MACHINES = ("x86_64", "aarch64")
MODES = [
    {"network": network, "namespaced": namespaced}
    for network, namespaced in itertools.product([False, True], repeat=2)
]
ALLOW, KILL = "allow", "kill"
NATIVE = os.uname().machine
needs_native = pytest.mark.skipif(NATIVE not in MACHINES, reason=f"there is no filter for {NATIVE}")


def verdict(program: bytes, arch: int, number: int, args: tuple[int, ...] = ()) -> str | int:
    """What the kernel would do: "allow", "kill" or an errno. Fails on anything a filter may not contain."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(each % 2**64 for each in (*args, *[0] * 6)[:6]))
    code = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, k = code[at]
        at += 1
        if operation == 0x20:
            assert k % 4 == 0
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif operation == 0x54:
            accumulator &= k
        elif operation == 0x05:
            at += k
        elif operation in (0x15, 0x25, 0x35):
            holds = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k}[operation]
            at += if_true if holds else if_false
        else:
            assert operation == 0x06
            if k >> 16 == 0x0005:
                return k & 0xFFFF
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}[k]


def ask(machine: str, name: str, *args: int, network: bool = False, namespaced: bool = True) -> str | int:
    number = seccomp._NUMBERS[name][MACHINES.index(machine)]
    assert number is not None
    program = seccomp.program(machine, network=network, namespaced=namespaced)
    return verdict(program, ARCHES[machine], number, args)


@pytest.mark.parametrize(
    ("machine", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_numbers_are_those_of_the_kernel_headers(machine: str, header: str) -> None:
    if not Path(header).is_file():
        pytest.skip(f"no {header} here")
    text = Path(header).read_text()
    known = {name: int(number) for name, number in re.findall(r"__NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
    assert len(known) > 250
    for name, numbers in seccomp._NUMBERS.items():
        number = numbers[MACHINES.index(machine)]
        newest = max(known.values())
        if number is None:
            assert name not in known
        elif number <= newest:
            assert known[name] == number, name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mode", MODES)
def test_every_number_has_a_verdict_and_nothing_else_gets_through(machine: str, mode: dict[str, bool]) -> None:
    program = seccomp.program(machine, **mode)
    _, _, gap_start, gap_end = seccomp._MACHINES[machine]
    for number in range(600):
        answer = verdict(program, ARCHES[machine], number)
        if gap_start <= number <= gap_end or number > 469:
            assert answer == errno.ENOSYS, number
    for number in (0x40000000, 0x40000000 | 59, 0x40000000 | 520, 0xFFFFFFFF):
        assert verdict(program, ARCHES[machine], number) == errno.ENOSYS
    for name, arch in ARCHES.items():
        if name != machine:
            assert verdict(program, arch, 1) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_what_programs_need_is_allowed(machine: str) -> None:
    needed = {
        # read write openat close futex execve exit_group wait4 kill getrandom statx rt_sigaction clock_gettime brk
        "x86_64": (0, 1, 257, 3, 202, 59, 231, 61, 62, 318, 332, 13, 228, 12, 57, 58, 434, 424, 439, 436, 452, 16),
        "aarch64": (63, 64, 56, 57, 98, 221, 94, 260, 129, 278, 291, 134, 113, 214, 434, 424, 439, 436, 452, 29),
    }
    for mode in MODES:
        program = seccomp.program(machine, **mode)
        for number in needed[machine]:
            assert verdict(program, ARCHES[machine], number) == ALLOW, number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("error", "names"),
    [
        (errno.EPERM, "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise"),
        (errno.EPERM, "process_mrelease migrate_pages move_pages setns unshare chroot pivot_root mount"),
        (errno.EPERM, "umount2 move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick"),
        (errno.EPERM, "mount_setattr statmount listmount bpf perf_event_open userfaultfd"),
        (errno.EPERM, "io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key"),
        (errno.EPERM, "init_module finit_module delete_module kexec_load kexec_file_load reboot"),
        (errno.EPERM, "swapon swapoff sethostname setdomainname acct quotactl quotactl_fd syslog"),
        (errno.EPERM, "vhangup clock_settime settimeofday adjtimex clock_adjtime lookup_dcookie"),
        (errno.EPERM, "open_by_handle_at name_to_handle_at fanotify_init fanotify_mark nfsservctl"),
        (errno.EPERM, "shmget shmat shmctl shmdt semget semop semtimedop semctl"),
        (errno.EPERM, "msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify"),
        (
            errno.ENOSYS,
            "clone3 memfd_create io_setup inotify_init1 memfd_secret landlock_create_ruleset landlock_add_rule",
        ),
        (0, "sync syncfs"),
    ],
)
def test_refused_whatever_the_arguments_are(machine: str, error: int, names: str) -> None:
    for name in names.split():
        for args in ((), (1, 2, 3, 4, 5, 6), (-1,) * 6):
            assert ask(machine, name, *args) == error, name


@pytest.mark.parametrize("machine", MACHINES)
def test_refused_by_argument(machine: str) -> None:
    refused, fine = errno.EPERM, ALLOW
    rows: list[tuple[str, tuple[int, ...], str | int]] = [
        ("mmap", (0, 4096, 3, 0x21, -1), refused),
        ("mmap", (0, 4096, 3, 0x40021, -1), refused),
        ("mmap", (0, 4096, 3, 0x22, -1), fine),
        ("mmap", (0, 4096, 3, 0x01, 5), fine),
        ("ioctl", (0, 0x5412), refused),
        ("ioctl", (0, 0x5412 | 1 << 32), refused),  # the kernel looks at the low half only
        ("ioctl", (0, 0x541C), refused),
        ("ioctl", (0, 0x5423), refused),
        ("ioctl", (0, 0x5413), fine),
        ("clone", (0x11,), fine),
        ("clone", (0x3D0F00,), fine),  # a thread of glibc
        ("clone", (0x4011,), fine),  # vfork
        *(("clone", (0x11 | 1 << bit,), refused) for bit in (15, 17, 25, 26, 27, 28, 29, 30)),
        ("prlimit64", (0, 7), fine),
        ("prlimit64", (1, 7), refused),
        ("prlimit64", (1 << 32, 7), fine),
        *(
            (name, (0,), fine)
            for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
        ),
        *((name, (9,), refused) for name in ("sched_setaffinity", "sched_setparam", "sched_setattr")),
        ("setsockopt", (3, 1, 7), 0),
        ("setsockopt", (3, 1, 8), 0),
        ("setsockopt", (3, 1, 2), fine),
        ("setsockopt", (3, 6, 7), fine),
        ("setpriority", (0, 0, 5), fine),
        ("setpriority", (0, 1, 5), refused),
        ("setpriority", (2, 0, 5), refused),
        ("ioprio_set", (1, 0, 5), fine),
        ("ioprio_set", (3, 0, 5), refused),
        ("mknodat", (-100, 0, 0o644), fine),
        ("mknodat", (-100, 0, 0o010644), fine),
        ("mknodat", (-100, 0, 0o100644), fine),
        ("mknodat", (-100, 0, 0o140644), fine),
        ("mknodat", (-100, 0, 0o020644), refused),
        ("mknodat", (-100, 0, 0o060644), refused),
        ("personality", (0,), fine),
        ("personality", (0xFFFFFFFF,), fine),
        ("personality", (0x0040000,), refused),
    ]
    for name, args, expected in rows:
        assert ask(machine, name, *args) == expected, (name, args)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mode", MODES)
def test_sockets_by_reach(machine: str, mode: dict[str, bool]) -> None:
    own_network = mode["namespaced"] and not mode["network"]
    internet = ALLOW if mode["namespaced"] or mode["network"] else errno.EAFNOSUPPORT
    for family in (2, 10):
        assert ask(machine, "socket", family, 1, 0, **mode) == internet
        assert ask(machine, "socket", family, 2 | 0o2004000, 17, **mode) == internet
    assert ask(machine, "socket", 1, 1, 0, **mode) == (ALLOW if own_network else errno.EAFNOSUPPORT)
    for family in (0, 3, 16, 17, 38, 40, 44, 0x10001):
        assert ask(machine, "socket", family, 2, 0, **mode) == errno.EAFNOSUPPORT
        assert ask(machine, "socketpair", family, 1, 0, **mode) == errno.EAFNOSUPPORT
    if internet == ALLOW:
        assert ask(machine, "socket", 2, 3, 0, **mode) == errno.EPERM  # raw
        assert ask(machine, "socket", 2, 1, 132, **mode) == errno.EPROTONOSUPPORT  # SCTP
    assert ask(machine, "socketpair", 1, 1 | 0o2000000, 0, **mode) == ALLOW
    assert ask(machine, "socketpair", 1, 5, 0, **mode) == ALLOW
    # A datagram pair can be sent from to any address, so it is a way to the host's sockets.
    assert ask(machine, "socketpair", 1, 2, 0, **mode) == (ALLOW if own_network else errno.EPERM)


def test_an_unknown_processor_is_an_error() -> None:
    with pytest.raises(OSError, match="no system call filter for riscv64"):
        seccomp.program("riscv64", network=False, namespaced=False)


@needs_native
def test_real_calls_are_refused() -> None:
    children.need("seccomp")
    column = MACHINES.index(NATIVE)
    refused = {
        name: (error, numbers[column])
        for error, names in seccomp._REFUSED.items()
        for name in names
        if (numbers := seccomp._NUMBERS[name])[column] is not None
    }
    answers = children.run(
        """
linux.set_dumpable(True)
seccomp.install(network=False, namespaced=True)
for name, (_, number) in refused.items():
    attempt(name, lambda: linux.syscall(number, -1, -1, -1, -1, -1, -1))
""",
        refused=refused,
    )
    assert answers == {name: error for name, (error, _) in refused.items()}


@needs_native
def test_real_arguments_are_checked() -> None:
    children.need("seccomp")
    answers = children.run(
        """
import fcntl, mmap, resource, tempfile
seccomp.install(network=False, namespaced=False)
folder = tempfile.mkdtemp()
attempt("shared memory", lambda: mmap.mmap(-1, 4096))
attempt("private memory", lambda: mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) and None)
attempt("push back", lambda: fcntl.ioctl(0, 0x5412, b"x"))
attempt("new user", lambda: linux.clone(linux.CLONE_NEWUSER))
attempt("own limits", lambda: resource.prlimit(0, resource.RLIMIT_CORE))
attempt("limits of another", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0)))
attempt("own cores", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt("cores of another", lambda: os.sched_setaffinity(os.getppid(), {0}))
attempt("niceness of another", lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19))
attempt("niceness", lambda: os.setpriority(os.PRIO_PROCESS, 0, 1))
attempt("fifo", lambda: os.mkfifo(folder + "/fifo"))
attempt("device", lambda: os.mknod(folder + "/device", 0o020666, os.makedev(1, 3)))
sockets = {"tcp": (2, 1), "udp": (2, 2), "udp6": (10, 2), "unix": (1, 1), "netlink": (16, 3), "packet": (17, 3)}
for name, (family, kind) in sockets.items():
    attempt(name, lambda: socket.socket(family, kind).close())
attempt("pair", lambda: [each.close() for each in socket.socketpair()] and None)
attempt("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("future call", lambda: linux.syscall(470))
attempt("far call", lambda: linux.syscall(0x40000000 | 39))
os.remove(folder + "/fifo"); os.rmdir(folder)
"""
    )
    unsupported = ("tcp", "udp", "udp6", "unix", "netlink", "packet")
    fine = ("private memory", "own limits", "own cores", "niceness", "fifo", "pair")
    assert answers == {
        **dict.fromkeys(answers, errno.EPERM),
        **dict.fromkeys(fine, 0),
        **dict.fromkeys(unsupported, errno.EAFNOSUPPORT),
        **dict.fromkeys(("future call", "far call"), errno.ENOSYS),
    }


@needs_native
def test_the_filter_is_inherited_and_cannot_be_taken_off() -> None:
    children.need("seccomp")
    answers = children.run(
        """
import subprocess
seccomp.install(network=True, namespaced=False)
seccomp.install(network=False, namespaced=False)  # a second one only adds
attempt("socket", lambda: socket.socket())
code = "import socket\\ntry: socket.socket()\\nexcept OSError as error: print(error.errno)"
child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
attempt("of a child", child.stdout.strip)
status = open("/proc/self/status").readlines()
attempt("privileges", lambda: [line for line in status if line.startswith(("NoNewPrivs", "Seccomp:"))])
"""
    )
    assert answers == {
        "socket": errno.EAFNOSUPPORT,
        "of a child": str(errno.EAFNOSUPPORT),
        "privileges": ["NoNewPrivs:\t1\n", "Seccomp:\t2\n"],
    }


@needs_native
def test_python_still_works() -> None:
    children.need("seccomp")
    answers = children.run(
        """
import asyncio, multiprocessing, random, sqlite3, subprocess, tempfile, uuid
from concurrent.futures import ThreadPoolExecutor
seccomp.install(network=False, namespaced=False)
import numpy
attempt("numpy", lambda: bool(numpy.linalg.inv(numpy.eye(40))[3, 3] == 1))
with ThreadPoolExecutor(4) as pool:
    attempt("threads", lambda: list(pool.map(lambda x: x * x, range(5))))
attempt("program", lambda: subprocess.run(["/bin/sh", "-c", "echo a | cat"], capture_output=True, text=True).stdout)
queue = multiprocessing.get_context("fork").Queue()
def work(queue): queue.put("from a process")
process = multiprocessing.get_context("fork").Process(target=work, args=(queue,))
attempt("multiprocessing", lambda: (process.start(), queue.get(timeout=30), process.join())[1])
async def main():
    started = await asyncio.create_subprocess_exec("/bin/echo", "b", stdout=asyncio.subprocess.PIPE)
    await asyncio.sleep(0.001)
    return (await started.communicate())[0].decode()
attempt("asyncio", lambda: asyncio.run(main()))
def files():
    with tempfile.TemporaryDirectory() as folder:
        base = sqlite3.connect(folder + "/base")
        base.execute("create table t (x)"); base.execute("insert into t values (7)"); base.commit()
        rows = base.execute("select x from t").fetchall(); base.close()
        os.symlink(folder, folder + "/link"); os.rename(folder + "/base", folder + "/link/moved")
        os.sync()
        return [row[0] for row in rows] + sorted(os.listdir(folder))
attempt("files", files)
def signalled():
    got = []
    signal.signal(signal.SIGALRM, lambda *_: got.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
    return bool(got)
attempt("signals", signalled)
attempt("random", lambda: bool(random.SystemRandom().random() < 1 and uuid.uuid4()))
"""
    )
    assert answers == {
        "numpy": True,
        "threads": [0, 1, 4, 9, 16],
        "program": "a\n",
        "multiprocessing": "from a process",
        "asyncio": "b\n",
        "files": [7, "link", "moved"],
        "signals": True,
        "random": True,
    }


@needs_native
def test_a_session_with_its_own_network_may_talk_to_itself() -> None:
    children.need("seccomp")
    answers = children.run(
        """
seccomp.install(network=False, namespaced=True)
def talk(family, address):
    server = socket.create_server(address, family=family) if family != socket.AF_UNIX else socket.socket(family)
    if family == socket.AF_UNIX:
        server.bind(address); server.listen()
    client = socket.socket(family); client.connect(server.getsockname())
    peer, _ = server.accept()
    client.sendall(b"hello")
    return peer.recv(5).decode()
attempt("tcp", lambda: talk(socket.AF_INET, ("127.0.0.1", 0)))
attempt("unix", lambda: talk(socket.AF_UNIX, "\\0newskills-test-%d" % os.getpid()))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW))
def buffers():
    pair = socket.socketpair()
    before = pair[0].getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, before // 4)
    return pair[0].getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == before
attempt("buffers stay", buffers)
"""
    )
    assert answers == {"tcp": "hello", "unix": "hello", "raw": errno.EPERM, "buffers stay": True}


@pytest.mark.skipif(NATIVE != "x86_64", reason="32-bit calls are those of x86")
def test_a_32_bit_call_ends_the_process() -> None:
    children.need("seccomp")
    done = children.start(
        """
import mmap
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
page.write(bytes.fromhex("b814000000cd80c3"))  # eax = 20 (getpid of i386); int 0x80; return
seccomp.install(network=False, namespaced=True)
print("ready", flush=True)
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
    )
    assert done.stdout == "ready\n"
    # SIGSEGV where the kernel is built without 32-bit calls.
    assert done.returncode in (-signal.SIGSYS, -signal.SIGSEGV)
