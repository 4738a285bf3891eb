# SPDX-License-Identifier: Apache-2.0
"""Each recipe shows its plan, and runs on a server of this machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.recipes_public.loading import NAMES, RECIPES, load
from tests.run.support import records
from tests.server import Answer, FakeServer, Script

OPTIONS = "\n".join(f"{letter}) number {n}" for n, letter in enumerate("ABCDEFGHIJ"))
SUM = re.compile(r"What is (\d+) \+ (\d+)\?")


def sums(path: Path, *pairs: tuple[int, int]) -> Path:
    rows = ({"problem": f"What is {a} + {b}?", "expected_answer": str(a + b)} for a, b in pairs)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_shows_what_it_would_do(
    name: str, tmp_path: Path, mirror: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = load(f"{name}/run.py")
    recipe.main(
        ["--dry_run", f"--output_dir={tmp_path}/out", "--server_address=http://127.0.0.1:9", *student(name)]
    )
    said = capsys.readouterr().out
    assert [line.removeprefix("== ") for line in said.splitlines() if line.startswith("== ")]
    shown = {line.removeprefix("== ") for line in said.splitlines() if line.startswith("== ")}
    optional = {"similar", "contamination"} if name == "openmathreasoning" else set()
    assert shown == set(recipe.STAGES) - optional
    assert "{problem}" not in said
    assert not (tmp_path / "out").exists()


def student(name: str) -> list[str]:
    return ["--student=smollm2", "--student_type=llamacpp"] if name == "simple" else []


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name not in ("simple", "tool_use") else ())
        for name in NAMES
    ],
)
def test_on_a_cluster_each_stage_is_a_job_behind_the_one_before(name: str, tmp_path: Path, mirror: Path) -> None:
    """From a repository of the user's, as a program."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "slurm.yaml").write_text(
        f"executor: slurm\njob_dir: {shared}/jobs\naccount: a\npartition: batch\nmounts: [{shared}:{shared}]\n"
        f"env_vars: [HF_HOME={shared}/hf]\ncontainers: {{nemo-skills: /a.sqsh, sandbox: /a.sqsh, vllm: /b.sqsh, "
        "nemo-rl: /c.sqsh}\n"
    )
    shutil.copytree(RECIPES, tmp_path / "mine" / "recipes", ignore=shutil.ignore_patterns("__pycache__"))
    inputs = [f"--{option}={shared}/in.jsonl" for option in INPUTS[name]]
    (shared / "in.jsonl").write_text('{"problem": "P", "forum_post": "P"}\n')
    given = ["--dry_run", "--cluster=slurm", f"--output_dir={shared}/out", "--server_gpus=8", *inputs]
    stages = ["--stages=solutions,data,training"] if name == "simple" else []
    done = subprocess.run(
        [sys.executable, f"recipes/{name}/run.py", *given, *stages],
        cwd=tmp_path / "mine",
        env={
            "NEMO_SKILLS_CONFIG_DIR": str(tmp_path),
            "HOME": str(tmp_path),
            "PATH": str(Path(sys.executable).parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = re.findall(r"--expname=(\S+)", done.stdout)
    assert names == [f"{name}-{n}-{one.partition(f'-{n}-')[2]}" for n, one in enumerate(names, 1)]
    after = re.findall(r"--run_after=(\S+)", done.stdout)
    assert after == names[:-1]


INPUTS = {
    "simple": ["problems"],
    "openmathreasoning": ["posts"],
    "opensciencereasoning": ["questions"],
    "opencode": ["tasks"],
    "improve": [],
    "preferences": [],
    "tool_use": [],
    "rejection_sampling": ["problems"],
}


def test_unknown_stages_are_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="bake: there is no such stage; there are problems, before"):
        load("simple/run.py").main(["--stages=bake", f"--output_dir={tmp_path}"])


def test_a_stage_that_fails_ends_the_recipe(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"solutions: .*no-such\.jsonl"):
        load("simple/run.py").main(
            [
                "--stages=solutions,data",
                f"--output_dir={tmp_path}/out",
                "--problems=no-such.jsonl",
                "--server_address=http://127.0.0.1:9",
            ]
        )


def test_of_several_answers_the_correct_ones_are_kept_once(tmp_path: Path) -> None:
    """Each problem is answered four times: twice the same correct answer, once another one, once a wrong one."""
    problems = sums(tmp_path / "problems.jsonl", (2, 3), (1, 4))
    texts = ("It is \\boxed{5}.", "So \\boxed{5}.", "It is \\boxed{6}.", "It is \\boxed{5}.")
    with FakeServer(Script(answer=Answer(kind="sequence", texts=texts))) as server:
        load("rejection_sampling/run.py").main(
            [
                f"--output_dir={tmp_path}/out",
                f"--problems={problems}",
                f"--server_address={server.base_url}",
                "--samples=4",
                "--decontaminate=",
            ]
        )
    rows = records(tmp_path / "out/data/train.jsonl")
    assert sorted((row["input"], row["output"]) for row in rows) == sorted(
        (f"What is {a} + {b}?", text) for a, b in ((2, 3), (1, 4)) for text in texts[:2]
    )


BENCHMARK = """
from newskills.base.benchmark import Benchmark, Source


def row(raw, index):
    return raw


BENCHMARK = Benchmark(
    name="few-sums",
    category="math-natural",
    title="Sums",
    sources=(Source(path="asked.jsonl", format="jsonl"),),
    row=row,
    prompt="generic/math",
    grader="math",
    metric="math",
)
"""


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.nightly
def test_a_student_is_taught_and_measured(
    tmp_path: Path, small_model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every stage of the small loop, with a real model."""
    sums(tmp_path / "asked.jsonl", (20, 20), (30, 7))
    (tmp_path / "few.py").write_text(BENCHMARK)
    taught = sums(tmp_path / "problems.jsonl", *((a, b) for a in (2, 3) for b in (4, 5)), (30, 7))
    with FakeServer(answer=right) as server:
        load("simple/run.py").main(
            [
                f"--output_dir={tmp_path}/out",
                f"--problems={taught}",
                f"--server_address={server.base_url}",
                f"--benchmark={tmp_path}/few.py",
                f"--data_dir={tmp_path}/data",
                f"--student={small_model}",
                "--student_type=llamacpp",
                "--num_solutions=1",
                "--max_tokens=24",
                "--epochs=1",
            ]
        )
    said = capfd.readouterr().out
    assert said.count("symbolic_correct") >= 2
    data = records(tmp_path / "out" / "data" / "train.jsonl")
    assert len(data) == 4  # what the benchmark asks is not learnt
    assert all(row["input"].endswith("<|im_start|>assistant\n") for row in data)
    assert len(records(tmp_path / "out" / "after" / "eval-results" / "few-sums" / "output.jsonl")) == 2


def right(body: dict[str, Any]) -> str:
    a, b = map(int, SUM.findall(body["messages"][-1]["content"])[-1])
    return rf"It is \boxed{{{a + b}}}."


def test_right_solutions_of_the_teacher_become_training_data(tmp_path: Path) -> None:
    def teacher(body: dict[str, Any]) -> str:
        a, b = map(int, SUM.findall(body["messages"][-1]["content"])[-1])
        return rf"It is \boxed{{{a + b + body['seed'] % 2}}}."

    asked = sums(tmp_path / "benchmark.jsonl", (20, 20))
    with FakeServer(answer=teacher) as server:
        load("simple/run.py").main(
            [
                f"--output_dir={tmp_path}/out",
                f"--problems={sums(tmp_path / 'problems.jsonl', (2, 3), (4, 4), (20, 20))}",
                f"--server_address={server.base_url}",
                f"--benchmark={asked}",
                "--student=none-yet",
                "--stages=solutions",
            ]
        )
        assert len(server.records) == 3 * 4
    solved = records(tmp_path / "out" / "solutions" / "output-rs1.jsonl")
    assert [row["symbolic_correct"] for row in solved] == [False] * 3


@pytest.mark.timeout(120)
def test_new_questions_are_answered_by_vote_and_solved(tmp_path: Path, mirror: Path) -> None:
    def teacher(body: dict[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        if "Write a new one" in asked:
            kinds = (OPTIONS, OPTIONS.replace("J) number 9", "J) number 1"), OPTIONS[:40])
            text = kinds[body["seed"] % 3]
            return f"<question>Which number is {'odd' if 'seed one' in asked else 'even'}?\n{text}</question>"
        letter = "A" if "even" in asked else "B"
        return f"So.\n\nAnswer: {letter if body['seed'] % 4 else 'C'}"

    seeds = tmp_path / "questions.jsonl"
    seeds.write_text(
        "".join(json.dumps({"problem": f"seed {n}?\nA) 1\nB) 2", "id": n}) + "\n" for n in ("one", "two"))
    )
    with FakeServer(answer=teacher) as server:
        load("opensciencereasoning/run.py").main(
            [
                f"--output_dir={tmp_path}/out",
                f"--questions={seeds}",
                f"--server_address={server.base_url}",
                "--num_questions=3",
                "--num_solutions=4",
                "--decontaminate=",
            ]
        )
    agreed = records(tmp_path / "out" / "rows" / "agreed.jsonl")
    assert [(row["expected_answer"], row["agreement"], row["seed_id"]) for row in agreed] == [
        ("B", 0.75, "one"),
        ("A", 0.75, "two"),
    ]
    data = records(tmp_path / "out" / "data" / "train.jsonl")
    assert sorted(row["output"] for row in data) == ["So.\n\nAnswer: A", "So.\n\nAnswer: B"]


@pytest.mark.timeout(120)
def test_programs_are_kept_where_they_pass(tmp_path: Path) -> None:
    programs = (
        "Add one.\n```python\nprint(int(input()) + 1)\n```",
        "Add two.\n```python\nprint(int(input()) + 2)\n```",
        "Two ways.\n```python\nprint(1)\n```\n```python\nprint(2)\n```",
    )
    tests = [{"input": "1\n", "output": "2\n"}, {"input": "-1\n", "output": "0\n"}]
    tasks = tmp_path / "tasks.jsonl"
    rows = ({"problem": "Read n, print n + 1.", "test_cases": tests}, {"problem": "Print anything."})
    tasks.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with FakeServer(answer=lambda body: programs[body["seed"] % 3]) as server:
        load("opencode/run.py").main(
            [
                f"--output_dir={tmp_path}/out",
                f"--tasks={tasks}",
                f"--server_address={server.base_url}",
                "--num_solutions=3",
            ]
        )
    data = records(tmp_path / "out" / "data" / "train.jsonl")
    assert sorted((row["input"], row["output"]) for row in data) == [
        ("Print anything.", programs[0]),
        ("Print anything.", programs[1]),
        ("Read n, print n + 1.", programs[0]),
    ]
