# SPDX-License-Identifier: Apache-2.0
"""Paths below /nemo_run/code: the packaged commit, on each executor, and checked before anything is submitted."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.commands.clusters import BENCHMARK, SUMS, own_address
from tests.commands.running import ns, rows_of
from tests.launch.containers import IMAGE, podman
from tests.launch.repositories import commit, repository
from tests.launch.slurm_cluster import require_cluster, until
from tests.server import Answer, FakeServerProcess, Script

from newskills import Command, CommandGroup, GenerationClientScript, Pipeline
from newskills.base.errors import ConfigError
from newskills.launch.experiments import ExperimentRecords, has_ended
from newskills.launch.submit import executor_of

__all__ = ["podman"]

PROMPT = "user: 'Committed prompt: {problem}'\n"
TASK = """
from newskills.solve.chat import ask

class Shouts:
    def __init__(self, parts): self.chat = parts.chat
    def request(self, sample): return self.chat.request(sample)
    async def solve(self, sample, request, kit):
        reply = await ask(kit.models["main"], request)
        return await self.chat.attempt(sample, request, reply, self.chat.text(reply).upper())

SOLVER = Shouts
"""
FILES = {
    "inputs/sums.jsonl": "".join(json.dumps(row) + "\n" for row in SUMS),
    "prompts/sum.yaml": PROMPT,
    "tasks/shouts.py": TASK,
}
LINE = (
    "ns generate --input_file=/nemo_run/code/inputs/sums.jsonl --server_type=vllm --model=fake "
    "--generation_module=/nemo_run/code/tasks/shouts.py ++prompt_config=/nemo_run/code/prompts/sum.yaml"
)
PACKAGES = f"{sysconfig.get_path('purelib')}:/packages:ro"


class Checkout:
    """A git repository, and beside it what clusters need."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, repository(folder / "repository", FILES)
        self.env = {"NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments")}

    def config(self, text: str) -> str:
        path = self.folder / "there.yaml"
        path.write_text(f"{text}\njob_dir: {self.folder}/jobs\nskip_hf_home_check: true\n")
        return f"--cluster={path}"

    def ns(self, line: str, below: str = "") -> subprocess.CompletedProcess[str]:
        return ns(line, cwd=self.root / below, env=self.env)

    def ended(self, name: str) -> None:
        experiment = ExperimentRecords(self.env).all_of(name)[0]
        executor = executor_of(experiment, {**os.environ, **self.env})
        until(lambda: all(map(has_ended, executor.state(experiment.handles).values())), "the end")
        logs = "".join(path.read_text() for job in experiment.jobs for path in Path(job.logs).glob("*.log"))
        assert set(executor.state(experiment.handles).values()) == {"completed"}, logs


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def server() -> Iterator[FakeServerProcess]:
    """On an address that nodes of a cluster reach, where there is one."""
    host = own_address() if os.environ.get("SLURM_CONF") else "127.0.0.1"
    with FakeServerProcess(Script(answer=Answer(text="an answer")), host=host) as started:
        yield started


def all_was_committed(checkout: Checkout, server: FakeServerProcess, out: Path) -> None:
    """The rows, the prompt and the solver were those of the commit."""
    rows = rows_of(out / "output.jsonl")
    assert [row["id"] for row in rows] == [row["id"] for row in SUMS]
    assert {row["generation"] for row in rows} == {"AN ANSWER"}
    asked = [record.body["messages"][-1]["content"] for record in server.records if record.body]
    assert len(asked) == len(SUMS)
    assert all(text.startswith("Committed prompt: Add") for text in asked)


@pytest.mark.parametrize("cluster", ["", "--cluster=none", "--cluster=local"])
def test_this_process_reads_the_repository(checkout: Checkout, server: FakeServerProcess, cluster: str) -> None:
    done = checkout.ns(
        f"{LINE} {cluster} --server_address={server.url} --output_dir={checkout.folder}/out", "inputs"
    )
    assert done.returncode == 0, done.stderr
    all_was_committed(checkout, server, checkout.folder / "out")


