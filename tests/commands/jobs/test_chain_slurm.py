# SPDX-License-Identifier: Apache-2.0
"""Commands that wait for each other, on a real Slurm cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.clusters import SUMS, Place, answers, reachable_server
from tests.commands.running import rows_of
from tests.launch.slurm_cluster import require_cluster

NEVER = "cancelled (DependencyNeverSatisfied)"
MAKE = """
import json, os, sys, time
while not os.path.exists(sys.argv[2]): time.sleep(0.1)
with open(sys.argv[1], "w") as file:
    for n in range(10):
        file.write(json.dumps({"id": f"s{n}", "problem": f"Add {n} and {n}."}) + "\\n")
sys.exit(int(sys.argv[3]))
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00\ndependency_type: afterok")
    return place


def chain(place: Place, url: str, *, code: int) -> None:
    """Submits three commands, of which each needs what the one before makes."""
    made, go = place.folder / "it is made.jsonl", place.folder / "go"
    model = f"--server_type=vllm --model=fake --server_address={url}"
    make = place.ns("ns run_cmd --cluster=real --expname=make python3 -c", MAKE, str(made), str(go), str(code))
    assert make.returncode == 0, make.stderr
    generate = place.ns(
        f"ns generate --cluster=real --expname=solve --run_after=make {model} --output_dir=solved "
        "++prompt_config=generic/math",
        f"--input_file={made}",
    )
    assert generate.returncode == 0, generate.stderr
    evaluate = place.ns(
        f"ns eval --cluster=real --expname=judge --run_after=solve --benchmarks=./sums.py:2 {model} --output_dir=out"
    )
    assert evaluate.returncode == 0, evaluate.stderr
    assert set(states(place, "solve").values()) == {"pending (Dependency)"}
    go.touch()


def states(place: Place, name: str) -> dict[str, str]:
    """Job → state, as `ns status` tells it."""
    shown = place.ns(f"ns status {name}")
    assert shown.returncode == 0, shown.stderr
    _, head, *rows = shown.stdout.splitlines()
    assert head.split()[:2] == ["job", "state"]
    return {
        row[: head.index("state")].strip(): row[head.index("state") : head.index("exit")].strip() for row in rows
    }


def begun(place: Place, name: str) -> list[Path]:
    return [path for job in place.experiments(name)[0].jobs if (path := Path(job.folder, "job.started")).exists()]


def test_three_commands_one_after_the_other(place: Place) -> None:
    with reachable_server(answers()) as server:
        chain(place, server.url, code=0)
        assert set(place.ended("judge").values()) == {"completed"}, place.logs("judge")
        for name in ("make", "solve"):
            assert set(states(place, name).values()) == {"completed"}, place.logs(name)
        assert len(rows_of(place.folder / "solved/output.jsonl")) == len(SUMS)
        assert (place.folder / "out/metrics.json").is_file()
        assert len(server.records) == 30
        ends = [Path(place.experiments(name)[0].jobs[-1].folder, "job.exit") for name in ("make", "solve")]
        starts = [min(file.stat().st_mtime for file in begun(place, name)) for name in ("solve", "judge")]
        assert all(end.stat().st_mtime <= start for end, start in zip(ends, starts, strict=True))


@pytest.mark.nightly
def test_what_comes_after_a_failure_never_runs(place: Place) -> None:
    """Slurm would keep them in the queue for ever, were it not told otherwise."""
    with reachable_server(answers()) as server:
        chain(place, server.url, code=3)
        assert place.ended("judge") == {"own-sums-rs0": NEVER, "own-sums-rs1": NEVER, "summarize": NEVER}
        assert states(place, "make") == {"make": "failed: client 'main' ended with exit code 3"}
        assert set(states(place, "solve").values()) == {NEVER}
        assert set(states(place, "judge").values()) == {NEVER}
        assert begun(place, "solve") == begun(place, "judge") == []
        assert server.records == []
        overview = place.ns("ns status").stdout
        assert "3 cancelled (DependencyNeverSatisfied)" in overview
        later = place.ns("ns run_cmd --cluster=real --run_after=solve true")
        assert later.returncode != 0
        assert "would never start" in later.stderr


@pytest.mark.nightly
def test_the_same_command_while_its_jobs_wait(place: Place) -> None:
    """Seeds and chunks of one benchmark, as tasks of an array, then what each command about jobs makes of them."""
    line = (
        "ns eval --cluster=real --expname=twice --benchmarks=./sums.py:3 --num_chunks=2 --server_type=vllm "
        "--model=fake --server_address=http://n1:9 --output_dir=out"
    )
    hold = "--sbatch_kwargs={'hold': true}".replace("'", '"')
    first = place.ns(line, hold)
    assert first.returncode == 0, first.stderr
    (experiment,) = place.experiments("twice")
    again = place.ns(line, hold)
    assert again.returncode == 0, again.stderr
    assert f"7 of 7 jobs already wait or run, in {experiment.id}: nothing is submitted." in again.stderr
    assert again.stdout == ""
    assert len({job.handle.split("_")[0] for job in experiment.jobs[:6]}) == 1
    assert len(place.experiments("twice")) == 1
    (place.folder / "out" / "eval-results" / "own-sums").mkdir(parents=True)
    stopped = place.ns("ns cancel twice")
    assert "cancelled own-sums-rs0-chunk-0" in stopped.stdout
    assert set(states(place, "twice").values()) <= {"cancelled", NEVER}
    for mark in ("", ".done"):
        (place.folder / f"out/eval-results/own-sums/output-rs1_chunk_0.jsonl{mark}").touch()
    third = place.ns(line, hold)
    assert third.returncode == 0, third.stderr
    assert [job.name for job in place.experiments("twice")[0].jobs] == [
        "own-sums-rs0-chunk-0",
        "own-sums-rs0-chunk-1",
        "own-sums-rs1-chunk-1",
        "own-sums-rs2-chunk-0",
        "own-sums-rs2-chunk-1",
        "summarize",
    ]
    assert place.ns("ns cancel twice").returncode == 0
