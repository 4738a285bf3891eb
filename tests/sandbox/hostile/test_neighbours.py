# SPDX-License-Identifier: Apache-2.0
"""Sessions beside each other, and what is left when the server itself is ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.sandbox.hostile.arena import PRELUDE, Arena, cpu_seconds, tree, wait_until
from tests.sandbox.serving import USERS, Server, why_not

MAP_ZEROS = """
import mmap, os
zeros = mmap.mmap(os.open('/dev/zero', os.O_RDONLY), {size}, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
print(sum(zeros[place] for place in range({size} - {touched}, {size}, 4096)))
"""


@pytest.mark.nightly
def test_pages_of_zeros_are_not_shared_until_they_run_out(arena: Arena) -> None:
    """A mapping of /dev/zero that one session touches costs no other session its own."""
    client = arena.client
    client.execute(MAP_ZEROS.format(size=64 << 20, touched=64 << 20), "zeros")
    client.delete("zeros")
    after = client.execute(MAP_ZEROS.format(size=128 << 20, touched=1 << 16), "zeros-after")
    client.delete("zeros-after")
    assert (after.status, after.stdout) == ("completed", "0\n"), after.text


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("code", "count"),
    [("import time; time.sleep(100)", 30), pytest.param("while True: pass", 2, marks=pytest.mark.nightly)],
)
def test_cells_that_end_late_do_not_keep_a_new_session_waiting(arena: Arena, code: str, count: int) -> None:
    """A fresh session answers before any of them has ended.

    Cells that spin take turns on purpose (two per core), so that a deadline measures the code and not its neighbours.
    """
    client = arena.client
    ended: list[str] = []

    def occupy(name: str) -> None:
        client.execute(code, name, timeout=10)
        ended.append(name)

    names = [f"late-{number}" for number in range(count)]
    threads = [threading.Thread(target=occupy, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    fresh = client.execute("print(1)", "awake")
    before = list(ended)
    for thread in threads:
        thread.join()
    for name in [*names, "awake"]:
        client.delete(name)
    assert fresh.stdout == "1\n", fresh.text
    assert before == [], f"{len(before)} cells had to end first ({fresh.seconds:.1f} s)"


def test_a_worker_that_is_woken_after_its_cell_is_stopped_again(arena: Arena) -> None:
    """Children send SIGCONT while the sandbox stops the worker and ends them."""
    code = """
import threading, time
parent = os.getpid()
def spin():
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
for _ in range(4):
    if os.fork() == 0:
        while True:
            os.kill(parent, 18)
time.sleep(0.1)
print('CONTAINED')
"""
    client = arena.client
    before = set(tree(arena.server.pid))
    answer = client.execute(PRELUDE + code, "woken", timeout=3)
    assert answer.status in ("completed", "timeout"), answer.text
    mine = set(tree(arena.server.pid)) - before
    used = cpu_seconds(mine)
    time.sleep(0.6)
    assert cpu_seconds(mine) - used < 0.3
    client.delete("woken")
    arena.still_serves()


@pytest.mark.parametrize("language", ["shell", "cpp", "python"])
def test_files_of_a_session_do_not_get_in_the_way_of_its_programs(arena: Arena, language: str) -> None:
    """Folders with the names that a program's own files may have, links to places outside, and a full disk."""
    client, session = arena.client, "obstacle-" + language
    traps = (
        "import os\nfor name in ('main', 'main.sh', 'main.cpp', 'main.py', 'script.sh', 'a.out', 'program', 'code'):\n"
        "    os.makedirs(name + '/x', exist_ok=True)\n"
        "kept = 1"
    )
    good = {
        "shell": "echo fine",
        "cpp": '#include <cstdio>\nint main() { puts("fine"); }',
        "python": "print('fine')",
    }
    assert client.execute(traps, session).status == "completed"
    answer = client.execute(good[language], session, language=language, timeout=20)
    following = client.execute("print(kept)", session)
    client.delete(session)
    assert (answer.status, answer.stdout) == ("completed", "fine\n"), answer.text
    assert (following.stdout, following.new) == ("1\n", False), following.text


def test_two_names_of_a_session_do_not_meet(arena: Arena) -> None:
    """Ids that differ in case, in a space at the end or by an escape are other sessions, or refused."""
    client = arena.client
    client.execute("mine = 'first'", "Name")
    for other in ("name", "NAME", "Name.", "Name%20", "Name-"):
        answer = client.execute("print('mine' in globals())", other)
        assert answer.code in (200, 400)
        assert answer.code == 400 or (answer.stdout, answer.new) == ("False\n", True)
        client.delete(other.replace("%", "%25"))
    client.delete("Name")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_is_ended_leaves_nothing(user: str, end: int, tmp_path: Path) -> None:
    """Sessions with daemons, a cell that runs, and every process of them."""
    if reason := why_not(user):
        pytest.skip(reason)
    folder = Path("/tmp") / ("hx-ended-" + secrets.token_hex(6))
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    server = Server(user, folder)
    server.start()
    try:
        child = "    if os.fork() == 0:\n        os.setsid()\n        time.sleep(500)\n"
        daemon = f"import os, time\nfor _ in range(3):\n{child}"
        server.client.execute(daemon, "idle")

        def run() -> None:
            with contextlib.suppress(OSError):  # the server is gone
                server.client.execute(daemon + "time.sleep(500)", "busy", timeout=60)

        runner = threading.Thread(target=run)
        runner.start()
        wait_until(lambda: "busy" in server.client.sessions(), "the cell does not start")
        time.sleep(0.3)
        pids = tree(server.pid)
        assert len(pids) > 5
        os.kill(server.pid, end)
        runner.join(50)
        assert not runner.is_alive()
        assert server.process is not None
        server.process.wait(50)
        wait_until(
            lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "processes are left", within=10
        )
    finally:
        server.stop()
        server.log.unlink()
        folder.rmdir()  # fails where the server has left a file
