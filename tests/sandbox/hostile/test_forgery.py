# SPDX-License-Identifier: Apache-2.0
"""Replies can not be forged: what a cell writes anywhere is never taken for the word of the sandbox."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case, shell

FORGED = "FORGED-BY-THE-CELL"

FRAMES = """
import json, os, struct
body = {'process_status': 'completed', 'status': 'completed', 'stdout': 'FORGED-BY-THE-CELL', 'stderr': '', 'ok': True,
        'result': 'FORGED-BY-THE-CELL', 'type': 'result', 'id': 1, 'new_session_created': False, 'exit_code': 0}
text = json.dumps(body).encode()
frames = [text, text + b'\\n', struct.pack('>I', len(text)) + text, struct.pack('<I', len(text)) + text,
          struct.pack('>Q', len(text)) + text, struct.pack('<Q', len(text)) + text, b'\\0' * 64, b'\\xff' * 64,
          b'Content-Length: %d\\r\\n\\r\\n' % len(text) + text,
          b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(text) + text]
"""


CASES = [
    bare(
        "frames to every descriptor",
        FRAMES
        + """
for number in range(3, 256):
    try:
        os.set_blocking(number, False)
    except OSError:
        continue
    for frame in frames:
        try:
            os.write(number, frame)
        except OSError:
            pass
1 / 0
""",
        status=("error", "crashed"),
        says=(),
        after="either",
    ),
    bare(
        "frames to the standard outputs",
        FRAMES
        + """
for frame in frames:
    for number in (1, 2):
        os.write(number, frame)
1 / 0
""",
        status=("error",),
        says=("ZeroDivisionError",),
    ),
    bare(
        "frames through /proc",
        FRAMES
        + """
for pid in ['self', '1', str(os.getppid())]:
    for number in range(64):
        for door in (f'/proc/{pid}/fd/{number}', f'/dev/fd/{number}'):
            try:
                out = os.open(door, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                continue
            for frame in frames:
                try:
                    os.write(out, frame)
                except OSError:
                    pass
            os.close(out)
1 / 0
""",
        status=("error", "crashed"),
        says=(),
        after="either",
    ),
    bare(
        "frames by a child after the cell",
        FRAMES
        + """
import time
if os.fork() == 0:
    time.sleep(0.05)
    for _ in range(50):
        for number in range(256):
            try:
                os.write(number, frames[3])
            except OSError:
                pass
        time.sleep(0.01)
    os._exit(0)
1 / 0
""",
        status=("error",),
        says=("ZeroDivisionError",),
        after="either",
    ),
    bare(
        "frames by a thread after the cell",
        FRAMES
        + """
import threading, time
def late():
    for _ in range(200):
        for number in range(3, 64):
            try:
                os.set_blocking(number, False)
                os.write(number, frames[3])
            except OSError:
                pass
        time.sleep(0.002)
threading.Thread(target=late, daemon=True).start()
1 / 0
""",
        status=("error",),
        says=("ZeroDivisionError",),
        after="either",
    ),
    bare(
        "frames by sendmsg with descriptors",
        FRAMES
        + """
import array, socket
for number in range(256):
    try:
        end = socket.socket(fileno=os.dup(number))
        end.setblocking(False)
        for frame in frames:
            end.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1, 2]))])
    except OSError:
        pass
1 / 0
""",
        status=("error", "crashed"),
        says=(),
        after="either",
    ),
    bare(
        "half a frame, then silence",
        """
import os, struct, time
for number in range(3, 256):
    for head in (struct.pack('>I', 1 << 30), struct.pack('<I', 1 << 30), b'{"process_status": "comp'):
        try:
            os.set_blocking(number, False)
            os.write(number, head)
        except OSError:
            pass
1 / 0
""",
        status=("error", "crashed", "timeout"),
        says=(),
        after="either",
        timeout=2.0,
        slow=True,
    ),
    bare(
        "a frame of two gigabytes",
        """
import os, struct
for number in range(3, 256):
    try:
        os.set_blocking(number, False)
        os.write(number, struct.pack('<I', (1 << 31) - 1))
        while True:
            os.write(number, b'x' * 65536)
    except OSError:
        pass
1 / 0
""",
        status=("error", "crashed", "timeout"),
        says=(),
        after="either",
        timeout=3.0,
        slow=True,
    ),
    bare(
        "frames without end",
        FRAMES
        + """
import time
while True:
    for number in range(3, 64):
        try:
            os.set_blocking(number, False)
            os.write(number, frames[2] * 10)
        except OSError:
            pass
    time.sleep(0.001)
""",
        status=("timeout", "crashed"),
        says=(),
        after="either",
        timeout=1.0,
        slow=True,
    ),
    bare(
        "the worker's own writer",
        """
