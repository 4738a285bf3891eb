# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real Slurm cluster: how they start, end, wait for each other, and what is known of them meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from tests.launch.places import SERVER, client, job, python, server
from tests.launch.slurm_cluster import (
    bash,
    ended,
    field,
    finished,
    grouped,
    printed,
    require_cluster,
    scontrol,
    slurm,
    story,
    submitted,
    until,
)

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Ready, Ref, Script
from newskills.launch.executors.slurm_status import query_accounting
from newskills.launch.machines.shell import LocalMachine

pytestmark = pytest.mark.usefixtures("cluster")

ODD = ("a b", "it's", '"$HOME"', "", "\\", "new\nline", "*", "ä€", "--x=`id`;#")
STAY = "touch here; exec sleep 600"
SAVE = "trap 'touch saving; sleep 7; touch saved; exit 7' TERM; touch here; sleep 600 & wait"
"""Takes longer to save than Slurm's KillWait on the test cluster."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    require_cluster()


@pytest.fixture(autouse=True)
def no_job_stays(tmp_path: Path) -> Iterator[None]:
    """A test that fails leaves nothing for the next ones to wait behind."""
    yield
    if left := [line.split()[0] for line in queued(tmp_path)]:
        subprocess.run(["scancel", *left], check=True)


def open_server(name: str = "server") -> Command:
    """For other nodes to see."""
    script = Script(argv=python(SERVER, "0.0.0.0", Ref(name, "port")), port=0, ready=Ready(patience=20))
    return Command(name=name, role="server", script=script)


def test_a_job_runs_and_every_character_arrives(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with 'quotes', \"more\", 100% and $HOME"
    code = "import sys, os; print(sys.argv[1:] == eval(os.environ['EXPECTED']), os.environ['PLAIN'], os.getcwd())"
    work = client("main", code, *ODD, env={"EXPECTED": repr(list(ODD))}, secrets=("MY_TOKEN",))
    environ = {"PATH": os.environ["PATH"], "MY_TOKEN": "hunter2hunter2", "UNASKED_TOKEN": "hunter3"}
    executor = slurm(folder, environ=environ, env_vars=["PLAIN=it's plain"])
    state, where = finished(executor, job("one", work))
    assert state == "completed", story(where)
    assert printed(where) == f"True it's plain {os.getcwd()}\n"
    assert (where / "job.exit").read_text() == "0 completed\n"
    handle = (where / "job.handle").read_text().split()[0]
    assert (where / "logs" / f"one_{handle}_sbatch.log").is_file()
    assert any(line.startswith("True it's plain") for line in executor.logs(handle))
    with pytest.raises(ConfigError, match="has no job"):
        list(executor.logs("77777777"))


def test_secrets_travel_by_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNASKED_TOKEN", "hunter3hunter3")
    monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
    monkeypatch.setenv("SLURM_NTASKS", "77")
    show = 'echo "${MY_TOKEN: -4} ${UNASKED_TOKEN:-unset} $SLURM_NTASKS"; ps -ewwo args >ps.txt'
    work = job("one", bash("main", show, secrets=("MY_TOKEN",)))
    environ = {**os.environ, "MY_TOKEN": "hunter2hunter2wxyz"}
    state, where = finished(slurm(tmp_path, environ=environ), work)
    assert state == "completed", story(where)
    assert printed(where) == "wxyz unset 1\n"
    known = scontrol("show", "job", (where / "job.handle").read_text().split()[0])
    files = [file.read_text(errors="replace") for file in where.rglob("*") if file.is_file()]
    assert not [text for text in (known, *files) if "hunter2" in text]


def test_server_and_client_on_different_nodes(tmp_path: Path) -> None:
    fetch = (
        "import os, sys, urllib.request\n"
        "print(os.environ['SLURMD_NODENAME'], sys.argv[1:], urllib.request.urlopen(sys.argv[1] + '/health').status)"
    )
    nodes = ("SLURM_MASTER_NODE_HET_GROUP_0", "SLURM_MASTER_NODE_HET_GROUP_1")
    work = grouped(
        "het",
        CommandGroup(name="servers", commands=(open_server(),), hardware=HardwareConfig(num_gpus=2)),
        CommandGroup(
            name="clients",
            commands=(
                client("main", fetch, Ref("server"), Ref("server", "node"), Ref("main", "node")),
                bash("names", f'echo "${nodes[0]} ${nodes[1]} ${{CUDA_VISIBLE_DEVICES:-none}}"'),
            ),
            hardware=HardwareConfig(num_nodes=2, sbatch_kwargs={"comment": 'it\'s "odd" \\ here'}),
        ),
    )
    state, where = finished(slurm(tmp_path), work)
    assert state == "completed", story(where)
    first, second, gpus = (where / "logs" / "names.log").read_text().split()
    assert first != second
    assert gpus == "none"
    said = printed(where)
    assert re.match(rf"{second} \['http://{first}:\d+', '{first}', '{second}'\] 200\n", said), said
    handle = (where / "job.handle").read_text().split()[0]
    part = scontrol("show", "job", f"{handle}+1")
    assert 'Comment=it\'s "odd" \\ here' in part


def test_a_server_on_all_nodes_and_tasks(tmp_path: Path) -> None:
    say = 'printf "%s\\n" "$1 $SLURM_PROCID $(hostname) $2 $3" >>said; exec sleep 600'
    words = (Ref("server", "rank"), Ref("server", "node"), Ref("server", "port"))
    listening = bash("server", say, *words, port=0, all_nodes=True, setup=f"echo set >>'{tmp_path}/wide/setup'")
    everywhere = structs.replace(listening, role="server")
    wait = "until [[ $(cat said 2>/dev/null | wc -l) -eq 3 ]]; do sleep 0.1; done; hostname"
    work = grouped(
        "wide",
        CommandGroup(name="all", commands=(everywhere, bash("main", wait)), hardware=HardwareConfig(num_nodes=3)),
    )
    state, where = finished(slurm(tmp_path), work)
    assert state == "completed", story(where)
    rows = sorted(line.split() for line in (where / "said").read_text().splitlines())
    assert [row[:2] for row in rows] == [["0", "0"], ["1", "1"], ["2", "2"]]
    assert len({row[2] for row in rows}) == 3
    assert {row[3] for row in rows} == {rows[0][2]}
    assert len({row[4] for row in rows}) == 1
    assert (where / "setup").read_text() == "set\n" * 3
    assert printed(where).strip() == rows[0][2]


def test_three_jobs_one_after_the_other(tmp_path: Path) -> None:
    note = 'sleep 0.5; echo "$1" >>../order'
    jobs = [
        grouped(name, CommandGroup(name="all", commands=(bash("main", note, name),)), depends_on=needs)
        for name, needs in (("a", ()), ("b", ("a",)), ("c", ("a", "b")))
    ]
    executor = slurm(tmp_path)
    handles = submitted(executor, *jobs)
    states = executor.state(list(handles.values()))
    assert states[handles["c"]] == "pending (Dependency)"
    assert set(ended(executor, list(handles.values())).values()) == {"completed"}
    assert (tmp_path / "order").read_text() == "a\nb\nc\n"
    last, _ = finished(executor, job("d", bash("main", note, "d")), after=list(handles.values()))
    assert last == "completed"


def test_a_client_that_fails_fails_the_job(tmp_path: Path) -> None:
    executor = slurm(tmp_path, dependency_type="afterok")
    bad = job("bad", server(), bash("main", "sleep 0.5; exit 3"))
    good = grouped("good", CommandGroup(name="all", commands=(bash("main", "true"),)), depends_on=("bad",))
    handles = submitted(executor, bad, good)
    states = ended(executor, list(handles.values()))
    assert states[handles["bad"]] == "failed"
    assert states[handles["good"]].startswith("cancelled")
    shown = scontrol("show", "job", handles["bad"])
    assert (field(shown, "JobState"), field(shown, "ExitCode")) == ("FAILED", "3:0")
    with pytest.raises(ConfigError, match="never start"):
        executor.submit(job("later", bash("main", "true")), after=[handles["bad"]])


def test_a_server_that_dies_fails_the_job_in_seconds(tmp_path: Path) -> None:
    dying = "import sys, time; print('out of memory, alas', flush=True); time.sleep(0.5); sys.exit(0)"
    began = time.monotonic()
    state, where = finished(slurm(tmp_path), job("j", server(code=dying), bash("main", STAY, Ref("server"))))
    assert state == "failed"
    assert time.monotonic() - began < 40
    assert (where / "job.exit").read_text().startswith("1 failed server 'server' ended with exit code 0")
    assert "| out of memory, alas" in story(where)


def test_a_finished_command_ends_its_job(tmp_path: Path) -> None:
    """The exact figure is in bench/: here only that nobody sleeps."""
    state, where = finished(slurm(tmp_path), job("j", server(), bash("main", "sleep 1")))
    shown = scontrol("show", "job", (where / "job.handle").read_text().split()[0])
    minutes, seconds = map(int, field(shown, "RunTime").split(":")[1:])
    assert state == "completed"
    assert minutes * 60 + seconds < 30


def test_what_runs_may_save_its_work_when_cancelled(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    first = job("first", bash("main", SAVE))
    second = grouped("second", CommandGroup(name="all", commands=(bash("main", STAY),)), depends_on=("first",))
    handles = submitted(executor, first, second)
    until(lambda: (tmp_path / "first" / "here").exists(), "the first job")
    executor.cancel(list(handles.values()))
    states = ended(executor, list(handles.values()))
    assert states == {handles["first"]: "cancelled", handles["second"]: "cancelled"}
    assert (tmp_path / "first" / "saved").exists()
    assert (tmp_path / "first" / "job.exit").read_text() == "143 cancelled received SIGTERM\n"
    executor.cancel(list(handles.values()))


def test_a_job_that_missed_term_stops_at_what_a_cancellation_sends_next(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handle = executor.submit(job("missed", bash("main", STAY)))
    until(lambda: (tmp_path / "missed/job.started").exists(), "the job")
    subprocess.run(["scancel", "--batch", "--signal=URG", handle], check=True)
    assert ended(executor, [handle]) == {handle: "cancelled"}
    assert (tmp_path / "missed/job.exit").read_text() == "143 cancelled received SIGTERM\n"


def test_parts_of_a_heterogeneous_job_are_cancelled_together(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    work = grouped(
        "het",
        CommandGroup(name="one", commands=(bash("a", "trap 'exit 0' TERM; touch a; sleep 600 & wait"),)),
        CommandGroup(name="two", commands=(bash("b", SAVE),)),
    )
    handle = executor.submit(work)
    where = tmp_path / "het"
    until(lambda: (where / "a").exists() and (where / "here").exists(), "both parts")
    executor.cancel([handle])
    assert ended(executor, [handle]) == {handle: "cancelled"}
    assert (where / "saved").exists()
    assert ((where / "a.exit").read_text(), (where / "b.exit").read_text()) == ("0\n", "7\n")


def test_scancel_by_hand_is_seen(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    handle = executor.submit(job("j", bash("main", STAY)))
    until(lambda: (tmp_path / "j" / "here").exists(), "the job")
    subprocess.run(["scancel", handle], check=True)
    assert ended(executor, [handle]) == {handle: "cancelled"}


COUNT = """
import pathlib, signal, sys, time
lines = pathlib.Path(sys.argv[1], "lines")
begin = len(lines.read_text().split()) if lines.exists() else 0
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
with lines.open("a") as file:
    for number in range(begin, 200):
        print(number, file=file, flush=True)
        time.sleep(0.2)
        if stop:
            sys.exit(9)
