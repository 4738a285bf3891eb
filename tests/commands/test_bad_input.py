# SPDX-License-Identifier: Apache-2.0
"""What can go wrong around a run, as a person meets it: one clear sentence, no traceback, nothing lost."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Latency, Script

ROWS = [{"problem": f"What is {n} + {n}?", "expected_answer": str(2 * n)} for n in range(12)]
TABLE = Answer(kind="table", table={row["problem"]: row["expected_answer"] for row in ROWS})


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


def line(
    server: FakeServer | FakeServerProcess,
    *options: str,
    output: str = "--output_dir=out",
    source: str = "in.jsonl",
) -> str:
    parts = [f"ns generate --server_type=vllm --model=fake --server_address={server.base_url} {output}"]
    return " ".join([*parts, f"--input_file={source} ++prompt_config=generic/math", *options])


def refused(done: CompletedProcess[str], *words: str) -> None:
    """A non-zero exit with these words and without a traceback."""
    assert done.returncode not in (0, None), done.stdout
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_a_missing_input_file(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server()
    refused(ns(line(server, source="none.jsonl"), cwd=here), "There is no file none.jsonl")
    assert server.records == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"problem": "a"}\n["problem"]\n', ("line 2",)),
        ('{"problem": "a"}\n{"problem": "b"', ("line 2", "invalid JSON")),
        ('{"problem": "a"}\n{"question": "b"}\n', ("problem", "question")),
        ("\xff\xfe not text\n", ("line 1",)),
    ],
)
def test_rows_that_do_not_fit(
    here: Path, fake_server: FakeServerFactory, content: str, words: tuple[str, ...]
) -> None:
    server = fake_server()
    (here / "in.jsonl").write_text(content, encoding="latin-1")
    refused(ns(line(server), cwd=here), "in.jsonl", *words)
    assert not (here / "out/output.jsonl").exists()


def test_a_model_that_the_endpoint_does_not_serve(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(models=("other",), strict_model=True))
    refused(ns(line(server), cwd=here), "fake", "other")
    assert not (here / "out/output.jsonl").exists()


def test_a_refused_key_stops_an_evaluation_at_once(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(api_key="right"))
    write(here / "data/gsm8k/test.jsonl", [{"id": n, **row} for n, row in enumerate(ROWS)])
    done = ns(
        f"ns eval --benchmarks=gsm8k:2 --server_type=openai --model=fake --server_address={server.base_url} "
        "--output_dir=out --data_dir=data ++max_concurrent_requests=4",
        cwd=here,
        env={"OPENAI_API_KEY": "wrong-key"},
    )
    refused(done, "OPENAI_API_KEY", "resume with: ns eval")
    assert "wrong-key" not in done.stderr + done.stdout
    assert len(server.records) <= 4
    assert not (here / "out/metrics.json").exists()


def test_prompts_longer_than_the_context_are_refused_without_soft_fail(
    here: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=TABLE, context_tokens=64))
    write(here / "in.jsonl", [*ROWS, {"problem": "word " * 200, "expected_answer": "1"}])
    refused(ns(line(server, "++eval_type=math"), cwd=here), "1 of 13 rows got no answer", "ContextLimitError")
    soft = ns(line(server, "++eval_type=math ++server.enable_soft_fail=true"), cwd=here)
    assert soft.returncode == 0, soft.stderr
    records = rows_of(here / "out/output.jsonl")
    assert [record["outcome"] for record in records] == ["correct"] * 12 + ["unscored"]
    assert records[12]["error"] == "ContextLimitError"
    assert "maximum context length is 64 tokens" in records[12]["detailed_error"]


def test_a_full_disk(here: Path, fake_server: FakeServerFactory) -> None:
    """A limit on the size of files stands for a disk that is full; with room again the run goes on."""
    text = "so " * 500 + r"\boxed{1}"
    server = fake_server(Script(answer=Answer(text=text), latency=Latency(fixed=0.05)))
    words = shlex.split(line(server, "++max_concurrent_requests=2"))[1:]
    limited = shlex.join([sys.executable, "-m", "newskills", *words])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 8; exec {limited}"], cwd=here, capture_output=True, text=True, check=False
    )
    refused(done, "cannot write", "out")
    assert not (here / "out/output.jsonl").exists()
    assert len(server.records) < 2 * len(ROWS)
    asked = len(server.records)
    again = ns(line(server, "++max_concurrent_requests=2"), cwd=here)
    assert again.returncode == 0, again.stderr
    assert len(rows_of(here / "out/output.jsonl")) == len(ROWS)
    assert len(server.records) - asked < len(ROWS)


@pytest.mark.parametrize("command", ["generate", "eval", "prepare_data"])
def test_an_output_folder_that_cannot_be_made(here: Path, fake_server: FakeServerFactory, command: str) -> None:
    server = fake_server(Script(answer=TABLE))
    (here / "file").write_text("")
    write(here / "data/gsm8k/test.jsonl", [{"id": n, **row} for n, row in enumerate(ROWS)])
    (here / "own.py").write_text(
        "from newskills.base.benchmark import Benchmark\n"
        "BENCHMARK = Benchmark(name='own', category='x', title='t', prompt='generic/math', grader='math',\n"
        "    metric='math', generate_rows=lambda split: iter([{'id': 1, 'problem': 'a', 'expected_answer': '1'}]))\n"
    )
    lines = {
        "generate": line(server, output="--output_dir=file/out"),
        "eval": f"ns eval --benchmarks=gsm8k --server_type=vllm --model=fake --server_address={server.base_url} "
        "--output_dir=file/out --data_dir=data",
        "prepare_data": "ns prepare_data ./own.py --data_dir=file/data",
    }
    refused(ns(lines[command], cwd=here), "error: ", "file/")
    assert server.records == []


def test_an_input_that_has_changed_under_a_resume(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=TABLE))
    assert ns(line(server), cwd=here).returncode == 0
    first = (here / "out/output.jsonl").read_bytes()
    asked = len(server.records)
    write(here / "in.jsonl", [{**row, "problem": row["problem"].replace("+", "times")} for row in ROWS])
    refused(ns(line(server), cwd=here), "output.jsonl", "the content of the input file", "--rerun_done")
    assert (here / "out/output.jsonl").read_bytes() == first
    assert len(server.records) == asked
    again = ns(line(server, "--rerun_done"), cwd=here)
    assert again.returncode == 0, again.stderr
    assert "times" in rows_of(here / "out/output.jsonl")[0]["problem"]


def test_two_runs_into_one_folder(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=TABLE, latency=Latency(fixed=5.0)))
    first = started(line(server), here)
    try:
        wait_for(lambda: server.records)
        second = ns(line(server), cwd=here)
        refused(second, f"process {first.pid}")
        assert second.returncode == 2
    finally:
        first.kill()
        first.communicate()


def test_control_c_twice_does_not_wait_and_loses_no_finished_reply(
    here: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(Script(answer=TABLE, latency=Latency(fixed=0.2)))
    words = line(server, "++max_concurrent_requests=3")
    run = started(words, here)
    wait_for(lambda: len(server.records) >= 6)
    server.script = Script(answer=TABLE, latency=Latency(fixed=60.0))
    wait_for(lambda: len(hanging(server, seconds=0.5)) == 3)
    finished = sum(record.ended is not None for record in server.records)
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert run.poll() is None, "the first Ctrl-C waits for what is in flight"
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=120)
    assert time.monotonic() - began < 50
    assert run.returncode == 130
    assert "Traceback" not in said
    assert "Resume with: ns generate" in said
    server.script = Script(answer=TABLE)
    asked = len(server.records)
    again = ns(words, cwd=here)
    assert again.returncode == 0, again.stderr
    assert len(server.records) - asked == len(ROWS) - finished
    assert [row["problem"] for row in rows_of(here / "out/output.jsonl")] == [row["problem"] for row in ROWS]


def test_results_that_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "r/gsm8k").mkdir(parents=True)
    (tmp_path / "r/gsm8k/output.jsonl").write_text(json.dumps({"symbolic_correct": True}) + "\n{broken\n{}\n")
    refused(ns("ns summarize_results r", cwd=tmp_path), "output.jsonl", "line 2")
    (tmp_path / "r/gsm8k/output.jsonl").write_text("")
    refused(ns("ns summarize_results r", cwd=tmp_path), "r")


def hanging(server: FakeServer | FakeServerProcess, seconds: float) -> list[Any]:
    """Requests that have waited so long already."""
    now = time.monotonic()
    return [record for record in server.records if record.ended is None and now - record.started > seconds]


def started(words: str, here: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "newskills", *shlex.split(words)[1:]],
        cwd=here,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
