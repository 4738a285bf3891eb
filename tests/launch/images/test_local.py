# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers, by a real engine (podman, and the docker client on podman's socket)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launch.containers import (
    STAY,
    client,
    finished,
    here,
    left,
    local,
    log,
    python,
    server,
)
from tests.launch.places import job, until

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Ref, Script
from newskills.launch.job_script import render_scripts
from newskills.launch.place import JobFolder

pytestmark = pytest.mark.usefixtures("podman")

FETCH = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/health").status, sys.argv[2:], flush=True)
"""
SAVE = """
import signal, sys, time, pathlib
def save(*_):
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(0)
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


def test_a_mount_a_variable_and_the_code(tmp_path: Path) -> None:
    data, code = tmp_path / "my data", tmp_path / "the code"
    data.mkdir()
    code.mkdir()
    (data / "in.txt").write_text("from the host")
    (code / "mine.py").write_text("WORD = 'imported'")
    program = """
import mine, os, pathlib
text = pathlib.Path('/data/in.txt').read_text()
pathlib.Path('/data/out.txt').write_text(f"{text}, {os.environ['GREETING']}, {mine.WORD}, {os.getcwd()}")
"""
    main = Command(name="m", container="test", script=Script(argv=("python3", "-c", program)))
    executor = local(
        tmp_path / "jobs", code=str(code), mounts=[f"{data}:/data"], env_vars=['GREETING=it\'s "fine" $HOME']
    )
    state, folder = finished(executor, job("a", main))
    assert (state, log(folder, "m")) == ("completed", "")
    assert (data / "out.txt").read_text() == 'from the host, it\'s "fine" $HOME, imported, /nemo_run/code'
    assert left(tmp_path) == []


def test_what_a_container_writes_belongs_to_the_caller(tmp_path: Path) -> None:
    program = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('x')"
    out = tmp_path / "out"
    out.mkdir()
    executor = local(tmp_path / "jobs", mounts=[f"{out}:/out"])
    assert finished(executor, job("a", client("m", program, "/out/file")))[0] == "completed"
    owner = (out / "file").stat()
    assert (owner.st_uid, owner.st_gid) == (os.getuid(), os.getgid())


def test_read_only_means_read_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").write_text("old")
    write = "open('/data/file', 'w').write('new')"
    executor = local(tmp_path / "jobs", mounts=[f"{data}:/data:ro"])
    state, folder = finished(executor, job("a", client("m", write)))
    assert (state, "Read-only file system" in log(folder, "m")) == ("failed", True)
    assert (data / "file").read_text() == "old"


def test_paths_and_arguments_with_anything_in_them(tmp_path: Path) -> None:
    nasty = 'it\'s a "path", with $pace\\ & [more]'
    data = tmp_path / nasty.replace(",", "")
    data.mkdir()
    (data / "file").write_text("read")
    program = "import sys; print(open(sys.argv[1]).read(), sys.argv[2:])"
    words = ("a b", "", "'$x\"\n", "`id`")
    executor = local(tmp_path / f"jobs: {nasty}", mounts=[f"{data}:{data}"])
    state, folder = finished(executor, job("a", client("m", program, f"{data}/file", *words, env={"X": nasty})))
    assert (state, log(folder, "m")) == ("completed", f"read {list(words)}\n")
    assert left(tmp_path) == []


def test_a_secret_stands_in_no_command_line_and_no_file(tmp_path: Path) -> None:
    secret = "hf_tell_nobody_about_it"
    program = """
import os, time
print(len(os.environ['HF_TOKEN']), len(os.environ['OTHER']), flush=True)
time.sleep(600)
"""
    executor = local(tmp_path, environ={"HF_TOKEN": secret, "OTHER": secret})
    handle = executor.submit(job("a", client("m", program, secrets=("OTHER",))))
    until(
        lambda: "\n" in (Path(handle, "logs/m.log").read_text() if Path(handle, "logs/m.log").exists() else ""),
        "m",
    )
    assert log(Path(handle), "m") == f"{len(secret)} {len(secret)}\n"
    lines = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if _readable(file)]
    assert not any(secret.encode() in line for line in lines)
    (container,) = left(tmp_path)
    shown = subprocess.run(["podman", "inspect", container], capture_output=True, text=True, check=True).stdout
    found = json.loads(shown)[0]
    assert secret not in json.dumps({key: value for key, value in found.items() if key != "Config"})
    assert secret not in json.dumps({key: value for key, value in found["Config"].items() if key != "Env"})
    executor.cancel([handle])
    executor.wait([handle])
    assert not any(secret in file.read_text() for file in tmp_path.rglob("*") if file.is_file())


