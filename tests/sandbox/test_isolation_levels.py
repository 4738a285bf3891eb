# SPDX-License-Identifier: Apache-2.0
"""What every level promises, as root and as an ordinary user. The same cells everywhere; only the means differ."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.night import by_day
from tests.sandbox.children import need
from tests.sandbox.driver import drive

from newskills_sandbox.inside import landlock, processes
from newskills_sandbox.inside.budget import Budget

Result = dict[str, Any]
LIMITS = {"memory_mb": 300, "disk_mb": 16, "files": 400, "processes": 24}


@dataclass(frozen=True)
class Place:
    python: str
    level: str
    ordinary: bool

    def run(self, *executions: Result, **settings: Any) -> list[Result]:
        given = {"preload": [], "isolation": self.level, "limits": LIMITS, **settings}
        cells = [{"session_id": "s", "timeout": 10, "max_output_characters": 4000, **each} for each in executions]
        return drive(self.python, given, cells, ordinary=self.ordinary)

    def cells(self, *codes: str, **settings: Any) -> list[Result]:
        return self.run(*({"code": code} for code in codes), **settings)


@pytest.fixture(
    params=by_day(["a as root", "a as a user", "b as root", "b as a user"], {"a as root", "b as a user"})
)
def place(request: pytest.FixtureRequest, ordinary_python: str) -> Place:
    level, _, user = request.param.split(" ", 2)
    need("nested name spaces" if level == "a" else "landlock")
    if user == "root" and os.geteuid() != 0:
        pytest.skip("the suite runs as an ordinary user here")
    return Place(ordinary_python, level, ordinary=user != "root")


def statuses(results: Sequence[Result]) -> list[Any]:
    return [result.get("status", result) for result in results]


def test_state_errors_and_deadlines(place: Place) -> None:
    results = place.run(
        {"code": "x = 20\nx + 1"},
        {"code": "x += 1; 1/0"},
        {"code": "while True: pass", "timeout": 0.5},
        {"code": "x"},
        {"code": "import os; os._exit(3)"},
        {"code": "'x' in globals()"},
        {"code": "import sys; print(input()); sys.exit(4)", "language": "python", "std_input": "in"},
        {"code": "echo $1 out; cat; exit 5", "language": "shell", "std_input": "in"},
        {"code": "sleep 60 & sleep 60", "language": "shell", "timeout": 0.5},
    )
    assert statuses(results) == [
        *("completed", "error", "timeout", "completed", "crashed", "completed", "completed", "error", "timeout")
    ]
    assert [result["stdout"] for result in results[:1] + results[3:4]] == ["21\n", "21\n"]
    assert (results[5]["stdout"], results[5]["new_session_created"]) == ("False\n", True)
    assert [result["exit_code"] for result in results[6:8]] == [4, 5]
    assert {result["isolation_level"] for result in results} == {place.level}


def test_home_and_temporary_files_are_the_sessions_own_and_writable(place: Place) -> None:
    code = "import os, tempfile; tempfile.mkstemp(); open(os.path.expanduser('~/f'), 'w').write('x' * 9); "
    results = place.run(
        {"code": code + "os.path.getsize('f')"},
        {"code": "cat ~/f; touch $TMPDIR/g && echo; cd ~ && ls f", "language": "shell"},
        {"code": "import os; os.path.exists('f')", "session_id": "other"},
        {"code": "import os\ntry: open('/usr/f', 'w')\nexcept OSError as error: print('refused')"},
    )
    assert [result["stdout"] for result in results] == ["9\n", "xxxxxxxxx\nf\n", "False\n", "refused\n"]


def test_too_many_bytes_or_files_are_refused_or_end_the_cell(place: Place) -> None:
    fill = "for i in range(100):\n    open(f'f{i}', 'wb').write(bytes(1 << 20))\n    time.sleep(0.01)"
    many = "for i in range(3000):\n    open(f'{i}', 'w').close()\n    time.sleep(0.001)"
    deep = "for i in range(3000):\n    os.mkdir('d'); os.chdir('d')\n    time.sleep(0.001)"
    codes = [f"import os, time\n{code}" for code in (fill, many, deep)]
    codes.append(
        "import os, time\nfiles = []\nfor i in range(100):\n    files.append(open('f', 'wb'))\n"
        "    files[-1].write(bytes(1 << 20)); files[-1].flush(); os.unlink('f'); time.sleep(0.01)"
    )
    for code in codes:  # each waits at its end: whoever looks now and then may come late on a loaded machine
        bad, after, fresh = place.run(
            {"code": f"{code}\ntime.sleep(50)", "timeout": 60},
            {"code": "import os; os.chdir(os.path.expanduser('~')); len(os.listdir()) < 400"},
            {"code": "open('g', 'wb').write(bytes(1 << 20))", "session_id": "other"},
        )
        if place.level == "a":
            assert (bad["status"], "No space left" in bad["stdout"]) == ("error", True), bad
        else:
            assert bad["status"] == "out_of_memory", bad
            assert bad["stderr"] == "The code wrote more files than a session may have and was stopped.\n"
            assert after["new_session_created"]
            assert after["stdout"] == "True\n"
        assert fresh["stdout"] == "1048576\n"


def test_processes_and_threads_are_limited(place: Place) -> None:
    threads = (
        "import threading, time\nn = 0\ntry:\n    while n < 500:\n"
        "        threading.Thread(target=time.sleep, args=(2,), daemon=True).start(); n += 1\n"
        "except RuntimeError: print('refused', n < 40)\ntime.sleep(1)"
    )
    forks = (
        "import os, time\nn = 0\ntry:\n    while n < 300:\n        if os.fork() == 0: time.sleep(60)\n"
        "        n += 1\nexcept OSError: print('refused', n < 40)\ntime.sleep(1)"
    )
    for code in (threads, forks):
        bad, after = place.cells(code, "1 + 1")
        if place.level == "b" and place.ordinary:
            assert bad["status"] == "out_of_memory", bad
            assert bad["stderr"] == "The code started more processes than a session may have and was stopped.\n"
        else:
            assert (bad["status"], bad["stdout"]) == ("completed", "refused True\n"), bad
        assert after["stdout"] == "2\n"


def test_memory_is_limited_for_all_processes_together(place: Place) -> None:
    code = (
        "import os, time\nfor _ in range(6):\n"
        "    if os.fork() == 0:\n        x = b'1' * (90 << 20); time.sleep(60)\n"
    )
    bad, after = place.cells(f"{code}time.sleep(8)", "1 + 1")
    assert (bad["status"], after["stdout"]) == ("out_of_memory", "2\n"), bad
    assert bad["stderr"] == "The code used more memory than a session may have and was stopped.\n"


def test_nothing_outlives_its_cell(place: Place) -> None:
    mark = f"77{os.getpid()}{time.monotonic_ns() % 10**6}"
    daemon = f"(setsid setsid sleep {mark} >/dev/null 2>&1 &) ; exit 0"
    python = f"import subprocess; subprocess.Popen(['sleep', '{mark}'], start_new_session=True).pid > 0"
    results = place.run({"code": daemon, "language": "shell"}, {"code": python}, {"code": "1"})
    assert statuses(results) == ["completed"] * 3
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and mark in _command(pid)]


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


REACH = """
import os, signal, socket
def attempt(action):
    try:
        print(action())
    except OSError as error:
        print("refused")
