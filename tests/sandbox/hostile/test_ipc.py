# SPDX-License-Identifier: Apache-2.0
"""Shared memory, semaphores and queues stay in their session and go with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case

KEY = 0x68780000

CASES = [
    case(
        "shared memory of System V",
        f"""
        libc.shmat.restype = ctypes.c_void_p
        for key in range({KEY}, {KEY} + 4):
            number = libc.shmget(key, 4096, 0o666)
            if number >= 0:
                print('ESCAPED: the segment of another session', key)
            print(libc.shmget(key, 4096, 0o1666), end=' ')
        print('CONTAINED')
        """,
    ),
    case(
        "segments of other sessions by number",
        """
        libc.shmat.restype = ctypes.c_void_p
        for number in list(range(64)) + [32768 * n for n in range(8)]:
            if (libc.shmat(number, None, 0) or -1) not in (-1, 2**64 - 1):
                print('ESCAPED', number)
        for line in open('/proc/sysvipc/shm').read().splitlines()[1:] if os.path.exists('/proc/sysvipc/shm') else []:
            print('ESCAPED', line)
        print('CONTAINED')
        """,
    ),
    case(
        "semaphores of System V",
        f"""
        for key in range({KEY}, {KEY} + 4):
            if libc.semget(key, 1, 0o666) >= 0:
                print('ESCAPED', key)
            print(libc.semget(key, 1, 0o1666), end=' ')
        print('CONTAINED')
        """,
    ),
    case(
        "message queues of System V",
        f"""
        for key in range({KEY}, {KEY} + 4):
            if libc.msgget(key, 0o666) >= 0:
                print('ESCAPED', key)
            print(libc.msgget(key, 0o1666), end=' ')
        print('CONTAINED')
        """,
    ),
    case(
        "all of it again",
        f"""
        libc.shmget.restype = ctypes.c_int
        for what, found in (('shm', libc.shmget({KEY}, 4096, 0o666)), ('sem', libc.semget({KEY}, 1, 0o666)),
                            ('msg', libc.msgget({KEY}, 0o666))):
            if found >= 0:
                print('ESCAPED', what)
        print('CONTAINED')
        """,
    ),
    bare(
        "shared memory of POSIX",
        """
        from multiprocessing import shared_memory
        for name in ('hx-posix', '@MARK@'):
            try:
                shared_memory.SharedMemory(name='hx-posix')
                print('ESCAPED')
            except (OSError, ImportError) as error:
                print('refused', error)
        try:
            kept = shared_memory.SharedMemory(name='hx-posix', create=True, size=4096)
        except OSError as error:
            print('refused', error)
        print('CONTAINED')
        """,
        after="either",
    ),
    bare(
        "shared memory of POSIX again",
        """
        import os
        print('ESCAPED' if os.path.exists('/dev/shm/hx-posix') or os.path.exists('/dev/shm/secret') else 'CONTAINED')
        """,
        language="python",
    ),
    case(
        "queues of POSIX",
        """
        rt = ctypes.CDLL(None, use_errno=True)
        for number in range(3):
            name = b'/hx-queue-%d' % number
            if rt.mq_open(name, os.O_RDWR) >= 0:
                print('ESCAPED', name)
            print(rt.mq_open(name, os.O_RDWR | os.O_CREAT, 0o666, None), end=' ')
        print('CONTAINED')
        """,
    ),
    case(
        "queues of POSIX again",
        """
        for number in range(3):
            if libc.mq_open(b'/hx-queue-%d' % number, os.O_RDWR) >= 0:
                print('ESCAPED', number)
        print('CONTAINED')
        """,
    ),
    case(
        "named semaphores",
        """
        libc.sem_open.restype = ctypes.c_void_p
        if libc.sem_open(b'/hx-semaphore', 0):
            print('ESCAPED')
        libc.sem_open(b'/hx-semaphore', os.O_CREAT, 0o666, 1)
        print('CONTAINED')
        """,
    ),
    case(
        "named semaphores again",
        """
        libc.sem_open.restype = ctypes.c_void_p
        print('ESCAPED' if libc.sem_open(b'/hx-semaphore', 0) else 'CONTAINED')
        """,
    ),
    case(
        "keys kept by the kernel",
        """
        for ring in (-1, -2, -3, -4, -5):
            try:
                print('made', ring, call(248, 217, b'user', b'hx-key', b'left', 4, ring))
            except OSError as error:
                print('refused', error)
        print('CONTAINED')
        """,
    ),
    case(
        "keys of another session",
        """
        attempt('search', lambda: [call(250, 219, 10, ring, b'user', b'hx-key', 0) for ring in (-3, -4, -5)])
        attempt('request', lambda: call(249, 218, b'user', b'hx-key', None, -4))
        print('CONTAINED')
        """,
    ),
    case(
        "locks on shared files",
        """
        import fcntl
        for path in (sys.executable, os.__file__, '/etc/passwd', '/usr', '/'):
            try:
                held = os.open(path, os.O_RDONLY)
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                print('locked', path)
            except OSError as error:
                print('refused', error)
        print('CONTAINED')
        """,
    ),
    case(
        "watching files of others",
        """
        number = libc.inotify_init1(os.O_NONBLOCK)
        for path in (b'@ROOT@', b'/home', b'/root', b'/var/tmp', b'@CWD@'):
            if number >= 0 and os.path.isdir(path) and libc.inotify_add_watch(number, path, 0xfff) >= 0:
                if b'hx-canary' in path:
                    print('ESCAPED', path)
        print('CONTAINED')
        """,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_shared_memory_and_queues_are_the_sessions_own(arena: Arena, case: Case) -> None:
    arena.judge(case)
    for kind in ("shm", "sem", "msg"):
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            assert not KEY <= int(line.split()[0]) < KEY + 4, f"{kind} of a session is left on the host: {line}"
    for name in ("hx-posix", "sem.hx-semaphore"):
        assert not Path("/dev/shm", name).exists()