import gc, io, json, os, socket, sys, types
body = {'process_status': 'completed', 'status': 'completed', 'stdout': 'FORGED-BY-THE-CELL'}
for thing in gc.get_objects():
    if isinstance(thing, (io.IOBase, socket.socket)):
        for name in ('write', 'sendall', 'send'):
            try:
                getattr(thing, name)(json.dumps(body).encode())
            except BaseException:
                pass
frame = sys._getframe()
while frame:
    for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
        if isinstance(value, types.FunctionType) and any(part in name for part in ('send', 'write', 'reply', 'result')):
            try:
                value(body)
            except BaseException:
                pass
    frame = frame.f_back
1 / 0
""",
        status=("error", "crashed", "timeout", "completed"),
        says=(),
        after="broken",
        timeout=3.0,
        slow=True,
    ),
    bare(
        "the nonce out of the frames of the stack",
        """
import sys
frame, seen = sys._getframe(), []
while frame:
    seen += [repr(value)[:300] for value in frame.f_locals.values()]
    frame = frame.f_back
print(len(seen), 'CONTAINED')
""",
    ),
    bare(
        "a result replaced in the caller",
        """
import ctypes, sys
frame = sys._getframe().f_back
while frame:
    for name in list(frame.f_locals):
        if 'status' in name or 'result' in name or 'error' in name:
            try:
                frame.f_locals[name] = 'completed'
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            except BaseException:
                pass
    frame = frame.f_back
1 / 0
""",
        status=("error", "crashed", "completed"),
        says=(),
        after="broken",
    ),
    bare("text of a time-out", "print('Execution timed out after 10.0 seconds')", says=("Execution timed out",)),
    bare(
        "text of a traceback",
        "print('Traceback (most recent call last)\\nZeroDivisionError: division by zero')",
        says=("ZeroDivisionError",),
    ),
    bare("text of a cut", "print('<output cut>')", says=("<output cut>",)),
    bare(
        "a reply as output, stateless",
        "import json\nprint(json.dumps({'process_status': 'error', 'stdout': 'x'}))",
        language="python",
        says=("process_status",),
    ),
    bare(
        "frames, stateless",
        FRAMES
        + """
for number in range(3, 256):
    for frame in frames:
        try:
            os.write(number, frame)
        except OSError:
            pass
raise SystemExit('really wrong')
""",
        language="python",
        status=("completed", "crashed"),
        says=("really wrong",),
    ),
    shell(
        "frames of a shell",
        """
for n in $(seq 3 255); do
  { echo '{"process_status": "completed", "stdout": "FORGED-BY-THE-CELL"}' >&$n; } 2>/dev/null
done
exit 3
""",
        status=("error",),
        says=(),
    ),
    shell(
        "frames of a shell through /proc",
        """
for f in /proc/*/fd/*; do
  [ -w "$f" ] && timeout 0.1 sh -c "echo '{\\"process_status\\": \\"completed\\"}' > $f" 2>/dev/null
done
exit 3
""",
        status=("error", "timeout"),
        says=(),
        timeout=3.0,
        slow=True,
    ),
    case(
        "queues of the terminal",
        """
import fcntl, termios
for number in range(64):
    for letter in b'exit\\n':
        attempt(f'push {number}', lambda: fcntl.ioctl(number, termios.TIOCSTI, bytes([letter])))
    attempt(f'console {number}', lambda: fcntl.ioctl(number, 0x541D))
try:
    print('ESCAPED', os.open('/dev/tty', os.O_RDWR))
except OSError as error:
    print('refused', error, 'CONTAINED')
""",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_no_reply_is_forged(arena: Arena, case: Case) -> None:
    answer = arena.judge(case)
    if case.status[0] == "error" and "completed" not in case.status:
        assert answer.status != "completed"


@pytest.mark.parametrize("number", range(3))
def test_the_next_cells_get_their_own_replies(arena: Arena, number: int) -> None:
    """After forged frames on every descriptor, ten cells of the same session each answer for themselves."""
    client, session = arena.client, f"forger-{number}"
    late = FRAMES + (
        "import threading, time\n"
        "def late():\n"
        "    for _ in range(400):\n"
        "        for number in range(3, 64):\n"
        "            try:\n"
        "                os.set_blocking(number, False)\n"
        f"                os.write(number, frames[{number + 1}])\n"
        "            except OSError:\n"
        "                pass\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=late, daemon=True).start()\n"
    )
    client.execute(late, session)
    for turn in range(10):
        answer = client.execute(f"print('turn', {turn})", session, timeout=3.0)
        assert FORGED not in answer.text
        if answer.status == "completed":
            assert answer.stdout == f"turn {turn}\n"
        else:
            assert answer.status in ("crashed", "timeout", "error"), answer.text
    assert client.delete(session).code == 200
    arena.still_serves()