"""
"""Counts to 199 in 40 s, and goes on where it was stopped."""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_copy_goes_on_at_the_time_limit(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    hardware = HardwareConfig(time_limit="00:01:00", sbatch_kwargs={"signal": "B:USR1@50"})
    work = grouped(
        "j",
        CommandGroup(
            name="all", commands=(server(), client("main", COUNT, Ref("main", "folder"))), hardware=hardware
        ),
        copies=3,
    )
    handles = submitted(
        executor,
        work,
        grouped("end", CommandGroup(name="all", commands=(bash("main", "true"),)), depends_on=("j",)),
    )
    states = ended(executor, list(handles.values()))
    where = tmp_path / "j"
    assert states == {handles["j"]: "completed", handles["end"]: "completed"}, story(where)
    assert (where / "lines").read_text().split() == [str(number) for number in range(200)]
    logs = [file.read_text() for file in sorted(where.glob("logs/*_sbatch.log"))]
    assert len(logs) >= 2
    assert all("job time with exit code 75" in text for text in logs[:-1])
    assert "job completed" in logs[-1]
    assert len(handles["j"].split(":")) == 4
    last = executor.state([handles["j"].split(":")[3]])
    assert next(iter(last.values())).startswith("cancelled")


def test_copies_do_not_repeat_a_failure(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    work = bash("main", "echo x >>tries; exit 5")
    handle = executor.submit(grouped("j", CommandGroup(name="all", commands=(work,)), copies=2))
    assert ended(executor, [handle]) == {handle: "failed"}
    assert (tmp_path / "j" / "tries").read_text() == "x\n"


def test_copies_go_on_after_a_crash(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    work = bash("main", "echo x >>tries; [[ $(wc -l <tries) -gt 1 ]] || kill -KILL $$")
    handle = executor.submit(grouped("j", CommandGroup(name="all", commands=(work,)), copies=2))
    assert ended(executor, [handle]) == {handle: "completed"}
    assert (tmp_path / "j" / "tries").read_text() == "x\nx\n"


@pytest.mark.parametrize(("code", "state", "tries"), [(75, "completed", 2), (5, "failed", 1)])
def test_a_step_ends_with_the_code_of_the_task_that_ended_it(
    tmp_path: Path, code: int, state: str, tries: int
) -> None:
    """Not with the code of the other task, which srun ends then: it would hide who saved its work, and who failed."""
    executor = slurm(tmp_path)
    once = "echo x >>tries; [[ $(wc -l <tries) -eq 1 ]] || exit 0"
    first = f"{once}; until [[ -e here ]]; do sleep 0.1; done; exit {code}"
    other = "[[ ! -e here ]] || exit 0; trap 'exit 143' TERM; touch here; sleep 600 & wait"
    work = bash("main", f"if [[ $SLURM_PROCID -eq 0 ]]; then {first}; fi; {other}", all_nodes=True)
    group = CommandGroup(name="all", commands=(work,), hardware=HardwareConfig(num_nodes=2))
    handle = executor.submit(grouped("j", group, copies=1))
    assert ended(executor, [handle]) == {handle: state}, story(tmp_path / "j")
    assert (tmp_path / "j" / "tries").read_text() == "x\n" * tries
    assert f"client 'main' ended with exit code {code}\n" in story(tmp_path / "j")


def test_unknown_jobs_are_not_waited_for(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    with pytest.raises(ConfigError, match="does not know job 88888888"):
        executor.submit(job("j", bash("main", "true")), after=["88888888"])
    with pytest.raises(ConfigError, match="not the id of a Slurm job"):
        executor.submit(job("j", bash("main", "true")), after=["1; touch x"])
    assert executor.state(["88888888"]) == {"88888888": "unknown"}


def test_all_jobs_or_none(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    wrong = CommandGroup(
        name="all", commands=(bash("main", "true"),), hardware=HardwareConfig(partition="no-such-partition")
    )
    with pytest.raises(ConfigError, match="partition"):
        submitted(executor, job("a", bash("main", STAY)), grouped("b", wrong))
    handle = (tmp_path / "a" / "job.handle").read_text().split()[0]
    assert ended(executor, [handle]) == {handle: "cancelled"}


INTERRUPTED = """
import sys
from tests.launch.slurm_cluster import bash, grouped, slurm, submitted
from newskills.base.plan import CommandGroup, HardwareConfig
def alone(n):
    hardware = HardwareConfig(sbatch_kwargs={"comment": str(n)})  # no two are alike, so that there is no array
    group = CommandGroup(name="all", commands=(bash("main", "sleep 600"),), hardware=hardware)
    return grouped(f"j{n}", group, copies=1)
