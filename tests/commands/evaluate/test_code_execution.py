# SPDX-License-Identifier: Apache-2.0
"""`ns eval` and `ns generate` with code that is run: a scripted model server, a real sandbox."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.server import FakeServer, Latency, Script

BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(8):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

BENCHMARK = Benchmark(
    name="own-sums", category="math-natural", title="Sums", generate_rows=rows, prompt="openmath/tir",
    grader="math", metric="math", samples=0,
)
"""
CODE = "++code_execution=true ++code_tags=qwen ++sandbox.preload=[]"


def reckon(body: dict[str, Any]) -> str:
    """Writes a program for the sum, and once its output is there, an answer that has it in a box."""
    text = body.get("prompt") or "\n".join(message["content"] for message in body["messages"])
    shown = re.findall(r"```output\n(.*)\n", text)
    if shown:
        return rf"So \boxed{{{shown[-1]}}}."
    one, other = re.findall(r"Add (\d+) and (\d+)\.", text)[-1]
    return f"Let me see.\n```python\nprint({one} + {other})\n```\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a benchmark of its own, prepared."""
    (tmp_path / "sums.py").write_text(BENCHMARK)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.fixture
def model(fake_server: Any) -> FakeServer:
    server: FakeServer = fake_server(Script(), answer=reckon)
    return server


def line(server: FakeServer, *options: str) -> str:
    start = f"ns eval --server_type=vllm --model=fake --server_address={server.url} --output_dir=out"
    return " ".join([start, "--data_dir data --benchmarks ./sums.py", *options])


def records(here: Path) -> list[dict[str, Any]]:
    return rows_of(here / "out/eval-results/own-sums/output.jsonl")


