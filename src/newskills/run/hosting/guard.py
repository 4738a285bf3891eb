# SPDX-License-Identifier: Apache-2.0
"""Keeps a server from outliving the process that wanted it, however that one ends.

`python guard.py argv...` runs argv in the guard's own process group. Standard input is a pipe whose other
end the owner holds: when it closes, or the owner is no longer the guard's parent (a forked worker may hold the
pipe open), the group gets SIGTERM, and SIGKILL after a grace period. The guard ends as the server ends, and takes
with it what the server left behind. Standard library only, and never imported: it starts in some 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the server and never return: exit with the server's code, 128 + n after signal n, 127 where it cannot be
    started."""
    owner = os.getppid()
    # Handlers, not SIG_IGN: the server would inherit that.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def die_with_guard() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        server = subprocess.Popen(
            sys.argv[1:],
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_guard,  # noqa: PLW1509 - no thread runs yet
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {sys.argv[1]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()
    while os.getppid() == owner:
        if select.select([0], [], [], 1.0)[0] and not os.read(0, 1):
            break
    signal_group(signal.SIGTERM)
    time.sleep(GRACE)
    signal_group(signal.SIGKILL)


def _end_with(server: subprocess.Popen[bytes]) -> None:
    code = server.wait()
    signal_group(signal.SIGTERM)
    exit_code = code if code >= 0 else 128 - code
    os._exit(exit_code)


def signal_group(number: int) -> None:
    """Send a signal to the guard's whole process group, itself included."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(0, number)


if __name__ == "__main__":
    main()
