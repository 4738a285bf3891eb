# SPDX-License-Identifier: Apache-2.0
"""Memory by every road: it ends at the session's limit, and the machine keeps its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from tests.sandbox.hostile.arena import Arena, Case, case, memory, shell, tree

MB = 1 << 20
LIMIT_MB = 300
CEILING = 2500 * MB
"""Of all processes of the server: its own, several bombs at once with their limit each, and some overshoot."""

OUT = ("out_of_memory", "error")
"""An allocation may be refused (MemoryError) or the session stopped; nothing else is honest."""


def memory_bomb(name: str, code: str, **settings: object) -> Case:
    values: dict[str, object] = {
        "status": OUT,
        "says": (),
        "after": "either",
        "timeout": 15.0,
        "slow": True,
        **settings,
    }
    return case(name, code, **values)


CHILDREN = f"""
import time
def fill():
    kept, total = [], 0
    try:
        while True:
            @FILL@
    except OSError:
        kept.pop().close()
    with open(f'/tmp/total{{os.getpid()}}', 'w') as file:
        file.write(str(total))
    time.sleep(30)
    os._exit(0)
for _ in range(60):
    try:
        if os.fork() == 0:
            fill()
    except OSError:
        break
time.sleep(5)
total = sum(int(open('/tmp/' + name).read() or 0) for name in os.listdir('/tmp') if name.startswith('total'))
print('ESCAPED' if total > {2 * LIMIT_MB << 20} else 'CONTAINED', total >> 20)
"""
"""Children that fill buffers of the kernel, which show in no process's memory; the total must stay near the limit."""

PAIR = """
def fill_pair(kept):
    left, right = socket.socketpair()
    kept += [left, right]
    sent = 0
    for end in (left, right):
        end.setblocking(False)
        try:
            while True:
                sent += end.send(b'x' * 65536)
        except BlockingIOError:
            pass
    return sent
"""

DATAGRAMS = """
def fill_datagrams(kept):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    kept.append(end)
    end.bind(('127.0.0.1', 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sum(sender.sendto(b'x' * 30000, end.getsockname()) for _ in range(6))
"""