def test_jobs_of_this_machine_read_the_repository(checkout: Checkout, server: FakeServerProcess) -> None:
    line = f"{LINE} --num_jobs=-1 --server_address={server.url} --output_dir={checkout.folder}/out"
    done = checkout.ns(f"{line} {checkout.config('executor: none')}", "tasks")
    assert done.returncode == 0, done.stderr
    all_was_committed(checkout, server, checkout.folder / "out")


@pytest.mark.nightly
def test_containers_read_the_package(checkout: Checkout, server: FakeServerProcess, podman: None) -> None:
    cluster = checkout.config(
        f"executor: local\nengine: podman\ncontainers: {{nemo-skills: {IMAGE}}}\nenv_vars: ['PYTHONPATH=/packages']\n"
        f"mounts: ['{checkout.folder}:/work', '{PACKAGES}']"
    )
    line = f"{LINE} {cluster} --server_address={server.url} --output_dir=/work/out"
    done = checkout.ns(line, "inputs")
    assert done.returncode == 0, done.stderr
    all_was_committed(checkout, server, checkout.folder / "out")


@pytest.mark.nightly
def test_processes_of_a_slurm_cluster_read_the_package(checkout: Checkout, server: FakeServerProcess) -> None:
    require_cluster()
    cluster = checkout.config("executor: slurm\ndefault_timeout: 00:10:00")
    line = f"{LINE} {cluster} --server_address={server.url} --output_dir={checkout.folder}/out --expname=real"
    shown = checkout.ns(f"{line} --dry_run")
    assert shown.returncode == 0, shown.stderr
    assert not (checkout.folder / "jobs").exists()
    done = checkout.ns(line)
    assert done.returncode == 0, done.stderr
    (checkout.root / "inputs/sums.jsonl").write_text("changed since\n")
    checkout.ended("real")
    all_was_committed(checkout, server, checkout.folder / "out")


@pytest.mark.nightly
def test_a_run_goes_on_after_another_commit(checkout: Checkout, server: FakeServerProcess) -> None:
    require_cluster()
    cluster = checkout.config("executor: slurm\ndefault_timeout: 00:10:00")
    line = f"{LINE} {cluster} --server_address={server.url} --output_dir={checkout.folder}/out --expname=real"
    assert checkout.ns(line).returncode == 0
    checkout.ended("real")
    commit(checkout.root, {"other.txt": "more\n"})
    (checkout.folder / "out/output.jsonl.done").unlink()
    assert checkout.ns(line).returncode == 0
    checkout.ended("real")
    all_was_committed(checkout, server, checkout.folder / "out")


def test_a_rehearsal_reads_the_repository(checkout: Checkout, server: FakeServerProcess) -> None:
    require_cluster()
    cluster = checkout.config("executor: slurm\ndefault_timeout: 00:10:00")
    rehearsed = LINE.replace("ns generate", "ns rehearse generate")
    done = checkout.ns(f"{rehearsed} {cluster} --server_address={server.url} --output_dir={checkout.folder}/out")
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [record.body["messages"][-1]["content"] for record in server.records if record.body]
    assert asked
    assert all(text.startswith("Committed prompt: Add") for text in asked)
    assert not (checkout.folder / "out").exists()


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--input_file=/nemo_run/code/inputs/smus.jsonl", "did you mean 'inputs/sums.jsonl'"),
        ("--input_file=/nemo_run/code/inputs/new.jsonl", "Commit it: git add -f inputs/new.jsonl"),
        ("--generation_module=/nemo_run/code/tasks/shout.py", "did you mean 'tasks/shouts.py'"),
        ("++prompt_config=/nemo_run/code/prompts/none.yaml", "did you mean"),
        ("--output_dir=/nemo_run/code/out", "jobs cannot write there"),
    ],
)
@pytest.mark.parametrize("kind", ["slurm", "local"])
def test_what_the_commit_lacks_is_said_before_anything_is_submitted(
    checkout: Checkout, kind: str, option: str, sentence: str
) -> None:
    (checkout.root / ".git/info/exclude").write_text("new.jsonl\n")
    (checkout.root / "inputs/new.jsonl").write_text(FILES["inputs/sums.jsonl"])
    images = "containers: {nemo-skills: localhost/none:1}" if kind == "local" else "default_timeout: 00:10:00"
    cluster = checkout.config(f"executor: {kind}\n{images}\nmounts: ['{checkout.folder}:{checkout.folder}']")
    out = "" if "output_dir" in option else f"--output_dir={checkout.folder}/out"
    done = checkout.ns(f"{LINE} {cluster} --server_address=http://n1:1 {out} {option} --dry_run")
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr
    assert not (checkout.folder / "jobs").exists()


