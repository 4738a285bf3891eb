# SPDX-License-Identifier: Apache-2.0
"""Counting what was asked for, and naming all of what is missing at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.web import serving
from tests.commands.data.test_training_sets import hub_of
from tests.commands.running import ns
from tests.train.data.test_published import FIXTURES

MADE = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(3):
        yield {{"problem": f"Add {{n}} and {{n}}.", "expected_answer": str(2 * n)}}

BENCHMARK = Benchmark(
    name="{name}", category="math-natural", title="Sums", generate_rows=rows, prompt="generic/math", grader="math",
    metric="math", samples=0,
)
"""
MODEL = "--model=m --server_type=vllm --server_address=http://n1:9 --output_dir=out"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.py").write_text(MADE.format(name=name))
    (tmp_path / "cluster_configs").mkdir()
    (tmp_path / "cluster_configs" / "mine.yaml").write_text(f"executor: none\njob_dir: {tmp_path}/jobs\n")
    return tmp_path


def test_all_that_were_asked_for_are_counted(here: Path) -> None:
    with serving() as web:
        hub_of(web, "openmathinstruct-2", "train", [FIXTURES["openmathinstruct-2"]] * 3)
        env = {"HF_ENDPOINT": web.url(""), "NEWSKILLS_MIRROR": ""}
        done = ns("ns prepare_data ./one.py ./two.py openmathinstruct-2 --data_dir=data", cwd=here, env=env)
        assert done.returncode == 0, done.stderr
        assert "3 of 3 prepared in data" in done.stdout
        hub_of(web, "math-hard", "train", [{"question": "P?"}])
        done = ns("ns prepare_data math-hard ./one.py ./two.py ./one.py --data_dir=data", cwd=here, env=env)
    assert done.returncode == 2
    assert "2 of 3 prepared in data" in done.stdout
    assert "note: named more than once, prepared once: one" in done.stderr
    assert done.stderr.splitlines()[-1] == "error: not prepared, as said above: math-hard."
    assert done.stderr.count("error: math-hard: ") == 1


@pytest.mark.parametrize("cluster", ["", "--cluster=mine "])
def test_all_that_are_missing_are_named(here: Path, cluster: str) -> None:
    assert ns("ns prepare_data ./two.py --data_dir=data", cwd=here).returncode == 0
    line = f"ns eval {cluster}--benchmarks=./one.py,./two.py,./three.py {MODEL} --data_dir=data"
    done = ns(line, cwd=here)
    assert done.returncode == 2
    assert done.stderr == (
        "error: one, three are not prepared: there are no files data/one/test.jsonl, "
        "data/three/test.jsonl. Run: ns prepare_data ./one.py ./three.py --data_dir=data\n"
    )
    assert ns("ns prepare_data ./one.py ./three.py --data_dir=data", cwd=here).returncode == 0


def test_files_that_are_missing_elsewhere_are_named(here: Path) -> None:
    from newskills.base.errors import ConfigError
    from newskills.launch.clusters.config import ClusterConfig
    from newskills.launch.machines.shell import LocalMachine
    from newskills.pipelines.placement.cluster import paths_of
    from newskills.pipelines.units.checks import check_inputs
    from newskills.run.planning.config import GenerationConfig
    from newskills.run.planning.spec import Unit

    units = [Unit(name=name, config=GenerationConfig(input_file=f"/gone/{name}.jsonl")) for name in ("one", "two")]
    paths = paths_of(ClusterConfig(executor="none", name="mine"), "nemo-skills")
    with pytest.raises(ConfigError, match=r"no input file /gone/one.jsonl, /gone/two.jsonl on this machine"):
        check_inputs(units, paths, LocalMachine())
