# SPDX-License-Identifier: Apache-2.0
"""What sbatch and srun are told, and how their answers are read. No cluster needed: no Pyxis is to be had for one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.launch.places import client, job
from tests.launch.slurm_cluster import grouped, slurm
from tests.launch.test_job_script import TWO_GROUPS

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, CommandGroup, HardwareConfig, Job, Script
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors.slurm import Slurm
from newskills.launch.executors.slurm_status import SlurmRecord, chain_state, from_sacct, from_squeue, slurm_ids
from newskills.launch.job_script import render_scripts
from newskills.launch.place import JobFolder, Site

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDER = JobFolder(path="/jobs/exp/judge's job", logs="/logs/judge", code="/jobs/packages/0f3a")
CLUSTER = {
    "containers": {"vllm": "/images/vllm.sqsh", "nemo-skills": "nvcr.io#nvidia/ns:1"},
    "mounts": ["/data/models:/models:ro", "/work space:/ws"],
    "env_vars": ["HF_HOME=/models/hf"],
    "account": "acc",
    "partition": "gpu",
    "cpu_partition": "cpu",
    "timeouts": {"gpu": "04:00:00"},
    "default_timeout": "01:00:00",
    "job_name_prefix": "me:",
    "mail_type": "FAIL",
    "mail_user": "me@example.org",
}
SITE = Site(
    cluster=ClusterConfig(executor="slurm", containers={"vllm": "/v.sqsh"}, env_vars=["PYTHONPATH=/mine"]),
    folder="/jobs/exp",
    code=FOLDER.code,
)
STUBS = {
    "srun": """
