# SPDX-License-Identifier: Apache-2.0
"""What wants to live on: daemons, children of a shell, threads, handlers at the end."""

from __future__ import annotations

import secrets
import time

import pytest
from tests.sandbox.hostile.arena import (
    PRELUDE,
    Arena,
    Case,
    bare,
    case,
    cpu_seconds,
    marked_processes,
    shell,
    tree,
    wait_until,
)

NAME = "open('/proc/self/comm', 'w').write('@MARK@') if os.path.exists('/proc/self/comm') else None"

CASES = [
    case(
        "double fork",
        f"""
        import time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                {NAME}
                for number in range(256):
                    try:
                        os.close(number)
                    except OSError:
                        pass
                time.sleep(1000)
            os._exit(0)
        os.wait()
        print('CONTAINED')
        """,
    ),
    case(
        "double fork that spins",
        f"""
        import signal
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                {NAME}
                signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
                while True:
                    pass
            os._exit(0)
        os.wait()
        print('CONTAINED')
        """,
    ),
    bare(
        "double fork, stateless",
        f"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                {NAME}
                time.sleep(1000)
            os._exit(0)
        print('CONTAINED', flush=True)
        """,
        language="python",
    ),
    bare(
        "a child that keeps the outputs open, stateless",
        f"""
        import os, time
        if os.fork() == 0:
            {NAME}
            time.sleep(1000)
        print('CONTAINED', flush=True)
        os._exit(0)
        """,
        language="python",
    ),
    case(
        "a child that keeps the outputs open",
        f"""
        import time
        if os.fork() == 0:
            {NAME}
            while True:
                try:
                    os.write(1, b'late words\\n')
                    os.write(2, b'late words\\n')
                except OSError:
                    pass
                time.sleep(0.01)
        print('CONTAINED')
        """,
    ),
    shell("a job in the background", "exec -a @MARK@ sleep 1000 & \necho CONTAINED"),
    shell(
        "nohup and setsid",
        """
        nohup bash -c 'exec -a @MARK@ sleep 1000' >/dev/null 2>&1 &
        setsid bash -c 'trap "" TERM INT HUP; exec -a @MARK@ sleep 1000' &
        (setsid bash -c 'exec -a @MARK@ sleep 1000' </dev/null >/dev/null 2>&1 &)
        disown -a
        echo CONTAINED
        """,
    ),
    shell(
        "a daemon outlives a deadline",
        """
        (setsid bash -c 'trap "" TERM INT HUP; exec -a @MARK@ sleep 1000' >/dev/null 2>&1 &)
        echo CONTAINED
        sleep 1000
        """,
        status=("timeout",),
        timeout=1.0,
        slow=True,
    ),
    shell(
        "a shell that traps everything",
        """
        trap 'echo again' TERM INT HUP QUIT USR1 USR2 PIPE ALRM EXIT
        while true; do sleep 1000; done
        """,
        status=("timeout",),
        says=(),
        timeout=1.0,
        slow=True,
    ),
    case(
        "many generations",
        f"""
        import time
        {NAME}
        for _ in range(12):
            if os.fork() != 0:
                time.sleep(0.01)
                break
            os.setsid()
        else:
            time.sleep(1000)
        if os.getppid() != 1 or os.getpid() > 3:
            pass
        print('CONTAINED')
        """,
        status=("completed", "crashed", "error"),
        says=(),
        after="either",
        slow=True,
        timeout=3.0,
    ),
    case(
        "a child takes the place of the worker",
        """
        if os.fork() != 0:
            os._exit(0)
        print('CONTAINED')
        """,
        status=("crashed",),
        says=(),
        after="lost",
    ),
    case(
        "two interpreters go on after the cell",
        """
        child = os.fork()
        print('CONTAINED', 'child' if child == 0 else 'parent')
        """,
        status=("completed", "crashed", "error"),
        says=(),
        after="either",
    ),
    case(
        "a program in place of the worker",
        f"""
        {NAME}
        os.execvp('sleep', ['@MARK@', '1000'])
        """,
        status=("timeout", "crashed"),
        says=(),
        after="lost",
        timeout=1.0,
        slow=True,
    ),
    case(
        "a program in place of the worker that ends well",
        "os.execvp('true', ['true'])",
        status=("crashed",),
        says=(),
        after="lost",
    ),
    case(
        "a program in place of the worker that talks",
        """
        talk = 'for n in $(seq 0 64); do echo "{process_status: completed}" >&$n; done 2>/dev/null'
        os.execvp('bash', ['bash', '-c', talk])
        """,
        status=("crashed",),
        says=(),
        after="lost",
    ),
    case(
        "a process that waits for the end of the session",
        f"""
        import signal, time
        if os.fork() == 0:
            {NAME}
            libc.prctl(1, 0, 0, 0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            while True:
                time.sleep(0.01)
        print('CONTAINED')
        """,
    ),
    case(
        "children in a stopped state",
        f"""
        import signal
        for _ in range(5):
            if os.fork() == 0:
                {NAME}
                os.kill(os.getpid(), signal.SIGSTOP)
                os._exit(0)
        print('CONTAINED')
        """,
    ),
    case(
        "a vfork that never ends",
        f"""
        import threading, time
        {NAME}
        def stuck():
            if call(56, 220, 0x4000 | 17, 0, 0, 0, 0) == 0:
                while True:
                    pass
        threading.Thread(target=stuck, daemon=True).start()
        time.sleep(30)
        """,
        status=("timeout",),
        says=(),
        after="either",
        timeout=1.0,
        slow=True,
    ),
    case(
        "a vfork that outlasts its cell",
        f"""
        import threading, time
        {NAME}
        def stuck():
            if call(56, 220, 0x4000 | 17, 0, 0, 0, 0) == 0:
                while True:
                    pass
        threading.Thread(target=stuck, daemon=True).start()
        time.sleep(0.2)
        print('CONTAINED')
        """,
        after="either",
        slow=True,
    ),
    case(
        "hundreds of zombies",
        """
        for _ in range(40):
            try:
                if os.fork() == 0:
                    os._exit(0)
            except OSError as error:
                print(error)
                break
        print('CONTAINED')
        """,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_nothing_lives_on(arena: Arena, case: Case) -> None:
    arena.judge(case)


@pytest.mark.parametrize("kind", ["child", "thread", "timer"])
def test_work_after_the_cell_does_not_outlive_its_deadline(arena: Arena, kind: str) -> None:
    """The session is not deleted: a spinning child, thread or timer must stop using the CPU by itself."""
    mark = "hx" + secrets.token_hex(5)
    name = f"open('/proc/thread-self/comm', 'w').write('{mark}')"
    spin = {
        "child": f"if os.fork() == 0:\n    os.setsid()\n    {name}\n    while True: pass",
        "thread": f"import threading\ndef spin():\n    {name}\n    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()",
        "timer": "import signal\ndef spin(*_):\n    while True: pass\n"
        "signal.signal(signal.SIGALRM, spin)\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)",
    }[kind]
    session = f"spinner-{kind}"
    client = arena.client
    before = set(tree(arena.server.pid))
    answer = client.execute(PRELUDE + spin + "\nprint('CONTAINED')", session, timeout=1.0)
    assert (answer.status, answer.stdout) == ("completed", "CONTAINED\n"), answer.text
    time.sleep(1.5)
    mine = set(tree(arena.server.pid)) - before
    used = cpu_seconds(mine)
    time.sleep(0.6)
    assert cpu_seconds(mine) - used < 0.3, f"{kind} still spins after the deadline of its cell"
    following = client.execute("print(1)", session, timeout=5.0)
    assert following.status in ("completed", "timeout", "crashed")
    client.delete(session)
    wait_until(lambda: not marked_processes(mark), "the session is gone, its process is not")
    arena.still_serves()


def test_the_server_ends_with_nothing_left(arena: Arena) -> None:
    """A session with daemons is not closed by the client: `DELETE` of one session leaves the others."""
    client = arena.client
    marks = []
    for number in range(4):
        mark = "hx" + secrets.token_hex(5)
        marks.append(mark)
        name = f"open('/proc/self/comm', 'w').write('{mark}')"
        spin = f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    {name}\n    time.sleep(1000)"
        client.execute(spin, f"daemon-{number}")
    for number, mark in enumerate(marks):
        assert client.delete(f"daemon-{number}").code == 200
        wait_until(lambda mark=mark: not marked_processes(mark), "a daemon outlived its session")  # type: ignore[misc]
    arena.still_serves()