submitted(slurm(sys.argv[1]), *(alone(n) for n in range(160)))
"""


@pytest.mark.parametrize("patience", [0.0, 0.2])
def test_ctrl_c_while_submitting_leaves_nothing(tmp_path: Path, patience: float) -> None:
    """As a terminal does it: SIGINT for all processes of the foreground."""
    slow = tmp_path / "bin/sbatch"  # so that some jobs are always left to submit
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 0.3\nexec {shutil.which("sbatch")} "$@"\n')
    slow.chmod(0o755)
    asking = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        env={**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}"},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: list(tmp_path.glob("*/job.handle")), "the first job")
    time.sleep(patience)
    os.killpg(asking.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in asking.communicate()[1]
    assert len(list(tmp_path.glob("*/job.handle"))) < 160
    assert len(list(tmp_path.glob("*/job.withdrawn"))) == 160
    until(lambda: not queued(tmp_path), lambda: f"an empty queue: {queued(tmp_path)}")
    handles = [file.read_text().split()[0] for file in tmp_path.glob("*/job.handle")]
    assert set(ended(slurm(tmp_path), handles).values()) == {"cancelled"}


def queued(folder: Path) -> list[str]:
    """Jobs of that folder that wait or run."""
    lines = subprocess.run(["squeue", "-h", "-o", "%i %Z"], capture_output=True, text=True, check=True).stdout
    return [line for line in lines.splitlines() if str(folder) in line]


def test_states_after_a_burst_and_from_accounting(tmp_path: Path) -> None:
    executor = slurm(tmp_path)
    jobs = [job(f"j{number}", bash("main", f"exit {number % 2}")) for number in range(12)]
    handles = submitted(executor, *jobs)
    states = ended(executor, list(handles.values()))
    assert [states[handles[one.name]] for one in jobs] == ["completed", "failed"] * 6
    found = query_accounting(LocalMachine(), list(handles.values()))
    if found:  # a cluster may have no accounting
        until(
            lambda: all(
                one.word() in ("completed", "failed")
                for one in query_accounting(LocalMachine(), list(handles.values())).values()
            ),
            "accounting",
        )


def test_clusters_without_accounting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = slurm(tmp_path / "jobs")
    _, where = finished(executor, job("j", bash("main", "exit 4")))
    handle = (where / "job.handle").read_text().split()[0]
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "head", "sinfo", "squeue", "tail", "timeout"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    assert executor.state([handle, "88888888"]) == {handle: "failed", "88888888": "unknown"}
    (programs / "squeue").unlink()
    with pytest.raises(ConfigError, match="There is no squeue on this machine"):
        executor.state([handle])


def test_jobs_that_slurm_forgot_left_marks(tmp_path: Path) -> None:
    for handle, mark in (("99999001", "0 completed\n"), ("99999002:99999003", "75 time the time limit is near\n")):
        (tmp_path / handle).mkdir()
        (tmp_path / handle / "job.handle").write_text(f"{handle}\n/nowhere\n")
        (tmp_path / handle / "job.exit").write_text(mark)
    states = slurm(tmp_path).state(["99999001", "99999002:99999003", "99999004"])
    assert states == {"99999001": "completed", "99999002:99999003": "timeout", "99999004": "unknown"}


def test_arrays_of_others_have_one_state(tmp_path: Path) -> None:
    submit = [
        "sbatch",
        "--parsable",
        "--array=1-3",
        "--output=/dev/null",
        "--wrap=exit $((SLURM_ARRAY_TASK_ID == 2))",
    ]
    array = subprocess.run(submit, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    assert ended(slurm(tmp_path), [array, f"{array}_1"]) == {array: "failed", f"{array}_1": "completed"}