def _readable(file: Path) -> bool:
    try:
        file.read_bytes()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(("code", "state"), [(0, "completed"), (3, "failed"), (125, "failed"), (255, "failed")])
def test_exit_codes(tmp_path: Path, code: int, state: str) -> None:
    ended, folder = finished(local(tmp_path), job("a", client("m", f"raise SystemExit({code})")))
    assert (ended, (folder / "m.exit").read_text()) == (state, f"{code}\n")


def test_a_server_and_a_client_in_two_containers(tmp_path: Path) -> None:
    work = job("a", server(), client("m", FETCH, Ref("server"), Ref("server", "port", "p=", ".")))
    state, folder = finished(local(tmp_path), work)
    assert state == "completed", log(folder, "m")
    marks = {file.stem: file.read_text().strip() for file in folder.glob("*.exit")}
    assert marks == {"m": "0", "server": "143", "job": "0 completed"}
    port = (folder / "ports/server").read_text().split()[1]
    assert log(folder, "m") == f"200 ['p={port}.']\n"
    assert left(tmp_path) == []


def test_a_container_and_a_plain_process_reach_each_other(tmp_path: Path) -> None:
    plain = Command(name="m", script=Script(argv=(sys.executable, "-S", "-E", "-c", FETCH, Ref("server"))))
    state, folder = finished(local(tmp_path), job("a", server(), plain))
    assert (state, log(folder, "m")) == ("completed", "200 []\n")


def test_a_server_that_dies_fails_the_job_at_once(tmp_path: Path) -> None:
    dies = "print('out of memory', flush=True); raise SystemExit(7)"
    state, folder = finished(local(tmp_path), job("a", client("m", STAY), server(code=dies)))
    assert (state, (folder / "server.exit").read_text(), (folder / "m.exit").read_text()) == (
        "failed",
        "7\n",
        "143\n",
    )
    assert "    | out of memory\n" in log(folder)
    assert left(tmp_path) == []


def test_a_cancelled_client_saves_its_work_behind_a_shell_of_its_own(tmp_path: Path) -> None:
    saved = tmp_path / "a/saved"
    argv = ("bash", "-c", '"$@"; true', "bash", *python(SAVE, str(saved)))
    executor = local(tmp_path)
    handle = executor.submit(job("a", Command(name="m", container="test", script=Script(argv=argv)), server()))
    until(Path(f"{saved}.ready").exists, "the client")
    executor.cancel([handle])
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert saved.read_text() == "saved"
    assert left(tmp_path) == []


def test_each_cancellation_reaches_the_client(tmp_path: Path) -> None:
    """The second one makes `ns` give up requests in flight."""
    count = """
import pathlib, signal, time
told = []
signal.signal(signal.SIGTERM, lambda *_: (told.append(1), print("told", len(told), flush=True)))
print("here", flush=True)
while len(told) < 2: time.sleep(0.01)
raise SystemExit(5)
"""
    executor = local(tmp_path)
    handle = executor.submit(job("a", client("m", count)))
    until(lambda: here(handle), "the client")
    executor.cancel([handle])
    until(lambda: "told 1" in log(Path(handle), "m"), "the first signal")
    os.kill(_job(handle), signal.SIGURG)  # nothing, where TERM came
    time.sleep(0.2)
    assert "told 2" not in log(Path(handle), "m")
    executor.cancel([handle])
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert (log(Path(handle), "m"), Path(handle, "m.exit").read_text()) == ("here\ntold 1\ntold 2\n", "5\n")


