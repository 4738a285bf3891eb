# SPDX-License-Identifier: Apache-2.0
"""newskills' benchmarks in nemo-evaluator 0.3 and later.

With NEWSKILLS_NEL_SOURCE, the folder `src` of its repository (or with the package), its own code loads them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from tests.commands.running import write

from newskills.base.errors import ConfigError
from newskills.interop import nel_environments as old_address
from newskills_evaluator import nel_environments
from newskills_evaluator.nel_environments import EnvironmentProblems

SOURCE = os.environ.get("NEWSKILLS_NEL_SOURCE", "")
ROWS = [
    {"id": "0", "problem": "What is 1 + 1?", "expected_answer": "2"},
    {"id": "1", "problem": "What is 1 + 2?", "expected_answer": "3"},
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A benchmark whose rows lie ready."""
    (tmp_path / "sums.py").write_text(
        "from newskills.base.benchmark import Benchmark\n"
        'BENCHMARK = Benchmark(name="sums", category="math", title="Sums", grader="math", metric="math", '
        f"generate_rows=lambda split: {ROWS!r}, prompt='generic/math')\n"
    )
    monkeypatch.setenv("NEWSKILLS_DATA_DIR", str(tmp_path / "data"))
    return str(tmp_path / "sums.py")


def test_rows_prompts_and_verdicts_are_those_of_an_evaluation(data: str) -> None:
    problems = EnvironmentProblems(data, None)
    try:
        assert [row["expected_answer"] for row in problems.rows] == ["2", "3"]
        (message,) = problems.messages(1)
        assert message["role"] == "user"
        assert "What is 1 + 2?" in message["content"]
        share, told = problems.score(1, "So \\boxed{3}.")
        assert (share, told["predicted_answer"], told["outcome"]) == (1.0, "3", "correct")
        assert problems.score(0, "So \\boxed{3}.")[0] == 0.0
    finally:
        problems.close()
    assert len(EnvironmentProblems(data, 1).rows) == 1


def test_what_is_more_than_a_question_and_an_answer_is_refused() -> None:
    with pytest.raises(ConfigError, match="simpleqa is judged by a model"):
        EnvironmentProblems("simpleqa", None)


def test_the_path_of_the_file_is_printed() -> None:
    done = subprocess.run([sys.executable, "-m", old_address.__name__], capture_output=True, text=True)
    assert Path(done.stdout.strip()) == Path(nel_environments.__file__).resolve()


@pytest.mark.skipif(
    not SOURCE and find_spec("nemo_evaluator.environments") is None if find_spec("nemo_evaluator") else not SOURCE,
    reason="neither nemo-evaluator 0.3 nor NEWSKILLS_NEL_SOURCE is there",
)
@pytest.mark.parametrize("module", [nel_environments, old_address])
def test_nel_loads_the_file_and_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    if SOURCE:
        monkeypatch.syspath_prepend(SOURCE)
    from nemo_evaluator.environments.registry import get_environment

    monkeypatch.setenv("NEWSKILLS_DATA_DIR", str(tmp_path))
    folder = tmp_path / "gsm8k"
    folder.mkdir()
    write(folder / "test.jsonl", ROWS)
    environment = get_environment(f"{module.__file__}:newskills.gsm8k")

    async def ask() -> tuple[float, float]:
        seed = await environment.seed(1)
        right = await environment.verify("\\boxed{3}", seed.expected_answer, **seed.metadata)
        wrong = await environment.verify("\\boxed{4}", seed.expected_answer, **seed.metadata)
        await environment.close()
        return right.reward, wrong.reward

    assert asyncio.run(ask()) == (1.0, 0.0)
