# SPDX-License-Identifier: Apache-2.0
"""How a job ends, by really running job.sh as processes of this machine."""

from __future__ import annotations

import http.server
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.launch.places import SERVER, client, finished, job, processes, python, server, until

from newskills.base.plan import Command, Job, Ready, Ref, Script
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors.none import Processes
from newskills.launch.place import JobFolder, Site, Variable

FETCH = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/health").status, sys.argv[2:], flush=True)
"""
STAY = "import time; print('here', flush=True); time.sleep(600)"
CHECKPOINT = """
import signal, sys, time, pathlib
def save(*_):
    time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0)
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(int(sys.argv[2]))
signal.signal(signal.SIGTERM, save)
pathlib.Path(sys.argv[1] + ".ready").touch()
time.sleep(600)
"""
STUBBORN = """
import signal, sys, time, pathlib
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


def marks(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text().strip() for file in folder.glob("*.exit")}


def log(folder: Path, name: str = "job") -> str:
    return (folder / "logs" / f"{name}.log").read_text(errors="replace")


def test_the_servers_stop_when_the_client_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "path" with $pace'
    work = job(
        "j", server(), client("main", FETCH, Ref("server"), "a b", "", "'$x\"\n", Ref("server", "port", "p=", "."))
    )
    state, folder = finished(processes(folder), work)
    assert (state, marks(folder)) == ("completed", {"main": "0", "server": "143", "job": "0 completed"})
    port = (folder / "ports/server").read_text().split()[1]
    assert log(folder, "main") == f"200 {['a b', '', chr(39) + '$x' + chr(34) + chr(10), f'p={port}.']}\n"


@pytest.mark.parametrize("code", [3, 1, 255])
def test_the_code_of_the_client_is_that_of_the_job(tmp_path: Path, code: int) -> None:
    state, folder = finished(processes(tmp_path), job("j", client("main", f"raise SystemExit({code})")))
    assert (state, marks(folder)["job"]) == ("failed", f"{code} failed client 'main' ended with exit code {code}")


def test_all_clients_end_and_the_first_failure_counts(tmp_path: Path) -> None:
    late = "import time, pathlib, sys\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)\nsys.exit(4)"
    first = str(tmp_path / "j/first.exit")
    work = job("j", client("second", late, first), client("first", "raise SystemExit(3)"), client("good", ""))
    state, folder = finished(processes(tmp_path), work)
    assert (state, marks(folder)) == (
        "failed",
        {"first": "3", "second": "4", "good": "0", "job": "3 failed client 'first' ended with exit code 3"},
    )


@pytest.mark.parametrize(("code", "expected"), [(0, 1), (7, 7)])
def test_a_server_that_ends_early_fails_the_job_at_once(tmp_path: Path, code: int, expected: int) -> None:
    dies = f"import pathlib, sys, time\nprint('out of memory\\x00\\x1b[', flush=True)\nraise SystemExit({code})"
    state, folder = finished(processes(tmp_path), job("j", client("main", STAY), server(code=dies)))
    assert (state, marks(folder)["server"], marks(folder)["main"]) == ("failed", str(code), "143")
    assert marks(folder)["job"].startswith(f"{expected} failed server 'server' ended with exit code {code} while")
    assert "    | out of memory[\n" in log(folder)
    spent = (folder / "job.exit").stat().st_mtime - (folder / "server.exit").stat().st_mtime
    assert spent < 8


def test_a_client_learns_at_once_that_its_server_has_died(tmp_path: Path) -> None:
    dies = "print('no such model', flush=True); raise SystemExit(9)"
    executor = processes(tmp_path)
    handle = executor.submit(job("j", server(code=dies, patience=600), client("main", FETCH, Ref("server"))))
    assert executor.wait([handle]) == {handle: "failed"}
    assert marks(Path(handle))["job"].startswith("9 failed server 'server'")


def test_a_server_that_is_never_ready_is_not_awaited_for_ever(tmp_path: Path) -> None:
    state, folder = finished(
        processes(tmp_path), job("j", server(code=STAY, patience=1), client("main", FETCH, Ref("server")))
    )
    assert (state, marks(folder)["job"]) == ("failed", "1 failed client 'main' ended with exit code 1")
    assert re.search(r"'main' waited 1 s for http://127.0.0.1:\d+/health of 'server' in vain", log(folder, "main"))
    assert "    | here" in log(folder, "main")


def test_a_server_that_still_loads_is_not_ready(tmp_path: Path) -> None:
    """As servers of models do: 503 until the weights are there."""
    loads = SERVER.replace('200 if self.path == "/health" else 404', "503 if asked.pop() else 200")
    loads = loads.replace("import http.server, sys", "import http.server, sys\nasked = [False, False, True, True]")
    work = job("j", server(code=loads), client("main", FETCH, Ref("server")))
    state, folder = finished(processes(tmp_path), work)
    assert (state, log(folder, "main")) == ("completed", "200 []\n")