attempt(lambda: os.kill(OUTSIDER, 0))
attempt(lambda: open(SECRET).read())
attempt(lambda: open("/etc/shadow").read())
attempt(lambda: os.listdir("/root"))
attempt(lambda: os.readlink(f"/proc/{OUTSIDER}/cwd"))
attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 1))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53)))
"""


def test_files_processes_and_network_of_the_host_are_out_of_reach(place: Place, tmp_path: Path) -> None:
    import socket
    import subprocess

    from tests.sandbox.driver import as_ordinary

    secret = Path("/var/tmp") / f"newskills-secret-{os.getpid()}"
    secret.write_text("SECRET")
    secret.chmod(0o644)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        if not place.ordinary
        else subprocess.Popen(["sleep", "120"], stdin=subprocess.PIPE, **as_ordinary(True)) as outsider,
    ):
        names = f"OUTSIDER, SECRET, PORT = {outsider.pid}, {str(secret)!r}, {server.getsockname()[1]}\n"
        try:
            (result,) = place.cells(names + REACH)
        finally:
            outsider.kill()
            secret.unlink()
    assert result["stdout"] == "refused\n" * 7, result


def test_no_folder_is_left_behind(place: Place) -> None:
    def folders() -> set[str]:
        return {
            name for name in os.listdir("/tmp") if name.startswith(("newskills-sandbox-", "newskills-packages-"))
        }

    code = "import os; print(os.getcwd())"
    (result,) = place.cells(code)
    assert os.path.basename(result["stdout"].strip()) not in folders()


def test_as_root_an_interpreter_that_others_cannot_read_is_explained(tmp_path: Path) -> None:
    need("landlock")
    if os.geteuid() != 0:
        pytest.skip("concerns root")
    folder = tmp_path / "closed"
    import subprocess

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--copies", folder], check=True)
    folder.chmod(0o700)
    settings = {"preload": [], "isolation": "b", "python": str(folder / "bin" / "python"), "packages": []}
    (result,) = drive(sys.executable, settings, [{"code": "1", "session_id": "s"}])
    if "raised" in result:
        assert result["raised"] == "SandboxError"
        assert "every user must be able to read" in result["text"]
    else:
        assert result["status"] == "completed"


def test_a_landlock_without_scopes_is_enough_for_root_only() -> None:
    assert landlock.too_weak(6, 1000) == landlock.too_weak(1, 0) == ""
    assert "lets code signal your other processes" in landlock.too_weak(5, 1000)


def test_threads_and_files_are_counted(tmp_path: Path) -> None:
    import threading

    done = threading.Event()
    before = processes.threads([os.getpid()])
    helpers = [threading.Thread(target=done.wait) for _ in range(3)]
    for helper in helpers:
        helper.start()
    try:
        assert processes.threads([os.getpid(), 2**22 + 1]) == before + 3
        assert processes.of_user(os.geteuid()) >= before + 3
    finally:
        done.set()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f").write_bytes(b"x" * (3 << 20))
    (tmp_path / "loop").symlink_to(tmp_path)
    limits = {"memory": 1 << 40, "disk": 2 << 20, "files": 50, "processes": 1000}
    with open("/proc/meminfo") as meminfo:
        settings = {"folder": str(tmp_path), "limits": limits, "isolation_level": "b"}

        def exceeded(**changes: int) -> str:
            return Budget(settings | {"limits": limits | changes}, meminfo.fileno()).exceeded([os.getpid()])

        assert exceeded() == "disk"
        assert exceeded(disk=4 << 20) == ""
        assert exceeded(disk=4 << 20, files=2) == "disk"
        assert exceeded(disk=4 << 20, processes=0) == "processes"
        assert exceeded(memory=1) == "memory"
        Budget(settings, meminfo.fileno()).clear()
    assert list(tmp_path.iterdir()) == []
