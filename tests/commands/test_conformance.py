# SPDX-License-Identifier: Apache-2.0
"""Command lines of the product's documents, word by word.

What a test changes of a line is only what cannot be had here: the root of absolute paths (`/workspace` → a folder of
the test), the addresses of services of other people, `<what to fill in>`, and `python …/pipeline/NAME.py` → `ns NAME`.
Engines for GPUs are played by a stand-in that is started by the very argv that would start the engine.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServerProcess, Script

ROWS = [
    {"id": n, "problem": f"What is {n} + {n}?", "expected_answer": str(2 * n), "reference_solution": "It is."}
    for n in range(6)
]
SCRIPT = Script(answer=Answer(kind="table", table={str(r["problem"]): str(r["expected_answer"]) for r in ROWS}))
REPOSITORY = Path(__file__).parents[2]

GENERATE_WITH_A_SERVICE = (
    "ns generate --server_type=openai --model=gpt-4o-mini --output_dir=./output --input_file=./input.jsonl "
    "++prompt_config=generic/math"
)
GENERATE_WITH_A_GPU = (
    "ns generate --cluster=local --server_type=vllm --model=Qwen/Qwen2.5-1.5B-Instruct --server_gpus=1 "
    "--output_dir=/workspace/output --input_file=/workspace/input.jsonl ++prompt_config=generic/math"
)
PREPARE = "ns prepare_data gsm8k math aime24"
EVALUATE = (
    "ns eval --cluster=local --benchmarks=gsm8k:4,math:8 --model=/models/my-model --server_type=vllm "
    "--output_dir=/workspace/results"
)
SUMMARIZE = "ns summarize_results /workspace/results"
EVALUATE_IN_SHORT = "ns eval --benchmarks=gsm8k:4 --model=/models/llama --server_type=vllm"
START = "ns start_server --cluster=local --server_type=vllm --model=meta-llama/Llama-3.1-8B-Instruct --num_gpus=1"

OLD_WITH_A_GPU = (
    "python nemo_skills/pipeline/eval.py --cluster local --model /trt_models/llama3.1-8b-instruct "
    "--server_type trtllm --output_dir /exps/test-eval --benchmarks gsm8k:0 --server_gpus 1 --server_nodes 1 "
    "++prompt_template=llama3-instruct ++split=test ++max_samples=10"
)
OLD_WITH_A_SERVICE = (
    "python nemo_skills/pipeline/eval.py --cluster local --model meta/llama-3.1-8b-instruct --server_type openai "
    "--server_address https://integrate.api.nvidia.com/v1  --benchmarks gsm8k:0 --output_dir /exps/test-eval2 "
    "++split=test ++max_samples=10"
)
OLD_WITH_ANOTHER = (
    "python nemo_skills/pipeline/eval.py --cluster local --model gpt-4o-mini --server_type openai "
    "--server_address https://api.openai.com/v1  --benchmarks gsm8k:0 --output_dir /exps/test-eval3 "
    "++split=test ++max_samples=10"
)
OLDEST = (
    "python pipeline/run_eval.py --model_path <path to .nemo> --server_type nemo --output_dir ./test-results "
    "--benchmarks gsm8k:0 --num_gpus <number of GPUs on your machine/cluster node> --num_jobs 1 "
    "+prompt=openmathinstruct/sft ++prompt.few_shot_examples.num_few_shots=0 ++split=test"
)
OLD_FEW_SHOTS = (
    "+prompt=openmathinstruct/base ++prompt.few_shot_examples.examples_type=gsm8k_text_with_code "
    "++prompt.few_shot_examples.num_few_shots=5"
)
OLD_METRICS = (
    "python pipeline/compute_metrics.py --prediction_jsonl_files ./test-results/gsm8k/output-greedy.jsonl "
    "--benchmark gsm8k"
)
OLD_SUMMARY = "python pipeline/summarize_results.py ./test-results"
OLD_SOLUTIONS = (
    "python nemo_skills/inference/generate_solutions.py output_file=./test-results/gsm8k/output-greedy.jsonl "
    "+prompt=openmathinstruct/sft ++dataset=gsm8k ++split=test ++server.server_type=nemo "
    "++server.host=<IP from the step above> ++sandbox.host=<Sandbox IP from the sandbox launch step>"
)

FILLED = {
    "path to .nemo": "model.nemo",
    "number of GPUs on your machine/cluster node": "1",
    "IP from the step above": "127.0.0.1",
    "Sandbox IP from the sandbox launch step": "127.0.0.2",
}

STAND_IN = """
import runpy, sys
port = sys.argv[sys.argv.index("--port") + 1]
sys.argv = ["tests.server", "--port", port, "--script", SCRIPT]
runpy.run_module("tests.server", run_name="__main__")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with prepared data, and inputs where the documents have them."""
    for name in ("gsm8k", "hendrycks_math"):
        write(tmp_path / f"data/{name}/test.jsonl", ROWS)
    write(tmp_path / "input.jsonl", ROWS)
    write(tmp_path / "workspace/input.jsonl", ROWS)
    return tmp_path


@pytest.fixture
def on_port_5000() -> Iterator[FakeServerProcess]:
    """The address that is meant where a line names none."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 5000))
        except OSError:
            pytest.skip("port 5000 of this machine is taken")
    with FakeServerProcess(SCRIPT, port=5000) as server:
        yield server


