# SPDX-License-Identifier: Apache-2.0
"""Processes outside are neither seen, traced nor signalled; inside, signals end in one plain reply."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case, shell

CASES = [
    case(
        "no process of the host is seen",
        """
        seen = [pid for pid in os.listdir('/proc') if pid.isdigit()]
        words = b''
        for pid in seen:
            try:
                words += open(f'/proc/{pid}/cmdline', 'rb').read()
            except OSError:
                pass
        if len(seen) > 8 or b'--port' in words or b'pytest' in words:
            print('ESCAPED', seen, words)
        print('CONTAINED')
        """,
    ),
    case(
        "trace everything",
        """
        PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_TRACEME = 16, 0x4206, 0
        pids = {int(pid) for pid in os.listdir('/proc') if pid.isdigit()} - {os.getpid()}
        for pid in sorted(pids | {1, 2, int('@PID@'), int('@SERVERPID@'), int('@TESTPID@'), os.getppid()}):
            attempt(f'attach {pid}', lambda: call(101, 117, PTRACE_ATTACH, pid, 0, 0))
            attempt(f'seize {pid}', lambda: call(101, 117, PTRACE_SEIZE, pid, 0, 0))
        attempt('trace me', lambda: call(101, 117, PTRACE_TRACEME, 0, 0, 0))
        print('CONTAINED')
        """,
    ),
    case(
        "trace its own child",
        """
        pid = os.fork()
        if pid == 0:
            import time
            time.sleep(20)
            os._exit(0)
        attempt('child', lambda: call(101, 117, 16, pid, 0, 0))
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        print('CONTAINED')
        """,
    ),
    case(
        "signals to processes outside",
        """
        import signal
        for pid in (int('@PID@'), int('@SERVERPID@'), int('@TESTPID@')):
            for number in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGHUP, 34):
                attempt(f'kill {pid} {number}', lambda: os.kill(pid, number) or 'sent')
            attempt(f'group {pid}', lambda: os.killpg(pid, signal.SIGKILL) or 'sent')
            attempt(f'pidfd {pid}', lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
            attempt(f'tgkill {pid}', lambda: call(234, 131, pid, pid, 9))
            attempt(f'tkill {pid}', lambda: call(200, 130, pid, 9))
            info = ctypes.create_string_buffer(128)
            attempt(f'sigqueue {pid}', lambda: call(129, 138, pid, 10, info))
            attempt(f'wait {pid}', lambda: os.waitpid(pid, os.WNOHANG))
        print('CONTAINED')
        """,
    ),
    case(
        "signals from descriptors and timers to outside",
        """
        import fcntl, signal
        reader, writer = os.pipe()
        for pid in (int('@PID@'), int('@SERVERPID@'), -int('@SERVERPID@')):
            try:
                fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
            except OSError as error:
                print('refused', error)
            fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
            os.write(writer, b'x')
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        print('CONTAINED')
        """,
        after="either",
    ),
    case(
        "a signal to everybody",
        """
        import signal
        os.kill(-1, signal.SIGTERM)
        print('CONTAINED')
        """,
        status=("completed", "error", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "death to everybody",
        """
        os.kill(-1, 9)
        print('CONTAINED')
        """,
        status=("completed", "crashed", "error"),
        says=(),
        after="either",
    ),
    case(
        "a signal to its group",
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(0, signal.SIGTERM)
        os.killpg(os.getpgrp(), signal.SIGTERM)
        print('CONTAINED')
        """,
        status=("completed", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "death to its group",
        "os.killpg(os.getpgrp(), 9)",
        status=("crashed",),
        says=(),
        after="lost",
    ),
    case(
        "a signal to every session's head",
        """
        import signal
        for pid in sorted({1, os.getppid(), os.getsid(0) or 1}):
            for number in range(1, 65):
                try:
                    if pid != os.getpid():
                        os.kill(pid, number)
                except OSError as error:
                    pass
        print('CONTAINED')
        """,
        status=("completed", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "stop the supervisor",
        """
        import signal
        for pid in (1, os.getppid()):
            try:
                os.kill(pid, signal.SIGSTOP)
                signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGSTOP)
            except OSError as error:
                print('refused', error)
        print('CONTAINED')
        """,
    ),
    case(
        "stop itself",
        """
        import signal
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        after="either",
        slow=True,
    ),
    case(
        "stop itself again and again",
        """
        import signal
        pid = os.fork()
        if pid == 0:
            parent = os.getppid()
            while True:
                os.kill(parent, signal.SIGSTOP)
        while True:
            pass
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        after="either",
        slow=True,
    ),
    case("kill itself", "os.kill(os.getpid(), 9)", status=("crashed",), says=(), after="lost"),
    case("end itself", "os._exit(0)", status=("crashed",), says=(), after="lost"),
    case(
        "end itself with a status",
        "print('before', flush=True)\nos._exit(3)",
        status=("crashed",),
        says=("before",),
        after="lost",
    ),
    case("abort", "os.abort()", status=("crashed",), says=(), after="lost"),
    case("read address zero", "ctypes.string_at(0)", status=("crashed",), says=(), after="lost"),
    case("end the group of threads", "call(231, 94, 0)", status=("crashed",), says=(), after="lost"),
    bare(
        "overflow of the stack",
        """
        import sys
        sys.setrecursionlimit(10**9)
        def deeper(thing):
            return deeper([thing]) + 1
        value = None
        for _ in range(10**6):
            value = [value]
        try:
            repr(value)
        except RecursionError:
            pass
        deeper(0)
        """,
        status=("crashed", "error", "out_of_memory"),
        says=(),
        after="either",
        timeout=20.0,
        slow=True,
    ),
    bare(
        "kill itself, stateless",
        "import os\nos.kill(os.getpid(), 9)",
        language="python",
        status=("crashed", "completed"),
        says=(),
    ),
    bare(
        "read address zero, stateless",
        "import ctypes\nctypes.string_at(0)",
        language="python",
        status=("crashed", "completed"),
        says=(),
    ),
    bare(
        "end itself, stateless",
        "import os\nprint('before', flush=True)\nos._exit(7)",
        language="python",
        says=("before",),
    ),
    shell("kill the shell", "echo before; kill -9 $$", status=("crashed", "error"), says=("before",)),
    shell(
        "kill all from the shell", "kill -9 -1; echo CONTAINED", status=("crashed", "error", "completed"), says=()
    ),
    shell(
        "kill the outside from the shell", "kill -9 @PID@ @SERVERPID@ @TESTPID@ && echo ESCAPED; echo CONTAINED"
    ),
    case(
        "a deadline with every signal blocked",
        """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        while True:
            pass
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        after="lost",
        slow=True,
    ),
    case(
        "a deadline with every signal ignored",
        """
        import signal, time
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            time.sleep(1)
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        after="lost",
        slow=True,
    ),
    case(
        "a deadline with handlers that go on",
        """
        import signal
        def again(number, frame):
            while True:
                pass
        for number in range(1, 65):
            try:
                signal.signal(number, again)
            except (OSError, ValueError):
                pass
        while True:
            pass
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        after="lost",
        slow=True,
    ),
    case(
        "alarms every millisecond",
        """
        import signal
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        print('CONTAINED')
        """,
        after="either",
    ),
    case(
        "an alarm that kills between the cells",
        """
        import signal
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        print('CONTAINED')
        """,
        status=("completed", "crashed"),
        after="either",
    ),
    case(
        "an interrupt sent by itself",
        """
        import signal
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
        """,
        status=("error",),
        says=("KeyboardInterrupt",),
    ),
    case(
        "interrupts for ever",
        """
        import signal
        parent = os.getpid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.fork() == 0:
            while True:
                os.kill(parent, signal.SIGINT)
        while True:
            try:
                while True:
                    pass
            except KeyboardInterrupt:
                pass
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        after="either",
        slow=True,
    ),
    case(
        "the death signal of a parent",
        """
        libc.prctl(1, 9, 0, 0, 0)
        libc.prctl(4, 0, 0, 0, 0)
        libc.prctl(36, 1, 0, 0, 0)
        print('CONTAINED')
        """,
    ),
    case(
        "wait for children that are not its own",
        """
        attempt('wait', lambda: os.waitpid(-1, os.WNOHANG))
        attempt('waitid', lambda: os.waitid(os.P_PID, 1, os.WEXITED | os.WNOHANG) or open('/none'))
        print('CONTAINED')
        """,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_processes_and_signals_stay_inside(arena: Arena, case: Case) -> None:
    arena.judge(case)
