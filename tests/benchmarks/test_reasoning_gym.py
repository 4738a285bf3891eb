# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.graders.plain import plain_grader

from newskills.base.errors import ConfigError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark, list_benchmarks
from newskills.benchmarks.data import prepare, prepare_many, read_provenance

QUICK = (
    "chain_sum", "syllogism", "letter_counting", "word_sorting", "pool_matrix", "knights_knaves", "time_intervals",
    "number_sorting", "spiral_matrix", "needle_haystack", "easy-sum", "easy-product", "easy-gcd", "easy-letters",
    "easy-legs", "easy-sorting", "easy-reversal",
)  # fmt: skip


@pytest.fixture(scope="module")
def _library() -> None:
    pytest.importorskip("reasoning_gym", reason="no reasoning-gym here: pip install 'newskills[local]'")


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("task", QUICK)
def test_rows_and_their_verdicts(task: str, tmp_path: Path) -> None:
    benchmark = get_benchmark(f"reasoning-gym.{task}")
    done = {split.split: split for split in prepare(benchmark, data_dir=tmp_path).splits}
    rows = {name: list(read_rows(split.path)) for name, split in done.items()}
    assert {name: len(found) for name, found in rows.items()} == benchmark.items
    questions = {name: {row["question"] for row in found} for name, found in rows.items()}
    assert {name: len(found) for name, found in questions.items()} == benchmark.items
    assert not questions["test"] & questions["train"]
    grader = plain_grader(benchmark.grader, benchmark.grader_config)
    for row in rows["test"][:5]:
        right = (
            f"<answer>{row['expected_answer']}</answer>"
            if benchmark.grader == "reasoning_gym"
            else (f"2 things, so it is {row['expected_answer']}.")
        )
        assert grader.grade({**row, "generation": right}).outcome == "correct"
        assert grader.grade({**row, "generation": "I cannot tell."}).outcome in ("wrong", "no_answer")
    made = read_provenance(done["test"].path)
    assert made is not None
    assert made.sources[0]["generator"] == "reasoning-gym"
    assert made.sources[0]["version"]


@pytest.mark.nightly
@pytest.mark.usefixtures("_library")
def test_the_same_rows_everywhere(tmp_path: Path) -> None:
    """Another process with another hash seed, and many threads at once give the same files."""
    names = [f"reasoning-gym.{task}" for task in QUICK]
    code = (
        "import sys, json; from newskills.benchmarks import get_benchmark;"
        "from newskills.benchmarks.data import prepare;"
        "[prepare(get_benchmark(n), data_dir=sys.argv[1]) for n in json.loads(sys.argv[2])]"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    argv = [sys.executable, "-c", code, str(tmp_path / "1"), json.dumps(names)]
    subprocess.run(argv, check=True, timeout=120, env=environment, stdout=subprocess.DEVNULL)
    prepare_many([get_benchmark(name) for name in names], data_dir=tmp_path / "threads")
    files = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*.jsonl"))
    assert len(files) == 2 * len(names)
    for file in files:
        same = {(tmp_path / run / file).read_bytes() for run in ("1", "threads")}
        assert len(same) == 1, file


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ConfigError, match=r"newskills\[local\]"):
        prepare(get_benchmark("reasoning-gym.chain_sum"), data_dir=tmp_path)


def test_the_family_has_no_unverifiable_task() -> None:
    names = {entry.name for entry in list_benchmarks("reasoning")}
    for left_out in ("game_of_life_halting", "codeio", "word_ladder", "arc_agi", "rubiks_cube"):
        assert f"reasoning-gym.{left_out}" not in names