def test_any_answer_below_500_will_do_where_the_script_says_so(tmp_path: Path) -> None:
    plain = server()
    script = Script(argv=plain.script.argv, port=0, ready=Ready(path="/nowhere", patience=20, any_answer=True))
    work = job("j", Command(name="server", role="server", script=script), client("main", FETCH, Ref("server")))
    assert finished(processes(tmp_path), work)[0] == "completed"


def test_servers_may_know_each_other(tmp_path: Path) -> None:
    """Both publish their ports before they wait, so that nobody waits for ever."""
    a, b = server("a"), server("b")
    ref = Command(
        name="b", role="server", script=Script(argv=(*b.script.argv, Ref("a")), port=0, ready=b.script.ready)
    )
    state, folder = finished(processes(tmp_path), job("j", client("main", FETCH, Ref("b"), Ref("a")), ref, a))
    assert state == "completed"
    assert len({file.read_text() for file in (folder / "ports").iterdir() if file.is_file()}) == 2


def test_a_job_of_servers_alone_ends_with_the_first(tmp_path: Path) -> None:
    state, folder = finished(processes(tmp_path), job("j", server("a"), server("b", "raise SystemExit(5)")))
    assert (state, marks(folder)["job"]) == ("failed", "5 failed server 'b' ended with exit code 5")
    state, folder = finished(processes(tmp_path), job("k", server("a"), server("b", "")))
    assert (state, marks(folder)) == ("completed", {"a": "143", "b": "0", "job": "0 completed"})


@pytest.mark.parametrize("code", [0, 143])
def test_a_cancelled_job_lets_its_clients_save_their_work(tmp_path: Path, code: int) -> None:
    saved = tmp_path / "check point"
    executor = processes(tmp_path)
    handle = executor.submit(job("j", server(), client("main", CHECKPOINT, str(saved), str(code))))
    until(Path(f"{saved}.ready").exists, "the client to start")
    executor.cancel([handle])
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert saved.read_text() == "saved"
    folder = Path(handle)
    assert (marks(folder)["main"], marks(folder)["job"]) == (str(code), "143 cancelled received SIGTERM")
    server_ended = (folder / "server.exit").stat().st_mtime_ns
    assert server_ended >= saved.stat().st_mtime_ns, "the server must serve until the client has saved"


@pytest.mark.parametrize(
    ("number", "state", "mark"),
    [
        (signal.SIGUSR1, "timeout", "75 time the time limit is near"),
        (signal.SIGINT, "cancelled", "130 cancelled received SIGINT"),
        (signal.SIGTERM, "cancelled", "143 cancelled received SIGTERM"),
    ],
)
def test_signals_to_the_job_script(tmp_path: Path, number: int, state: str, mark: str) -> None:
    """The client gets TERM whatever came, and its own code 0 does not make the job a finished one."""
    saved = tmp_path / "saved"
    executor = processes(tmp_path)
    handle = executor.submit(job("j", client("main", CHECKPOINT, str(saved), "0")))
    until(Path(f"{saved}.ready").exists, "the client to start")
    os.kill(int((Path(handle) / "job.started").read_text().split()[1]), number)
    assert executor.wait([handle]) == {handle: state}
    assert saved.exists()
    assert marks(Path(handle))["job"] == mark


def test_each_further_signal_reaches_the_clients_too(tmp_path: Path) -> None:
    """The second one makes `ns` give up what is in flight."""
    counts = """
import pathlib, signal, sys, time
seen = []
def count(*_):
    seen.append(1)
    pathlib.Path(sys.argv[1] + str(len(seen))).touch()
    if len(seen) == 2: sys.exit(0)
signal.signal(signal.SIGTERM, count)
pathlib.Path(sys.argv[1] + "0").touch()
while True: time.sleep(600)
"""
    executor = processes(tmp_path)
    handle = executor.submit(job("j", client("main", counts, str(tmp_path / "seen"))))
    for number in range(2):
        until((tmp_path / f"seen{number}").exists, f"signal {number}")
        executor.cancel([handle])
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert marks(Path(handle))["main"] == "0"


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("line", ['say "$job_role', "pid_of["])
def test_a_signal_in_the_middle_of_a_start_is_not_lost(tmp_path: Path, number: int, line: str) -> None:
    """Before the new process is known, as when all is slow: it is told as well, and nothing more starts."""
    executor = processes(tmp_path)
    names = ["server", "first", "second"]
    folder = executor.prepare(job("j", server(code=STAY), client("first", STAY), client("second", STAY)))
    script = Path(folder.path, "job.sh")
    at = f"    {line}"
    text = script.read_text()
    assert text.count(at) == 1
    signalled = f"    [[ ${{#job_names[@]}} -ne {number} ]] || kill -s TERM $$\n{at}"
    script.write_text(text.replace(at, signalled).replace("_grace=60", "_grace=20"))
    handle = executor.start(folder)
    until(lambda: executor.state([handle]) == {handle: "cancelled"}, "the end of the job")
    assert marks(Path(handle)) == {**dict.fromkeys(names[:number], "143"), "job": "143 cancelled received SIGTERM"}


