# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.launch.places import client, finished, job, processes, server, until

from newskills.base.errors import ConfigError, LockedError, UnknownNameError
from newskills.base.plan import Command, Job, Ref, Script
from newskills.base.protocols import Executor
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors import EXECUTORS, make_executor  # type: ignore[attr-defined]
from newskills.launch.executors.none import Processes
from newskills.launch.executors.supervisor import list_children
from newskills.launch.place import Site

STAY = "import time; print('here', flush=True); time.sleep(600)"
TOGETHER = """
import pathlib, sys, time
mine, other = sys.argv[1:]
pathlib.Path(mine).touch()
for _ in range(2000):
    if pathlib.Path(other).exists(): sys.exit(0)
    time.sleep(0.01)
sys.exit(1)
"""
UNTIL = """
import pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)
sys.exit(int(sys.argv[2]))
"""
GRANDCHILD = """
import os, sys, time, pathlib
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(float(sys.argv[2]))
"""


def alive(pid: int) -> bool:
    """A zombie is no life."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def job_pid(handle: str) -> int:
    return int(Path(handle, "job.started").read_text().split()[1])


def running(executor: Executor, handle: str) -> None:
    until(lambda: executor.state([handle]) == {handle: "running"}, "the job to run")


def test_jobs_without_dependencies_run_at_the_same_time(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    a, b = str(tmp_path / "a.here"), str(tmp_path / "b.here")
    handles = [
        executor.submit(job("a", client("m", TOGETHER, a, b))),
        executor.submit(job("b", client("m", TOGETHER, b, a))),
    ]
    assert set(executor.wait(handles).values()) == {"completed"}


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("afterany", 0, "completed"),
        ("afterany", 3, "completed"),
        ("afterok", 0, "completed"),
        ("afterok", 3, "cancelled"),
        ("aftercorr", 3, "cancelled"),
        ("afternotok", 0, "cancelled"),
        ("afternotok", 3, "completed"),
    ],
)
def test_dependencies(tmp_path: Path, kind: str, first: int, second: str) -> None:
    executor = processes(tmp_path, dependency_type=kind)
    go = tmp_path / "go"
    before = executor.submit(job("a", client("m", UNTIL, str(go), str(first))))
    after = executor.submit(job("b", client("m", "")), after=[before])
    assert executor.state([after]) == {after: "pending"}
    go.touch()
    assert executor.wait([after]) == {after: second}
    assert executor.state([before]) == {before: "failed" if first else "completed"}
    ran = Path(after, "job.started").exists()
    assert ran == (second == "completed")


def test_after_means_after_the_start(tmp_path: Path) -> None:
    executor = processes(tmp_path, dependency_type="after")
    before = executor.submit(job("a", client("m", STAY)))
    state, _ = finished(executor, job("b", client("m", "")), [before])
    assert (state, executor.state([before])) == ("completed", {before: "running"})
    executor.cancel([before])
    executor.wait([before])


@pytest.mark.nightly
def test_a_chain_of_fifty(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    handles: list[str] = []
    for number in range(50):
        line = Command(name="m", script=Script(argv=("sh", "-c", f"echo {number} >> '{tmp_path}/order'")))
        handles.append(executor.submit(job(f"j{number}", line), after=handles[-1:]))
    assert set(executor.wait(handles).values()) == {"completed"}
    assert [int(line) for line in (tmp_path / "order").read_text().split()] == list(range(50))


def test_a_pending_job_can_be_cancelled(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    first = executor.submit(job("a", client("m", STAY)))
    second = executor.submit(job("b", client("m", "")), after=[first])
    running(executor, first)
    assert executor.state([second]) == {second: "pending"}
    executor.cancel([second])
    assert executor.wait([second]) == {second: "cancelled"}
    executor.cancel([first])
    assert executor.wait([first]) == {first: "cancelled"}
    executor.cancel([first])


def test_a_job_can_be_cancelled_at_any_moment_of_its_start(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    for number in range(20):
        handle = executor.submit(job(f"j{number}", client("m", STAY)))
        time.sleep(number * 0.005)
        executor.cancel([handle])
        assert executor.wait([handle]) == {handle: "cancelled"}


def test_an_unknown_dependency_is_an_error(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    with pytest.raises(ConfigError, match="There is no job '/nowhere'"):
        executor.submit(job("a", client("m", "")), after=["/nowhere"])
    assert executor.state(["/nowhere"]) == {"/nowhere": "unknown"}
    with pytest.raises(ConfigError):
        executor.cancel(["/nowhere"])


def test_the_same_job_twice_at_a_time_is_an_error(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    handle = executor.submit(job("a", client("m", STAY)))
    with pytest.raises(LockedError, match=r"Job 'a' in .* is still running"):
        executor.submit(job("a", client("m", STAY)))
    executor.cancel([handle])
    executor.wait([handle])
    assert finished(executor, job("a", client("m", "")))[0] == "completed"


def test_jobs_outlive_the_command_that_submitted_them(tmp_path: Path) -> None:
    submit = f"""