def test_what_has_changed_since_the_commit_is_not_what_is_shown(
    checkout: Checkout, server: FakeServerProcess
) -> None:
    """With --allow_uncommitted jobs get the commit, so the changed file's own prompt is not checked."""
    cluster = checkout.config("executor: slurm\ndefault_timeout: 00:10:00")
    (checkout.root / "prompts/sum.yaml").write_text("user: '{gone}'\n")
    line = f"{LINE} {cluster} --server_address={server.url} --output_dir={checkout.folder}/out --dry_run"
    refused = checkout.ns(line)
    assert "is not committed: prompts/sum.yaml" in refused.stderr
    done = checkout.ns(f"{line} --allow_uncommitted")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("below", ["", "inputs"])
def test_commands_find_the_code_without_containers(checkout: Checkout, below: str) -> None:
    """Wherever the path stands in a text of the user's, and whatever the folder is called."""
    here = checkout.config("executor: none")
    words = f"ns run_cmd {here} --allow_uncommitted --expname=look"
    text = (
        "cd / && cat /nemo_run/code/prompts/sum.yaml > {0}/seen; echo x/nemo_run/code /nemo_run/code2 >> {0}/seen"
    )
    done = checkout.ns(f"{words} --command='{text.format(checkout.folder)}'", below)
    assert done.returncode == 0, done.stderr
    assert (checkout.folder / "seen").read_text() == f"{PROMPT}x/nemo_run/code /nemo_run/code2\n"
    done = checkout.ns(
        f"{words} -- sh -c 'wc -l < /nemo_run/code/inputs/sums.jsonl > {checkout.folder}/seen'", below
    )
    assert done.returncode == 0, done.stderr
    assert (checkout.folder / "seen").read_text().strip() == "10"
    slurm = checkout.config("executor: slurm\ndefault_timeout: 00:10:00")
    shown = checkout.ns(
        f"ns run_cmd {slurm} --dry_run --show_scripts --installation_command='pip install /nemo_run/code/tasks' "
        "--command='cat /nemo_run/code/inputs/sums.jsonl'",
        below,
    )
    assert shown.returncode == 0, shown.stderr
    place = re.escape(f"{checkout.folder}/jobs/packages/") + r"\w+"
    assert re.search(rf"^ +'cat {place}/inputs/sums.jsonl'$", shown.stdout, re.MULTILINE)
    assert re.search(rf"^pip install {place}/tasks$", shown.stdout, re.MULTILINE)
    boxed = checkout.config("executor: slurm\ndefault_timeout: 00:10:00\ncontainers: {nemo-skills: /i.sqsh}")
    shown = checkout.ns(f"ns run_cmd {boxed} --dry_run --show_scripts --command='cat /nemo_run/code/a'", below)
    assert "cat /nemo_run/code/a" in shown.stdout


@pytest.mark.parametrize("below", ["", "inputs"])
def test_shell_texts_and_paths_in_rows_find_the_code_here(
    checkout: Checkout, server: FakeServerProcess, below: str
) -> None:
    image = io.BytesIO()
    Image.new("RGB", (4, 4)).save(image, "PNG")
    (checkout.root / "inputs/dot.png").write_bytes(image.getvalue())
    (checkout.root / "prompts/seen.yaml").write_text("user: '{problem}'\nimage_field: image\n")
    rows = [{**row, "image": "/nemo_run/code/inputs/dot.png"} for row in SUMS]
    (checkout.root / "inputs/seen.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    commit(checkout.root, {})
    line = (
        f"ns generate --server_type=vllm --model=fake --server_address={server.url} --output_dir={checkout.folder}/out "
        "--input_file=/nemo_run/code/inputs/seen.jsonl ++prompt_config=/nemo_run/code/prompts/seen.yaml "
        f"--preprocess_cmd='cp /nemo_run/code/prompts/sum.yaml {checkout.folder}/before' "
        f"--postprocess_cmd='cp /nemo_run/code/prompts/sum.yaml {checkout.folder}/after'"
    )
    done = checkout.ns(line, below)
    assert done.returncode == 0, done.stderr
    assert (checkout.folder / "before").read_text() == (checkout.folder / "after").read_text() == PROMPT
    parts = server.records[-1].body["messages"][-1]["content"]
    assert parts[0]["image_url"]["url"].startswith("data:image/png")
    there = checkout.config("executor: none")
    done = checkout.ns(f"{line.replace('/out ', '/jobs-out ')} {there} --expname=look", below)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(checkout.folder / "jobs-out/output.jsonl")) == 10


