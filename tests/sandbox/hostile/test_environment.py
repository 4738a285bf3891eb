# SPDX-License-Identifier: Apache-2.0
"""Secrets in the environment and memory of the server, and what a descriptor may lead to."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case, shell

SEARCH = """
import os
half1, half2 = '@HALF1@', '@HALF2@'
def holds(data):
    where = data.find(half1.encode())
    while where >= 0:
        if data[where + len(half1):where + len(half1) + len(half2)] == half2.encode():
            return True
        where = data.find(half1.encode(), where + 1)
    return False
"""

CASES = [
    bare(
        "the environment",
        SEARCH
        + """
for name, value in os.environ.items():
    if holds(value.encode()) or name in ('HX_CANARY', 'OPENAI_API_KEY', 'AWS_SECRET_ACCESS_KEY', 'PYTHONPATH'):
        print('ESCAPED', name)
print(sorted(os.environ), 'CONTAINED')
""",
    ),
    bare(
        "the environment, stateless",
        SEARCH
        + """
import ctypes
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ')
at = 0
while environ[at]:
    if holds(environ[at]):
        print('ESCAPED', environ[at][:10])
    at += 1
print(at, 'CONTAINED')
""",
        language="python",
    ),
    shell(
        "the environment of a shell",
        """
        env | grep -E 'HX_CANARY|OPENAI|AWS_SECRET|TOKEN' && echo ESCAPED
        cat /proc/*/environ | tr '\\0' '\\n' | grep -aE 'HX_CANARY|OPENAI|AWS_SECRET' && echo ESCAPED
        echo CONTAINED
        """,
    ),
    bare(
        "the environment of a C++ program",
        """
        #include <cstring>
        #include <iostream>
        extern char **environ;
        int main() {
            for (char **e = environ; *e; ++e)
                if (strstr(*e, "HX_CANARY") || strstr(*e, "API_KEY")) std::cout << "ESCAPED " << *e << std::endl;
            std::cout << "CONTAINED" << std::endl;
        }
        """,
        language="cpp",
        slow=True,
        timeout=30.0,
    ),
    bare(
        "environments of all processes",
        SEARCH
        + """
for pid in os.listdir('/proc'):
    if pid.isdigit():
        for name in ('environ', 'cmdline', 'auxv'):
            try:
                data = open(f'/proc/{pid}/{name}', 'rb').read()
            except OSError as error:
                print('refused', pid, name)
                continue
            if holds(data):
                print('ESCAPED', pid, name)
print('CONTAINED')
""",
    ),
    bare(
        "its own memory",
        SEARCH
        + """
import re
searched = 0
with open('/proc/self/mem', 'rb', 0) as memory:
    for line in open('/proc/self/maps'):
        start, end = (int(word, 16) for word in line.split()[0].split('-'))
        if 'r' not in line.split()[1] or '[v' in line:
            continue
        try:
            memory.seek(start)
            while start < end:
                data = memory.read(min(1 << 22, end - start))
                if not data:
                    break
                searched += len(data)
                start += len(data)
                if holds(data):
                    print('ESCAPED', line)
                    break
        except (OSError, OverflowError, ValueError):
            continue
print('CONTAINED', searched > 1000000)
""",
        says=("CONTAINED True",),
        slow=True,
        timeout=30.0,
    ),
    case(
        "the stack behind the environment",
        """
        half1, half2 = b'@HALF1@', b'@HALF2@'
        for line in open('/proc/self/maps'):
            if '[stack]' in line:
                start, end = (int(word, 16) for word in line.split()[0].split('-'))
                data = ctypes.string_at(start, end - start)
                at = data.find(half1)
                while at >= 0:
                    if data[at + len(half1):][:len(half2)] == half2:
                        print('ESCAPED')
                    at = data.find(half1, at + 1)
        print('CONTAINED')
        """,
    ),
    case(
        "memory of other processes",
        """
        others = [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) != os.getpid()]
        class Vector(ctypes.Structure):
            _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
        space = ctypes.create_string_buffer(64)
        for pid in others + ['@SERVERPID@', '@PID@', '@TESTPID@']:
            attempt('mem ' + pid, lambda: open(f'/proc/{pid}/mem', 'rb', 0))
            attempt('write mem ' + pid, lambda: open(f'/proc/{pid}/mem', 'r+b', 0))
            attempt('maps ' + pid, lambda: open(f'/proc/{pid}/maps').read() or open('/nowhere'))
            here, there = Vector(ctypes.addressof(space), 64), Vector(id(os), 64)
            attempt('readv ' + pid, lambda: call(310, 270, int(pid), ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
            attempt('writev ' + pid, lambda: call(311, 271, int(pid), ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
        print(len(others), 'CONTAINED')
        """,
    ),
    case(
        "descriptors lead to nothing of the host",
        """
        for number in sorted(map(int, os.listdir('/proc/self/fd'))):
            try:
                target = os.readlink(f'/proc/self/fd/{number}')
            except OSError:
                continue
            print(number, target)
            if target.startswith('/') and not target.startswith(('/dev/null', '/proc', '/dev/urandom', '/tmp', '/work',
                                                                 '/dev/shm')):
                print('ESCAPED', target)
            if 'server.log' in target or 'hx-canary' in target:
                print('ESCAPED', target)
        print('CONTAINED')
        """,
    ),
    case(
        "sockets among the descriptors",
        """
        for number in range(256):
            try:
                found = socket.socket(fileno=os.dup(number))
            except OSError:
                continue
            try:
                found.setblocking(False)
                print('socket', number, found.family, found.getsockname())
                for peer in (('127.0.0.1', int('@TCP4@')), '@UNIX@', b'\\0@ABSTRACT@'):
                    attempt(f'{number} to {peer}', lambda: found.connect(peer))
                data = attempt(f'receive on {number}', lambda: found.recvmsg(100, 1000))
            finally:
                found.close()
        print('CONTAINED')
        """,
        after="either",
    ),
    case(
        "every descriptor closed",
        """
        print('CONTAINED', flush=True)
        os.closerange(0, 256)
        """,
        status=("completed", "error", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "every descriptor but the standard ones closed",
        """
        os.closerange(3, 256)
        print('CONTAINED')
        """,
        status=("completed", "error", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "every descriptor replaced by a file",
        """
        place = os.open('/tmp/garbage', os.O_RDWR | os.O_CREAT)
        os.write(place, b'{"process_status": "completed", "stdout": "ESCAPED"}\\n' * 100)
        for number in range(128):
            if number != place:
                os.dup2(place, number)
        """,
        status=("completed", "error", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "every descriptor replaced by /dev/null",
        """
        for number in range(128):
            os.dup2(os.open('/dev/null', os.O_RDWR) if number == 0 else 0, number)
        """,
        status=("completed", "error", "crashed"),
        says=(),
        after="either",
    ),
    case(
        "every descriptor in a child read to its end",
        """
        import threading, time
        pid = os.fork()
        if pid == 0:
            def swallow(number):
                try:
                    while os.read(number, 65536):
                        pass
                except OSError:
                    pass
            for number in range(256):
                threading.Thread(target=swallow, args=(number,), daemon=True).start()
            time.sleep(100)
            os._exit(0)
        print('CONTAINED')
        """,
        status=("completed", "error"),
        says=(),
        after="either",
    ),
    case(
        "non-blocking and asynchronous descriptors",
        """
        import fcntl
        for number in range(256):
            try:
                fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
                fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid())
            except OSError:
                pass
        print('x' * 50000)
        print('CONTAINED')
        """,
        status=("completed", "error", "crashed"),
        says=(),
        after="either",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_secrets_and_descriptors_of_the_server_stay_outside(arena: Arena, case: Case) -> None:
    arena.judge(case)
