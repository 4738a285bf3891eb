# SPDX-License-Identifier: Apache-2.0
"""Benchmarks without Python at the command line: one line from a table of questions to a score, and back to samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, Script

SUMS = {f"Add {n} and {n}.": str(2 * n) for n in range(2, 12)}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    table(tmp_path / "questions.csv", SUMS)
    (tmp_path / "train.csv").write_text("q,a\nAdd 0 and 1.,1\nAdd 1 and 1.,2\n")
    return tmp_path


def table(path: Path, sums: dict[str, str]) -> None:
    path.write_text("q,a\n" + "".join(f'"{question}",{answer}\n' for question, answer in sums.items()))


@pytest.fixture
def server(fake_server: FakeServerFactory) -> FakeServer:
    made = fake_server(Script(answer=Answer(kind="table", table=dict(list(SUMS.items())[:8]), text="No idea.")))
    assert isinstance(made, FakeServer)
    return made


def eval_line(server: FakeServer, name: str, *words: str) -> tuple[str, ...]:
    where = f"--server_type=generic --server_address={server.url}/v1 --model=m --output_dir=out"
    return (f"ns eval --benchmarks={name} {where}", *words)


def asked(server: FakeServer) -> int:
    """How many requests were made to the model."""
    return sum(record.method == "POST" for record in server.records)


def place(here: Path) -> dict[str, str]:
    return {"NEWSKILLS_DATA_DIR": str(here / "data")}


def score(here: Path, name: str) -> Any:
    return json.loads((here / "out" / "metrics.json").read_text())[name]["pass@1"]


def test_a_table_of_questions_is_a_benchmark(here: Path, server: FakeServer) -> None:
    """One line without preparation; said is what was seen; more rows are asked alone; samples can be looked at."""
    line, *words = eval_line(server, "./questions.csv", "++columns={question: q, answer: a}")
    done = ns(line, *words, cwd=here, env=place(here))
    assert done.returncode == 0, done.stderr
    assert "note: questions.csv: kind math, because all 10 answers looked at are numbers" in done.stderr
    assert "official wording" not in done.stdout
    assert (score(here, "questions")["num_entries"], score(here, "questions")["symbolic_correct"]) == (10, 80.0)
    assert asked(server) == 10
    again = ns(line, *words, cwd=here, env=place(here))
    assert (again.returncode, asked(server)) == (0, 10), again.stderr
    table(here / "questions.csv", {**SUMS, "Add 1 and 40.": "41"})
    grown = ns(line, *words, cwd=here, env=place(here))
    assert (grown.returncode, asked(server)) == (0, 11), grown.stderr
    assert score(here, "questions")["num_entries"] == 11
    samples = ns("ns samples out --id questions-test-10", cwd=here, env=place(here))
    assert "questions-test-10" in samples.stdout
    assert "Add 1 and 40." in samples.stdout


def test_a_description_is_prepared_validated_explained_and_resumed(here: Path, server: FakeServer) -> None:
    (here / "mine.yaml").write_text(
        "data: questions.csv\ncolumns: {question: q, answer: a}\nkind: math\n"
        "prompt: |\n  {examples}Q: {question}\n  A:\nfew_shot: {data: train.csv, count: 2}\n"
        "grader: {name: math, relative_tolerance: 0.01}\nsettings: {inference.temperature: 0.25}\n"
    )
    env = place(here)
    prepared = ns("ns prepare_data ./mine.yaml", cwd=here, env=env)
    assert prepared.returncode == 0, prepared.stderr
    assert [line.split() for line in prepared.stdout.splitlines()[:2]] == [
        ["mine", "test", "10", "rows"],
        ["mine", "examples", "2", "rows"],
    ]
    assert "(already there)" in ns("ns prepare_data mine.yaml", cwd=here, env=env).stdout
    validated = ns("ns validate ./mine.yaml", cwd=here, env=env)
    assert validated.returncode == 0, validated.stdout + validated.stderr
    row = next(line.split() for line in validated.stdout.splitlines() if line.startswith("mine"))
    assert (row[1], row[3], row[-1], row[8] != "-") == ("10", "100", "ok", True)
    explained = ns(*eval_line(server, "./mine.yaml", "--explain"), cwd=here, env=env).stdout
    assert next(line.split() for line in explained.splitlines() if "temperature" in line)[1:] == [
        "0.25", "benchmark", "mine"
    ]  # fmt: skip
    few = "++max_concurrent_requests=1"
    stopped = ns(*eval_line(server, "./mine.yaml:2", few, "++max_total_tokens=40"), cwd=here, env=env)
    assert stopped.returncode == 4, stopped.stderr
    prompt = server.records[-1].body["messages"][-1]["content"]
    assert prompt.startswith("Q: Add 0 and 1.\nA: 1\n\nQ: Add 1 and 1.\nA: 2\n\nQ: Add ")
    count = asked(server)
    assert 0 < count < 20
    whole = ns(*eval_line(server, "./mine.yaml:2", few, "++max_total_tokens=100000"), cwd=here, env=env)
    assert (whole.returncode, asked(server)) == (0, 20), whole.stderr
    assert len(rows_of(here / "out/eval-results/mine/output-rs1.jsonl")) == 10
    edited = (here / "mine.yaml").read_text().replace("Q:", "Question:")
    (here / "mine.yaml").write_text(edited)
    other = ns(*eval_line(server, "./mine.yaml:2", few, "++max_total_tokens=100000"), cwd=here, env=env)
    assert (other.returncode, asked(server)) == (2, 20)
    assert "was started with other settings; changed: the prompt" in other.stderr


def test_a_leaking_benchmark_is_attacked(here: Path) -> None:
    """A grader that finds the answer anywhere takes replies that name all options: `ns validate` refuses it."""
    (here / "anywhere.py").write_text(
        "from newskills.base.records import Score\n\ndef anywhere(record):\n"
        "    right = str(record['expected_answer']) in str(record['generation'])\n"
        "    return Score(outcome='correct' if right else 'wrong', grader='anywhere@1',\n"
        "                 fields={'symbolic_correct': right, 'predicted_answer': ''})\n"
    )
    rows = [
        {"question": f"Which, {n}?", "options": ["red", "green", "blue"], "answer": "ABC"[n % 3]}
        for n in range(30)
    ]
    (here / "hues.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (here / "hues.yaml").write_text("data: hues.jsonl\nkind: choice\ngrader: ./anywhere.py::anywhere\n")
    done = ns("ns validate ./hues.yaml", cwd=here, env=place(here))
    assert done.returncode == 1, done.stdout
    assert "error: hues: hedge" in done.stderr
    (here / "hues.yaml").write_text("data: hues.jsonl\nkind: choice\n")
    assert ns("ns validate ./hues.yaml", cwd=here, env=place(here)).returncode == 0


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        (
            "./questions.csv",
            ["++columns={question: q, anser: a}", "++kind=math"],
            "++columns: 'anser' is not a role; did you mean 'answer'?",
        ),
        ("./questions.csv", ["++columns=[q"], "']' is missing"),
        ("./questions.csv", ["++columns=q"], "++columns: expected an object"),
        ("./questions.csv", ["++kind=mth"], "++kind: 'mth' is not one of the choices; did you mean 'math'?"),
        ("gsm8k", ["++kind=math"], "++kind describes a file of questions, and --benchmarks names none"),
        ("./question.csv", [], "There is no file"),
        ("./uneven.csv", [], "uneven.csv, line 3: 2 columns are expected, there are 3."),
    ],
)
def test_words_that_do_not_fit(name: str, words: list[str], message: str, here: Path, server: FakeServer) -> None:
    (here / "uneven.csv").write_text("q,a\n1 + 1,2\n1,2,3\n")
    done = ns(*eval_line(server, name, *words), cwd=here, env=place(here))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert asked(server) == 0


def test_jobs_and_later_tables_know_the_metric(here: Path, server: FakeServer) -> None:
    """A job on a cluster, and whoever summarizes later, finds no benchmark of these names."""
    (here / "words.csv").write_text("question,answer\nCapital of France?,Paris\nCapital of Peru?,Lima\n")
    (here / "pairs.yaml").write_text(
        "data: words.csv\nmetric: {name: macro, section_key: answer}\ngrader: short_answer\n"
    )
    (here / "cluster_configs").mkdir()
    (here / "cluster_configs/box.yaml").write_text(
        f"executor: local\nskip_hf_home_check: true\njob_dir: {here}/jobs\n"
    )
    env = place(here) | {"NEWSKILLS_EXPERIMENTS_DIR": str(here / "experiments")}
    line, *_ = eval_line(server, "./words.csv,./pairs.yaml")
    done = ns(f"{line.replace('=out', f'={here}/out')} --cluster=box", cwd=here, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = json.loads((here / "out/metrics.json").read_text())
    assert {"em", "f1"} <= metrics["words"]["pass@1"].keys()
    assert "macro_accuracy" in metrics["pairs"]["pass@1"]
    again = ns("ns summarize_results out", cwd=here, env=env)
    assert (again.returncode, "not a known benchmark" in again.stdout + again.stderr) == (0, False), again.stderr
    assert json.loads((here / "out/metrics.json").read_text()) == metrics
