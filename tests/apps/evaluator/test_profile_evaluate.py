# SPDX-License-Identifier: Apache-2.0
"""`ns evaluate` and what looks after its invocations, as processes, against a real model server."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.commands.clusters import BENCHMARK, RIGHT, answers
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script

from newskills.cli import main
from newskills_evaluator.compile import compiler

ENV_TOML = """
[here]
executor = "local"
[far]
executor = "slurm"
tunnel = "ssh"
host = "login.example.org"
remote_job_dir = "/shared/me"
"""
LAUNCHER = """#!{python}
import json, os, pathlib, sys, yaml
words = sys.argv[1:]
pathlib.Path({log!r}).open("a").write(json.dumps(words) + "\\n")
if words[0] == "--version":
    print("nemo-evaluator-launcher: {version}")
elif words[0] == "run":
    config = yaml.safe_load(open(words[2]))
    if "--dry-run" in words:
        names = [task["name"] for task in config["evaluation"]["tasks"]]
        print("their dry run of", names)
        sys.exit("tau2_bench_telecom" in names)
    print("saw", str(config["evaluation"].get("env_vars", {{}}).get("MY_TOKEN")).removeprefix("lit:"))
    for at, task in enumerate(config["evaluation"]["tasks"]):
        folder = pathlib.Path("theirs") / f"{{task['name']}}.{{at}}"
        (folder / "logs").mkdir(parents=True)
        (folder / "logs" / "client_stdout.log").write_text("it ran\\n")
        (folder / "logs" / "stage.exit").write_text("2026-01-01T00:00:00Z 0\\n")
        entry = {{"invocation_id": "feed0000feed0000", "job_id": f"feed0000feed0000.{{at}}", "timestamp": 1.0,
                  "executor": "local", "data": {{"output_dir": str(folder.absolute())}}, "config": config}}
        open(os.environ["NEMO_EVALUATOR_EXEC_DB_FILE"], "a").write(json.dumps(entry) + "\\n")
    print("✓ Job submission successful | Invocation ID: feed0000feed0000")
"""
ID = re.compile(r"Evaluation submitted: ([0-9a-f]{16})$", re.MULTILINE)


class Project:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.env = {
            "NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments"),
            "NEMO_EVALUATOR_EXEC_DB_FILE": str(folder / "exec.jsonl"),
            "NEWSKILLS_DATA_DIR": str(folder / "data"),
            "MODEL_KEY": "sk-never-shown-0123",
        }
        (folder / "env.toml").write_text(ENV_TOML)
        (folder / "sums.py").write_text(BENCHMARK)
        self.config(
            target={
                "api_endpoint": {"url": f"{url}/v1/chat/completions", "model_id": "m", "api_key_name": "MODEL_KEY"}
            }
        )

    def config(self, **sections: object) -> None:
        path = self.folder / "mine.yaml"
        before = yaml.safe_load(path.read_text()) if path.exists() else {}
        content = {
            "defaults": [{"execution": "local"}, {"deployment": "none"}, "_self_"],
            "evaluation": {"tasks": [{"name": str(self.folder / "sums.py")}]},
            **before,
            **sections,
        }
        path.write_text(yaml.safe_dump(content))

    def ns(self, line: str, *more: str, **env: str) -> subprocess.CompletedProcess[str]:
        return ns(line, *more, cwd=self.folder, env={**self.env, **env})

    def submitted(self, line: str, **env: str) -> str:
        done = self.ns(line, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        found = ID.search(done.stdout)
        assert found is not None, done.stdout
        return found[1]

    def states(self, what: str) -> dict[str, str]:
        done = self.ns(f"ns status {what} --json")
        assert done.returncode == 0, done.stderr
        return {one["job_id"]: one["status"] for one in json.loads(done.stdout)}

    def until(self, what: str, *wanted: str) -> dict[str, str]:
        deadline = time.monotonic() + 300
        while not set((states := self.states(what)).values()) <= set(wanted):
            assert time.monotonic() < deadline, states
            time.sleep(0.3)
        return states


@pytest.fixture
def server(fake_server: FakeServerFactory) -> FakeServer | FakeServerProcess:
    return fake_server(answers())


@pytest.fixture
def project(tmp_path: Path, server: FakeServer | FakeServerProcess) -> Project:
    return Project(tmp_path, server.url)


@pytest.fixture
def inside(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`ns` without a process of its own, for what starts nothing."""
    for name, value in project.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project.folder)

    def call(line: str, *more: str) -> subprocess.CompletedProcess[str]:
        words = [*shlex.split(line), *more]
        code = main(words[1:])
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return call


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Project, FakeServer, subprocess.CompletedProcess[str]]]:
    """An evaluation that has been run."""
    with FakeServer(answers()) as server:
        project = Project(tmp_path_factory.mktemp("finished"), server.url)
        yield project, server, project.ns("ns evaluate -c mine.yaml")


