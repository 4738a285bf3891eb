# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_data` with options that belong to benchmarks: a real process, a real file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of

from newskills import prepare_data
from newskills.base.errors import UnknownNameError

BENCHMARK = """
from newskills.base.benchmark import Benchmark
from newskills.benchmarks.options import rows_with

def rows(split):
    for n in range(6):
        yield {"id": f"s{n}", "problem": f"{n}?", "expected_answer": str(n), "kind": ("odd" if n % 2 else "even")}

BENCHMARK = Benchmark(
    name="kinds", category="math-natural", title="Kinds", generate_rows=rows, prompt="generic/math",
    options={"kinds": rows_with("kind", "only these kinds", "odd", "even")},
)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "kinds.py").write_text(BENCHMARK)
    return tmp_path


def test_options_of_a_benchmark(here: Path) -> None:
    done = ns("ns prepare_data ./kinds.py --kinds odd --data_dir data", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "made with --kinds=odd" in done.stderr
    file = here / "data/kinds/test.jsonl"
    assert [row["id"] for row in rows_of(file)] == ["s1", "s3", "s5"]
    assert json.loads((here / "data/kinds/test.jsonl.meta.json").read_text())["options"] == {"kinds": ["odd"]}
    assert ns("ns prepare_data ./kinds.py --data_dir data --kinds=odd,even", cwd=here).returncode == 0
    assert len(rows_of(file)) == 6


def test_splits_of_a_dry_run(here: Path) -> None:
    done = ns("ns prepare_data gsm8k --split=all --data_dir data --dry_run", cwd=here)
    assert done.returncode == 0
    assert [f"{split}.jsonl" in done.stdout for split in ("test", "train", "all")] == [True, True, False]
    done = ns("ns prepare_data gsm8k --split=tst --data_dir data --dry_run", cwd=here)
    assert done.returncode != 0
    assert "gsm8k has no split 'tst'; the choices are test, train." in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--kind odd", "Unknown option '--kind'; did you mean '--kinds'?"),
        ("--kinds od", "Unknown value of --kinds 'od'; did you mean 'odd'?"),
        ("--kinds", "--kinds needs a value: odd, even."),
        ("--dta_dir data", "did you mean '--data_dir'"),
    ],
)
def test_what_there_is_not(here: Path, words: str, said: str) -> None:
    done = ns(f"ns prepare_data ./kinds.py {words}", cwd=here)
    assert said in done.stderr
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_its_help(here: Path) -> None:
    done = ns("ns prepare_data ./kinds.py gsm8k --help", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "options of ./kinds.py:\n  --kinds" in done.stdout
    assert "odd, even" in done.stdout
    assert "options of gsm8k:\n  (none beyond those above)" in done.stdout
    assert "--data_dir" in done.stdout
    assert "options of gsm8k" not in ns("ns prepare_data --help", cwd=here).stdout


def test_from_python(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    prepare_data(benchmarks="./kinds.py", data_dir="data", kinds=["even"])
    assert [row["id"] for row in rows_of(here / "data/kinds/test.jsonl")] == ["s0", "s2", "s4"]
    with pytest.raises(UnknownNameError, match="did you mean '--kinds'"):
        prepare_data(benchmarks="./kinds.py", data_dir="data", kindz=["even"])
