# SPDX-License-Identifier: Apache-2.0
"""Evaluations and answers: real processes, a scripted model behind HTTP, a real sandbox."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.apps.aimo.places import ns, read
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import write_rows

QUESTIONS = [{"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)} for n in range(8)]
NAMES = ("hendrycks_math", "math-500", "aime25", "amc23", "gsm8k", "math_level5")
SANDBOX = "++sandbox.preload=[]"


def reckon(body: dict[str, Any]) -> str:
    """A program for the sum, and once its output is there, an answer that has it in a box."""
    text = "\n".join(message["content"] for message in body["messages"])
    if shown := re.findall(r"```output\n(.*)\n", text):
        return rf"So \boxed{{{shown[-1]}}}."
    one, other = re.findall(r"Add (\d+) and (\d+)\.", text)[-1]
    return f"Let me see.\n```python\nprint({one} + {other})\n```\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in NAMES:
        write_rows(tmp_path / "data" / name / "test.jsonl", QUESTIONS)
    return tmp_path


@pytest.fixture
def half(fake_server: FakeServerFactory) -> FakeServer | FakeServerProcess:
    """Knows six of the eight answers."""
    table = {row["problem"]: row["expected_answer"] for row in QUESTIONS[:6]}
    return fake_server(Script(answer=Answer(kind="table", table=table, text=r"\boxed{999}")))


def asked(server: FakeServer | FakeServerProcess) -> list[str]:
    return f"--model=m --server_address={server.url}".split()


def test_a_benchmark_under_the_name_of_the_recipe(place: Path, half: FakeServer | FakeServerProcess) -> None:
    words = [*asked(half), "--benchmark=math_level5", "--max-samples=4", "--num-samples=2", "--data_dir=data"]
    done = ns(place, "aimo", "evaluate", *words, "--output-dir=out")
    assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in (place / "out/eval-results/math_level5").glob("output*.jsonl"))
    assert files == ["output-rs0.jsonl", "output-rs1.jsonl"]
    records = read(place / "out/eval-results/math_level5/output-rs0.jsonl")
    assert len(records) == 4
    assert all(row["symbolic_correct"] for row in records)


def test_all_benchmarks_and_their_summary_made_anew(place: Path, half: FakeServer | FakeServerProcess) -> None:
    words = [*asked(half), "--no-vllm", "--merge-output", "--data_dir=data", "--output-dir=out"]
    done = ns(place, "aimo", "evaluate_all", *words)
    assert done.returncode == 0, done.stderr
    scores = json.loads((place / "out/all_results.json").read_text())
    assert set(scores) == {"hendrycks_math", "math-500", "aime25", "amc23", "gsm8k"}
    assert all(
        one["value"] == 75.0 and one["low"] < 75.0 < one["high"] and one["n"] == 8 for one in scores.values()
    )
    for path in place.rglob("metrics*.json"):
        path.unlink()
    (place / "out/all_results.json").write_text("{}")
    half.stop()
    again = ns(place, "aimo", "regenerate_summary", "out")
    assert again.returncode == 0, again.stderr
    assert json.loads((place / "out/all_results.json").read_text()) == scores


def test_programs_run_where_the_model_writes_them(place: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=reckon)
    words = [*asked(server), "--benchmark=gsm8k", "--use-tir", "--data_dir=data", "--output-dir=out", SANDBOX]
    done = ns(place, "aimo", "evaluate", *words)
    assert done.returncode == 0, done.stderr
    records = read(place / "out/eval-results/gsm8k/output.jsonl")
    assert all(row["symbolic_correct"] and row["num_code_executions"] == 1 for row in records)


def test_every_checkpoint_is_measured_once(place: Path, half: FakeServer | FakeServerProcess) -> None:
    """Merges real pairs into a real model; the scripted server answers in its place."""
    with_tokenizer(tiny_folder(place / "base", eos_token_id=VOCAB - 1, max_position_embeddings=128))
    write_rows(
        place / "chats.jsonl",
        [
            {"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]}
            for _ in range(8)
        ],
    )
    words = ["--model=base", "--training_data=chats.jsonl", "--output_dir=run", "++trainer.threads=1"]
    trained = ns(place, "sft", *words, "++steps=2", "++batch_size=2", "++save_every=1")
    assert trained.returncode == 0, trained.stderr
    line = ["aimo", "evaluate_checkpoints", "--benchmark=gsm8k", "--data_dir=data", "--output-dir=out"]
    done = ns(place, *line, "--model=run", f"--server_address={half.url}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("$ ns merge_lora --base_model=base") == 2
    page = (place / "out/checkpoints.md").read_text()
    assert "| 1 | 75.0 (" in page
    assert re.search(r"^ {6}2 \|.*●.*\| 75\.0$", page, re.MULTILINE)
    assert [point["step"] for point in json.loads((place / "out/checkpoints.json").read_text())] == [1, 2]
    assert not list((place / "out/models").iterdir())
    seen = len(half.records)
    again = ns(place, *line, "--model=run", f"--server_address={half.url}")
    assert again.returncode == 0, again.stderr
    assert "step 2: already evaluated" in again.stdout
    assert len(half.records) == seen
    shutil.rmtree(place / "run")
    (place / "out/checkpoints.md").unlink()
    assert ns(place, "aimo", "regenerate_summary", "out").returncode == 0
    assert (place / "out/checkpoints.md").read_text() == page


@pytest.mark.parametrize(
    ("strategy", "more", "calls"),
    [("greedy", (), 1), ("majority_vote", ("--num-samples=3",), 3), ("genselect", ("--num-samples=2",), 10)],
)
def test_strategies_for_one_problem(
    place: Path, half: FakeServer | FakeServerProcess, strategy: str, more: tuple[str, ...], calls: int
) -> None:
    words = [*asked(half), f"--strategy={strategy}", "--problem", "Add 3 and 3.", *more, "--output-dir=out"]
    done = ns(place, "aimo", "generate", *words)
    assert done.returncode == 0, done.stderr
    assert "answer: 6" in done.stdout
    assert len(half.records) <= calls
    (row,) = read(place / "out/generated" / strategy / "output.jsonl")
    assert row["problem"] == "Add 3 and 3."


def test_answers_with_programs_to_a_file(place: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(), answer=reckon)
    write_rows(place / "in.jsonl", QUESTIONS)
    words = [*asked(server), "--strategy=tir", "--input-file=in.jsonl", "--output-dir=out", SANDBOX]
    done = ns(place, "aimo", "generate", *words)
    assert done.returncode == 0, done.stderr
    rows = read(place / "out/generated/tir/output.jsonl")
    assert [rf"\boxed{{{row['expected_answer']}}}" in row["generation"] for row in rows] == [True] * 8
    assert all("```output" in row["generation"] for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("generate", "--model=m"), "Give --problem TEXT or --input-file"),
        (("evaluate_checkpoints", "--model=nowhere"), "nowhere has no checkpoints"),
        (("regenerate_summary", "nowhere"), "has no evaluation records"),
        (("evaluate", "--model=empty", "--benchmark=gsm8k"), "There is no model in empty"),
        (("evaluate", "--model=smollm2", "--benchmark=nothing", "--dry_run"), "nothing"),
        (("generate", "--model=m", "--strategy=guess"), "majority_vote"),
        (("evalute", "--model=m"), "evaluate"),
    ],
)
def test_bad_input_is_told_in_a_sentence(place: Path, words: tuple[str, ...], said: str) -> None:
    (place / "empty").mkdir()
    done = ns(place, "aimo", *words)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr
