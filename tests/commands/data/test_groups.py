# SPDX-License-Identifier: Apache-2.0
"""A group of benchmarks from a file of one's own: prepared, evaluated and scored by its name."""

import json
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

GROUP = """
from newskills.base.benchmark import Benchmark, Group
from newskills.benchmarks.scores import headline

def rows(split):
    for n in range(4 if split == "test" else 2):
        yield {"id": f"s{n}", "problem": f"Add {n} and {n}.", "expected_answer": str(2 * n)}

def both(metrics):
    first, second = (headline(metrics[name], "symbolic_correct") for name in ("./sums.py::SUMS", "./sums.py::MORE"))
    return {"overall": (3 * first + second) / 4}

SUMS = Benchmark(
    name="sums", category="own", title="Sums", generate_rows=rows, prompt="generic/math", items={"dev": 2}
)
MORE = Benchmark(name="more", category="own", title="More", generate_rows=rows, prompt="generic/math")
GROUP = Group(
    name="both", category="own", title="Both", score=both,
    members={
        "./sums.py::SUMS": {"samples": 2, "split": "dev", "defaults": {"inference.temperature": 0.25}},
        "./sums.py::MORE": {},
    },
)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(GROUP)
    done = ns("ns prepare_data ./sums.py --data_dir data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 prepared" in done.stdout
    return tmp_path


def test_a_group_is_evaluated_and_scored(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="text", text="The answer is \\boxed{0}.")))
    work = f"--server_type=vllm --model=fake --server_address={server.url} --data_dir data --output_dir out"
    done = ns(f"ns eval --benchmarks ./sums.py {work}", cwd=here)
    assert done.returncode == 0, done.stderr
    results = here / "out/eval-results"
    assert sorted(path.name for path in results.iterdir()) == ["both"]
    folder = results / "both"
    assert sorted(path.name for path in (folder / "SUMS").glob("*.jsonl")) == [
        "output-rs0.jsonl",
        "output-rs1.jsonl",
    ]
    assert len(rows_of(folder / "SUMS/output-rs0.jsonl")) == 2
    assert len(rows_of(folder / "MORE/output.jsonl")) == 4
    assert {call.body["temperature"] for call in server.records if call.body} == {0.0, 0.25}
    score = json.loads((folder / "metrics.json").read_text())["both"]["score"]
    assert score == {"num_benchmarks_in_group": 2, "overall": (3 * 50.0 + 25.0) / 4}
    assert set(json.loads((here / "out/metrics.json").read_text())) == {"both", "both.SUMS", "both.MORE"}
    assert "43.75%" in done.stdout
    later = ns("ns summarize_results out", cwd=here)
    assert "both has its own score" in later.stderr
    assert "both" not in json.loads((here / "out/metrics.json").read_text())
    (here / "other.py").write_text(GROUP.replace('name="both"', 'name="other"').replace("./sums.py", "./other.py"))
    again = ns("ns summarize_results --group ./other.py,./sums.py out", cwd=here)
    assert again.returncode == 0, again.stderr
    assert json.loads((here / "out/metrics.json").read_text())["both"]["score"] == score
    wrong = ns("ns summarize_results out --group gsm8k", cwd=here)
    assert "gsm8k is not a group" in wrong.stderr


def test_as_many_samples_as_are_asked_for(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="text", text="\\boxed{0}")))
    work = f"--server_type=vllm --model=fake --server_address={server.url} --data_dir data --output_dir out"
    done = ns(f"ns eval --benchmarks ./sums.py:3 {work}", cwd=here)
    assert done.returncode == 0, done.stderr
    for member in ("SUMS", "MORE"):
        assert len(list((here / "out/eval-results/both" / member).glob("output-rs*.jsonl"))) == 3


CONSTANTS = 'METRICS_TYPE = "math"\nGENERATION_ARGS = "++prompt_config=generic/math ++eval_type=math"\n'
PACKAGE = """
IS_BENCHMARK_GROUP = True
SCORE_MODULE = "somewhere.their_score"
BENCHMARKS = {"theirs.easy": {"NUM_SAMPLES": 2}, "theirs.hard": {"EVAL_SPLIT": "dev"}}
"""
SCORE = """
def compute_score(metrics):
    easy = metrics["theirs.easy"]["pass@1[avg-of-2]"]["symbolic_correct"]
    return {"overall": easy + metrics["theirs.hard"]["pass@1"]["symbolic_correct"], "parts": {"easy": easy}}
"""
SCRIPT = (
    'from pathlib import Path\nPath(\'test.jsonl\').write_text(\'{"problem": "1?", "expected_answer": "1"}\\n\')\n'
)


def test_a_group_of_the_reference_systems_packages(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    for name, text in {
        "__init__.py": PACKAGE,
        "their_score.py": SCORE,
        "easy/__init__.py": CONSTANTS,
        "easy/prepare.py": SCRIPT,
        "hard/__init__.py": CONSTANTS,
        "hard/dev.jsonl": '{"problem": "2?", "expected_answer": "0"}\n{"problem": "3?", "expected_answer": "9"}\n',
    }.items():
        (tmp_path / "theirs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "theirs" / name).write_text(text)
    done = ns("ns prepare_data ./theirs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    server = fake_server(Script(answer=Answer(kind="text", text="\\boxed{0}")))
    work = f"--server_type=vllm --model=fake --server_address={server.url} --output_dir out"
    done = ns("ns eval --benchmarks theirs", *work.split(), cwd=tmp_path, env={"NEMO_SKILLS_EXTRA_DATASETS": "."})
    assert done.returncode == 0, done.stderr
    score = json.loads((tmp_path / "out/eval-results/theirs/metrics.json").read_text())["theirs"]["score"]
    assert score == {"num_benchmarks_in_group": 2, "overall": 50.0, "parts": {"easy": 0.0}}
    assert "50.00%" in done.stdout
