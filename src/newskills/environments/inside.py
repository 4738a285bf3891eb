# SPDX-License-Identifier: Apache-2.0
"""Runs inside of a container, by the Python of its image: starts one command after the other and tells what they do.

Only its text is used on this side (`kept.py`). Python 3.7 must be able to run it, with no more than its own library;
nothing is imported late, as a command may remove the files of Python.

Requests, on standard input: a line with the lengths of folder, command and input in bytes, then these three.
Messages, on standard output: a letter, four bytes of length, the text. R: ready; B: a command begins, told before it
can do anything; N: it could not; O: its output; E: the number it ended with, a byte.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys

NAME = b"newskills-steps"
CHUNK = 1 << 16
LAST_WORDS = 1 << 20
"""Bytes that are read after a command has ended; what it started may write for ever."""
MAY_TRACE = 1 << 19
SET_DEATH_SIGNAL, SET_DUMPABLE = 1, 4
NOTHING = (ctypes.c_ulong(0),) * 4


def send_message(kind: bytes, text: bytes = b"") -> None:
    message = kind + len(text).to_bytes(4, "big") + text
    while message:
        message = message[os.write(1, message) :]


def read_exactly(count: int) -> bytes:
    pieces = []
    while count:
        piece = os.read(0, min(count, CHUNK))
        if not piece:
            sys.exit(0)
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def take_request() -> tuple[bytes, bytes, bytes]:
    line = b""
    while not line.endswith(b"\n"):
        line += read_exactly(1)
    folder, command, text = [read_exactly(int(word)) for word in line.split()]
    return folder, command, text


def hide_process(libc: ctypes.CDLL) -> None:
    """Make this process look like no Python, which commands may kill by that name; they can neither read nor write what
    is its own."""
    with open("/proc/self/status") as status:
        rights = [int(line.split()[1], 16) for line in status if line.startswith("CapEff:")]
    with open("/proc/self/comm", "wb") as name:
        name.write(NAME)
    with open("/proc/self/stat") as stat:
        words = stat.read().rpartition(")")[2].split()
    first, end = int(words[45]), int(words[46])
    ctypes.memset(first, 0, end - first)
    if rights[0] & MAY_TRACE or libc.prctl(SET_DUMPABLE, *NOTHING):
        sys.exit("commands could reach this process")


def restore_variables() -> None:
    """Restore the variables: Python sets one of its own where there is no locale."""
    with open("/proc/self/environ", "rb") as variables:
        original = {line.partition(b"=")[0] for line in variables.read().split(b"\0")}
    for name in set(os.environb) - original:
        del os.environb[name]


def start_process(libc: ctypes.CDLL, folder: bytes, words: list[bytes]) -> tuple[int, int, int, int]:
    """Start a process; return (process, its input, its output, what is written to where it cannot begin). Raises
    OSError."""
    descriptors: list[int] = []
    mother = os.getpid()
    try:
        for _ in range(3):
            descriptors += os.pipe()
        child = os.fork()
    except OSError:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    theirs_in, entry, output, theirs_out, failed, theirs_failed = descriptors
    if not child:
        try:
            os.setsid()
            libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL, *NOTHING[1:])
            if os.getppid() == mother:
                for name in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
                    signal.signal(name, signal.SIG_DFL)
                for descriptor, number in ((theirs_in, 0), (theirs_out, 1), (theirs_out, 2)):
                    os.dup2(descriptor, number)
                os.chdir(folder)
                execute_program(words)
        finally:
            os.write(theirs_failed, b"!")
            os._exit(1)
    for descriptor in (theirs_in, theirs_out, theirs_failed):
        os.close(descriptor)
    return child, entry, output, failed


def execute_program(words: list[bytes]) -> None:
    """Replace this process by the program that `words` name; return where it is nowhere."""
    for place in os.environb.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        with contextlib.suppress(OSError):
            os.execv(place + b"/" + words[0], words)  # noqa: S606 - it is the shell


def feed_input(entry: int, text: bytes) -> bytes:
    """Write what `entry` takes of `text`; return what is still to be written."""
    try:
        return text[os.write(entry, text[:CHUNK]) :]
    except BlockingIOError:
        return text
    except OSError:  # nobody reads it any more
        return b""


def follow_process(child: int, entry: int, output: int, text: bytes, alarm: int) -> int:
    """Report its output until it ends; return its status. Closes `entry`."""
    poll = select.poll()
    poll.register(0, 0)
    poll.register(output, select.POLLIN)
    poll.register(alarm, select.POLLIN)
    poll.register(entry, select.POLLOUT)
    os.set_blocking(output, False)
    os.set_blocking(entry, False)
    is_open = True
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                sys.exit(0)
            elif descriptor == alarm:
                os.read(alarm, CHUNK)
            elif descriptor == entry:
                text = text and feed_input(entry, text)
                if not text:
                    poll.unregister(entry)
                    os.close(entry)
                    is_open = False
            elif not tell_output(output):
                poll.unregister(output)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if is_open:
                os.close(entry)
            return status


def tell_output(output: int) -> int:
    """Tell a piece of the output; return the number of its bytes, 0 at the end of the output."""
    data = os.read(output, CHUNK)
    if data:
        send_message(b"O", data)
    return len(data)


def tell_last_words(output: int) -> None:
    left = LAST_WORDS
    with contextlib.suppress(BlockingIOError):
        while left > 0:
            count = tell_output(output)
            if not count:
                return
            left -= count


def run_command(libc: ctypes.CDLL, home: bytes, words: list[bytes], alarm: int) -> None:
    folder, command, text = take_request()
    send_message(b"B")
    try:
        child, entry, output, failed = start_process(libc, folder or home, [*words, command])
    except OSError:
        send_message(b"N")
        return
    has_failed = os.read(failed, 1)
    os.close(failed)
    if has_failed:
        os.close(entry)
        os.waitpid(child, 0)
        send_message(b"N")
    else:
        status = follow_process(child, entry, output, text, alarm)
        tell_last_words(output)
        send_message(
            b"E", bytes([128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)])
        )
    os.close(output)


def main(words: list[str]) -> None:
    libc = ctypes.CDLL(None)
    hide_process(libc)
    restore_variables()
    alarm, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ring)
    home = os.getcwdb()
    send_message(b"R")
    while True:
        run_command(libc, home, [word.encode() for word in words], alarm)


if __name__ == "__main__":
    main(sys.argv[1:])
