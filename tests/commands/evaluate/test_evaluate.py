# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Latency, Script

SUMS = [{"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)} for n in range(10)]
RIGHT = {row["problem"]: row["expected_answer"] for row in SUMS}
BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(10):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", samples=0,
)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a benchmark of its own, prepared."""
    (tmp_path / "sums.py").write_text(BENCHMARK)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def line(server: FakeServer | FakeServerProcess, *options: str) -> str:
    return " ".join(
        [
            f"ns eval --server_type=vllm --model=fake --server_address={server.url} --output_dir=out",
            "--data_dir data",
            *options,
        ]
    )


def test_files_and_table_of_an_evaluation(here: Path, fake_server: FakeServerFactory) -> None:
    wrong = {**RIGHT, "Add 3 and 3.": "7", "Add 4 and 4.": "7"}
    server = fake_server(Script(answer=Answer(kind="table", table=wrong)))
    done = ns(line(server, "--benchmarks ./sums.py:3"), cwd=here)
    assert done.returncode == 0, done.stderr
    folder = here / "out/eval-results/own-sums"
    metrics = json.loads((folder / "metrics.json").read_text())["own-sums"]
    assert {"pass@1", "pass@2", "pass@3", "pass@1[avg-of-2]", "pass@1[avg-of-3]", "majority@3"} <= set(metrics)
    assert metrics["pass@1[avg-of-3]"]["symbolic_correct"] == pytest.approx(80.0)
    assert metrics["pass@3"]["num_entries"] == 10
    assert "pass@1[avg-of-3] | 10 " in done.stdout
    assert "80.00% ± 0.00%" in done.stdout
    assert "95%" in done.stdout
    for seed in range(3):
        assert (folder / f"output-rs{seed}.jsonl.done").exists()
    record = rows_of(folder / "output-rs0.jsonl")[3]
    assert (record["id"], record["predicted_answer"], record["outcome"]) == ("s3", "7", "wrong")
    again = ns("ns summarize_results out", cwd=here)
    assert again.returncode == 0
    assert "80.00% ± 0.00%" in again.stdout
    single = ns(
        "ns compute_metrics --prediction_jsonl_files out/eval-results/own-sums/output-rs0.jsonl --benchmark own-sums",
        cwd=here,
    )
    assert single.returncode == 0, single.stderr
    assert "80.00%" in single.stdout


def test_a_lost_sample_is_not_a_wrong_one_and_there_is_no_headline(
    here: Path, fake_server: FakeServerFactory
) -> None:
    answer = Answer(kind="table", table=RIGHT)
    server = fake_server(Script(answer=answer, faults=(Fault(kind="status", marker="Add 5", status=500),)))
    soft = "--benchmarks ./sums.py ++server.max_retries=0 ++server.enable_soft_fail=true"
    done = ns(line(server, soft), cwd=here)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "10.0 % of the samples are unscored" in done.stderr
    assert "lost: provider" in done.stdout
    metrics = json.loads((here / "out/metrics.json").read_text())["own-sums"]["pass@1"]
    assert set(metrics) == {"num_entries", "avg_tokens", "gen_seconds", "unscored", "prompt"}
    assert metrics["unscored"] == 10.0
    accepted = ns("ns summarize_results out --accept_lost 20", cwd=here)
    assert accepted.returncode == 0
    assert "100.00%" in accepted.stdout


def test_kill_and_resume_costs_nothing_twice(here: Path, fake_server: FakeServerFactory) -> None:
    script = Script(answer=Answer(kind="table", table=RIGHT), latency=Latency(fixed=1.0))
    server = fake_server(script)
    words = line(
        server, "--benchmarks ./sums.py:4 ++max_concurrent_requests=8 ++add_generation_stats=false"
    ).split()
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    run = subprocess.Popen(
        [sys.executable, "-m", "newskills", *words[1:]], cwd=here, env=environ, stderr=-3, stdout=-3
    )
    deadline = time.monotonic() + 300
    while len(server.records) < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # half-way between two waves of replies: a reply that has just come may be lost
    run.send_signal(signal.SIGKILL)
    run.wait()
    asked = len(server.records)
    assert 20 <= asked < 40
    done = ns(" ".join(words), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(server.records) <= 40 + 8
    for seed in range(4):
        records = rows_of(here / f"out/eval-results/own-sums/output-rs{seed}.jsonl")
        assert [record["id"] for record in records] == [row["id"] for row in SUMS]


def test_a_changed_prompt_is_refused_under_a_resume(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="table", table=RIGHT)))
    assert ns(line(server, "--benchmarks ./sums.py"), cwd=here).returncode == 0
    before = len(server.records)
    changed = ns(line(server, "--benchmarks ./sums.py ++prompt_suffix=Hurry."), cwd=here)
    assert changed.returncode == 2
    assert "prompt" in changed.stderr
    assert "--rerun_done" in changed.stderr
    assert len(server.records) == before
    assert ns(line(server, "--benchmarks ./sums.py ++prompt_suffix=Hurry. --rerun_done"), cwd=here).returncode == 0


def test_two_runs_into_one_folder_are_refused(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="table", table=RIGHT), latency=Latency(fixed=5.0)))
    words = line(server, "--benchmarks ./sums.py").split()
    first = subprocess.Popen([sys.executable, "-m", "newskills", *words[1:]], cwd=here, stderr=-3, stdout=-3)
    try:
        deadline = time.monotonic() + 300
        while not server.records and time.monotonic() < deadline:
            time.sleep(0.05)
        second = ns(" ".join(words), cwd=here)
        assert second.returncode == 2
        assert f"process {first.pid}" in second.stderr
    finally:
        first.kill()
        first.wait()


def test_control_c_finishes_what_is_in_flight(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="table", table=RIGHT), latency=Latency(fixed=0.5)))
    words = line(server, "--benchmarks ./sums.py ++max_concurrent_requests=2").split()
    run = subprocess.Popen(
        [sys.executable, "-m", "newskills", *words[1:]], cwd=here, stderr=subprocess.PIPE, stdout=-3, text=True
    )
    deadline = time.monotonic() + 300
    while len(server.records) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=300)
    assert run.returncode == 130
    assert "Traceback" not in said
    assert "ns eval --server_type=vllm" in said
    done = ns(" ".join(words), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(server.records) == 10


@pytest.mark.parametrize("option", ["++split=test ++max_samples=10", "--split test ++max_samples=10"])
def test_the_oldest_lines_still_work(here: Path, fake_server: FakeServerFactory, option: str) -> None:
    server = fake_server(Script(answer=Answer(kind="table", table=RIGHT)))
    done = ns(
        "ns eval --cluster local --model gpt-4o-mini --server_type openai "
        f"--server_address {server.base_url}  --benchmarks ./sums.py:0 --output_dir {here}/exps/test-eval3 "
        f"--data_dir data --server_nodes 1 ++prompt_template=llama3-instruct {option}",
        cwd=here,
        env={"OPENAI_API_KEY": "k"},
    )
    assert done.returncode == 0, done.stderr
    assert "++prompt_template=llama3-instruct is ignored" in done.stderr
    assert (here / "exps/test-eval3/eval-results/own-sums/output.jsonl.done").exists()
    old = here / "test-results/own-sums"
    write(old / "output-greedy.jsonl", rows_of(here / "exps/test-eval3/eval-results/own-sums/output.jsonl"))
    assert ns("ns summarize_results ./test-results", cwd=here).returncode == 0
    assert (
        ns(
            "ns compute_metrics --prediction_jsonl_files ./test-results/own-sums/output-greedy.jsonl "
            "--benchmark own-sums --extra_benchmark_map={}".replace(" --extra_benchmark_map={}", ""),
            cwd=here,
        ).returncode
        == 0
    )


@pytest.mark.mirror
def test_the_documents_evaluation_on_real_data(
    tmp_path: Path, mirror: Path, fake_server: FakeServerFactory
) -> None:
    """`--cluster=local`, no address: an endpoint on port 5000 of this machine is used, as documents have it."""
    data = {
        "NEWSKILLS_MIRROR": str(mirror),
        "NEMO_SKILLS_DATA_DIR": str(tmp_path / "data"),
        "NEWSKILLS_DATA_DIR": "",
    }
    prepared = ns("ns prepare_data gsm8k math aime24", cwd=tmp_path, env=data)
    assert prepared.returncode == 0, prepared.stderr
    server = fake_server(Script(answer=Answer(kind="random", modulus=1000)))
    done = ns(
        "ns eval --cluster=local --benchmarks=gsm8k:4,math:8 --model=/models/my-model --server_type=vllm "
        f"--output_dir={tmp_path}/results ++max_samples=20 --server_address={server.base_url}",
        cwd=tmp_path,
        env=data,
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "results/metrics.json").read_text())
    assert metrics["gsm8k"]["pass@4"]["num_entries"] == 20
    assert metrics["math"]["majority@8"]["num_entries"] == 20
    assert len(server.records) == 20 * 12
    assert {record.body["model"] for record in server.records} == {"/models/my-model"}
    assert sorted(p.name for p in Path(tmp_path / "results/eval-results").iterdir()) == ["gsm8k", "math"]
    assert ns(f"ns summarize_results {tmp_path}/results", cwd=tmp_path, env=data).returncode == 0


@pytest.mark.nightly
@pytest.mark.local_model
def test_the_embedded_model_is_evaluated(here: Path, local_model: Path) -> None:
    done = ns(
        "ns eval --benchmarks=./sums.py:2 --server_type=llamacpp --model=smollm2 --output_dir=out --data_dir data "
        "++max_samples=2 ++tokens_to_generate=24",
        cwd=here,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "out/eval-results/own-sums/output-rs1.jsonl")
    assert all(record["generation"] and record["num_generated_tokens"] > 0 for record in records)
    assert "pass@1[avg-of-2]" in done.stdout


@pytest.mark.parametrize("typed", ["GSM8K", "gsm8k", "Gsm8K"])
def test_results_have_one_name_however_the_benchmark_is_typed(
    tmp_path: Path, fake_server: FakeServerFactory, typed: str
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    rows = [{"id": n, "problem": f"What is {n}?", "expected_answer": str(n)} for n in range(3)]
    write(tmp_path / "data/gsm8k/test.jsonl", rows)
    line = f"--server_type=vllm --model=fake --server_address={server.base_url} --data_dir=data --output_dir=out"
    done = ns(f"ns eval --benchmarks={typed} {line}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out/eval-results").iterdir() if path.is_dir()] == ["gsm8k"]
    assert list(json.loads((tmp_path / "out/metrics.json").read_text())) == ["gsm8k"]


@pytest.mark.parametrize("typed", ["Sums", "sums", "SUMS"])
def test_results_of_an_own_benchmark_are_called_like_its_folder(
    tmp_path: Path, fake_server: FakeServerFactory, typed: str
) -> None:
    server = fake_server(Script(answer=Answer(kind="echo")))
    write(tmp_path / "benches/Sums/test.jsonl", [{"problem": "What is 1?", "expected_answer": "1"}])
    (tmp_path / "benches/Sums/__init__.py").write_text(
        'METRICS_TYPE = "math"\nGENERATION_ARGS = "++prompt_config=generic/math ++eval_type=math"\n'
    )
    line = f"--server_type=vllm --model=fake --server_address={server.base_url} --output_dir=out"
    done = ns(
        f"ns eval --benchmarks={typed} {line}",
        cwd=tmp_path,
        env={"NEWSKILLS_EXTRA_DATASETS": str(tmp_path / "benches")},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/eval-results/Sums/output.jsonl").is_file()
