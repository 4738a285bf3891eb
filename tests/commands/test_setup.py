# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.commands.running import ns
from tests.launch.needs import lacking
from tests.launch.slurm_cluster import require_cluster

from newskills.launch.clusters.config import load_cluster


def written(folder: Path) -> Path:
    """The one file of `folder`."""
    (path,) = folder.iterdir()
    return path


def test_an_interview(tmp_path: Path) -> None:
    answers = ["none", "mine", "HF_HOME=/x, WANDB_API_KEY"]
    done = ns("ns setup", cwd=tmp_path, stdin="\n".join(answers) + "\n", env={"WANDB_API_KEY": "w-secret"})
    assert done.returncode == 0, done.stderr
    path = written(tmp_path / "cluster_configs")
    assert path.name == "mine.yaml"
    assert yaml.safe_load(path.read_text()) == {"executor": "none", "env_vars": ["HF_HOME=/x", "WANDB_API_KEY"]}
    assert "[ok] bash" in done.stdout
    assert done.stdout.rstrip().endswith("ns COMMAND --cluster=mine")
    assert "w-secret" not in done.stdout + path.read_text()


def test_answers_that_cannot_be_are_asked_again(tmp_path: Path) -> None:
    answers = [
        "slrum",
        "slurm",
        "a/b",
        "big",
        "login",
        "me",
        "",
        "jobs",
        "/jobs",
        "acc",
        "",
        "",
        "",
        "soon",
        "1:00:00",
    ]
    answers += ["vllm", "vllm=/vllm.sqsh", "data", "/data:/d", "/elsewhere", "/d/hf", "A_TOKEN=x", ""]
    done = ns("ns setup --no_test", cwd=tmp_path, stdin="\n".join(answers) + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    for said in ("did you mean 'slurm'", "not a file name", "absolute path", "not a time limit", "NAME=IMAGE"):
        assert said in done.stdout
    assert "is not below a mount" in done.stdout
    assert "looks like a secret" in done.stdout
    assert yaml.safe_load(written(tmp_path / "cluster_configs").read_text()) == {
        "executor": "slurm",
        "ssh_tunnel": {"host": "login", "user": "me"},
        "job_dir": "/jobs",
        "account": "acc",
        "default_timeout": "1:00:00",
        "containers": {"vllm": "/vllm.sqsh"},
        "mounts": ["/data:/d"],
        "env_vars": ["HF_HOME=/d/hf"],
    }


LINE = (
    "ns setup --non_interactive --no_test --executor=slurm --name=big --config_dir=conf --ssh_host=login "
    "--ssh_port=2222 --job_dir=/lustre/${USER}/jobs --partition=batch --time_limit=10:00:00 "
    "--containers vllm=/v.sqsh --containers sandbox=/s.sqsh --mounts /lustre:/lustre /data:/data:ro "
    "--hf_home=/lustre/hf --env_vars A=1,2 --env_vars USER"
)


def test_every_answer_is_an_option(tmp_path: Path) -> None:
    done = ns(LINE, cwd=tmp_path, stdin="", env={"USER": "me"})
    assert done.returncode == 0, done.stderr
    cluster = load_cluster("big", str(tmp_path / "conf"), {"USER": "me"})
    assert (cluster.executor, cluster.job_dir, cluster.partition) == ("slurm", "/lustre/me/jobs", "batch")
    assert cluster.timeouts == {"batch": "10:00:00"}
    assert cluster.containers == {"vllm": "/v.sqsh", "sandbox": "/s.sqsh"}
    assert cluster.mounts == ["/lustre:/lustre", "/data:/data:ro"]
    assert cluster.env_vars == ["A=1,2", "USER", "HF_HOME=/lustre/hf"]
    assert cluster.ssh_tunnel is not None
    assert (cluster.ssh_tunnel.host, cluster.ssh_tunnel.port) == ("login", 2222)
    assert "--cluster=big --config_dir=conf" in done.stdout
    assert "${USER}" in written(tmp_path / "conf").read_text(), "filled in when it is used, not when it is written"


def test_a_ray_cluster(tmp_path: Path) -> None:
    line = (
        "ns setup --non_interactive --no_test --executor=ray --ray_address=http://head:8265 --job_dir=/shared/jobs"
    )
    done = ns(f"{line} --time_limit=10:00:00 --config_dir=conf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cluster = load_cluster("ray", str(tmp_path / "conf"), {})
    assert (cluster.executor, cluster.ray.address, cluster.job_dir) == ("ray", "http://head:8265", "/shared/jobs")
    assert cluster.default_timeout == "10:00:00"


def test_the_folder_of_the_environment(tmp_path: Path) -> None:
    done = ns(
        "ns setup --non_interactive --executor=none --no_test",
        cwd=tmp_path,
        env={"NEMO_SKILLS_CONFIG_DIR": str(tmp_path / "there")},
    )
    assert done.returncode == 0
    assert written(tmp_path / "there").name == "none.yaml"
    assert "--config_dir" not in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--executor=slurm --job_dir=jobs", "absolute path"),
        ("--executor=none --account=x", "--account cannot be used with executor none"),
        ("--executor=slurm --job_dir=/j --ssh_user=x", "cannot be used with executor slurm without --ssh_host"),
        ("--executor=local --mounts a:b", "absolute path"),
        ("--executor=local --mounts ${NOWHERE}:/b", "NOWHERE is not set"),
        ("--executor=none --name=a/b", "not a file name"),
        ("--executor=none --env_vars HF_TOKEN=hf_1", "looks like a secret"),
        ("--executor=slurm --job_dir=/j --time_limit=never", "not a time limit"),
        ("--executor=none --ray_address=http://x:1", "--ray_address cannot be used with executor none"),
        ("--executor=ray --job_dir=/j --containers vllm=x", "--containers cannot be used with executor ray"),
        ("--executor=docker", "not one of the choices"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path: Path, line: str, said: str) -> None:
    done = ns(f"ns setup --non_interactive --no_test {line}", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "hf_1" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_not_replaced_unasked(tmp_path: Path) -> None:
    folder = tmp_path / "cluster_configs"
    folder.mkdir()
    path = folder / "none.yaml"
    path.write_text("executor: none\naccount: old\n")
    line = "ns setup --executor=none --name=none --env_vars A=1 --no_test"
    for more, stdin in (("--non_interactive", ""), ("", "no\n"), ("", "\n"), ("", "")):
        done = ns(f"{line} {more}", cwd=tmp_path, stdin=stdin)
        assert done.returncode == 2
        assert "was not changed" in done.stderr
        assert "account: old" in path.read_text()
    assert ns(line, cwd=tmp_path, stdin="yes\n").returncode == 0
    assert "old" not in path.read_text()
    assert ns(f"{line} --non_interactive --overwrite", cwd=tmp_path).returncode == 0


def test_the_end_of_the_input_leaves_nothing(tmp_path: Path) -> None:
    done = ns("ns setup", cwd=tmp_path, stdin="slurm\nbig\n")
    assert done.returncode == 2
    assert "nothing was written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "newskills", "setup"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("slurm\nbig\n")
    process.stdin.flush()
    seen = ""
    while "ssh" not in seen:
        seen += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_told_and_the_file_stays(tmp_path: Path) -> None:
    """A path without sbatch, and a mount whose source is not there."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "bash").symlink_to(shutil.which("bash") or "")
    done = ns(
        f"ns setup --non_interactive --executor=slurm --name=big --job_dir={tmp_path}/jobs --mounts {tmp_path}/x:/x "
        "--config_dir=conf",
        cwd=tmp_path,
        env={"PATH": f"{tools}"},
    )
    assert done.returncode == 1
    assert "[wrong] sbatch: not installed" in done.stdout
    assert f"[wrong] mounts: {tmp_path}/x missing" in done.stdout
    assert written(tmp_path / "conf").name == "big.yaml"


def test_a_machine_that_cannot_be_reached(tmp_path: Path) -> None:
    done = ns(
        "ns setup --non_interactive --executor=slurm --name=far --ssh_host=no-such-host.invalid --job_dir=/j",
        cwd=tmp_path,
        env={"NEWSKILLS_SSH_CONFIG": "/dev/null"},
    )
    assert done.returncode == 1
    assert "[wrong] ssh: " in done.stdout
    assert (tmp_path / "cluster_configs/far.yaml").is_file()


def test_a_real_cluster(tmp_path: Path) -> None:
    require_cluster()
    line = f"ns setup --non_interactive --executor=slurm --name=real --job_dir={tmp_path}/jobs --partition"
    done = ns(f"{line}=batch", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "[ok] sbatch: slurm" in done.stdout
    assert "[ok] partitions:" in done.stdout
    assert "[note] job_dir: " in done.stdout
    assert not (tmp_path / "jobs").exists()
    wrong = ns(f"{line}=bach --overwrite", cwd=tmp_path)
    assert wrong.returncode == 1
    assert "[wrong] partitions: bach unknown; the choices are batch" in wrong.stdout


def test_a_real_container_engine(tmp_path: Path) -> None:
    engine = next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if engine is None or subprocess.run([engine, "info"], capture_output=True).returncode != 0:
        lacking("CONTAINERS", "no container engine answers here: install podman")
    done = ns(f"ns setup --non_interactive --executor=local --mounts {tmp_path}:/x", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "[ok] containers:" in done.stdout
    none = ns("ns setup --non_interactive --executor=local --name=n", cwd=tmp_path, env={"PATH": "/nowhere"})
    assert none.returncode == 1
    assert "[wrong] containers:" in none.stdout
