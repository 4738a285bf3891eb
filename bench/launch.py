# SPDX-License-Identifier: Apache-2.0
"""What it costs to work with a Slurm cluster through ssh. Needs one: SLURM_CONF, with ssh/config beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import structs

from bench.measure import BenchError, Done, Line, Options, at_most, least_cpu, run, scratch
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Pipeline, Script
from newskills.launch.clusters.config import ClusterConfig, SshTunnel
from newskills.launch.executors import make_executor
from newskills.launch.experiments import has_ended
from newskills.launch.machines.ssh import RemoteMachine, ShellCall, shell_of
from newskills.launch.package import PackageOptions
from newskills.launch.place import Site
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline

COMMANDS, STATUS_SECONDS = 20, 1.5
JOBS, SUBMIT_SECONDS = 100, 5.0
MOST_SUBMIT_SECONDS = 30.0
STATUS = ("squeue", "--noheader", "--me")
DRY_RUN_SECONDS = 0.5
BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(100):
        yield {"problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

BENCHMARK = Benchmark(
    name="sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math", grader="math",
    metric="math", samples=0,
)
"""
MANY, MANY_STATUS_SECONDS, MANY_STATUS_LINES, JOB_MILLISECONDS = 1000, 1.0, 25, 3.0
SUBMISSIONS = 3
NS_WORDS = [sys.executable, "-m", "newskills"]
ENDINGS, END_SECONDS = 5, 1.0


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        yield dry_run(folder)
    if not shutil.which("sbatch"):
        raise BenchError("no Slurm here: there is no sbatch")
    with scratch() as folder:
        yield from many(folder, options.rows(MANY))
    config = Path(os.environ.get("SLURM_CONF", "/nonexistent")).parent / "ssh" / "config"
    if not config.is_file():
        raise BenchError("no cluster behind ssh here: SLURM_CONF names none that has ssh/config beside it")
    tunnel = SshTunnel(host=config.read_text().split()[1])
    with scratch() as folder:
        folder.chmod(0o777)  # for the user who logs in there
        environ = {
            **os.environ,
            "NEWSKILLS_SSH_CONFIG": str(config),
            "NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments"),
        }
        there = RemoteMachine(tunnel, environ)
        yield from status(there)
        there.hang_up()
        cluster = ClusterConfig(
            executor="slurm",
            name="bench",
            job_dir=str(folder / "jobs"),
            default_timeout="00:10:00",
            ssh_tunnel=tunnel,
        )
        yield submission(cluster, environ, folder, options.rows(JOBS), SUBMIT_SECONDS)
        yield submission(cluster, environ, folder, options.rows(MANY), MOST_SUBMIT_SECONDS)
        yield ending(structs.replace(cluster, ssh_tunnel=None), folder / "ending")
    with scratch() as folder:
        folder.chmod(0o777)
        yield from from_a_laptop(folder, config, options)


def dry_run(folder: Path) -> Line:
    """`ns eval --cluster=slurm --dry_run` of twelve units. Needs no cluster."""
    env = prepared(folder)
    words = [*evaluation(folder, seeds=3), "--num_chunks=4", "--server_gpus=8"]
    cpu = least_cpu([*words, "--dry_run"], 8, env=env)
    line = Line(bench="launch", what="ns eval --cluster=slurm --dry_run", ours=cpu, unit="CPU s", better="less")
    line.target, line.met = f"≤ {DRY_RUN_SECONDS:g} s", cpu <= DRY_RUN_SECONDS
    line.note = "3 seeds × 4 chunks"
    return line


def prepared(folder: Path) -> dict[str, str]:
    """A benchmark and a cluster config in `folder`; the environment to evaluate it in."""
    (folder / "sums.py").write_text(BENCHMARK)
    env = environment(folder)
    run([*NS_WORDS, "prepare_data", folder / "sums.py"], env=env)
    return env


