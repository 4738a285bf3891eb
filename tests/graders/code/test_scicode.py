# SPDX-License-Identifier: Apache-2.0
"""Steps judged against targets from a file, in the real sandbox."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.graders.code.running_any import graded

from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.graders.code.given import GIVEN
from newskills.graders.code.scicode import without_imports
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


def test_given_steps_come_before_those_that_use_them(targets: Path) -> None:
    """Whatever a record has in their place; imports of a step's own are not run."""
    twice = "def twice(x):\n    from math import no_such_name\n    return 2 * np.asarray(x)"
    use = f"import no_such_module\n{twice}\n\nBlock(1, 2, {{}})"
    row = {**ROW, "sub_steps": [{"step_number": "62.1", "test_cases": []}, *ROW["sub_steps"][:1]]}
    (score,) = graded("scicode", [{**row, "generation": "…", "steps": {"62.1": "x = (", "1.1": use}}], targets)
    assert (score.outcome, score.why) == ("correct", "1 of 1 steps")


def test_given_steps_do_what_the_authors_own_do() -> None:
    """The sequence is that of their code for this seed."""
    space: Row = {"np": np, "random": random}
    for code in GIVEN.values():
        exec(code, space)
    matrix = {
        "A": [12.5, 0, 0, 0, 0, 0, 100, 55],
        "C": [33.33, 0, 95.83, 0, 0, 0, 0, 35],
        "G": [8.33, 95.83, 0, 95.83, 0, 100, 0, 10],
        "T": [45.83, 4.17, 4.17, 4.17, 100, 0, 0, 0],
    }
    random.seed(42)
    assert space["generate_dna"](12, matrix) == (10, "AGAAAGGGAATGCGTGACAG", "CTTGCGTGACTTCCCTTTCT")
    grid = space["Maxwell"](6, 2)
    assert (grid.x.shape, grid.z.shape, grid.phi.shape, grid.n_vars) == ((6, 1, 1), (1, 1, 6), (6, 6, 6), 7)
    assert (grid.delta, grid.x[0, 0, 0], grid.x[-1, 0, 0], grid.t) == (0.5, -0.25, 2.25, 0.0)
    assert vars(space["EnlargedBlock"](1, 2, {})) == {"length": 1, "basis_size": 2, "operator_dict": {}}


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("import math\nx = 1", "\nx = 1"),
        ("from scipy import (\n    linalg,\n    sparse,\n)\nx = 1", "\nx = 1"),
        ("def f():\n    import math\n    return 1", "def f():\n\n    return 1"),
        ("imported = 1\nfrom_x = 2", "imported = 1\nfrom_x = 2"),
    ],
)
def test_imports_are_taken_out(code: str, left: str) -> None:
    assert without_imports(code) == left


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