import sys
from pathlib import Path
from tests.launch.places import client, job, processes
print(processes(Path({str(tmp_path)!r})).submit(job("a", client("m", "import time; time.sleep(0.3)"))))
"""
    root = Path(__file__).parents[3]
    out = subprocess.run([sys.executable, "-c", submit], cwd=root, capture_output=True, text=True, check=True)
    executor = processes(tmp_path)
    assert executor.wait([out.stdout.strip()]) == {out.stdout.strip(): "completed"}


def test_nothing_is_left_of_a_job_that_has_ended(tmp_path: Path) -> None:
    """Not even a grandchild in a session of its own; no zombie below this process either."""
    pid = tmp_path / "pid"
    others = set(list_children())  # of tests that ran before in this process
    state, _ = finished(processes(tmp_path), job("a", client("m", GRANDCHILD, str(pid), "0")))
    assert state == "completed"
    assert not alive(int(pid.read_text()))
    assert set(list_children()) <= others


def test_a_killed_job_script_takes_all_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    executor = processes(tmp_path)
    handle = executor.submit(job("a", client("m", GRANDCHILD, str(pid), "600")))
    until(lambda: pid.exists() and bool(pid.read_text()), "the grandchild")
    os.kill(job_pid(handle), signal.SIGKILL)
    assert executor.wait([handle]) == {handle: "failed"}
    assert Path(handle, "job.exit").read_text() == "137 failed job.sh was killed by signal 9\n"
    assert not alive(int(pid.read_text()))


def test_a_killed_supervisor_stops_the_job(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    handle = executor.submit(job("a", client("m", STAY)))
    log = Path(handle, "logs/m.log")
    until(lambda: log.exists() and "here" in log.read_text(), "the client to run")
    script = job_pid(handle)
    os.kill(int(Path(handle, "supervisor").read_text().split("\n")[0]), signal.SIGKILL)
    assert executor.wait([handle])[handle] in ("cancelled", "failed")
    assert not alive(script)
    assert Path(handle, "m.exit").read_text() == "143\n"


def test_nothing_outlives_a_supervisor_and_a_script_that_are_killed_together(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    executor = processes(tmp_path)
    handle = executor.submit(job("a", server(), client("m", GRANDCHILD, str(pid), "600")))
    until(lambda: pid.exists() and bool(pid.read_text()), "the grandchild")
    both = int(Path(handle, "supervisor").read_text().split("\n")[0]), job_pid(handle)
    for one in both:
        os.kill(one, signal.SIGSTOP)  # neither learns of the other's end
    for one in both:
        os.kill(one, signal.SIGKILL)
    assert executor.wait([handle]) == {handle: "failed"}
    assert Path(handle, "job.exit").read_text() == "137 failed job.sh was killed by signal 9\n"
    assert not alive(int(pid.read_text()))
    assert processes_of(tmp_path) == []


def processes_of(folder: Path) -> list[str]:
    """Those with a command line that names it."""
    shown = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(folder) in line]


def test_a_process_id_that_was_given_away_deceives_nobody(tmp_path: Path) -> None:
    executor = processes(tmp_path)
    handle = executor.submit(job("a", client("m", "")))
    executor.wait([handle])
    other = subprocess.Popen(["sleep", "600"])
    Path(handle, "supervisor").write_text(f"{other.pid}\n{handle}/logs\n")
    Path(handle, "job.exit").unlink()
    assert executor.state([handle]) == {handle: "failed"}
    executor.cancel([handle])
    assert other.poll() is None
    other.kill()
    other.wait()


def test_ctrl_c_stops_the_jobs_that_are_awaited(tmp_path: Path) -> None:
    follow = f"""