def environment(folder: Path) -> dict[str, str]:
    """Of commands that use the cluster config `slurm` in `folder`, which is written."""
    (folder / "slurm.yaml").write_text(f"executor: slurm\njob_dir: {folder}/jobs\n")
    # As users have it, with compiled modules beside the sources.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = {"NEWSKILLS_DATA_DIR": f"{folder}/data", "NEWSKILLS_EXPERIMENTS_DIR": f"{folder}/experiments"}
    return {**usual, **places, "NEWSKILLS_FORCE_PATTERN_PACKAGER": "1"}


def evaluation(folder: Path, *, seeds: int, cluster: str = "slurm") -> list[str]:
    words = [
        *NS_WORDS,
        "eval",
        f"--cluster={cluster}",
        f"--config_dir={folder}",
        "--model=m",
        "--server_type=vllm",
    ]
    return [*words, f"--benchmarks={folder}/sums.py:{seeds}", f"--output_dir={folder}/out"]


def many(folder: Path, jobs: int) -> Iterator[Line]:
    """`ns eval` of so many units, held in the queue, and `ns status` of them. The code is packaged before."""
    env = prepared(folder)
    held = ['--sbatch_kwargs={"hold": true}', "--server_address=http://n1:9"]
    names = ["warm", "many"]
    try:
        run([*evaluation(folder, seeds=1), *held, f"--expname={names[0]}"], env=env)
        words = [*evaluation(folder, seeds=jobs // 10), *held, "--num_chunks=10", f"--expname={names[1]}"]
        cpu = run(words, env=env).cpu * 1000 / jobs
        shown = run([*NS_WORDS, "status", names[1]], env=env)
        seconds = min(shown.cpu, *(run([*NS_WORDS, "status", names[1]], env=env).cpu for _ in range(3)))
    finally:
        for name in names:
            subprocess.run([*NS_WORDS, "cancel", name], env=env, capture_output=True, check=False)
    line = Line(
        bench="launch", what=f"ns eval of {jobs:,} units on Slurm", ours=cpu, unit="CPU ms a job", better="less"
    )
    line.target, line.met = f"≤ {JOB_MILLISECONDS:g} ms", cpu <= JOB_MILLISECONDS
    line.note = "with sbatch and all other children, without start of the jobs"
    yield line
    line = Line(bench="launch", what=f"ns status of {jobs:,} jobs", ours=seconds, unit="CPU s", better="less")
    line.target, line.met = f"≤ {MANY_STATUS_SECONDS:g} s", seconds <= MANY_STATUS_SECONDS
    yield line
    count = len(shown.output.splitlines())
    line = Line(bench="launch", what=f"ns status of {jobs:,} jobs", ours=count, unit="lines", better="less")
    line.target, line.met = f"≤ {MANY_STATUS_LINES}", count <= MANY_STATUS_LINES
    yield line


def from_a_laptop(folder: Path, config: Path, options: Options) -> Iterator[Line]:
    """Whole commands through ssh, at three sizes: `ns eval` of so many jobs, held in the queue, and `ns status`.

    The code is packaged and copied before, and the connection is open, as in the second submission of a session.
    """
    env = {**prepared(folder), "NEWSKILLS_SSH_CONFIG": str(config)}
    before = f"export PATH='{Path(sys.executable).parent}':$PATH"
    tunnel = f'ssh_tunnel: {{host: {config.read_text().split()[1]}, pre_command: "{before}"}}'
    (folder / "far.yaml").write_text(f"executor: slurm\njob_dir: {folder}/jobs\n{tunnel}\n")
    held = ['--sbatch_kwargs={"hold": true}', "--server_address=http://n1:9"]
    sizes = [options.rows(MANY // 100), options.rows(MANY // 10), options.rows(MANY)]
    try:
        run([*evaluation(folder, seeds=1, cluster="far"), *held, "--expname=warm"], env=env)
        for jobs in sizes:
            words = [*evaluation(folder, seeds=max(1, jobs // 10), cluster="far"), *held]
            chunks = min(jobs, 10)
            submitted = run([*words, f"--num_chunks={chunks}", f"--expname=far{jobs}"], env=env)
            told = min((run([*NS_WORDS, "status", f"far{jobs}"], env=env) for _ in range(3)), key=lambda d: d.wall)
            yield through_ssh(f"ns eval of {jobs:,} jobs", submitted, MOST_SUBMIT_SECONDS)
            yield through_ssh(f"ns status of {jobs:,} jobs", told, MANY_STATUS_SECONDS)
    finally:
        for name in ("warm", *(f"far{jobs}" for jobs in sizes)):
            subprocess.run([*NS_WORDS, "cancel", name], env=env, capture_output=True, check=False)


def through_ssh(what: str, done: Done, most: float) -> Line:
    return at_most("launch", f"{what}, through ssh", done.wall, "s", most, note=f"{done.cpu:.2f} CPU s here")


def status(there: RemoteMachine) -> Iterator[Line]:
    """The first command pays for the connection; `ns` processes that follow within minutes find it open."""
    first = timed(lambda: there.run(STATUS))
    each = timed(lambda: [there.run(STATUS) for _ in range(COMMANDS)])
    batch = timed(lambda: there.run_all([ShellCall(argv=STATUS)] * COMMANDS))
    for what, seconds in ((f"{COMMANDS} × squeue", each), (f"{COMMANDS} × squeue in one trip", batch)):
        line = Line(bench="launch", what=what, ours=seconds, unit="s", better="less")
        line.target, line.met = f"≤ {STATUS_SECONDS:g} s", seconds <= STATUS_SECONDS
        line.note = f"through ssh; connecting took {first:.2f} s more" if seconds is each else ""
        yield line


def submission(cluster: ClusterConfig, environ: dict[str, str], folder: Path, jobs: int, most: float) -> Line:
    """The best of several: code packaged before, connection open, as in the second submission of a session."""
    plain = folder / "plain"
    plain.mkdir(exist_ok=True)
    options = SubmitOptions(packaging=PackageOptions(folder=plain))
    best = float("inf")
    for number in range(SUBMISSIONS):
        plan = Pipeline(name=f"bench{jobs}-{number}", jobs=tuple(_job(f"j{i}") for i in range(jobs)))
        began = time.perf_counter()
        done = submit_pipeline(plan, cluster, environ, options)
        best = min(best, time.perf_counter() - began)
        executor_of(done, environ).cancel(done.handles)
    shell_of(cluster, environ).close()
    line = Line(bench="launch", what=f"submit {jobs:,} jobs", ours=best, unit="s", better="less")
    line.target, line.met = f"≤ {most:g} s", best <= most
    line.note = "through ssh, with their scripts"
    return line


def ending(cluster: ClusterConfig, folder: Path) -> Line:
    """From the end of a job's only command to the end of the job, as Slurm tells it: the worst of several."""
    executor = make_executor(Site(cluster=cluster, folder=str(folder), environ=os.environ))
    worst = 0.0
    for number in range(ENDINGS):
        end = folder / f"end{number}"
        work = Command(
            name="main", script=Script(argv=("bash", "-c", 'sleep 1; date +%s.%N >"$1"', "main", str(end)))
        )
        handle = executor.submit(Job(name=f"j{number}", groups=(CommandGroup(name="group", commands=(work,)),)))
        until = time.monotonic() + 60
        while not has_ended(executor.state([handle])[handle]):
            if time.monotonic() > until:
                raise BenchError(f"job {handle} does not end")
            time.sleep(0.01)
        worst = max(worst, time.time() - float(end.read_text()))
    line = Line(bench="launch", what="job's end after its command's", ours=worst, unit="s", better="less")
    line.target, line.met = f"≤ {END_SECONDS:g} s", worst <= END_SECONDS
    line.note = f"worst of {ENDINGS}"
    return line


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _job(name: str) -> Job:
    command = Command(name="main", script=Script(argv=("true",)))
    # Held: where all nodes are emulated on this machine, a hundred starting jobs would be measured, too.
    held = HardwareConfig(sbatch_kwargs={"hold": True})
    return Job(name=name, groups=(CommandGroup(name="group", commands=(command,), hardware=held),))
