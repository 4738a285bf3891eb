# SPDX-License-Identifier: Apache-2.0
"""Steps judged against targets from a file, in the real sandbox."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.graders.code.running_any import graded

from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.metrics import make_metric

ONE = "def twice(x):\n    return 2 * np.asarray(x)"
TWO = "def four_times(x):\n    return twice(twice(x)), 'ok'"
ROW: Row = {
    "id": "1",
    "required_dependencies": "import numpy as np",
    "sub_steps": [
        {
            "step_number": "1.1",
            "test_cases": ["assert np.allclose(twice([1, 2]), target)", "assert twice(2) == target"],
        },
        {
            "step_number": "1.2",
            "test_cases": [
                "from scicode.compare.cmp import cmp_tuple_or_list\nassert cmp_tuple_or_list(four_times(3), target)"
            ],
        },
        {"step_number": "13.6", "test_cases": ["assert False"]},
    ],
}


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    folder = tmp_path_factory.mktemp("targets")
    with h5py.File(folder / "test_data.h5", "w") as file:
        file["1.1/test1/var1"] = np.array([2, 4])
        file["1.1/test2/var1"] = 4
        file["1.2/test1/var1"] = 12
        file["1.2/test1/var2"] = "ok"
    folder.chmod(0o755)
    (folder / "test_data.h5").chmod(0o644)
    return folder


def answered(*codes: str) -> Row:
    return {**ROW, "generation": "…", "steps": dict(zip(("1.1", "1.2", "13.6"), (*codes, ""), strict=True))}


def test_steps(targets: Path) -> None:
    rows = [
        answered(ONE, TWO),
        answered(ONE, "def four_times(x): return x, 'ok'"),
        answered("x = (", TWO),
        answered("", ""),
    ]
    right, half, broken, nothing = graded("scicode", rows, targets)
    assert (right.outcome, right.why) == ("correct", "2 of 2 steps")
    assert (half.outcome, half.why) == ("wrong", "1 of 2 steps")
    assert [step["passed"] for step in half.fields["eval_status"]] == [True, False]
    assert (broken.outcome, broken.why) == ("wrong", "0 of 2 steps")
    assert nothing.outcome == "no_answer"
    metric = make_metric("scicode")
    for row, score in zip(rows, (right, half, broken, nothing), strict=True):
        metric.update([{**row, **score.fields, "outcome": score.outcome}])
    found = metric.metrics()["pass@1"]
    assert found["problem_accuracy"] == 25
    assert found["num_subtasks"] == 8
    assert found["subtask_accuracy"] == pytest.approx(100 * 3 / 8)
    assert found["num_problems"] == 4


def test_without_targets_nothing_is_judged() -> None:
    (score,) = graded("scicode", [answered(ONE, TWO)])
    assert (score.outcome, score.cause) == ("unscored", "harness")
    assert "test_data.h5" in score.why


@pytest.mark.mirror
def test_real_problems(mirror: Path, tmp_path: Path) -> None:
    benchmark = get_benchmark("scicode")
    prepare(
        benchmark,
        data_dir=tmp_path,
        splits=["test", "dev"],
        options=FetchOptions(mirror=str(mirror), offline=True),
    )
    found = {split: list(read_rows(load_rows(benchmark, split, tmp_path))) for split in ("test", "dev")}
    assert {split: len(rows) for split, rows in found.items()} == {"test": 65, "dev": 15}
    assert sum(len(row["sub_steps"]) for row in found["test"]) == 291
    steps = {step["step_number"] for row in found["test"] for step in row["sub_steps"]}
    assert steps >= {"13.6", "62.1", "76.3"}
    row = found["dev"][0]
    solved = {step["step_number"]: step["ground_truth_code"] for step in row["sub_steps"]}
    (score,) = graded("scicode", [{**row, "generation": "…", "steps": solved}])
    assert score.outcome == "unscored"