from pathlib import Path
from tests.launch.places import client, job, processes
executor = processes(Path({str(tmp_path)!r}))
handle = executor.submit(job("a", client("m", {STAY!r})))
Path({str(tmp_path / "submitted")!r}).touch()
executor.wait([handle])
"""
    root = Path(__file__).parents[3]
    command = subprocess.Popen([sys.executable, "-c", follow], cwd=root, stderr=subprocess.DEVNULL)
    executor = processes(tmp_path)
    handle = str(tmp_path / "a")
    until((tmp_path / "submitted").exists, "the command to wait")
    running(executor, handle)
    command.send_signal(signal.SIGINT)
    assert command.wait(120) != 0
    assert executor.state([handle]) == {handle: "cancelled"}


def few_ports(executor: Processes, work: Job, ports: int) -> str:
    """Starts a job whose servers choose among a few ports, so that they meet."""
    folder = executor.prepare(work)
    for script in Path(folder.path).glob("server*.sh"):
        text = script.read_text()
        assert "20000 + RANDOM % 12000" in text
        script.write_text(text.replace("20000 + RANDOM % 12000", f"17700 + RANDOM % {ports}"))
    return executor.start(folder)


ALL_HAVE_PORTS = """
import pathlib, sys, time
for _ in range(3000):
    if sum(file.is_file() for file in pathlib.Path(sys.argv[1]).glob("*/ports/server*")) == 20: sys.exit(0)
    time.sleep(0.02)
sys.exit(1)
"""


def test_twenty_jobs_choose_twenty_ports(tmp_path: Path) -> None:
    """All at once, among 24; nobody listens, so only the claims keep them apart."""
    executor = processes(tmp_path)
    main = client("m", ALL_HAVE_PORTS, str(tmp_path))
    handles = [few_ports(executor, job(f"j{n}", server(code=STAY), main), 24) for n in range(20)]
    assert set(executor.wait(handles).values()) == {"completed"}
    assert len({Path(handle, "ports/server").read_text() for handle in handles}) == 20


def test_twenty_servers_of_a_job_choose_twenty_ports_without_flock(tmp_path: Path) -> None:
    """As in containers that share no /tmp and have no flock."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "setsid", "mkdir", "mv", "rm", "sleep", "cat", "tail", "tr", "sed", "timeout"):
        path = shutil.which(name)
        assert path is not None
        (programs / name).symlink_to(path)
    executor = processes(tmp_path / "jobs", environ={"PATH": str(programs)})
    servers = [server(f"server{n}", STAY) for n in range(20)]
    handle = few_ports(executor, job("j", client("m", ALL_HAVE_PORTS, str(tmp_path / "jobs")), *servers), 24)
    assert executor.wait([handle]) == {handle: "completed"}
    assert len({(Path(handle, "ports") / one.name).read_text() for one in servers}) == 20