@pytest.fixture
def engines(tmp_path: Path) -> dict[str, str]:
    """Environment in which `vllm serve` and `mpirun` start the stand-in."""
    import msgspec

    text = STAND_IN.replace("SCRIPT", repr(msgspec.json.encode(SCRIPT).decode()))
    (tmp_path / "engines").mkdir()
    for name in ("vllm", "mpirun"):
        program = tmp_path / "engines" / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
    return {
        "PYTHONPATH": f"{tmp_path / 'engines'}:{REPOSITORY}",
        "PATH": f"{tmp_path / 'engines'}:{os.environ['PATH']}",
    }


def typed(line: str, here: Path) -> str:
    """`line` with its absolute paths below `here`."""
    for root in ("/workspace", "/exps"):
        line = line.replace(root, f"{here}{root}")
    return line


def words(line: str, here: Path, **env: Any) -> subprocess.CompletedProcess[str]:
    place = {"NEWSKILLS_DATA_DIR": str(here / "data"), "CUDA_VISIBLE_DEVICES": ""}
    return ns(typed(line, here), cwd=here, env={**place, **env})


def after_ns(line: str, command: str) -> str:
    """The arguments of an old script, after the command that has taken its place."""
    _, _, arguments = line.partition(".py ")
    return f"ns {command} {arguments}"


def filled(line: str) -> str:
    """`<what to fill in>` filled in."""
    for gap, value in FILLED.items():
        line = line.replace(f"<{gap}>", value)
    assert "<" not in line
    return line


def scores(path: Path) -> dict[str, float]:
    return {name: modes["pass@1"]["symbolic_correct"] for name, modes in json.loads(path.read_text()).items()}


def test_generate_with_a_service(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(SCRIPT)
    done = words(GENERATE_WITH_A_SERVICE, here, OPENAI_API_KEY="sk-1", NEMO_SKILLS_OPENAI_BASE_URL=server.base_url)
    assert done.returncode == 0, done.stderr
    assert [row["problem"] for row in rows_of(here / "output/output.jsonl")] == [row["problem"] for row in ROWS]


def test_generate_hosts_the_model(here: Path, engines: dict[str, str]) -> None:
    done = words(GENERATE_WITH_A_GPU, here, **engines)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(here / "workspace/output/output.jsonl")) == len(ROWS)
    assert (here / "workspace/output/generation-logs/server.log").exists()


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is here")
def test_generate_without_the_engine_says_what_is_missing(here: Path) -> None:
    done = words(GENERATE_WITH_A_GPU, here)
    assert done.returncode == 1
    assert "cannot start vllm: No such file or directory" in done.stderr
    assert "generation-logs/server.log" in done.stderr


@pytest.mark.mirror
def test_prepare_data(tmp_path: Path, mirror: Path) -> None:
    place = {"NEWSKILLS_MIRROR": str(mirror), "NEWSKILLS_DATA_DIR": str(tmp_path / "data")}
    done = ns(PREPARE, cwd=tmp_path, env=place)
    assert done.returncode == 0, done.stderr
    counts = {name: len(rows_of(tmp_path / f"data/{name}/test.jsonl")) for name in ("gsm8k", "aime24")}
    assert counts == {"gsm8k": 1319, "aime24": 30}
    assert len(rows_of(tmp_path / "data/hendrycks_math/test.jsonl")) == 5000