printf '%s\\n' "$@" >"$OUT/$(date +%s%N).argv"
while [[ $# -gt 0 && $1 != bash ]]; do shift; done
exec "$@"
""",
    "scontrol": '[[ "$1 $2" != "show hostnames" ]] || printf "%s\\n" n7 n8',
    "squeue": "",
    "scancel": "exit 1",
}


def executor(**more: object) -> Slurm:
    return slurm("/jobs/exp", environ={"HF_TOKEN": "hf_secretsecret"}, **{**CLUSTER, **more})


def options(work: Job, **more: object) -> list[list[str]]:
    """Lines of #SBATCH for each group, without that word."""
    text = render_scripts(work, FOLDER, executor(**more))["job.sh"]
    lines = [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]
    groups: list[list[str]] = [[]]
    for line in lines:
        if line == "hetjob":
            groups.append([])
        else:
            groups[-1].append(line)
    return groups


def alone(name: str = "j", **hardware: object) -> Job:
    group = CommandGroup(name="all", commands=(client("main", ""),), hardware=HardwareConfig(**hardware))
    return grouped(name, group)


def test_the_head_of_the_script_is_the_golden_one() -> None:
    """Set NEWSKILLS_GOLDEN=write to write the file anew, and read the difference."""
    text = render_scripts(TWO_GROUPS, FOLDER, executor())["job.sh"].partition("# ---- From here on")[0]
    if os.environ.get("NEWSKILLS_GOLDEN") == "write":
        (GOLDEN / "slurm.sh").write_text(text, "utf-8")
    assert text == (GOLDEN / "slurm.sh").read_text("utf-8")


def test_srun_gets_the_words_of_pyxis(tmp_path: Path) -> None:
    """Through bash, with a path that has blanks and quotes, to a stand-in that writes down what it got."""
    for name, text in STUBS.items():
        (tmp_path / name).write_text("#!/bin/bash\n" + text)
        (tmp_path / name).chmod(0o755)
    where = tmp_path / 'it\'s a "job"'
    where.mkdir()
    script = Script(argv=("sh", "-c", "echo ran"), secrets=("HF_TOKEN",), tasks_per_node=2, all_nodes=True)
    command = Command(name="main", container="vllm", script=script, workdir="/ws/a b", mounts=("/tmp:/tmp",))
    group = CommandGroup(name="all", commands=(command,), hardware=HardwareConfig(num_nodes=2, num_gpus=4))
    folder = JobFolder(path=str(where), logs=str(tmp_path / "logs"), code=str(tmp_path / "code"))
    for name, text in render_scripts(grouped("j", group), folder, executor(env_vars=[])).items():
        (where / name).write_text(text)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "OUT": str(tmp_path),
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NODELIST": "n[7-8]",
    }
    subprocess.run(["bash", where / "job.sh"], env=environ, capture_output=True)
    probe, step = sorted(tmp_path.glob("*.argv"))
    assert "--mpi=pmix" in probe.read_text()
    words = step.read_text().split("\n")
    assert words[: words.index("bash")] == [
        "--job-name=main",
        "--overlap",
        "--export=ALL",
        "--nodes=2",
        "--ntasks=4",
        "--ntasks-per-node=2",
        "--mpi=pmix",
        "--kill-on-bad-exit=1",
        "--wait=60",
        "--container-image=/images/vllm.sqsh",
        f"--container-mounts=/tmp:/tmp,{where}:{where},{tmp_path}/logs:{tmp_path}/logs,{tmp_path}/code:/nemo_run/code",
        "--no-container-mount-home",
        "--container-workdir=/ws/a b",
        "--container-env=HF_TOKEN,SLURM_MASTER_NODE",
    ]


def test_time_limits_and_the_warning_before_them() -> None:
    assert {"--time=04:00:00", "--signal=B:USR1@120", "--partition=gpu"} <= set(options(alone(num_gpus=1))[0])
    assert "--signal=B:USR1@12" in options(alone(time_limit="1"))[0]
    assert {"--time=01:00:00", "--partition=big"} <= set(options(alone(partition="big"))[0])


def test_groups_of_a_job_have_one_limit() -> None:
    """Slurm ends all of them with the first, and warns the first group only."""
    first, second = options(TWO_GROUPS)
    assert "--time=01:00:00" in first
    assert "--time=01:00:00" in second


def test_the_package_is_found() -> None:
    text = render_scripts(job("j", client("main", "")), FOLDER, Slurm(SITE))["main.sh"]
    assert "export PYTHONPATH=/jobs/packages/0f3a:/mine\n" in text
    assert "cd -- /jobs/packages/0f3a || exit 1" in text
    work = job("j", Command(name="main", container="vllm", script=Script(argv=("true",))))
    text = render_scripts(work, FOLDER, Slurm(SITE))["main.sh"]
    assert "export PYTHONPATH=/nemo_run/code:/mine\n" in text
    assert "cd -- /nemo_run/code || exit 1" in text


def test_the_default_limit_is_cut_to_what_the_partition_allows() -> None:
    place = executor(default_timeout="100-00:00:00")
    place.limits.update({"big": "2-00:00:00", "": "04:00:00"})
    assert "#SBATCH --time=2-00:00:00" in place.header(alone(partition="big"), FOLDER)
    assert "#SBATCH --time=100-00:00:00" in place.header(alone(partition="other"), FOLDER)
    assert "#SBATCH --time=3-00:00:00" in place.header(alone(partition="big", time_limit="3-00:00:00"), FOLDER)


def test_jobs_without_gpus_have_the_cpu_partition_to_themselves() -> None:
    assert {"--partition=cpu", "--exclusive"} <= set(options(alone())[0])
    assert "--exclusive" not in options(alone(exclusive=False))[0]
    assert "--exclusive" not in options(alone(num_gpus=1), cpu_partition="gpu")[0]
    assert {"--partition=gpu", "--exclusive"} <= set(options(alone(num_gpus=1, exclusive=True))[0])
    assert "--partition=gpu" in options(alone(), cpu_partition=None)[0]


def test_sbatch_kwargs_override_add_flag_and_take_away() -> None:
    kwargs = {"time": "10:00", "constraint": "a&b", "no_kill": True, "mail_user": None, "mail-type": False}
    lines = options(alone(num_gpus=1, sbatch_kwargs=kwargs))[0]
    assert {"--time=10:00", "--constraint='a&b'", "--no-kill"} <= set(lines)
    assert not [line for line in lines if "mail" in line or line == "--time=04:00:00"]
    assert "--requeue" not in options(alone(sbatch_kwargs={"no_requeue": True}))[0]
    for name in ("array", "output", "dependency", "--wrap"):
        with pytest.raises(ConfigError, match="sets itself"):
            options(alone(sbatch_kwargs={name: "x"}))


def test_gpus_are_not_asked_for_where_the_cluster_says_so() -> None:
    assert "--gpus-per-node=8" in options(alone(num_gpus=8))[0]
    assert not [line for line in options(alone(num_gpus=8), disable_gpus_per_node=True)[0] if "gpus" in line]


def test_names_are_short_enough_for_slurm() -> None:
    name = next(line for line in options(alone("n" * 100))[0] if line.startswith("--job-name"))
    assert name == "--job-name=" + f"me:exp-{'n' * 100}"[:100]


def test_folders_that_cannot_be_mounted_are_refused() -> None:
    work = job("j", Command(name="main", container="vllm", script=Script(argv=("true",))))
    for path in ("/a,b", "/a:b"):
        with pytest.raises(ConfigError, match="comma or colon"):
            render_scripts(work, JobFolder(path=path, logs=f"{path}/logs"), executor())
    with pytest.raises(ConfigError, match="backslash"):
        render_scripts(alone(), JobFolder(path="/a", logs="/a\\b"), executor())


@pytest.mark.parametrize("handle", ["", "1;2", "1:", "a", "1 2", "$(id)", "1\n", "--all", "1_", "12345678901"])
def test_only_ids_are_handles(handle: str) -> None:
    with pytest.raises(ConfigError, match="not the id"):
        slurm_ids(handle)


def test_ids_of_all_kinds_are_handles() -> None:
    assert slurm_ids("101:102") == ["101", "102"]
    assert slurm_ids("46+1:13_4") == ["46+1", "13_4"]


def test_squeue_is_read() -> None:
    text = (
        "7|N/A|N/A|N/A|N/A|PENDING|Priority|0|\n"
        "46|46|0|N/A|N/A|RUNNING|None|0|\n47|46|1|N/A|N/A|RUNNING|None|0|\n"
        "14|N/A|N/A|13|1|COMPLETED|None|0|\n15|N/A|N/A|13|2|FAILED|NonZeroExitCode|0|\n"
        "20|N/A|N/A|N/A|N/A|PENDING|BeginTime|1|\n21|N/A|N/A|N/A|N/A|NODE_FAIL|None|0|\n"
        "22|N/A|N/A|N/A|N/A|CANCELLED|DependencyNeverSatisfied|0|\nslurm_load_jobs error: what?\n"
    )
    words = {one: record.word() for one, record in from_squeue(text).items()}
    assert words["7"] == "pending (Priority)"
    assert words["46"] == words["46+1"] == words["47"] == "running"
    assert (words["13"], words["13_1"], words["14"]) == ("failed", "completed", "completed")
    assert words["20"] == "requeued (BeginTime)"
    assert words["21"] == "failed (NODE_FAIL)"
    assert words["22"] == "cancelled (DependencyNeverSatisfied)"


def test_sacct_is_read() -> None:
    text = "46+0|CANCELLED by 0\n46+1|CANCELLED by 0\n13_1|COMPLETED\n13_2|TIMEOUT\n5|OUT_OF_MEMORY\n6|PREEMPTED\n8|\n"
    words = {one: record.word() for one, record in from_sacct(text).items()}
    assert words["46"] == "cancelled"
    assert (words["13"], words["13_1"]) == ("timeout", "completed")
    assert words["5"] == "failed (OUT_OF_MEMORY)"
    assert words["6"] == "cancelled"
    assert "8" not in words


def test_a_script_that_a_signal_ended_before_it_could_answer_was_cancelled() -> None:
    """`scancel --signal=TERM` may come before job.sh sets its traps: it leaves no mark, and Slurm calls it failed."""
    queue = (
        "1|N/A|N/A|N/A|N/A|FAILED|JobLaunchFailure|0|15|\n2|N/A|N/A|N/A|N/A|FAILED|NonZeroExitCode|0|36608|\n"
        "3|N/A|N/A|N/A|N/A|FAILED|None|0|9|\n4|N/A|N/A|N/A|N/A|FAILED|None|0|\n"
    )
    words = {one: record.word() for one, record in from_squeue(queue).items()}
    assert words == {"1": "cancelled", "2": "failed", "3": "failed", "4": "failed"}
    words = {one: record.word() for one, record in from_sacct("1|FAILED|0:15\n2|FAILED|15:0\n").items()}
    assert words == {"1": "cancelled", "2": "failed"}
    assert from_squeue(queue)["1"].word("1 failed client 'main' ended") == "failed"


def test_tasks_of_arrays_are_read() -> None:
    """Of an array that nobody has looked into there is one record; `scancel` may leave one for all that waited."""
    queue = "31|N/A|N/A|30|1|RUNNING|None|0|\n30|N/A|N/A|30|2-3,7%4|PENDING|Resources|0|\n"
    words = {one: record.word() for one, record in from_squeue(queue).items()}
    assert words["30_1"] == words["30"] == "running"
    assert {words[f"30_{n}"] for n in (2, 3, 7)} == {"pending (Resources)"}
    assert "30_*" not in words
    assert from_squeue("30|N/A|N/A|30|N/A|CANCELLED|None|0|\n")["30_*"].word() == "cancelled"
    words = {
        one: record.word() for one, record in from_sacct("30_1|COMPLETED\n30_[2,5-6]|CANCELLED by 0\n").items()
    }
    assert (words["30_1"], words["30_2"], words["30_6"], "30_3" in words) == (
        "completed",
        *["cancelled"] * 2,
        False,
    )
    assert from_sacct("30|CANCELLED by 0\n")["30_*"].word() == "cancelled"
    assert "30_*" not in from_sacct("30|FAILED\n")


@pytest.mark.parametrize(
    ("state", "mark", "word"),
    [
        ("FAILED", "75 time the time limit is near", "timeout"),
        ("FAILED", "143 cancelled received SIGTERM", "cancelled"),
        ("FAILED", "1 failed client 'main' ended", "failed"),
        ("FAILED", "", "failed"),
        ("FAILED", "garbage", "failed"),
        ("COMPLETED", "", "completed"),
        ("COMPLETING", "3 failed x", "failed"),
        ("COMPLETING", "", "running"),
        ("TIMEOUT", "", "timeout"),
        ("PREEMPTED", "", "preempted"),
        ("CONFIGURING", "", "running"),
        ("SOMETHING_NEW", "", "failed (SOMETHING_NEW)"),
    ],
)
def test_marks_say_what_slurm_does_not(state: str, mark: str, word: str) -> None:
    assert SlurmRecord(state).word(mark) == word


@pytest.mark.parametrize(
    ("states", "word"),
    [
        (["running", "pending (Dependency)"], "running"),
        (["timeout", "pending (Dependency)"], "pending (Dependency)"),
        (["pending (Priority)", "pending (Dependency)"], "pending (Priority)"),
        (["timeout", "completed", "cancelled (DependencyNeverSatisfied)"], "completed"),
        (["timeout", "timeout"], "timeout"),
        (["failed", "cancelled (DependencyNeverSatisfied)"], "failed"),
        (["unknown", "unknown"], "unknown"),
    ],
)
def test_a_chain_has_one_state(states: list[str], word: str) -> None:
    assert chain_state(states) == word