def test_variables_of_the_cluster_reach_the_command(tmp_path: Path) -> None:
    shown = "import os; print([os.environ.get(name) for name in ('PLAIN', 'SHELL_ONE', 'MY_TOKEN', 'HF_TOKEN', 'OWN')])"
    environ = {**os.environ, "SHELL_ONE": "from the shell", "HF_TOKEN": "hf_secret", "MY_TOKEN": "other"}
    executor = processes(tmp_path, environ=environ, env_vars=["PLAIN=a=b c", "SHELL_ONE", "MY_TOKEN=tell_nobody"])
    _, folder = finished(executor, job("a", client("m", shown, env={"OWN": "it's"})))
    assert (
        folder / "logs/m.log"
    ).read_text() == "['a=b c', 'from the shell', 'tell_nobody', 'hf_secret', \"it's\"]\n"
    (folder / "logs/m.log").unlink()
    for file in folder.rglob("*"):
        if file.is_file():
            assert not any(secret in file.read_text() for secret in ("tell_nobody", "hf_secret", "from the shell"))


def test_the_folder_of_a_job_is_the_users_alone(tmp_path: Path) -> None:
    _, folder = finished(processes(tmp_path), job("a", client("m", "")))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_logs_with_anything_in_them(tmp_path: Path) -> None:
    noise = "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'\\nend\\n')"
    executor = processes(tmp_path)
    _, folder = finished(executor, job("a", client("m", noise)))
    lines = list(executor.logs(str(folder)))
    assert lines[0] == f"==> {folder}/logs/job.log <=="
    assert lines[-1] == "end"
    assert f"==> {folder}/logs/m.log <==" in lines


def test_the_packaged_code_is_where_programs_start_and_import(tmp_path: Path) -> None:
    code = tmp_path / "my code"
    code.mkdir()
    (code / "mine.py").write_text("print('imported')")
    site = Site(cluster=ClusterConfig(), folder=str(tmp_path / "jobs"), code=str(code), environ=os.environ)
    main = Command(name="m", script=Script(argv=(sys.executable, "-c", "import mine, os; print(os.getcwd())")))
    executor = make_executor(site)
    handle = executor.submit(job("a", main))
    until(lambda: executor.state([handle])[handle] not in ("pending", "running"), "the end")
    assert Path(handle, "logs/m.log").read_text() == f"imported\n{code}\n"


def test_a_fourth_executor_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with an entry point, and a file named in the cluster config."""
    source = """
class Nowhere:
    def __init__(self, site): self.site = site
    def submit(self, job, *, after=()): return f"{job.name} of {self.site.folder}"
    def state(self, handles): return dict.fromkeys(handles, "pending")
    def logs(self, handle): return []
    def cancel(self, handles): pass
make = Nowhere
"""
    (tmp_path / "nowhere_executor.py").write_text(source)
    info = tmp_path / "nowhere_executor-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nowhere-executor\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[newskills.executors]\nnowhere = nowhere_executor:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "nowhere" in EXECUTORS.names()
    for name in ("nowhere", f"{tmp_path}/nowhere_executor.py::make"):
        executor = make_executor(Site(cluster=ClusterConfig(executor=name), folder="/exp"))
        assert executor.submit(job("a", client("m", ""))) == "a of /exp"


def test_an_executor_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Unknown executor 'slurn'; did you mean 'slurm'"):
        make_executor(Site(cluster=ClusterConfig(executor="slurn"), folder="/exp"))
    (tmp_path / "wrong.py").write_text("make = lambda site: object()")
    with pytest.raises(ConfigError, match="lacks submit, state, logs or cancel"):
        make_executor(Site(cluster=ClusterConfig(executor=f"{tmp_path}/wrong.py::make"), folder="/exp"))


def test_a_finished_command_ends_its_job_within_a_second(tmp_path: Path) -> None:
    began = time.time()
    _, folder = finished(processes(tmp_path), job("j", server(), client("m", "print('done')", Ref("server"))))
    assert (folder / "job.exit").stat().st_mtime - (folder / "m.exit").stat().st_mtime < 8
    assert time.time() - began < 60
