# SPDX-License-Identifier: Apache-2.0
"""Runs a program that outlives the process which started it: `keeper.py LOCK EXIT WORD…`.

Only the standard library: it is started with `-I -S`. The lock is held, by the program as well, until both have ended;
a second keeper of the same lock leaves at once. The exit code is written to EXIT; 127: there is no such program.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

NO_PROGRAM = 127


def main(lock: str, exit_file: str, argv: list[str]) -> int:
    """Return once the lock is held, and run the program in a process of its own."""
    fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    if os.path.exists(exit_file):
        return 0
    if os.fork():
        return 0
    os.set_inheritable(fd, True)
    try:
        code = subprocess.call(argv, pass_fds=(fd,))
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        code = NO_PROGRAM
    with open(f"{exit_file}.tmp", "w") as file:
        file.write(f"{code}\n")
    os.replace(f"{exit_file}.tmp", exit_file)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