@pytest.mark.parametrize("line", ["job_starting=yes", "if [[ -z $job_signal ]]"])
def test_what_is_about_to_start_when_a_signal_comes_does_not_run_on(tmp_path: Path, line: str) -> None:
    """The server runs; the signal comes before or after the look at whether one has come."""
    executor = processes(tmp_path)
    folder = executor.prepare(job("j", server(code=STAY), client("main", STAY)))
    script = Path(folder.path, "job.sh")
    at = f"    {line}"
    text = script.read_text()
    assert text.count(at) == 1
    signalled = f"    [[ ${{#job_names[@]}} -ne 1 ]] || kill -s TERM $$\n{at}"
    script.write_text(text.replace(at, signalled).replace("_grace=60", "_grace=2"))
    handle = executor.start(folder)
    until(lambda: executor.state([handle]) == {handle: "cancelled"}, "the end of the job")
    names = ["server", "main"][: 1 if line == "job_starting=yes" else 2]
    assert marks(Path(handle)) == {**dict.fromkeys(names, "143"), "job": "143 cancelled received SIGTERM"}


def test_a_client_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    up = tmp_path / "up"
    executor = processes(tmp_path / "jobs")
    folder = executor.prepare(job("j", client("main", STUBBORN, str(up))))
    script = Path(folder.path, "job.sh")
    script.write_text(script.read_text().replace("client_grace=60", "client_grace=1"))
    handle = executor.start(folder)
    until(up.exists, "the client to start")
    executor.cancel([handle])
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert marks(Path(handle))["main"] == "137"


class Broken(Processes):
    """Its second step needs a variable that nobody sets."""

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        return ("setsid",) if command.role == "server" else (Variable("NOBODY_SETS_THIS"),)


def test_a_job_script_that_fails_itself_leaves_nothing_behind(tmp_path: Path) -> None:
    executor = Broken(Site(cluster=ClusterConfig(), folder=str(tmp_path), environ=os.environ))
    state, folder = finished(executor, job("j", server(code=STAY), client("main", "")))
    assert (state, marks(folder)) == ("failed", {"job": "70 failed job.sh itself failed"})
    assert "NOBODY_SETS_THIS: unbound variable" in log(folder)


def test_a_signal_reaches_whatever_the_client_started(tmp_path: Path) -> None:
    """What still saves its work when the client itself has ended is waited for."""
    saved = tmp_path / "saved"
    words = ("sh", "-c", '"$@"; true', "sh", *python(CHECKPOINT, str(saved), "0", "1.5"))
    executor = processes(tmp_path)
    handle = executor.submit(job("j", Command(name="main", script=Script(argv=words))))
    until(Path(f"{saved}.ready").exists, "the client to start")
    executor.cancel([handle])
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert saved.exists()


def test_a_signal_that_bash_ignores_while_it_sets_its_traps_comes_again(tmp_path: Path) -> None:
    executor = processes(tmp_path / "jobs")
    folder = executor.prepare(job("j", client("main", STAY)))
    script, ignores = Path(folder.path, "job.sh"), tmp_path / "ignores"
    head, line, rest = script.read_text().partition("    trap 'interrupted TERM' TERM\n")
    script.write_text(f"{head}    trap '' TERM\n    : >{ignores}\n    sleep 1\n{line}{rest}")
    handle = executor.start(folder)
    until(ignores.exists, "bash to ignore the signal")
    executor.cancel([handle])
    until(lambda: executor.state([handle]) == {handle: "cancelled"}, "the end of the job")


def test_a_signal_that_is_lost_after_the_start_is_made_up_for(tmp_path: Path) -> None:
    """One that comes just before bash waits for its children is seen only when one of them ends."""
    executor = processes(tmp_path)
    folder = executor.prepare(job("j", client("main", STAY)))
    script = Path(folder.path, "job.sh")
    text = script.read_text()
    lost = text.replace("    trap 'interrupted TERM' TERM\n", "    trap : TERM\n")
    assert lost != text
    script.write_text(lost)
    handle = executor.start(folder)
    until(Path(handle, "job.started").exists, "the start")
    executor.cancel([handle])
    until(lambda: executor.state([handle]) == {handle: "cancelled"}, "the end of the job")


