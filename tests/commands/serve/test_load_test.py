# SPDX-License-Identifier: Apache-2.0
"""`ns load_test` as people use it, against servers with known delays, dead ones and lying ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Latency, Script

import newskills
from newskills.run.load_testing import measuring

TEXT = " ".join(f"word{n}" for n in range(12))
ANSWER = Answer(text=TEXT)


def load_test(folder: Path, url: str, *words: str, code: int = 0) -> dict[str, Any]:
    """The result as --json prints it."""
    line = f"ns load_test --server_type=vllm --server_address={url} --model=fake --output_dir=out --json"
    done = ns(line, *words, cwd=folder)
    assert done.returncode == code, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def requests_in(folder: Path) -> list[dict[str, Any]]:
    return [row for row in rows_of(folder / "out/requests.jsonl") if row["line"] == "request"]


def test_a_sweep_of_concurrencies(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    drip = Fault(kind="drip", seconds=0.005)
    server = fake_server(Script(answer=ANSWER, latency=Latency(fixed=0.05), faults=(drip,)))
    words = ("--concurrency=4,2", "--num_requests=12", "--input_tokens=40", "--output_tokens=16")
    result = load_test(tmp_path, server.url, *words)
    assert [level["name"] for level in result["levels"]] == ["concurrency=2", "concurrency=4"]
    assert [level["max_in_flight"] for level in result["levels"]] == [2, 4]
    for level in result["levels"]:
        assert (level["completed"], level["failed"], level["complete"]) == (12, 0, True)
        assert level["ttft_ms"]["p50"] >= 55  # the reply's head and opening event come before the first token
        assert level["output_tokens"] == 12 * 12
        assert level["output_throughput"] == pytest.approx(12 * 12 / level["seconds"])
    assert server.max_in_flight == 4
    bodies = [record.body for record in server.records]
    assert all(body["stream"] and body["ignore_eos"] for body in bodies)
    prompts = [record.prompt for record in server.records]
    assert len(set(prompts)) == len(prompts) == 2 + 24
    records = requests_in(tmp_path)
    assert all(abs(record["input_tokens"] - 40) <= 1 for record in records)
    for record in records:
        tokens = record["tokens"]
        assert len(tokens) == record["output_tokens"]
        assert tokens == sorted(tokens)
        assert all(at >= 0.05 + 0.005 * place for place, at in enumerate(tokens))
        assert tokens[-1] <= record["ended"]


def test_tokens_are_timed_when_they_come(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=ANSWER, faults=(Fault(kind="drip", seconds=0.05),)), process=True)
    for attempt in range(5):
        words = (f"--output_dir=out{attempt}", "--concurrency=8", "--num_requests=8", "--input_tokens=40")
        spreads = load_test(tmp_path, server.url, *words)["levels"][0]
        # twelve tokens take 0.6 s; read in one go they would seem to come together
        if spreads["itl_ms"]["p50"] >= 25:
            return
    raise AssertionError(spreads)


def test_a_rate_is_kept_whatever_the_server_does(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(latency=Latency(fixed=0.5)))
    level = load_test(tmp_path, server.url, "--rate=20", "--num_requests=20", "--input_tokens=40")["levels"][0]
    assert level["completed"] == 20
    assert level["max_in_flight"] > 5
    sent = [record["sent"] for record in requests_in(tmp_path)]
    due = [record["due"] for record in requests_in(tmp_path)]
    assert max(due) == 1.0
    assert all(at >= planned for at, planned in zip(sent, due, strict=True))
    (tmp_path / "capped").mkdir()
    capped = load_test(
        tmp_path / "capped", server.url, "--rate=inf", "--num_requests=9", "--concurrency=3", "--input_tokens=40"
    )
    assert capped["levels"][0]["name"] == "rate=inf"
    assert capped["levels"][0]["max_in_flight"] == 3


def test_a_time_limit_ends_a_level(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(latency=Latency(fixed=0.05)))
    result = load_test(tmp_path, server.url, "--concurrency=2", "--seconds=0.5", "--input_tokens=40")
    level = result["levels"][0]
    assert 2 <= level["completed"] <= 20
    assert level["seconds"] >= 0.5


def test_streams_that_never_end_are_cut(
    fake_server: FakeServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(Script(answer=ANSWER, faults=(Fault(kind="hang", after=2, every=2),)))
    monkeypatch.setattr(measuring, "SHORTEST_GRACE_SECONDS", 0.4)
    test = newskills.load_test(
        server_type="vllm", server_address=server.url, model="fake", output_dir=str(tmp_path / "out"),
        concurrency="2", seconds=0.2, input_tokens=40, limits="ttft:60000",
    )  # fmt: skip
    assert test is not None
    (level,) = test.levels
    assert level.errors == {"unfinished": level.failed}
    assert level.failed in (1, 2)
    assert level.completed
    assert 0.6 <= level.seconds < 20
    assert any("had no end long after --seconds were over" in note for note in level.notes)
    assert [record["error"] for record in requests_in(tmp_path) if record.get("error")] == [
        "unfinished"
    ] * level.failed


def test_who_counted_the_tokens_is_said(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    words = ("--concurrency=2", "--num_requests=4", "--input_tokens=40", "++tokenizer=./words")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    (tmp_path / "words").mkdir()
    tokenizer.save(str(tmp_path / "words" / "tokenizer.json"))
    for usage, said in (
        ("right", "tok/s: output tokens by the server's usage, 1.00 an event; the tokenizer counts 100% of them"),
        ("wrong", "one of them is wrong"),
        ("none", "tok/s: output tokens by events: the server reports no usage"),
    ):
        server = fake_server(Script(answer=ANSWER, usage=usage))
        line = f"ns load_test --server_type=vllm --server_address={server.url} --model=fake --output_dir={usage}"
        shown = ns(line, *words, cwd=tmp_path)
        assert said in " ".join(shown.stdout.split()), shown.stdout + shown.stderr


def test_failures_are_counted_by_kind(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    faults = (
        Fault(kind="status", status=429, after=2, every=4),
        Fault(kind="status", status=503, after=2, every=5),
        Fault(kind="truncate", after=2, every=7),
    )
    server = fake_server(Script(answer=ANSWER, faults=faults))
    words = ("--concurrency=1", "--num_requests=28", "--input_tokens=40", "--limits=ttft:60000")
    level = load_test(tmp_path, server.url, *words)["levels"][0]
    # numbers 3–30: 4, 8, …, 28 | 5, 10, 15, 25, 30 | 7, 14, 21
    assert level["errors"] == {"rate limit": 7, "server error": 5, "connection lost": 3}
    assert level["good_share"] == 13 / 28
    failed = [record for record in requests_in(tmp_path) if record.get("error") == "rate limit"]
    assert {record["status"] for record in failed} == {429}
    line = f"ns load_test --server_type=vllm --server_address={server.url} --model=fake --output_dir=out"
    shown = ns(line, *words, cwd=tmp_path)
    assert "15 of 28 requests failed (rate limit 7, server error 5, connection lost 3)" in shown.stdout


def test_lying_servers(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    for name, script, note in (
        ("silent", Script(answer=ANSWER, usage="none"), "no usage in 4 replies"),
        ("whole", Script(answer=ANSWER, pieces=1), "all tokens in one event in 4 replies"),
        ("several", Script(answer=ANSWER, pieces=3), "inter-token latencies are between events"),
    ):
        (tmp_path / name).mkdir()
        server = fake_server(script)
        words = ("--concurrency=2", "--num_requests=4", "--input_tokens=40")
        level = load_test(tmp_path / name, server.url, *words)["levels"][0]
        assert level["completed"] == 4
        assert any(note in each for each in level["notes"]), level["notes"]
        assert (level["itl_ms"] is None) == (name == "whole")


def test_a_stream_without_tokens_is_a_failure(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=Answer(text="")))
    level = load_test(tmp_path, server.url, "--concurrency=1", "--num_requests=2", "--input_tokens=40", code=1)[
        "levels"
    ][0]
    assert level["errors"] == {"no tokens": 2}


def test_a_dead_server_is_told_at_once(tmp_path: Path) -> None:
    line = "ns load_test --server_type=vllm --server_address=http://127.0.0.1:9 --model=fake --output_dir=out"
    done = ns(line, cwd=tmp_path)
    assert done.returncode != 0
    assert "Cannot connect to http://127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_dies_ends_the_test(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=ANSWER, faults=(Fault(kind="down", after=10, seconds=600),)))
    line = f"ns load_test --server_type=vllm --server_address={server.url} --model=fake --output_dir=out"
    done = ns(f"{line} --concurrency=4,8 --num_requests=2000 --input_tokens=40", cwd=tmp_path)
    assert done.returncode != 0
    assert "Cannot connect" in done.stderr
    assert sum(not record.get("error") for record in requests_in(tmp_path)) >= 4


def test_a_kill_loses_nothing_and_done_levels_stay(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=ANSWER, latency=Latency(fixed=0.05)))
    words = f"load_test --server_type=vllm --server_address={server.url} --model=fake --output_dir=out --json"
    more = ["--concurrency=1,2", "--num_requests=12", "--input_tokens=40"]
    argv = [sys.executable, "-m", "newskills", *words.split(), *more]
    log = tmp_path / "out/requests.jsonl"
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, env=dict(os.environ)) as process:
        deadline = time.monotonic() + 120
        while not (log.exists() and log.read_text().count('"line":"request"') >= 15):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    asked = -1
    while asked != len(server.records):  # what was in flight reaches the server's list after the kill
        asked = len(server.records)
        time.sleep(0.5)
    kept = len(requests_in(tmp_path))
    assert kept >= 15
    assert asked - 2 - kept <= 2  # two probes, and what was in flight
    result = load_test(tmp_path, server.url, *more)
    assert [level["completed"] for level in result["levels"]] == [12, 12]
    assert len(server.records) - asked == 2 + 12
    # other limits are other figures of the same records
    again = load_test(tmp_path, server.url, *more, "--limits=ttft:60000")
    assert [level["good_share"] for level in again["levels"]] == [1.0, 1.0]
    assert again["highest"] == 2
    assert len(server.records) - asked == 2 + 12
    other = ns(f"ns {words}", *more, "--output_tokens=7", cwd=tmp_path)
    assert other.returncode != 0
    assert "out has records of other settings (prompts, inference)" in other.stderr


def test_the_highest_concurrency_under_limits_is_found(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    refusal = Fault(kind="status", status=429, above=5)
    server = fake_server(Script(answer=ANSWER, latency=Latency(fixed=0.1), faults=(refusal,)))
    words = ("--find=concurrency", "--limits=ttft:60000", "--share=1", "--num_requests=16", "--input_tokens=40")
    result = load_test(tmp_path, server.url, *words)
    assert result["highest"] == 5
    assert [level["value"] for level in result["levels"]] == [1, 2, 4, 5, 6, 8]


def test_prompts_of_a_file_and_of_a_benchmark(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=ANSWER))
    rows = [
        {"prompt": "first"},
        {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "second"}]},
        {"conversations": [{"from": "human", "value": "third"}, {"from": "gpt", "value": "no"}]},
    ]
    write(tmp_path / "prompts.jsonl", rows)
    load_test(tmp_path, server.url, "--input_file=prompts.jsonl", "--concurrency=1", "--num_requests=6")
    assert sorted(record.prompt for record in server.records[1:]) == sorted(
        ["first", "be brief\nsecond", "third"] * 2
    )
    assert all("ignore_eos" not in record.body for record in server.records)
    questions = tmp_path / "questions.jsonl"
    write(questions, [{"question": f"What is {n} plus 1?", "answer": str(n + 1)} for n in range(5)])
    words = ("--output_dir=bench", f"--benchmarks={questions}", "--concurrency=1", "--num_requests=5")
    before = len(server.records)
    load_test(tmp_path, server.url, *words, "++columns={question: question, answer: answer}")
    asked = [record.prompt for record in server.records[before + 1 :]]
    assert {n for n in range(5) for prompt in asked if f"What is {n} plus 1?" in prompt} == set(range(5))
    write(tmp_path / "none.jsonl", [{"text": "no field of a prompt"}])
    line = f"ns load_test --server_type=vllm --server_address={server.url} --model=fake --input_file=none.jsonl"
    refused = ns(line, cwd=tmp_path)
    assert "none.jsonl, row 1: no prompt (it has text)" in refused.stderr


def test_shared_beginnings_and_lengths_that_vary(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=ANSWER))
    words = ("--concurrency=1", "--num_requests=20", "--input_tokens=60", "--prefix_tokens=30", "--prefixes=2")
    load_test(tmp_path, server.url, *words, "--length_spread=0.4", "--output_tokens=100")
    prompts = [record.prompt for record in server.records[2:]]
    assert len({" ".join(prompt.split()[:25]) for prompt in prompts}) == 2
    assert len({" ".join(prompt.split()[:40]) for prompt in prompts}) == 20
    lengths = [record["input_tokens"] for record in requests_in(tmp_path)]
    assert min(lengths) < 55 < 65 < max(lengths)
    assert len({record.body["max_tokens"] for record in server.records[2:]}) > 5


@pytest.mark.parametrize("words", ["text", "responses", "chat ++inference.stream=false"])
def test_other_endpoints_and_replies_that_are_not_streamed(
    fake_server: FakeServerFactory, tmp_path: Path, words: str
) -> None:
    server = fake_server(Script(answer=Answer(kind="random")))
    endpoint = f"++inference.endpoint_type={words}".split()
    level = load_test(tmp_path, server.url, "--concurrency=2", "--num_requests=4", "--input_tokens=40", *endpoint)[
        "levels"
    ][0]
    assert level["completed"] == 4
    assert (level["ttft_ms"] is None) == ("false" in words)
    assert level["e2el_ms"]["p50"] > 0
    assert abs(level["input_tokens"] / 4 - 40) <= 1


def test_a_server_is_started_for_the_test(small_model: Path, tmp_path: Path) -> None:
    line = f"ns load_test --server_type=llamacpp --model={small_model} --output_dir=out --json"
    words = ("--concurrency=1", "--num_requests=2", "--input_tokens=60", "--output_tokens=4")
    done = ns(line, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["address"] == "a server that is started for the test"
    assert (result["levels"][0]["completed"], result["levels"][0]["output_tokens"]) == (2, 8)
    assert (tmp_path / "out/server.log").exists()
    again = ns(line, *words, cwd=tmp_path)
    assert json.loads(again.stdout) == result  # from the records, without a server
    assert "requests" not in again.stderr


def test_from_python_and_a_dry_run(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(answer=ANSWER))
    arguments: dict[str, Any] = {
        "model": "fake",
        "server_type": "vllm",
        "server_address": server.url,
        "concurrency": [1, 2],
        "num_requests": 3,
        "input_tokens": 40,
        "output_dir": str(tmp_path / "out"),
    }
    assert newskills.load_test(**arguments, dry_run=True) is None
    assert not server.records
    result = newskills.load_test(**arguments)
    assert isinstance(result, newskills.LoadTest)
    assert [level.completed for level in result.levels] == [3, 3]


def test_the_first_model_of_the_server_is_asked(fake_server: FakeServerFactory, tmp_path: Path) -> None:
    server = fake_server(Script(models=("one", "two"), strict_model=True))
    line = f"ns load_test --server_type=vllm --server_address={server.url} --concurrency=1 --num_requests=2 --json"
    done = ns(line, cwd=tmp_path)
    assert json.loads(done.stdout)["model"] == "one"
    assert "asking one, the first that" in done.stderr
    assert {record.body["model"] for record in server.records} == {"one"}


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    line = "ns load_test --server_type=vllm --server_address=http://127.0.0.1:9 --model=fake"
    for words, sentence in (
        ("--find=rate", "--find needs --limits"),
        ("--rate=1 --concurrency=1,2", "give one number"),
        ("--rate=0", "expected numbers above 0"),
        ("--concurrency=0.5", "expected whole numbers"),
        ("--concurrency=inf", "expected whole numbers"),
        ("--rate=inf --seconds=3", "--rate=inf needs --num_requests"),
        ("--find=rate --limits=ttft:1 --rate=inf", "not with inf"),
        ("--benchmarks=gsm8k --input_file=x", "not both"),
    ):
        done = ns(f"{line} {words}", cwd=tmp_path)
        assert done.returncode != 0
        assert sentence in done.stderr, words