def test_it_runs_here_and_leaves_what_the_launcher_leaves(
    finished: tuple[Project, FakeServer, subprocess.CompletedProcess[str]],
) -> None:
    project, server, done = finished
    assert done.returncode == 0, done.stdout + done.stderr
    found = ID.search(done.stdout)
    assert found is not None
    assert "Compiled Configuration" in done.stdout
    assert "sk-never" not in done.stdout
    assert "100.00%" in done.stdout
    assert "api_key_name: MODEL_KEY" in done.stdout
    assert {
        record.headers["authorization"] for record in server.records if record.path.endswith("completions")
    } == {"Bearer sk-never-shown-0123"}
    root = next((project.folder / "evaluations").iterdir())
    assert re.fullmatch(rf"\d{{8}}_\d{{6}}-{found[1]}", root.name)
    run = next(root.iterdir())
    assert run.name.endswith(".0")
    assert (run / "run.sh").exists()
    logs = {path.name for path in (run / "logs").iterdir()}
    assert {"stage.pre-start", "stage.running", "stage.exit", "stdout.log", "client_stdout.log"} <= logs
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ 0\n", (run / "logs/stage.exit").read_text())
    results = yaml.safe_load((run / "artifacts/results.yml").read_text())["results"]
    score = results["tasks"]["own-sums"]["metrics"]["pass@1"]["scores"]["symbolic_correct"]
    assert score["value"] == 100.0
    texts = [path for path in project.folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert not [path for path in texts if b"sk-never" in path.read_bytes()]
    jobs = next((project.folder / ".nemotron/jobs").iterdir())
    assert jobs.name.endswith("-evaluate")
    assert "run" in yaml.safe_load((jobs / "job.yaml").read_text())
    assert "run" not in yaml.safe_load((jobs / "eval.yaml").read_text())
    assert stat.S_IMODE((jobs / "eval.yaml").stat().st_mode) == 0o600
    assert project.states(found[1][:6]) == {f"{found[1]}.0": "success"}


def test_ids_work_wherever_jobs_are_looked_after(
    finished: tuple[Project, FakeServer, subprocess.CompletedProcess[str]],
) -> None:
    project, _, done = finished
    found = ID.search(done.stdout)
    assert found is not None
    invocation, short = found[1], found[1][:5]
    assert "success" in project.ns(f"ns status {short}").stdout
    assert "symbolic_correct" in project.ns(f"ns logs {short}.0").stdout
    assert "no job is running or waiting" in project.ns(f"ns cancel {short}").stdout
    info = project.ns(f"ns info {short}").stdout
    assert "own-sums_pass@1_symbolic_correct  100" in info
    assert invocation in project.ns("ns info").stdout
    assert "model_id: m" in project.ns(f"ns info {short} --config").stdout
    exported = project.ns(f"ns export {short} --format json --output_dir ex")
    assert exported.returncode == 0, exported.stderr
    whole = json.loads(next((project.folder / "ex").rglob("processed_results.json")).read_text())
    assert "own-sums_pass@1_symbolic_correct" in json.dumps(whole)
    again = project.ns(f"ns resume {short}")
    assert (again.returncode, "have succeeded" in again.stderr) == (2, True)
    unknown = project.ns("ns status 0123456789abcdef")
    assert (unknown.returncode, "Unknown experiment" in unknown.stderr) == (2, True)


@pytest.mark.nightly
def test_a_task_that_fails_is_told_and_can_be_resumed(
    project: Project, server: FakeServer | FakeServerProcess
) -> None:
    server.script = Script(answer=Answer(kind="table", table=RIGHT), faults=[Fault(kind="status", status=401)])
    failed = project.ns("ns evaluate -c mine.yaml")
    assert failed.returncode != 0
    found = ID.search(failed.stdout)
    assert found is not None
    assert "failed" in failed.stdout.rpartition("folder")[2]
    assert project.states(found[1]) == {f"{found[1]}.0": "failed"}
    server.script = answers()
    missing = project.ns(f"ns resume {found[1]}", MODEL_KEY="")
    assert (missing.returncode, "The first run had MODEL_KEY" in missing.stderr) == (2, True)
    again = project.ns(f"ns resume {found[1]} -f")
    assert again.returncode == 0, again.stdout + again.stderr
    assert project.states(found[1]) == {f"{found[1]}.0": "success"}


def test_a_batch_goes_on_in_the_background_is_cancelled_and_goes_on_again(
    project: Project, server: FakeServer | FakeServerProcess
) -> None:
    server.script = answers(latency=0.5)
    line = "ns evaluate -c mine.yaml --batch here evaluation.nemo_evaluator_config.config.params.parallelism=1"
    started = time.monotonic()
    invocation = project.submitted(line)
    assert time.monotonic() - started < 60
    project.until(invocation, "running")
    deadline = time.monotonic() + 300
    while not server.records:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    dry = project.ns(f"ns cancel {invocation} --dry_run")
    assert "cancels" in dry.stdout
    assert f"cancelled {invocation}.0" in project.ns(f"ns cancel {invocation}").stdout
    project.until(invocation, "killed")
    before = len(server.records)
    server.script = answers()
    done = project.ns(f"ns resume {invocation} -f")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.states(invocation) == {f"{invocation}.0": "success"}
    asked = [
        json.dumps(record.body["messages"]) for record in server.records[before:] if "messages" in record.body
    ]
    assert len(asked) < 10


def test_a_server_is_deployed_for_the_task(project: Project) -> None:
    served = Path(__file__).parents[2] / "commands" / "served.py"
    script = json.dumps({"answer": {"kind": "table", "table": RIGHT}})
    port = 18000 + os.getpid() % 2000
    command = shlex.join([sys.executable, str(served), "--port", str(port), "--script", script])
    project.config(
        defaults=[{"execution": "local"}, {"deployment": "generic"}, "_self_"],
        deployment={"image": None, "command": command, "port": port, "served_model_name": "m"},
        target={},
    )
    done = project.ns("ns evaluate -c mine.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100.00%" in done.stdout


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("ns evaluate -c mine.yaml --run here --batch here", "exclude each other"),
        ("ns evaluate -c nope", "There is no config 'nope'"),
        ("ns evaluate -c ./nope.yaml", "For example: ns evaluate -c"),
        ("ns evaluate --nope", "Unknown option '--nope'"),
        ("ns evaluate -x", "Unknown option '-x'"),
        ("ns evaluate word -c mine.yaml", "unexpected word 'word'"),
        ("ns evaluate -c mine.yaml --run nope", "Unknown profile 'nope'"),
        ("ns evaluate -c mine.yaml -t nope", "Unknown task 'nope'"),
        ("ns evaluate -c mine.yaml execution.type=moon", "execution.type is 'moon'"),
        ("ns evaluate -c mine.yaml execution=slurm/default", "execution.hostname: it has no value yet"),
        (
            "ns evaluate -c mine.yaml 'evaluation.tasks=[{name: tau2_bench_retail}]'",
            "pip install nemo-evaluator-launcher",
        ),
        (
            "ns evaluate -c mine.yaml 'evaluation.tasks=[{name: x.ifeval}]'",
            "newskills has its own benchmark 'ifeval'",
        ),
        ("ns evaluate -c mine.yaml 'evaluation.pre_cmd=rm -r x'", "NEMO_EVALUATOR_TRUST_PRE_CMD"),
        ("ns evaluate -c mine.yaml 'evaluation.env_vars={A: host:NOT_SET_HERE}'", "NOT_SET_HERE"),
        ("ns evaluate -c mine.yaml target.api_endpoint.api_key_name=NOT_SET_HERE", "NOT_SET_HERE"),
        ("ns evaluate -d -c mine.yaml target.api_endpoint.api_key_name=NOT_SET_HERE", "NOT_SET_HERE"),
        ("ns evaluate -c mine.yaml --run far", "profile [far] is a Slurm cluster"),
    ],
)
def test_what_is_wrong_ends_with_1_before_anything_is_done(
    project: Project, inside: Callable[..., subprocess.CompletedProcess[str]], line: str, what: str
) -> None:
    done = inside(line)
    assert (done.returncode, what in done.stderr) == (1, True), done.stderr
    assert not (project.folder / "evaluations").exists()
    assert not (project.folder / "exec.jsonl").exists()
    assert not (project.folder / ".nemotron").exists()