def hurried(folder: Path, work: Job, name: str, old: str, new: str) -> tuple[str, Path, float]:
    """Runs a job with one number of its script changed: nobody wants to wait half a minute in a test."""
    executor = processes(folder)
    written = executor.prepare(work)
    script = Path(written.path, name)
    assert old in script.read_text()
    script.write_text(script.read_text().replace(old, new))
    began = time.monotonic()
    handle = executor.start(written)
    return executor.wait([handle])[handle], Path(handle), time.monotonic() - began


def test_a_server_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    up = str(tmp_path / "up")
    wait = "import sys, time, pathlib\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)"
    stubborn = Command(name="server", role="server", script=Script(argv=python(STUBBORN, up)))
    work = job("j", stubborn, client("main", wait, up))
    state, folder, seconds = hurried(tmp_path / "jobs", work, "job.sh", "server_grace=10", "server_grace=1")
    assert (state, marks(folder)["server"]) == ("completed", "137")
    assert 1 <= seconds < 60
    assert "did not stop in time and is killed" in log(folder)


def test_who_waits_says_for_what(tmp_path: Path) -> None:
    work = job("j", server(code=STAY, patience=3), client("main", FETCH, Ref("server")))
    _, folder, _ = hurried(tmp_path, work, "main.sh", "SECONDS - said >= 30", "SECONDS - said >= 1")
    said = r"'main' waits for http://127.0.0.1:\d+/health of 'server': 1 s of at most 3 s. Its log: "
    assert re.search(said, log(folder, "main"))


def test_setup_runs_before_and_its_failure_is_the_commands(tmp_path: Path) -> None:
    state, folder = finished(
        processes(tmp_path), job("j", client("main", "print('main')", setup="echo 'set up'\n"))
    )
    assert (state, log(folder, "main")) == ("completed", "set up\nmain\n")
    state, folder = finished(processes(tmp_path), job("k", client("main", "print('main')", setup="exit 6")))
    assert (state, marks(folder)["main"], "main\n" in log(folder, "main")) == ("failed", "6", False)
    assert "The setup of 'main' ended with exit code 6" in log(folder, "main")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    state, folder = finished(
        processes(tmp_path), job("j", Command(name="main", script=Script(argv=("no such thing",))))
    )
    assert (state, marks(folder)["main"]) == ("failed", "127")
    assert "no such thing" in log(folder, "main")


def test_a_fixed_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        state, folder = finished(
            processes(tmp_path), job("j", server(port=port), client("main", FETCH, Ref("server")))
        )
    assert state == "failed"
    assert f"Port {port} of" in log(folder), "the job's own log shows the end of the server's"
    assert "is in use: 'server' cannot listen there" in log(folder)


def test_a_fixed_port_that_is_free_is_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    work = job("j", server(port=port), client("main", FETCH, Ref("server"), Ref("server", "port")))
    state, folder = finished(processes(tmp_path), work)
    assert (state, log(folder, "main")) == ("completed", f"200 ['{port}']\n")


def test_what_listens_on_ipv6_only_is_in_use_as_well(tmp_path: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        busy = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with busy:
        state, folder = finished(processes(tmp_path), job("j", server(port=busy.getsockname()[1])))
    assert (state, "is in use" in log(folder)) == ("failed", True)


def test_what_an_earlier_life_left_behind_misleads_nobody(tmp_path: Path) -> None:
    """A stale port of somebody else's service, which answers, and stale exit codes."""

    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"foreign")

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as foreign:
        threading.Thread(target=foreign.serve_forever).start()
        (tmp_path / "j/ports").mkdir(parents=True)
        (tmp_path / "j/ports/server").write_text(f"127.0.0.1 {foreign.server_port}\n")
        (tmp_path / "j/server.exit").write_text("9\n")
        (tmp_path / "j/job.exit").write_text("9 failed\n")
        state, folder = finished(
            processes(tmp_path), job("j", client("main", FETCH, Ref("server"), Ref("server", "port")), server())
        )
        foreign.shutdown()
    assert (state, str(foreign.server_port) in log(folder, "main")) == ("completed", False)


def test_a_second_run_appends_to_the_logs(tmp_path: Path) -> None:
    for _ in range(2):
        _, folder = finished(processes(tmp_path), job("j", client("main", "print('once')")))
    assert log(folder, "main") == "once\nonce\n"
    assert log(folder).count("job starts") == 2


def test_many_commands_that_end_at_the_same_time_are_all_counted(tmp_path: Path) -> None:
    commands = [Command(name=f"c{number}", script=Script(argv=("true",))) for number in range(40)]
    state, folder = finished(processes(tmp_path), Job(name="j", groups=job("j", *commands).groups))
    assert (state, len(marks(folder))) == ("completed", 41)