CASES = [
    memory_bomb("one allocation", "x = bytearray(20 << 30)\nprint('ESCAPED', len(x))", says=("Memory",)),
    memory_bomb(
        "one allocation, stateless",
        "x = bytearray(20 << 30)\nprint('ESCAPED', len(x))",
        language="python",
        status=("completed", "out_of_memory"),
        says=("Memory",),
    ),
    memory_bomb("one allocation above the limit", "x = b'x' * (2 << 30)\nprint('ESCAPED', len(x))"),
    memory_bomb("growth", "kept = []\nwhile True:\n    kept.append(bytearray(b'x' * (1 << 20)))"),
    memory_bomb(
        "growth that catches",
        """
        kept = []
        while True:
            try:
                kept.append(bytearray(b'x' * (1 << 18)))
            except MemoryError:
                pass
        """,
        status=("out_of_memory", "timeout"),
        timeout=3.0,
    ),
    memory_bomb("a list of a range", "x = list(range(10 ** 10))"),
    memory_bomb("text times itself", "x = 'ab'\nwhile True:\n    x += x"),
    memory_bomb(
        "children",
        """
        import time
        for _ in range(20):
            if os.fork() == 0:
                kept = bytearray(b'x' * (100 << 20))
                time.sleep(30)
                os._exit(0)
        ends = [os.wait()[1] for _ in range(20)]
        print('CONTAINED' if any(ends) else 'ESCAPED')
        """,
        status=("out_of_memory", "error", "timeout"),
        timeout=8.0,
    ),
    memory_bomb(
        "shared pages",
        """
        import mmap
        kept = []
        while True:
            page = mmap.mmap(-1, 32 << 20)
            page.write(b'x' * (32 << 20))
            kept.append(page)
        """,
    ),
    memory_bomb(
        "shared pages of children",
        """
        import mmap, time
        for _ in range(20):
            if os.fork() == 0:
                try:
                    page = mmap.mmap(-1, 150 << 20)
                    page.write(b'x' * (150 << 20))
                except OSError:
                    os._exit(1)
                time.sleep(30)
                os._exit(0)
        time.sleep(3)
        held = [os.waitpid(-1, os.WNOHANG)[0] for _ in range(20)].count(0)
        print('ESCAPED' if held > 2 else 'CONTAINED', held)
        """,
        status=("out_of_memory", "error", "crashed", "completed"),
        timeout=12.0,
    ),
    memory_bomb(
        "files in memory that nobody maps",
        """
        total = 0
        kept = []
        try:
            while total < 3 << 30:
                number = os.memfd_create('bomb')
                kept.append(number)
                for _ in range(24):
                    total += os.write(number, b'x' * (1 << 20))
        finally:
            print('wrote', total >> 20)
        print('ESCAPED')
        """,
    ),
    memory_bomb(
        "files in memory, handed to children",
        """
        import time
        for _ in range(10):
            if os.fork() == 0:
                held = []
                try:
                    for _ in range(60):
                        held.append(os.memfd_create('bomb'))
                        for _ in range(20):
                            os.write(held[-1], b'x' * (1 << 20))
                except OSError:
                    os._exit(1)
                time.sleep(30)
                os._exit(0)
        time.sleep(4)
        held = [os.waitpid(-1, os.WNOHANG)[0] for _ in range(10)].count(0)
        print('ESCAPED' if held > 2 else 'CONTAINED', held)
        """,
        status=("out_of_memory", "error", "completed"),
        timeout=12.0,
    ),
    memory_bomb(
        "segments of System V that nobody attaches",
        """
        libc.shmat.restype = ctypes.c_void_p
        libc.shmdt.argtypes = [ctypes.c_void_p]
        total = 0
        while total < 3 << 30:
            number = libc.shmget(0, ctypes.c_size_t(32 << 20), 0o1600)
            if number < 0:
                raise OSError(ctypes.get_errno(), 'no segment')
            address = libc.shmat(number, None, 0)
            ctypes.memset(address, 1, 32 << 20)
            libc.shmdt(address)
            total += 32 << 20
        print('ESCAPED', total)
        """,
    ),
    memory_bomb(
        "messages that nobody reads",
        """
        total = 0
        message = ctypes.create_string_buffer(b'\\1\\0\\0\\0\\0\\0\\0\\0' + b'x' * 8000)
        for _ in range(40000):
            number = libc.msgget(0, 0o1600)
            if number < 0 or libc.msgsnd(number, message, ctypes.c_size_t(8000), 0o4000) < 0:
                break
            total += 8000
        print('queued', total >> 20)
        print('ESCAPED' if total > 64 << 20 else 'CONTAINED')
        """,
        status=("completed", "out_of_memory", "error"),
        says=(),
    ),
    memory_bomb(
        "pipes full of data",
        """
        import fcntl
        total = 0
        try:
            while True:
                reader, writer = os.pipe()
                os.set_blocking(writer, False)
                try:
                    fcntl.fcntl(writer, 1031, 1 << 20)
                except OSError:
                    pass
                try:
                    while True:
                        total += os.write(writer, b'x' * 65536)
                except BlockingIOError:
                    pass
        except OSError as error:
            print(error)
        print('CONTAINED' if total < 256 << 20 else 'ESCAPED', total >> 20)
        """,
        status=("completed", "out_of_memory"),
        says=(),
    ),
    memory_bomb(
        "sockets full of data",
        """
        total = 0
        try:
            while True:
                left, right = socket.socketpair()
                left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                left.setblocking(False)
                globals().setdefault('kept', []).append((left, right))
                try:
                    while True:
                        total += left.send(b'x' * 65536)
                except BlockingIOError:
                    pass
        except OSError as error:
            print(error)
        print('CONTAINED' if total < 256 << 20 else 'ESCAPED', total >> 20)
        """,
        status=("completed", "out_of_memory"),
        says=(),
    ),
    memory_bomb(
        "sockets of many children full of data",
        PAIR + CHILDREN.replace("@FILL@", "total += fill_pair(kept)"),
        status=("completed", "out_of_memory"),
    ),
    memory_bomb(
        "datagrams of many children that nobody reads",
        DATAGRAMS + CHILDREN.replace("@FILL@", "total += fill_datagrams(kept)"),
        status=("completed", "out_of_memory"),
    ),
    memory_bomb(
        "locked memory",
        """
        libc.mlockall(3)
        kept = []
        while True:
            kept.append(bytearray(1 << 22))
        """,
        after="full",
    ),
    memory_bomb(
        "tables of pages",
        """
        import mmap
        total = 0
        for number in range(200):
            try:
                area = mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
            except (OSError, ValueError) as error:
                print(error)
                break
            for place in range(0, 4 << 30, 2 << 20):
                area[place] = 1
            total += 1
            globals().setdefault('kept', []).append(area)
        print('CONTAINED', total)
        """,
        status=("completed", "out_of_memory", "error"),
        says=(),
    ),
    memory_bomb("an array of numpy", "import numpy\nx = numpy.ones(10 ** 10)\nprint('ESCAPED')", says=("Memory",)),
    memory_bomb(
        "an array of numpy by growth", "import numpy\nkept = []\nwhile True:\n    kept.append(numpy.ones(10 ** 6))"
    ),
    memory_bomb(
        "a repr of a gigabyte",
        "class Big:\n    def __repr__(self):\n        return 'x' * (1 << 30)\nBig()",
        status=("error", "out_of_memory", "completed"),
    ),
    memory_bomb(
        "a zip bomb",
        """
        import zlib
        packed = zlib.compress(b'0' * (40 << 20), 9)
        kept = []
        while True:
            kept.append(zlib.decompress(packed))
        """,
    ),
    shell(
        "a shell that grows",
        "x=$(head -c 3000000000 /dev/zero | tr '\\0' x); echo ESCAPED ${#x}",
        status=("out_of_memory", "error", "crashed", "timeout"),
        says=(),
        slow=True,
        timeout=15.0,
    ),
]


@pytest.fixture(scope="module")
def peak(arena: Arena) -> Iterator[list[int]]:
    """The most memory that the server's processes held while these tests ran, sampled."""
    seen = [0]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.3):
            seen[0] = max(seen[0], memory(tree(arena.server.pid)))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    yield seen
    stop.set()
    watcher.join()


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_memory_ends_at_the_limit(arena: Arena, peak: list[int], case: Case) -> None:
    arena.judge(case)


def test_the_host_kept_its_memory(arena: Arena, peak: list[int]) -> None:
    """What bombs took never got near the machine's, and shared memory that no process maps is given back."""
    assert peak[0] < CEILING, f"{peak[0] >> 20} MiB"
    deadline = time.monotonic() + 5
    while memory(tree(arena.server.pid)) > 600 * MB and time.monotonic() < deadline:
        time.sleep(0.1)
    assert memory(tree(arena.server.pid)) <= 600 * MB