def test_options_may_stand_anywhere(
    project: Project, inside: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    words = "target.api_endpoint.model_id=n -c mine.yaml evaluation.tasks[0].name=mmlu"
    done = inside(f"ns evaluate execution.output_dir=/x -d {words}")
    assert done.returncode == 0, done.stderr
    assert "- name: mmlu" in done.stdout
    explained = inside("ns evaluate -c mine.yaml --explain")
    assert (explained.returncode, "Compiled Configuration" in explained.stdout) == (0, True)
    assert not (project.folder / "evaluations").exists()
    assert "output_dir: /x" in done.stdout
    assert "model_id: n" in done.stdout


def test_a_dry_run_shows_everything_and_does_nothing(
    project: Project, inside: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    project.config(evaluation={"tasks": [{"name": "adlr_arc_challenge_llama_25_shot"}, {"name": "gsm8k"}]})
    before = sorted(project.folder.rglob("*"))
    done = inside(
        "ns evaluate -c mine.yaml --run far --dry-run -t gsm8k",
        "deployment=vllm",
        "deployment.served_model_name=m",
        "deployment.checkpoint_path=/models/m",
        "deployment.env_vars={HF_TOKEN: lit:hf_secret_text, PLAIN: lit:shown}",
        "execution={type: slurm, hostname: '${run.env.host}', output_dir: /o, ntasks_per_node: 1, gres: 'gpu:8', "
        "walltime: '00:30:00', account: a}",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(project.folder.rglob("*")) == before
    out = done.stdout
    assert out.index("Compiled Configuration") < out.index("─ run ") < out.index("─ config ")
    assert "hf_secret_text" not in out
    assert "PLAIN: lit:shown" in out
    assert "hostname: login.example.org" in out
    assert "task 0 gsm8k: ns eval --benchmarks=gsm8k" in out
    assert "arc_challenge" not in out
    assert "#SBATCH --time=00:30:00" in out
    assert "vllm serve" in out
    assert "images: cannot tell which of them are already imported" in out


def test_secrets_that_a_config_resolves_itself_are_shown_nowhere(
    project: Project, inside: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    project.config(target={"api_endpoint": {"url": "http://127.0.0.1:9/${oc.env:MODEL_KEY}/v1", "model_id": "m"}})
    done = inside("ns evaluate -d -c mine.yaml")
    assert done.returncode == 0, done.stderr
    assert "sk-never" not in done.stdout
    assert "http://127.0.0.1:9/********/v1" in done.stdout


def test_the_launcher_gets_what_is_not_ours(project: Project, tmp_path: Path) -> None:
    log = tmp_path / "launcher.log"
    program = tmp_path / "bin/nemo-evaluator-launcher"
    program.parent.mkdir()
    program.write_text(LAUNCHER.format(python=sys.executable, log=str(log), version="0.2.6"))
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    project.config(
        evaluation={
            "tasks": [{"name": "tau2_bench_retail", "pre_cmd": "echo \\${HOME}"}],
            "env_vars": {"A": "HOME", "MY_TOKEN": "lit:hf-text"},
        },
        export={"wandb": {"project": "p"}},
    )
    done = project.ns("ns evaluate -c mine.yaml", PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it ran" in done.stdout
    config = yaml.safe_load(next((project.folder / ".nemotron/jobs").rglob("eval.yaml")).read_text())
    assert config["evaluation"]["tasks"][0]["pre_cmd"] == "echo \\${HOME}"
    assert config["evaluation"]["env_vars"] == {"A": "host:HOME", "MY_TOKEN": "lit:***"}
    assert "saw hf-text" in done.stdout
    assert project.states("feed") == {"feed0000feed0000.0": "success"}
    assert "it ran" in project.ns("ns logs feed").stdout
    killed = project.ns("ns cancel feed", PATH=path)
    assert killed.returncode == 0
    assert json.loads(log.read_text().splitlines()[-1]) == ["kill", "feed0000feed0000.0"]
    assert "nemo-evaluator-launcher status" in project.ns("ns cancel feed").stderr


def test_a_dry_run_says_who_runs_each_task_and_asks_the_launcher(project: Project, tmp_path: Path) -> None:
    program = tmp_path / "bin/nemo-evaluator-launcher"
    program.parent.mkdir()
    program.write_text(LAUNCHER.format(python=sys.executable, log=str(tmp_path / "log"), version="0.2.6"))
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    project.config(evaluation={"tasks": [{"name": "tau2_bench_retail"}, {"name": "gsm8k"}]})
    done = project.ns("ns evaluate -c mine.yaml --dry-run", PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "task 1 gsm8k: NeMo Evaluator" in done.stdout
    assert "nemo-evaluator-launcher would run all tasks, also gsm8k" in done.stdout
    assert "their dry run of ['tau2_bench_retail', 'gsm8k']" in done.stdout
    assert not (project.folder / ".nemotron").exists()
    project.config(evaluation={"tasks": [{"name": "tau2_bench_telecom"}]})
    refused = project.ns("ns evaluate -c mine.yaml --dry-run", PATH=path)
    assert refused.returncode == 1
    assert "its dry run ended with exit code 1" in refused.stderr


def test_an_older_launcher_gets_its_own_dialect(project: Project, tmp_path: Path) -> None:
    program = tmp_path / "bin/nemo-evaluator-launcher"
    program.parent.mkdir()
    program.write_text(LAUNCHER.format(python=sys.executable, log=str(tmp_path / "log"), version="0.1.40"))
    program.chmod(0o755)
    project.config(
        evaluation={"tasks": [{"name": "tau2_bench_retail"}], "env_vars": {"A": "host:HOME", "B": "lit:b"}},
    )
    done = project.ns("ns evaluate -c mine.yaml", PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout + done.stderr
    config = yaml.safe_load(next((project.folder / ".nemotron/jobs").rglob("eval.yaml")).read_text())
    assert config["evaluation"]["env_vars"] == {"A": "HOME"}
    assert config["execution"]["env_vars"] == {"evaluation": {"B": "b"}}


def test_text_of_a_config_cannot_speak_to_the_terminal(
    project: Project, inside: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = inside("ns evaluate -d -c mine.yaml", "execution.note='[bold]\x1b[31mred[/bold]'")
    assert done.returncode == 0, done.stderr
    assert "\x1b[31m" not in done.stdout
    assert "[bold]" in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "ns evaluate -c nemotron-3-nano-nemo-ray --run MY-CLUSTER",
        "ns evaluate -c nemotron-3-nano-nemo-ray --run MY-CLUSTER -t adlr_mmlu",
        "ns evaluate -c nemotron-3-nano-nemo-ray --run MY-CLUSTER deployment.checkpoint_path=/path/to/your/checkpoint",
        "ns evaluate -c config --run MY-CLUSTER -t adlr_mmlu",
        "ns evaluate -c config --run MY-CLUSTER -t adlr_mmlu -t hellaswag",
        "ns evaluate -c config --batch MY-CLUSTER",
        "ns evaluate -c config --run MY-CLUSTER --force-squash",
        "ns evaluate -c my-model --run MY-CLUSTER",
    ],
)
def test_lines_of_the_documents_of_others_do_their_work(
    project: Project, inside: Callable[..., subprocess.CompletedProcess[str]], line: str
) -> None:
    configs = project.folder / "evaluate_configs"
    configs.mkdir()
    library = Path(compiler.__file__).parent / "library"
    for name in ("config", "my-model"):
        shutil.copy(library / "nemotron-3-nano-nemo-ray.yaml", configs / f"{name}.yaml")
    with (project.folder / "env.toml").open("a") as file:
        file.write('[MY-CLUSTER]\nextends = "far"\naccount = "a"\nbatch_partition = "long"\n')
    done = inside(f"{line} --dry-run")
    assert done.returncode == 0, done.stderr
    assert "#SBATCH --account=a" in done.stdout
    assert ("#SBATCH --partition=long" in done.stdout) == ("--batch" in line)
    assert done.stdout.count("\ntask ") == (line.count("-t ") or 5)
    if "checkpoint_path" in line:
        assert "/path/to/your/checkpoint:/checkpoint" in done.stdout


@pytest.mark.nightly
def test_ctrl_c_stops_the_tasks_and_they_can_go_on(
    project: Project, server: FakeServer | FakeServerProcess
) -> None:
    server.script = answers(latency=0.5)
    words = [sys.executable, "-m", "newskills", "evaluate", "-c", "mine.yaml"]
    words += ["evaluation.nemo_evaluator_config.config.params.parallelism=1"]
    process = subprocess.Popen(
        words,
        cwd=project.folder,
        env={**os.environ, **project.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 300
    while len(server.records) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    found = ID.search(out)
    assert found is not None
    assert project.states(found[1]) == {f"{found[1]}.0": "killed"}
    server.script = answers()
    done = project.ns(f"ns resume {found[1]} -f")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.states(found[1]) == {f"{found[1]}.0": "success"}


def test_a_suite_of_the_newer_format_is_shown_or_refused(
    project: Project, server: FakeServer | FakeServerProcess
) -> None:
    service = {
        "type": "api",
        "url": f"{server.url}/v1/chat/completions",
        "protocol": "chat_completions",
        "model": "m",
        "api_key": "${MODEL_KEY}",
    }
    benchmark = {
        "name": "nobody-has-this",
        "max_problems": 1,
        "solver": {"type": "simple", "service": "mine"},
    }
    content = {"services": {"mine": service}, "benchmarks": [benchmark], "output": {"dir": "suites"}}
    (project.folder / "suite.yaml").write_text(yaml.safe_dump(content))
    shown = project.ns("ns evaluate -c ./suite.yaml --dry-run")
    assert shown.returncode == 1
    assert "newskills has no benchmark of this name" in shown.stderr
    benchmark["name"] = "gsm8k"
    (project.folder / "suite.yaml").write_text(yaml.safe_dump(content))
    shown = project.ns("ns evaluate -c ./suite.yaml --dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "note: read as the format of nemo-evaluator 0.3" in shown.stdout
    assert "++max_samples=1" in shown.stdout
    assert "sk-never-shown" not in shown.stdout
