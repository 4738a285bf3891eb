# SPDX-License-Identifier: Apache-2.0
"""Knobs and rarely used calls of the kernel, and ways around a filter of calls."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, case, shell

CASES = [
    case(
        "knobs in /proc",
        """
        for path, value in (('/proc/sysrq-trigger', 'h'), ('/proc/sys/kernel/core_pattern', '|/bin/sh'),
                            ('/proc/sys/kernel/hostname', 'owned'), ('/proc/sys/vm/drop_caches', '1'),
                            ('/proc/sys/kernel/modprobe', '/tmp/x'), ('/proc/sys/kernel/panic', '1'),
                            ('/proc/sys/fs/file-max', '10'), ('/proc/sys/vm/overcommit_memory', '2'),
                            ('/proc/sys/kernel/pid_max', '301'), ('/proc/sys/net/ipv4/ip_forward', '1'),
                            ('/proc/sys/kernel/shmmax', '99'), ('/proc/sys/fs/binfmt_misc/register', ':x:'),
                            ('/proc/sys/user/max_user_namespaces', '0'), ('/proc/sys/kernel/ns_last_pid', '5'),
                            ('/proc/acpi/wakeup', 'x'), ('/proc/mtrr', 'x'), ('/proc/irq/0/smp_affinity', '1'),
                            ('/proc/1/oom_score_adj', '-1000'), ('/proc/1/uid_map', '0 0 1'),
                            ('/proc/self/uid_map', '0 0 1'), ('/proc/self/gid_map', '0 0 1'),
                            ('/proc/self/oom_score_adj', '-1000'), ('/proc/1/comm', '@MARK@'),
                            ('/proc/1/clear_refs', '1'), ('/proc/1/coredump_filter', '1')):
            def write():
                same = open(path).read() if path.startswith('/proc/sys/') else value
                with open(path, 'w') as knob:   # what it is already: nothing is harmed where it works
                    knob.write(same)
                return 'written'
            attempt(path, write)
        print('CONTAINED')
        """,
    ),
    case(
        "what the kernel tells about the host",
        """
        for path in ('/proc/kcore', '/proc/kallsyms', '/proc/kmsg', '/proc/vmallocinfo', '/proc/slabinfo',
                     '/proc/timer_list', '/proc/sched_debug', '/proc/iomem', '/proc/1/environ', '/proc/1/maps',
                     '/proc/1/stack', '/proc/1/mem', '/proc/keys', '/proc/scsi/scsi'):
            def read():
                text = open(path, 'rb').read(4000)
                if not text.strip() or (b'kallsyms' in path.encode() and text.startswith(b'0' * 16)) or (
                        path == '/proc/iomem' and text.lstrip().startswith(b'00000000-00000000')):
                    raise OSError('blank')
                return text[:60]
            attempt(path, read)
        print('CONTAINED')
        """,
    ),
    case(
        "mount table of the host",
        """
        text = open('/proc/self/mountinfo').read() + open('/proc/self/mounts').read()
        shown = (sys.base_prefix, sys.prefix, ' /cpp-headers ')  # whose places on the host are no secret
        lines = [line for line in text.splitlines() if not any(place in line for place in shown)]
        for name in ('hx-canary', '/var/lib', 'server.log', '/root', '/home/'):
            if any(name in line for line in lines):
                print('ESCAPED', name)
        print('CONTAINED')
        """,
    ),
    case(
        "log of the kernel",
        """
        buffer = ctypes.create_string_buffer(1000)
        for action in (3, 10):
            attempt(f'syslog {action}', lambda: call(103, 116, action, buffer, 1000))
        print('CONTAINED')
        """,
    ),
    case(
        "calls that only an attacker makes",
        """
        space = ctypes.create_string_buffer(bytes([255]) * 4096, 4096)   # no valid argument of anything
        calls = {
            'bpf': (321, 280, 5, space, 72), 'userfaultfd': (323, 282, 0),
            'perf_event_open': (298, 241, space, 0, -1, -1, 0),
            'io_uring_setup': (425, 425, 8, space), 'io_uring_register': (427, 427, 0, 0, 0, 0),
            'add_key': (248, 217, b'user', b'hx', b'secret', 6, -4), 'request_key': (249, 218, b'user', b'hx', 0, -4),
            'keyctl': (250, 219, 0, -4, 1), 'kexec_load': (246, 104, 0, 0, 0, 0),
            'init_module': (175, 105, space, 10, b''), 'finit_module': (313, 273, 0, b'', 0),
            'delete_module': (176, 106, b'x', 0), 'acct': (163, 89, b'/tmp/acct'),
            'swapon': (167, 224, b'/tmp/swap', 0), 'swapoff': (168, 225, b'/tmp/swap'),
            'reboot': (169, 142, 0, 0, 0, 0),
            'sethostname': (170, 161, os.uname().nodename.encode(), len(os.uname().nodename)),
            'settimeofday': (164, 170, space, 0), 'clock_settime': (227, 112, 0, space), 'adjtimex': (159, 171, space),
            'iopl': (172, None, 3), 'ioperm': (173, None, 0, 100, 1), 'quotactl': (179, 60, 0x80000100, 0, 0, 0),
            'lookup_dcookie': (212, 18, 0, space, 100), 'nfsservctl': (180, 42, 0, 0, 0), 'vhangup': (153, 58),
            'fanotify_init': (300, 262, 0, 0), 'move_pages': (279, 239, 1, 1, space, 0, space, 0),
            'migrate_pages': (256, 238, 1, 1, space, space), 'kcmp': (312, 272, 1, 1, 0, 0, 0),
            'process_madvise': (440, 440, 0, space, 1, 4, 0), 'memfd_secret': (447, 447, 0),
            'pidfd_getfd': (438, 438, 0, 0, 0), 'open_by_handle_at': (304, 265, -100, space, 0),
            'personality': (135, 92, 0x0400000), 'modify_ldt': (154, None, 0, space, 100),
            'clock_adjtime': (305, 266, 0, space), 'set_mempolicy': (238, 237, 99, space, 64),
        }
        harmless = {'adjtimex', 'clock_adjtime', 'personality', 'modify_ldt', 'set_mempolicy', 'process_madvise'}
        for name, (x86, arm, *arguments) in calls.items():
            try:
                print('ESCAPED' if name not in harmless else 'harmless', name, call(x86, arm, *arguments))
            except OSError as error:
                print('refused', name, error)
        print('CONTAINED')
        """,
    ),
    case(
        "calls of the other numbering (x32)",
        """
        X32 = 0x40000000
        space = ctypes.create_string_buffer(4096)
        attempt('x32 getpid', lambda: call(X32 | 39, None))
        attempt('x32 socket', lambda: call(X32 | 41, None, socket.AF_INET, socket.SOCK_STREAM, 0))
        attempt('x32 ptrace', lambda: call(X32 | 521, None, 16, 1, 0, 0))
        attempt('x32 unshare', lambda: call(X32 | 272, None, 0x10000000))
        attempt('high bits', lambda: call(272 | (1 << 33), None, 0x10000000))
        attempt('more high bits', lambda: call(101 | (1 << 40), None, 0, 0, 0, 0))
        print('CONTAINED')
        """,
        status=("completed", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "calls of 32-bit programs (int 0x80)",
        """
        import mmap
        if not X86:
            print('CONTAINED')
        else:
            # mov eax, number; mov ebx, arg1; mov ecx, arg2; xor edx, edx; int 0x80; ret, with rbx saved
            def call32(number, first, second):
                code = (b'\\x53\\xb8' + number.to_bytes(4, 'little') + b'\\xbb' + first.to_bytes(4, 'little') + b'\\xb9'
                        + second.to_bytes(4, 'little') + b'\\x31\\xd2\\xcd\\x80\\x48\\x98\\x5b\\xc3')
                page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
                page.write(code)
                result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
                if result < 0:
                    raise OSError(-result, os.strerror(-result))
                return result
            attempt('socket', lambda: call32(359, 2, 1))
            attempt('unshare', lambda: call32(310, 0x10000000, 0))
            attempt('ptrace', lambda: call32(26, 16, 1))
            print('CONTAINED')
        """,
        status=("completed", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "the upper halves of arguments",
        """
        # the kernel looks at 32 bits of a socket's family, a filter perhaps at 64
        for high in (1 << 32, 0xdead << 32):
            for family in (socket.AF_INET, socket.AF_INET6):
                def make():
                    number = call(41, 198, high | family, socket.SOCK_STREAM, 0)
                    found = socket.socket(fileno=number)
                    found.settimeout(1)
                    found.connect(('127.0.0.1', int('@TCP4@')) if family == socket.AF_INET else ('::1', int('@TCP6@')))
                    return 'connected'
                attempt(f'{high} {family}', make)
            attempt('unshare', lambda: call(272, 97, high | 0x10000000))
        print('CONTAINED')
        """,
    ),
    case(
        "the filter and the limits can not be loosened",
        """
        import resource
        for name in ('RLIMIT_AS', 'RLIMIT_NPROC', 'RLIMIT_NOFILE', 'RLIMIT_FSIZE', 'RLIMIT_CORE', 'RLIMIT_MEMLOCK',
                     'RLIMIT_MSGQUEUE', 'RLIMIT_NICE', 'RLIMIT_RTPRIO'):
            soft, hard = resource.getrlimit(getattr(resource, name))
            print(name, soft, hard)
            if hard != resource.RLIM_INFINITY:
                attempt(name, lambda: resource.setrlimit(getattr(resource, name), (hard, hard + 1)) or 'raised')
        if resource.getrlimit(resource.RLIMIT_CORE)[1] > 1:   # 1 also refuses cores that go to a program
            print('ESCAPED core files')
        PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 22, 38, 47
        attempt('seccomp off', lambda: libc.prctl(PR_SET_SECCOMP, 0, 0, 0, 0) and (_ for _ in ()).throw(OSError('no')))
        attempt('new privileges', lambda: libc.prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)
                and (_ for _ in ()).throw(OSError('no')))
        attempt('ambient', lambda: libc.prctl(PR_CAP_AMBIENT, 2, 21, 0, 0) and (_ for _ in ()).throw(OSError('no')))
        attempt('keep parent', lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3)))
        print('CONTAINED')
        """,
    ),
    case(
        "priorities",
        """
        attempt('nice', lambda: os.nice(-5))
        attempt('priority of 1', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
        attempt('priority of canary', lambda: os.setpriority(os.PRIO_PROCESS, int('@PID@'), 19))
        attempt('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99)) or 'done')
        attempt('affinity of canary', lambda: os.sched_setaffinity(int('@PID@'), {0}) or 'done')
        attempt('io priority', lambda: call(251, 30, 1, int('@PID@'), 3 << 13))
        attempt('realtime io', lambda: call(251, 30, 1, 0, 1 << 13))
        print('CONTAINED')
        """,
    ),
    shell(
        "names of the machine",
        """
        hostname "$(uname -n)" && echo ESCAPED
        uname -n
        echo CONTAINED
        """,
    ),
    case(
        "the name of the host",
        """
        print('name', socket.gethostname(), os.uname().nodename)
        attempt('rename', lambda: socket.sethostname(socket.gethostname()) or 'renamed')
        print('CONTAINED')
        """,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_the_kernel_is_no_way_out(arena: Arena, case: Case) -> None:
    arena.judge(case)