def test_a_job_that_missed_term_stops_at_urg(tmp_path: Path) -> None:
    """Which a cancellation on Slurm sends as well."""
    executor = local(tmp_path)
    handle = executor.submit(job("a", client("m", STAY)))
    until(lambda: here(handle), "the client")
    os.kill(_job(handle), signal.SIGURG)
    assert executor.wait([handle]) == {handle: "cancelled"}
    assert Path(handle, "m.exit").read_text() == "143\n"


def test_a_job_has_ended_when_its_containers_are_removed(tmp_path: Path) -> None:
    executor = local(tmp_path)
    handle = executor.submit(job("a", client("m", STAY)))
    until(lambda: here(handle), "m")
    clean_up = Path(handle, "job.clean_up")
    clean_up.write_text(f"sleep 2\n{clean_up.read_text()}")
    executor.cancel([handle])
    until(lambda: Path(handle, "job.exit").exists(), "its end is noted")
    assert executor.state([handle]) == {handle: "running"}
    until(lambda: executor.state([handle]) == {handle: "cancelled"}, "cancelled")
    assert left(tmp_path) == []


def test_a_stubborn_container_is_killed(tmp_path: Path) -> None:
    up = tmp_path / "a/up"
    wait = "import sys, time, pathlib\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)"
    executor = local(tmp_path)
    stubborn = Command(
        name="server", role="server", container="test", script=Script(argv=python(STUBBORN, str(up)))
    )
    written = executor.prepare(job("a", stubborn, client("m", wait, str(up))))
    script = Path(written.path, "job.sh")
    script.write_text(script.read_text().replace("server_grace=10", "server_grace=1"))
    handle = executor.start(written)
    assert executor.wait([handle]) == {handle: "completed"}
    assert Path(handle, "server.exit").read_text() == "137\n"
    assert left(tmp_path) == []


@pytest.mark.parametrize("who", ["job", "supervisor", "both"])
def test_a_killed_launcher_leaves_no_container(tmp_path: Path, who: str) -> None:
    executor = local(tmp_path)
    handle = executor.submit(job("a", client("m", STAY)))
    until(lambda: here(handle), "the container")
    pids = {"job": [_job(handle)], "supervisor": [_supervisor(handle)]}
    _kill(*pids.get(who, [_supervisor(handle), _job(handle)]))
    executor.wait([handle])
    until(lambda: not left(tmp_path), "the container to go")
    assert executor.state([handle])[handle] in ("failed", "cancelled")


@pytest.mark.parametrize("next_step", ["state", "cancel", "submit"])
def test_what_nobody_supervises_any_more_is_removed_at_the_next_look(tmp_path: Path, next_step: str) -> None:
    executor = local(tmp_path)
    handle = executor.submit(job("a", client("m", STAY)))
    other = executor.submit(job("b", client("m", STAY)))
    until(lambda: here(handle) and here(other), "the containers")
    keeper = int(Path(f"/proc/{_job(handle)}/stat").read_text().rpartition(")")[2].split()[1])
    three = _supervisor(handle), keeper, _job(handle)
    _kill(*three)
    until(lambda: not any(map(_alive, three)), "all that stand above the container to go")
    assert len(left(tmp_path)) == 2
    if next_step == "submit":
        assert finished(local(tmp_path / "later"), job("c", client("m", "")))[0] == "completed"
    else:
        getattr(executor, next_step)([handle])
    assert executor.state([handle, other]) == {handle: "failed", other: "running"}
    assert len(left(tmp_path)) == 1
    executor.cancel([other])
    executor.wait([other])


def _job(handle: str) -> int:
    return int(Path(handle, "job.started").read_text().split()[1])


def _supervisor(handle: str) -> int:
    return int(Path(handle, "supervisor").read_text().split()[0])


def _kill(*pids: int) -> None:
    """At the same time: none learns of the others' end."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_jobs_run_at_the_same_time_and_dependencies_in_order(tmp_path: Path) -> None:
    meet = """
import pathlib, sys, time
pathlib.Path('/meet', sys.argv[1]).touch()
for _ in range(2000):
    if len(list(pathlib.Path('/meet').iterdir())) > 1: sys.exit(0)
    time.sleep(0.01)
