# SPDX-License-Identifier: Apache-2.0
"""`ns eval` and `ns grade` on code: a model server on loopback, the real data, the real sandbox."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

pytestmark = pytest.mark.mirror
SOME = "++max_samples=24"


@pytest.fixture(scope="module")
def data(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    done = ns(
        f"ns prepare_data human-eval mbpp-original --data_dir {folder}",
        cwd=folder,
        env={"NEWSKILLS_MIRROR": str(mirror)},
    )
    assert done.returncode == 0, done.stderr
    return folder


def solutions(data: Path) -> Answer:
    """Each problem's own solution, found by its function's head."""
    rows = rows_of(data / "human-eval/test.jsonl")
    table = {row["prompt"]: f"```python\n{row['prompt']}{row['canonical_solution']}```" for row in rows}
    return Answer(kind="table", table=table, template="Sure!\n%s", text="I do not know.")


def evaluate(data: Path, here: Path, server: str, *options: str) -> subprocess.CompletedProcess[str]:
    line = f"ns eval --benchmarks=human-eval --server_type=vllm --model=fake --server_address={server}"
    return ns(f"{line} --output_dir=out --data_dir {data}", *options, cwd=here)


def numbers(here: Path) -> dict[str, Any]:
    return json.loads((here / "out/eval-results/human-eval/metrics.json").read_text())["human-eval"]["pass@1"]


@pytest.mark.nightly
def test_right_solutions_pass_all(data: Path, tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=solutions(data)))
    done = evaluate(data, tmp_path, server.url)
    assert done.returncode == 0, done.stderr
    found = numbers(tmp_path)
    assert (found["num_entries"], found["passing_base_tests"]) == (164, 100.0)
    assert "passing_plus_tests" not in found
    assert "passing_base_tests" in done.stdout
    record = rows_of(tmp_path / "out/eval-results/human-eval/output.jsonl")[0]
    assert (record["outcome"], record["is_correct"], record["grader"]) == ("correct", True, "evalplus@5")
    assert record["completion"].startswith("from typing import List")


def test_wrong_solutions_pass_none(data: Path, tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="```python\nimport os\nos._exit(0)\n```")))
    done = evaluate(data, tmp_path, server.url, SOME)
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path)["passing_base_tests"] == 0.0


def test_without_a_sandbox_nothing_is_asked(data: Path, tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=solutions(data)))
    done = evaluate(data, tmp_path, server.url, SOME, "++sandbox.port=1")
    assert done.returncode == 1
    assert "sandbox" in done.stderr
    assert server.records == []


@pytest.mark.nightly
def test_regraded_verdicts_are_the_same(data: Path, tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=solutions(data)))
    assert evaluate(data, tmp_path, server.url, SOME).returncode == 0
    output = tmp_path / "out/eval-results/human-eval/output.jsonl"
    rows = rows_of(output)
    rows[3]["generation"] = "```python\ndef below_zero(operations):\n    return None\n```"
    again = write(tmp_path / "again.jsonl", rows)
    done = ns(f"ns grade --grader=evalplus --input_files {again} --output_file graded.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graded = rows_of(tmp_path / "graded.jsonl")
    assert [row["id"] for row in graded] == [row["id"] for row in rows]
    assert [row["outcome"] for row in graded] == ["correct"] * 3 + ["wrong"] + ["correct"] * 20
    assert graded[3]["why"] == "assertion: test 1 of 1"


def test_grading_without_a_sandbox_writes_nothing(data: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write(tmp_path / "a.jsonl", [{**rows_of(data / "mbpp-original/test.jsonl")[0], "generation": "x = 1"}])
    done = ns(
        f"ns grade --grader=evalplus --input_files a.jsonl --output_file g.jsonl ++sandbox.port={port}",
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert not (tmp_path / "g.jsonl").exists()


FURTHER = {
    "mbpp-plus": ("test", "passing_plus_tests"),
    "human-eval-infilling": ("random_span", "accuracy"),
    "code_contests-deepscaler": ("test", "accuracy"),
    "humaneval-x": ("test", "accuracy"),
    "scicode": ("test", "problem_accuracy"),
}


@pytest.mark.parametrize("name", FURTHER)
def test_further_benchmarks_run_from_end_to_end(
    name: str, mirror: Path, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    """A constant answer is wrong, or, where no targets are here to judge by, unscored; never an error."""
    server = fake_server(Script(answer=Answer(text="```python\nprint('no')\n```")))
    split, metric = FURTHER[name]
    done = ns(
        f"ns prepare_data {name} --split {split} --data_dir data",
        cwd=tmp_path,
        env={"NEWSKILLS_MIRROR": str(mirror)},
    )
    assert done.returncode == 0, done.stderr
    line = f"ns eval --benchmarks={name} --server_type=vllm --model=fake --server_address={server.url}"
    done = ns(f"{line} --output_dir=out --data_dir data", "++max_samples=2", cwd=tmp_path)
    records = rows_of(tmp_path / f"out/eval-results/{name}/output.jsonl")
    assert {record["outcome"] for record in records} == ({"unscored"} if name == "scicode" else {"wrong"}), (
        done.stderr
    )
    found = json.loads((tmp_path / f"out/eval-results/{name}/metrics.json").read_text())[name]
    whole = found.get("_all_", found)["pass@1"]
    assert whole["num_entries"] == 2
    assert whole.get(metric, 0) == 0
    if name == "scicode":
        assert whole["unscored"] == 100
        assert all("test_data.h5" in record["why"] for record in records)
    else:
        assert done.returncode == 0, done.stderr