def test_eval_then_summarize_results(here: Path, on_port_5000: FakeServerProcess) -> None:
    done = words(EVALUATE, here)
    assert done.returncode == 0, done.stderr
    assert len(on_port_5000.records) == len(ROWS) * (4 + 8)
    assert {record.body["model"] for record in on_port_5000.records} == {"/models/my-model"}
    results = here / "workspace/results"
    assert len(list((results / "eval-results/math").glob("output-rs?.jsonl"))) == 8
    again = words(SUMMARIZE, here)
    assert again.returncode == 0, again.stderr
    metrics = json.loads((results / "metrics.json").read_text())
    assert metrics["gsm8k"]["majority@4"]["symbolic_correct"] == 100.0
    assert metrics["math"]["pass@1[avg-of-8]"]["symbolic_correct"] == 100.0


def test_eval_without_an_output_folder(here: Path, on_port_5000: FakeServerProcess) -> None:
    done = words(EVALUATE_IN_SHORT, here)
    assert done.returncode == 0, done.stderr
    assert "no --output_dir: writing to results/eval" in done.stderr
    assert "http://127.0.0.1:5000/v1" in done.stderr
    assert (here / "results/eval/eval-results/gsm8k/metrics.json").exists()


def test_start_server(here: Path, engines: dict[str, str]) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "newskills", *shlex.split(START)[1:]],
        cwd=here,
        env={**os.environ, **engines},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.stdout is not None
    said = ""
    for line in run.stdout:
        said += line
        if "/v1" in line:
            break
    run.send_signal(signal.SIGINT)
    rest, _ = run.communicate(timeout=300)
    assert "http://127.0.0.1:" in said, said + rest
    assert "Traceback" not in said + rest
    assert run.returncode in (0, 130)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "ns eval --cluster=local --benchmarks=mmmu-pro:4 --model=/models/my-vlm --server_type=vllm "
            "--output_dir=/workspace/results",
            "Where is /models/my-vlm served?",
        ),
        ("ns generate ++prompt_config=math ++temperature=0.7", "No server type is given. Give --server_type."),
        ("ns eval --benchmarks=gsm8k:4 --model=/models/llama", "No server type is given. Give --server_type."),
        ("ns generate --num_chunks=100 --num_random_seeds=10 --output_dir=/results", "Give --server_type."),
        (filled(after_ns(OLDEST, "eval")), "'nemo' no longer exists. newskills cannot serve or convert"),
        (
            filled(after_ns(OLD_SOLUTIONS, "generate")),
            "'nemo' no longer exists. newskills cannot serve or convert",
        ),
    ],
)
def test_what_cannot_be_done_is_one_clear_sentence(here: Path, line: str, sentence: str) -> None:
    done = words(line, here)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (here / "workspace/results").exists()