sys.exit(1)
"""
    place = tmp_path / "meet"
    place.mkdir()
    executor = local(tmp_path / "jobs", mounts=[f"{place}:/meet"])
    first = [executor.submit(job(name, client("m", meet, name))) for name in ("a", "b")]
    count = "import os; print(len(os.listdir('/meet')))"
    last = executor.submit(job("c", client("m", count)), after=first)
    assert executor.wait([*first, last]) == dict.fromkeys([*first, last], "completed")
    assert log(Path(last), "m") == "2\n"


def test_a_port_that_a_job_has_claimed_is_taken_for_other_containers(tmp_path: Path) -> None:
    """Containers have no /tmp in common, but the locks on ports: a claimed port need not be listened on yet."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    fixed = Command(
        name="server", role="server", container="test", script=Script(argv=python(STAY), port=port, ready=None)
    )
    executor = local(tmp_path)
    first = executor.submit(job("a", fixed, client("m", STAY)))
    until(lambda: here(first, "server"), "the server")
    state, second = finished(executor, job("b", fixed, client("m", STAY)))
    assert (state, "is in use" in log(second)) == ("failed", True)
    executor.cancel([first])
    executor.wait([first])


def test_no_containers_means_plain_processes_and_no_engine(tmp_path: Path) -> None:
    executor = local(tmp_path, containers={}, engine="docker", environ={"DOCKER_HOST": "unix:///nowhere"})
    argv = (sys.executable, "-c", "print('plain')")
    state, folder = finished(executor, job("a", Command(name="m", container="vllm", script=Script(argv=argv))))
    assert (state, log(folder, "m")) == ("completed", "plain\n")
    assert not (folder / "job.clean_up").exists()


@pytest.fixture
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where podman answers as docker's engine."""
    socket = tmp_path_factory.mktemp("api") / "s"
    words = ("podman", "system", "service", "--time=0", f"unix://{socket}")
    service = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        until(socket.exists, "the service")
        yield {"DOCKER_HOST": f"unix://{socket}"}
    finally:
        service.terminate()
        service.wait()


def test_the_docker_client(tmp_path: Path, docker: dict[str, str]) -> None:
    if shutil.which("docker") is None:
        pytest.skip("no docker client here")
    out = tmp_path / "it's my out"
    out.mkdir()
    program = "import os, pathlib; pathlib.Path('/out/file').write_text(os.environ['HF_TOKEN'])"
    executor = local(
        tmp_path / "jobs", engine="docker", mounts=[f"{out}:/out"], environ={**docker, "HF_TOKEN": "hf_1"}
    )
    work = job("a", server(), client("m", FETCH, Ref("server")), client("n", program))
    state, folder = finished(executor, work)
    assert state == "completed", log(folder)
    assert (log(folder, "m"), (out / "file").read_text()) == ("200 []\n", "hf_1")
    handle = executor.submit(job("b", client("m", STAY)))
    until(lambda: here(handle), "the container")
    os.kill(_job(handle), signal.SIGKILL)
    assert executor.wait([handle]) == {handle: "failed"}
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("engine", "tool", "option"), [("docker", "nvidia-ctk", "--gpus=all"), ("docker", "", ""), ("podman", "", "")]
)
def test_gpus_are_given_where_the_engine_can(tmp_path: Path, engine: str, tool: str, option: str) -> None:
    """With programs that only look like NVIDIA's: what scripts say, not what they do."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in filter(None, ("nvidia-smi", tool)):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    executor = local(tmp_path, engine=engine, environ={"PATH": f"{programs}:{os.environ['PATH']}"})
    plain = job("a", client("m", ""))
    text = render_scripts(plain, JobFolder(path="/f", logs="/f/logs"), executor)["job.sh"]
    assert (option in text.split()) == bool(option)
    assert "flock" not in text
    group = CommandGroup(name="all", commands=plain.commands(), hardware=HardwareConfig(num_gpus=1))
    work = Job(name="a", groups=(group,))
    if option:
        text = render_scripts(work, JobFolder(path="/f", logs="/f/logs"), executor)["job.sh"]
        assert 'flock "$job_gpus"' in text
    else:
        with pytest.raises(ConfigError, match="NVIDIA Container Toolkit"):
            executor.engine.gpus(True)