@pytest.mark.parametrize("command", ["sft", "grpo"])
def test_training_data_of_the_package(checkout: Checkout, command: str) -> None:
    row = {"problem": "1 + 1?", "expected_answer": "2"} if command == "grpo" else {"input": "1", "output": "2"}
    commit(checkout.root, {"train.jsonl": json.dumps(row) + "\n"})
    cluster = checkout.config(
        "executor: slurm\ncontainers: {nemo-rl: /i/rl.sqsh, nemo-skills: /i/ns.sqsh}\n"
        f"mounts: ['{checkout.folder}:/work', '{checkout.folder}:/models']"
    )
    line = (
        f"ns nemo_rl {command} {cluster} --model=/models/base --num_gpus=1 --backend=fsdp --disable_wandb "
        "--output_dir=/work/out --dry_run --show_scripts --training_data=/nemo_run/code/"
    )
    done = checkout.ns(f"{line}train.jsonl")
    assert done.returncode == 0, done.stderr
    assert "data_path: /nemo_run/code/train.jsonl" in done.stdout
    gone = checkout.ns(f"{line}trian.jsonl")
    assert gone.returncode == 2
    assert "did you mean 'train.jsonl'" in gone.stderr


def test_a_pipeline_from_python_names_what_the_commit_has(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its dry run refuses what the package lacks."""
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(checkout.folder / "experiments"))
    monkeypatch.chdir(checkout.root)
    there = {
        "executor": "slurm",
        "job_dir": str(checkout.folder / "jobs"),
        "containers": {"nemo-skills": "/i/ns.sqsh"},
        "mounts": [f"{checkout.folder}:/work"],
        "skip_hf_home_check": True,
    }
    for name in ("sums", "smus"):
        script = GenerationClientScript(output_dir="/work/out", input_file=f"/nemo_run/code/inputs/{name}.jsonl")
        job = {"name": "one", "group": CommandGroup([Command(script)])}
        pipeline = Pipeline(name="mine", cluster_config=there, jobs=[job])
        if name == "sums":
            pipeline.run(dry_run=True)
            continue
        with pytest.raises(
            ConfigError, match=r"inputs/smus.jsonl is not in the code .*did you mean 'inputs/sums.jsonl'"
        ):
            pipeline.run(dry_run=True)


def test_a_benchmark_of_the_commit(checkout: Checkout, server: FakeServerProcess) -> None:
    commit(checkout.root, {"benchmarks/own.py": BENCHMARK})
    env = {"NEWSKILLS_DATA_DIR": str(checkout.folder / "data")}
    assert ns("ns prepare_data ./benchmarks/own.py", cwd=checkout.root, env=env).returncode == 0
    cluster = checkout.config("executor: slurm\ndefault_timeout: 00:10:00")
    line = f"--server_type=vllm --model=fake --server_address={server.url} --output_dir={checkout.folder}/out --dry_run"
    for name, code in (("own", 0), ("won", 2)):
        words = f"ns eval --benchmarks=/nemo_run/code/benchmarks/{name}.py:2 {cluster} {line}"
        done = ns(words, cwd=checkout.root, env={**checkout.env, **env})
        assert done.returncode == code, done.stderr
        assert "own-sums-rs1" in done.stdout if code == 0 else "did you mean 'benchmarks/own.py'" in done.stderr