@contextlib.contextmanager
def sandbox_server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`ns sandbox serve` and its port."""
    words = [sys.executable, "-m", "newskills", "sandbox", "serve", "--port", "0", "++sandbox.preload=[]"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while not (found := re.search(r"http://[^\s:]+:(\d+)", said)):
            said = process.stdout.readline()
            assert said, "the sandbox server did not come up"
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("endpoint", ["chat", "text"])
def test_an_evaluation_runs_the_models_code(here: Path, model: FakeServer, endpoint: str) -> None:
    text = "++inference.endpoint_type=text ++inference.tokens_to_generate=200" if endpoint == "text" else ""
    done = ns(line(model, "--with_sandbox", CODE, text, "++total_code_executions_in_prompt=[1,8]"), cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100.00%" in done.stdout
    found = records(here)
    assert [record["outcome"] for record in found] == ["correct"] * 8
    for n, record in enumerate(found):
        assert record["generation"] == (
            f"Let me see.\n```python\nprint({n} + {n})\n```\n```output\n{2 * n}\n```\nSo \\boxed{{{2 * n}}}."
        )
        assert (record["code_rounds_executed"], record["num_code_executions"]) == (1, 1)
        assert (record["num_code_timeouts"], record["stopped_on_repetition"]) == (0, False)
        assert record["code_execution_time"] > 0
        assert record["num_generated_tokens"] > 0
        assert 1 <= record["total_code_executions"] <= 8
    asked = [str(record.body) for record in model.records]
    assert len(asked) == 16
    stated = {match for text in asked for match in re.findall(r"At most (\d+) code blocks", text)}
    assert stated == {str(record["total_code_executions"]) for record in found}


def test_code_needs_tags_and_a_place_to_run(here: Path, model: FakeServer) -> None:
    nowhere = ns(line(model, CODE), cwd=here)
    assert nowhere.returncode == 2
    assert "--with_sandbox" in nowhere.stderr
    assert "++sandbox.host" in nowhere.stderr
    untagged = ns(line(model, "++code_execution=true --with_sandbox"), cwd=here)
    assert untagged.returncode == 2
    assert "code_tags" in untagged.stderr
    assert model.records == []


def test_a_sandbox_that_is_not_there_stops_the_run_before_the_first_request(here: Path, model: FakeServer) -> None:
    done = ns(line(model, CODE, "++sandbox.port=1"), cwd=here)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert model.records == []


def test_a_sandbox_server_that_dies_loses_no_answer_to_wrong(here: Path, fake_server: Any) -> None:
    model = fake_server(Script(latency=Latency(fixed=0.15)), answer=reckon)
    with sandbox_server() as (process, port):
        words = line(model, CODE, f"++sandbox.port={port} ++max_concurrent_requests=1").split()
        run = subprocess.Popen(
            [sys.executable, "-m", "newskills", *words[1:]], cwd=here, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 300
        while len(model.records) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        _, said = run.communicate(timeout=100)
    assert run.returncode == 1, said
    failed = rows_of(next((here / "out/eval-results/own-sums").glob("*failed*")))
    assert {record["outcome_cause"] for record in failed} == {"sandbox"}
    assert {record["outcome"] for record in failed} == {"unscored"}
    asked = len(model.records)
    again = ns(line(model, "--with_sandbox", CODE, "++max_concurrent_requests=1"), cwd=here)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "100.00%" in again.stdout
    assert len(records(here)) == 8
    assert len(model.records) < asked + 16


def test_accepted_losses_are_unscored(here: Path, fake_server: Any) -> None:
    model = fake_server(Script(latency=Latency(fixed=0.15)), answer=reckon)
    with sandbox_server() as (process, port):
        soft = f"++sandbox.port={port} ++max_concurrent_requests=1 ++server.enable_soft_fail=true"
        words = line(model, CODE, soft).split()
        run = subprocess.Popen(
            [sys.executable, "-m", "newskills", *words[1:]],
            cwd=here,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + 300
        while len(model.records) < 9 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        said, _ = run.communicate(timeout=100)
    assert run.returncode == 1, said
    assert "lost: sandbox" in said
    outcomes = [(record["outcome"], record.get("outcome_cause")) for record in records(here)]
    assert set(outcomes) == {("correct", None), ("unscored", "sandbox")}


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["", "++enable_litellm_cache=true"], ids=["records", "replies"])
def test_kill_and_resume_repeat_no_finished_sample(here: Path, fake_server: Any, cache: str) -> None:
    model = fake_server(Script(latency=Latency(fixed=0.3)), answer=reckon)
    words = line(model, "--with_sandbox", CODE, cache, "++max_concurrent_requests=2").split()
    run = subprocess.Popen(
        [sys.executable, "-m", "newskills", *words[1:]], cwd=here, env=dict(os.environ), stderr=-3, stdout=-3
    )
    deadline = time.monotonic() + 300
    while len(model.records) < 9 and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    done = ns(" ".join(words), cwd=here)
    assert done.returncode == 0, done.stderr
    assert [record["id"] for record in records(here)] == [f"s{n}" for n in range(8)]
    assert all(record["outcome"] == "correct" for record in records(here))
    assert len(model.records) <= 16 + 6


def test_a_changed_limit_is_refused_under_a_resume(here: Path, model: FakeServer) -> None:
    assert ns(line(model, "--with_sandbox", CODE), cwd=here).returncode == 0
    other = ns(line(model, "--with_sandbox", CODE, "++server.code_execution.max_code_executions=3"), cwd=here)
    assert other.returncode == 2
    assert "max_code_executions (8 → 3)" in other.stderr


def test_sc_tir_grades_what_was_voted_for(here: Path, model: FakeServer) -> None:
    few = "++solver=sc_tir ++sc_tir.candidates=3 ++prompt_config=generic/math ++sandbox.preload=[]"
    done = ns(line(model, "--with_sandbox", few, "++sc_tir.headers=[]"), cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    found = records(here)
    assert [record["outcome"] for record in found] == ["correct"] * 8
    assert found[3]["votes"] == {"6": 3}
    assert found[3]["predicted_answer"] == "6"
    assert found[3]["why"].endswith("(field)")
    assert [candidate["status"] for candidate in found[3]["candidates"]] == ["answered"] * 3
    assert found[3]["num_code_executions"] == 3


def test_a_dry_run_shows_the_number_and_runs_nothing(tmp_path: Path, model: FakeServer) -> None:
    write(tmp_path / "in.jsonl", [{"problem": "Add 1 and 1."}])
    done = ns(
        f"ns generate --server_type=vllm --model=fake --server_address={model.url} --output_dir=out "
        f"--input_file=in.jsonl --dry_run --with_sandbox ++prompt_config=openmath/tir {CODE} "
        "++total_code_executions_in_prompt=4",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "At most 4 code blocks" in done.stdout
    assert model.records == []


def test_variables_of_the_sandbox(tmp_path: Path, model: FakeServer) -> None:
    write(tmp_path / "in.jsonl", [{"problem": "Add 1 and 1."}])
    start = (
        f"ns generate --server_type=vllm --model=fake --server_address={model.url} --output_dir=out "
        f"--input_file=in.jsonl --explain ++prompt_config=openmath/tir --sandbox_env_overrides"
    )
    done = ns(f"{start} NEMO_SKILLS_SANDBOX_BLOCK_NETWORK=0", cwd=tmp_path)
    assert re.search(r"\+\+sandbox\.network\s+true\s+--sandbox_env_overrides", done.stdout), done.stdout
    unknown = ns(f"{start} FOO=1", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "does not see your environment" in unknown.stderr


@pytest.mark.nightly
@pytest.mark.local_model
def test_a_real_models_code_is_run(tmp_path: Path, local_model: Path) -> None:
    ask = "Write Python code that prints {one} * {other}."
    write(
        tmp_path / "in.jsonl",
        [
            {"problem": ask.format(one=one, other=77), "begin": "```python\n", "expected_answer": str(one * 77)}
            for one in (123, 124)
        ],
    )
    done = ns(
        f"ns generate --server_type=llamacpp --model={local_model} --output_dir=out --input_file=in.jsonl "
        f"--with_sandbox {CODE} ++user_message={{problem}} ++start_assistant_response_key=begin ++eval_type=math "
        "++inference.endpoint_type=text ++inference.tokens_to_generate=200 "
        "++server.code_execution.max_code_executions=2",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for record in rows_of(tmp_path / "out/output.jsonl"):
        assert record["outcome"] != "unscored"
        assert record["num_code_executions"] >= 1
        assert "```output\n" in record["generation"]
        assert 0 < record["num_generated_tokens"] <= 200


def test_a_solver_of_ones_own(tmp_path: Path, model: FakeServer) -> None:
    (tmp_path / "mine.py").write_text(
        "from newskills.solve.chat import MAIN, ask\n"
        "from newskills.solve.dialogue import continued\n"
        "class Twice:\n"
        "    def __init__(self, parts): self.chat = parts.chat\n"
        "    def request(self, sample): return self.chat.request(sample)\n"
        "    async def solve(self, sample, request, kit):\n"
        "        first = await ask(kit.models[MAIN], request)\n"
        "        again = continued(request, self.chat.text(first), '```output\\n9\\n```\\n')\n"
        "        second = await ask(kit.models[MAIN], again)\n"
        "        return await self.chat.attempt(sample, request, second, self.chat.text(second))\n"
    )
    write(tmp_path / "in.jsonl", [{"problem": "Add 1 and 1."}])
    start = (
        f"ns generate --server_type=vllm --model=fake --server_address={model.url} --output_dir=out "
        "--input_file=in.jsonl ++user_message={problem}"
    )
    done = ns(f"{start} ++solver=./mine.py::Twice", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "out/output.jsonl")[0]["generation"] == r"So \boxed{9}."
    wrong = ns(f"{start} ++solver=sc_tor --with_sandbox", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean 'sc_tir'" in wrong.stderr
    unfit = ns(f"{start} ++solver_config.rounds=3", cwd=tmp_path)
    assert unfit.returncode == 2
    assert "Solver 'chat' has no settings" in unfit.stderr
