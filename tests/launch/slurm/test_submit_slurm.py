# SPDX-License-Identifier: Apache-2.0
"""From a pipeline to jobs of a real Slurm cluster, through ssh and back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from tests.launch.jobs import environment, job, pipeline
from tests.launch.repositories import repository
from tests.launch.slurm_cluster import login

from newskills.base.errors import UnknownNameError
from newskills.base.plan import Pipeline
from newskills.launch.clusters.config import ClusterConfig, SshTunnel
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.logs import follow_logs, log_files, read_logs
from newskills.launch.machines.ssh import shell_of
from newskills.launch.states import JobWatch, experiment_states
from newskills.launch.submit import SubmitOptions, executor_of, submit_pipeline

OWN = {"newskills/__init__.py": "", "newskills/cli.py": "", "it's a.txt": "from the commit\n"}


class Laptop:
    """A git repository and a cluster behind ssh, whose user may be another than the tests'."""

    def __init__(self, folder: Path, config: Path, shared: Path) -> None:
        self.folder = folder
        self.environ = environment(folder, NEWSKILLS_SSH_CONFIG=str(config), WANDB_API_KEY="hush" + "-271828")
        host = config.read_text().split()[1]
        self.cluster = ClusterConfig(
            executor="slurm",
            name="far",
            job_dir=str(shared / "jobs of 'mine'"),
            default_timeout="00:05:00",
            ssh_tunnel=SshTunnel(host=host),
        )

    def submit(self, plan: Pipeline, **options: object) -> Experiment:
        return submit_pipeline(plan, self.cluster, self.environ, SubmitOptions(**options))


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    config = login()
    repository(tmp_path / "repo", OWN)
    monkeypatch.chdir(tmp_path / "repo")
    shared = Path(tempfile.mkdtemp(prefix="newskills-shared-"))
    shared.chmod(0o777)
    yield Laptop(tmp_path, config, shared)
    shutil.rmtree(shared)


def test_there_and_back(laptop: Laptop) -> None:
    work = 'cat "it\'s a.txt"; printf "%s %s\\n" "$PWD" "${#WANDB_API_KEY}"; exit 3'
    plan = pipeline("mine", job("after", "echo second", depends_on=("first",)), job("first", work))
    done = laptop.submit(plan)
    executor, shell = executor_of(done, laptop.environ), shell_of(laptop.cluster, laptop.environ)
    lines = list(follow_logs(shell, log_files(done, None, "main"), JobWatch(done.jobs, executor, shell).all_ended))
    assert {"[first] from the commit", f"[first] {done.package.path} 11", "[after] second"} <= set(lines)
    first, after = experiment_states(done, executor, shell)
    assert (first.state, first.exit_code, after.state) == ("failed", 3, "completed")
    assert "job failed with exit code 3" in "\n".join(read_logs(shell, log_files(done, "first", "job")))
    for file in [*Path(laptop.cluster.job_dir).rglob("*"), *Path(laptop.folder, "experiments").rglob("*")]:
        if file.is_file():
            assert b"hush" not in file.read_bytes(), file
    again = laptop.submit(pipeline("again", job("one", "true", run_after=("mine",))))
    assert (again.package.path, again.package.copied, again.jobs[0].after) == (done.package.path, 0, ())


def test_waits_for_what_runs_and_cancels_it(laptop: Laptop) -> None:
    slow = laptop.submit(pipeline("slow", job("one", "sleep 100")))
    after = laptop.submit(pipeline("after", job("two", "true", run_after=("slow",))))
    assert after.jobs[0].after == slow.handles
    by_handle = laptop.submit(pipeline("third", job("two", "true", run_after=slow.handles)))
    assert by_handle.jobs[0].after == slow.handles
    with pytest.raises(UnknownNameError, match="did you mean 'slow'"):
        laptop.submit(pipeline("mine", job("two", "true", run_after=("slw",))))
    executor, shell = executor_of(after, laptop.environ), shell_of(laptop.cluster, laptop.environ)
    assert experiment_states(after, executor, shell)[0].state.startswith("pending")
    everything = (*slow.handles, *after.handles, *by_handle.handles)
    executor.cancel(everything)
    watch = JobWatch(slow.jobs, executor, shell)
    list(follow_logs(shell, [], watch.all_ended))
    assert experiment_states(slow, executor_of(slow, laptop.environ), shell)[0].state == "cancelled"


def test_dry_run_touches_nothing_there(laptop: Laptop) -> None:
    planned = laptop.submit(pipeline("mine", job("one", "true")), dry_run=True)
    assert [one.handle for one in planned.jobs] == [""]
    assert planned.package.hash
    assert not Path(laptop.cluster.job_dir).exists()
    assert ExperimentRecords(laptop.environ).names() == []
    assert structs.asdict(planned)["folder"].startswith(laptop.cluster.job_dir)