@pytest.mark.parametrize("command", ["generate", "eval", "summarize_results", "prepare_data", "start_server"])
def test_command_help(tmp_path: Path, command: str) -> None:
    line = "ns <command> --help".replace("<command>", command)
    done = ns(line, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: ns {command}")


def test_the_short_names_of_the_documents(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(SCRIPT)
    line = "ns generate ++prompt_config=math ++temperature=0.7"
    done = words(
        f"{line} --server_type=vllm --model=m --server_address={server.url} --input_file=input.jsonl", here
    )
    assert done.returncode == 0, done.stderr
    assert {record.body["temperature"] for record in server.records} == {0.7}
    assert "boxed" in server.records[0].prompt


def test_old_eval_hosts_the_model(here: Path, engines: dict[str, str]) -> None:
    done = words(after_ns(OLD_WITH_A_GPU, "eval"), here, **engines)
    assert done.returncode == 0, done.stderr
    assert "++prompt_template=llama3-instruct is ignored" in done.stderr
    assert scores(here / "exps/test-eval/metrics.json") == {"gsm8k": 100.0}


@pytest.mark.parametrize("line", [OLD_WITH_A_SERVICE, OLD_WITH_ANOTHER])
def test_old_eval_with_a_service(here: Path, fake_server: FakeServerFactory, line: str) -> None:
    server = fake_server(SCRIPT)
    for address in ("https://integrate.api.nvidia.com/v1", "https://api.openai.com/v1"):
        line = line.replace(address, server.base_url)
    done = words(after_ns(line, "eval"), here, OPENAI_API_KEY="sk-1", NVIDIA_API_KEY="nv-1")
    assert done.returncode == 0, done.stderr
    (metrics,) = (here / "exps").glob("*/metrics.json")
    assert scores(metrics) == {"gsm8k": 100.0}


def test_the_oldest_lines_with_what_still_exists(here: Path, fake_server: FakeServerFactory) -> None:
    """Their server type is gone; every other word of them counts."""
    server = fake_server(SCRIPT)
    oldest = filled(after_ns(OLDEST, "eval")).replace("--server_type nemo", "--server_type vllm")
    oldest = oldest.replace("--num_gpus 1 ", "")
    done = words(f"{oldest} --server_address={server.url}", here)
    assert done.returncode == 0, done.stderr
    assert scores(here / "test-results/metrics.json") == {"gsm8k": 100.0}
    before = len(server.records)
    done = words(
        f"{oldest} {OLD_FEW_SHOTS} ++inference.tokens_to_generate=99 --output_dir=o --server_address={server.url}",
        here,
    )
    assert done.returncode == 0, done.stderr
    assert server.records[before].prompt.count("My solution:") == 6
    gone = words(f"{oldest} +prompt=openmathinstruct/bass --output_dir=p --server_address={server.url}", here)
    assert gone.returncode == 2
    assert "Unknown prompt 'openmathinstruct/bass'; did you mean 'openmathinstruct/base'" in gone.stderr


def test_old_solutions_metrics_and_summary(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(SCRIPT)
    line = filled(after_ns(OLD_SOLUTIONS, "generate")).replace("server_type=nemo", "server_type=vllm")
    done = words(f"{line} ++server.port={server.port} ++server.model=m ++eval_type=math", here)
    assert done.returncode == 0, done.stderr
    assert "++sandbox.host=127.0.0.2 has no effect" in done.stderr
    single = words(after_ns(OLD_METRICS, "compute_metrics"), here)
    assert single.returncode == 0, single.stderr
    assert "100.00%" in single.stdout
    summary = words(after_ns(OLD_SUMMARY, "summarize_results"), here)
    assert summary.returncode == 0, summary.stderr
    assert scores(here / "test-results/metrics.json") == {"gsm8k": 100.0}


TRAINING_LINES = {
    "sft": "ns sft_nemo_rl --cluster=slurm --expname=my-sft-run --model=/models/base-model "
    "--training_data=/data/train.jsonl",
    "grpo": "ns grpo_nemo_rl --cluster=slurm --expname=my-grpo-run --model=/models/sft-model "
    "--training_data=/data/train.jsonl",
}
TRAINING_ROWS = {
    "sft": {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]},
    "grpo": {"problem": "1 + 1?", "expected_answer": "2"},
}
CLUSTER = """
executor: slurm
job_dir: {here}/work/jobs
mounts: ["{here}/data:/data", "{here}/models:/models", "{here}/work:/work"]
containers: {{nemo-rl: /images/nemo-rl.sqsh, nemo-skills: /images/nemo-skills.sqsh}}
skip_hf_home_check: true
"""


@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_trainings_without_backend_gpus_and_folder(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "data/train.jsonl", [TRAINING_ROWS[kind]])
    (tmp_path / "cluster_configs").mkdir()
    (tmp_path / "cluster_configs/slurm.yaml").write_text(CLUSTER.format(here=tmp_path))
    done = ns(TRAINING_LINES[kind], "--dry_run", "--show_scripts", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for chosen in (
        "no --backend: fsdp",
        "no --num_gpus:",
        f"no --output_dir: writing to /work/jobs/results/my-{kind}-run",
    ):
        assert chosen in done.stderr
    assert f"my-{kind}-run on slurm (executor slurm): 2 jobs" in done.stdout
    assert f"checkpoint_dir: /work/jobs/results/my-{kind}-run/checkpoints" in done.stdout
    assert "data_path: /data/train.jsonl" in done.stdout
    assert not (tmp_path / "work").exists()
