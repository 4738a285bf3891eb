# SPDX-License-Identifier: Apache-2.0
"""`ns eval` and `ns generate` with everything in containers: clients, model server, sandbox (podman)."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK, SUMS, Place
from tests.commands.running import rows_of, write
from tests.launch.containers import IMAGE, left, podman

__all__ = ["podman"]

ROOT = Path(__file__).parents[3]
PACKAGES = f"{sysconfig.get_path('purelib')}:/packages:ro"
HOSTED = (
    f"--cluster=box --sandbox_mounts={PACKAGES} --server_type=generic --model=fake --server_gpus=0 --with_sandbox "
    "--server_entrypoint=/checkout/tests/commands/served.py"
)
CODE = "++code_execution=true ++code_tags=qwen ++prompt_config=openmath/tir"


@pytest.fixture
def place(tmp_path: Path, podman: None) -> Place:
    """The image has no package of ours: newskills is the code of the job, what it needs is mounted."""
    place = Place(tmp_path)
    (tmp_path / "it's data").mkdir()
    place.config(
        "box",
        "executor: local\nengine: podman\nskip_hf_home_check: true\n"
        f"containers: {{nemo-skills: {IMAGE}, generic: {IMAGE}, sandbox: {IMAGE}}}\n"
        f"mounts: ['{tmp_path}:/work', '{PACKAGES}', '{ROOT}:/checkout:ro']\n"
        "env_vars: ['PYTHONPATH=/packages', \"GREETING=it's fine\"]",
    )
    return place


def test_an_evaluation_with_server_and_sandbox(place: Place) -> None:
    (place.folder / "sums.py").write_text(BENCHMARK.replace("generic/math", "openmath/tir"))
    done = place.ns(
        f"ns eval {HOSTED} --benchmarks=./sums.py:2 --num_jobs=1 --output_dir=out --expname=boxed {CODE}",
        "--server_args=--reckon",
    )
    assert done.returncode == 0, done.stderr + place.logs("boxed")
    rows = rows_of(place.folder / "out/eval-results/own-sums/output-rs1.jsonl")
    assert [row["symbolic_correct"] for row in rows] == [True] * len(SUMS)
    assert all("```output\n" in row["generation"] for row in rows)
    metrics = json.loads((place.folder / "out/metrics.json").read_text())["own-sums"]
    assert metrics["pass@1[avg-of-2]"]["symbolic_correct"] == 100.0
    [units, _] = place.experiments("boxed")[0].jobs
    script = Path(units.folder, "job.sh").read_text()
    for name in ("main", "server", "sandbox"):
        assert f"newskills-{name}-" in script
        assert Path(units.folder, f"{name}.exit").is_file()
    assert left(place.folder) == []


@pytest.mark.nightly
def test_a_generation_with_a_mount_and_a_variable(place: Place) -> None:
    write(place.folder / "it's data/in.jsonl", [{"problem": row["problem"]} for row in SUMS])
    done = place.ns(
        f"ns generate {HOSTED} --num_random_seeds=2 --num_chunks=2 --num_jobs=2 --output_dir=out --expname=made {CODE}",
        "--server_args=--reckon",
        "--input_file=/work/it's data/in.jsonl",
        '--preprocess_cmd=printf \'%s\\n\' "$GREETING" "$PWD" >/work/said; [[ ! -e $0 ]]',
        '--postprocess_cmd=tail -n 99 "$1" >/dev/null; touch /work/after',
    )
    assert done.returncode == 0, done.stderr + place.logs("made")
    assert (place.folder / "said").read_text() == "it's fine\n/nemo_run/code\n"
    for seed in range(2):
        rows = rows_of(place.folder / f"out/output-rs{seed}.jsonl")
        assert [row["problem"] for row in rows] == [row["problem"] for row in SUMS]
    assert (place.folder / "after").exists()
    assert left(place.folder) == []
