# SPDX-License-Identifier: Apache-2.0
"""Processes, disk, inodes, descriptors: each is used up inside, and only there."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case, shell

MB = 1 << 20
DISK_MB, FILES, PROCESSES = 48, 2000, 48
"""Those of `serving.SMALL`."""

BOMB = """
import os, time
end = time.monotonic() + 8
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        pass
os._exit(0)
"""
"""Dies out by itself, should nobody stop it."""

PROCESS = [
    shell(
        "a fork bomb in a shell",
        "end=$((EPOCHSECONDS + 6)); bomb() { ((EPOCHSECONDS < end)) && bomb | bomb & }; bomb; sleep 1; echo CONTAINED",
        status=("completed", "error", "timeout", "crashed"),
        says=(),
        slow=True,
        timeout=3.0,
    ),
    case(
        "a fork bomb",
        BOMB,
        status=("timeout", "out_of_memory"),
        says=(),
        after="either",
        slow=True,
        timeout=1.0,
    ),
    bare(
        "a fork bomb, stateless",
        BOMB,
        language="python",
        status=("timeout", "out_of_memory"),
        says=(),
        slow=True,
        timeout=1.0,
    ),
    case(
        "children up to the limit",
        f"""
        import time
        made = 0
        try:
            for _ in range(300):
                if os.fork() == 0:
                    time.sleep(30)
                    os._exit(0)
                made += 1
        except OSError as error:
            print(error)
        print('CONTAINED' if made <= {PROCESSES} else 'ESCAPED', made)
        """,
        slow=True,
    ),
    case(
        "threads up to the limit",
        f"""
        import threading, time
        made = 0
        try:
            for _ in range(500):
                threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
                made += 1
        except RuntimeError as error:
            print(error)
        print('CONTAINED' if made <= {PROCESSES} else 'ESCAPED', made)
        """,
        slow=True,
    ),
    case(
        "children that fork when they die",
        """
        import signal, time
        end = time.monotonic() + 8
        signal.signal(signal.SIGTERM, lambda *_: os.fork())
        for _ in range(10):
            if os.fork() == 0:
                while time.monotonic() < end or os._exit(0):
                    try:
                        if os.fork() == 0:
                            os.setsid()
                            continue
                        os._exit(0)
                    except OSError:
                        pass
        print('CONTAINED')
        time.sleep(100)
        """,
        status=("timeout", "out_of_memory", "error"),
        says=(),
        after="either",
        slow=True,
        timeout=1.0,
    ),
    case(
        "clones without memory of their own",
        """
        import time
        made = 0
        for _ in range(200):
            try:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                made += 1
            except OSError:
                break
        end = time.monotonic() + 8
        while time.monotonic() < end:
            try:
                os.fork() or time.sleep(20)
            except OSError:
                pass
        """,
        status=("timeout", "out_of_memory"),
        says=(),
        after="either",
        slow=True,
        timeout=1.0,
    ),
    case(
        "all cores busy",
        """
        for _ in range(6):
            if os.fork() == 0:
                break
        while True:
            pass
        """,
        status=("timeout",),
        says=(),
        after="either",
        slow=True,
        timeout=1.0,
    ),
]

DISK = [
    case(
        "a file without end",
        f"""
        total = 0
        try:
            with open('/tmp/big', 'wb') as file:
                while total < 4 << 30:
                    total += file.write(b'x' * (1 << 20))
        except OSError as error:
            print(error)
        print('CONTAINED' if total < {DISK_MB * 3 << 20} else 'ESCAPED', total >> 20)
        """,
        status=("completed", "out_of_memory", "crashed"),
        says=(),
        after="either",
        slow=True,
        timeout=15.0,
    ),
    case(
        "every writable place filled",
        f"""
        total = 0
        for folder in ('/tmp', '/work', '/dev/shm', '/var/tmp', '/run', '/', '/dev', os.path.expanduser('~'), '/home',
                       '/run/lock', '/dev/mqueue', '/proc', '/sys', '/usr/tmp', '/data', os.getcwd()):
            for number in range(40):
                try:
                    with open(f'{{folder}}/fill{{number}}', 'wb', 0) as file:
                        while total < 2 << 30:
                            total += file.write(b'x' * (1 << 20))
                except OSError:
                    break
        print('CONTAINED' if total < {DISK_MB * 4 << 20} else 'ESCAPED', total >> 20)
        """,
        status=("completed", "out_of_memory"),
        says=(),
        after="either",
        slow=True,
        timeout=15.0,
    ),
    case(
        "sparse files and promises of space",
        """
        made = 0
        for size in (1 << 40, 1 << 33, 1 << 31):
            for call_name in ('posix_fallocate', 'ftruncate'):
                number = os.open(f'/tmp/sparse{size}{call_name}', os.O_RDWR | os.O_CREAT)
                try:
                    if call_name == 'posix_fallocate':
                        os.posix_fallocate(number, 0, size)
                    else:
                        os.ftruncate(number, size)
                    os.pwrite(number, b'x', size - 1)
                    made += 1 if call_name == 'posix_fallocate' else 0
                except (OSError, OverflowError) as error:
                    print(error)
        print('ESCAPED' if made else 'CONTAINED')
        """,
        status=("completed", "crashed"),
        says=(),
        after="either",
        slow=True,
    ),
    case(
        "files without number",
        f"""
        made = 0
        os.makedirs('/tmp/many', exist_ok=True)
        try:
            for number in range(100000):
                os.close(os.open(f'/tmp/many/{{number}}', os.O_CREAT))
                made += 1
        except OSError as error:
            print(error)
        print('CONTAINED' if made <= {FILES} else 'ESCAPED', made)
        """,
        after="either",
        slow=True,
    ),
    case(
        "folders in folders",
        f"""
        depth = 0
        try:
            for depth in range(100000):
                os.mkdir('d')
                os.chdir('d')
        except OSError as error:
            print(error)
        os.chdir('/tmp')
        print('CONTAINED' if depth <= {FILES} else 'ESCAPED', depth)
        """,
        after="either",
        slow=True,
    ),
    case(
        "links and pipes without number",
        f"""
        made = 0
        os.makedirs('/tmp/links', exist_ok=True)
        for maker in (lambda n: os.symlink('x' * 200, f'/tmp/links/s{{n}}'), lambda n: os.mkfifo(f'/tmp/links/f{{n}}'),
                      lambda n: socket.socket(socket.AF_UNIX).bind(f'/tmp/links/u{{n}}')):
            try:
                for number in range(20000):
                    maker(number)
                    made += 1
            except OSError as error:
                print(error)
        print('CONTAINED' if made <= {FILES} * 2 else 'ESCAPED', made)
        """,
        after="either",
        slow=True,
    ),
    case(
        "attributes of files",
        """
        total = 0
        open('/tmp/attributes', 'w').close()
        try:
            for number in range(100000):
                os.setxattr('/tmp/attributes', f'user.{number}', b'x' * 60000)
                total += 60000
        except OSError as error:
            print(error)
        print('CONTAINED' if total < 300 << 20 else 'ESCAPED', total >> 20)
        """,
        status=("completed", "out_of_memory"),
        says=(),
        after="either",
        slow=True,
    ),
    case(
        "descriptors without number",
        """
        kept = []
        try:
            while len(kept) < 100000:
                kept.append(os.open('/dev/null', os.O_RDONLY))
        except OSError as error:
            print(error)
        print('CONTAINED' if len(kept) < 5000 else 'ESCAPED', len(kept))
        """,
        after="either",
        slow=True,
    ),
    case(
        "descriptors of many kinds",
        """
        import select
        kept = []
        for maker in (lambda: select.epoll(), lambda: os.eventfd(0), lambda: libc.inotify_init(),
                      lambda: socket.socketpair(),
                      lambda: os.pipe(), lambda: os.memfd_create('x'), lambda: os.pidfd_open(os.getpid()),
                      lambda: call(283, 85, 1, 0)):
            try:
                for _ in range(5000):
                    made = maker()
                    if made == -1:
                        break
                    kept.append(made)
            except OSError as error:
                pass
        print('CONTAINED' if len(kept) < 5000 else 'ESCAPED', len(kept))
        """,
        after="either",
        slow=True,
    ),
    shell(
        "a shell fills the disk",
        "cat /dev/zero > /tmp/z; head -c 900000000 /dev/zero > z2; du -xm /tmp . | sort -n | "
        f'tail -1 | awk \'{{print ($1 > {DISK_MB * 2}) ? "ESCAPED" : "CONTAINED", $1}}\'',
        status=("completed", "error", "out_of_memory"),
        says=(),
        slow=True,
        timeout=15.0,
    ),
]


@pytest.mark.parametrize("case", PROCESS + DISK, ids=lambda one: one.name)
def test_a_bomb_uses_up_its_own_limits_only(arena: Arena, case: Case) -> None:
    arena.judge(case)


def test_a_disk_filled_by_one_session_is_not_full_for_another(arena: Arena) -> None:
    client = arena.client
    fill = "import os\nwhile True:\n    os.write(number, b'x' * 65536)"
    filled = client.execute("import os\nnumber = os.open('/tmp/f', os.O_CREAT | os.O_WRONLY)\n" + fill, "filler")
    assert filled.status in ("error", "out_of_memory"), filled.text
    other = client.execute("print(open('/tmp/f', 'w').write('x' * 1000000))", "neighbour")
    assert (other.status, other.stdout) == ("completed", "1000000\n")
    again = client.execute("print('still here')", "filler")
    assert again.status == "completed"
    assert again.stdout == "still here\n"
    for name in ("filler", "neighbour"):
        client.delete(name)


def test_a_process_bomb_leaves_room_for_others(arena: Arena) -> None:
    """The limit on processes counts per session, not per user."""
    client = arena.client
    hold = "import os, time\nfor _ in range(30):\n    if os.fork() == 0:\n        time.sleep(30)\nprint('held')"
    threads = []
    for number in range(3):
        code = hold + "\ntime.sleep(1.5)"
        threads.append(threading.Thread(target=client.execute, args=(code, f"holder-{number}")))
        threads[-1].start()
    time.sleep(0.5)
    child = "import subprocess; print(subprocess.run(['echo', 'mine'], capture_output=True, text=True).stdout)"
    other = client.execute(child, "neighbour")
    assert (other.status, other.stdout) == ("completed", "mine\n\n"), other.text
    for thread in threads:
        thread.join()
    for name in ("neighbour", "holder-0", "holder-1", "holder-2"):
        client.delete(name)


def test_disk_of_the_host_is_untouched(arena: Arena) -> None:
    """The session's files are in memory of its own, not in a folder of the host."""
    before = os.statvfs("/tmp").f_bavail * os.statvfs("/tmp").f_frsize
    arena.client.execute("open('/tmp/x', 'wb').write(b'x' * (30 << 20))", "disk")
    marks = [path for path in Path("/tmp").glob("*") if path.name == "x" and path.stat().st_size == 30 << 20]
    assert marks == []
    after = os.statvfs("/tmp").f_bavail * os.statvfs("/tmp").f_frsize
    assert before - after < 2000 * MB
    arena.client.delete("disk")
