# SPDX-License-Identifier: Apache-2.0
"""`ns eval` and its neighbours on a real Slurm cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.commands.clusters import SERVED, SUMS, Place, answers, reachable_server
from tests.commands.data.test_groups import GROUP
from tests.commands.evaluate.test_several_models import HOSTED, TASK, line
from tests.commands.running import rows_of, write
from tests.launch.slurm_cluster import require_cluster
from tests.server import Answer, Script


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    return place


@pytest.mark.parametrize(("seeds", "chunks"), [(2, 2), pytest.param(3, 4, marks=pytest.mark.nightly)])
def test_seeds_in_chunks(place: Place, seeds: int, chunks: int) -> None:
    with reachable_server(answers()) as server:
        line = (
            f"ns eval --cluster=real --benchmarks=./sums.py:{seeds} --num_chunks={chunks} --server_type=vllm "
            f"--model=fake --server_address={server.url} --output_dir=out --expname=grid"
        )
        done = place.ns(line)
        assert done.returncode == 0, done.stderr
        states = place.ended("grid")
        assert len(states) == seeds * chunks + 1
        assert set(states.values()) == {"completed"}, (states, place.logs("grid"))
        folder = place.folder / "out/eval-results/own-sums"
        for seed in range(seeds):
            assert [row["id"] for row in rows_of(folder / f"output-rs{seed}.jsonl")] == [row["id"] for row in SUMS]
        assert not list(folder.glob("*_chunk_?.jsonl"))
        metrics = json.loads((place.folder / "out/metrics.json").read_text())["own-sums"]
        assert metrics[f"pass@1[avg-of-{seeds}]"]["symbolic_correct"] == 100.0
        assert (folder / "benchmark.json").is_file()
        assert len(server.records) == seeds * len(SUMS)
        again = place.ns(line)
        assert again.returncode == 0, again.stderr
        assert "nothing to do" in again.stderr
        (folder / "output-rs1.jsonl.done").unlink()
        (folder / "output-rs1_chunk_1.jsonl.done").unlink()
        shown = place.ns(line, "--dry_run").stdout
        assert f"{chunks} to do of {seeds * chunks}" in shown, shown
        assert len(place.experiments("grid")) == 1


def test_data_is_prepared_where_jobs_find_it(place: Place) -> None:
    line = f"ns prepare_data ./sums.py --cluster=real --data_dir={place.folder}/there --expname=data"
    shown = place.ns(f"{line} --dry_run")
    assert shown.returncode == 0, shown.stderr
    assert f"--data_dir={place.folder}/there" in shown.stdout
    assert not (place.folder / "there").exists()
    done = place.ns(line)
    assert done.returncode == 0, done.stderr
    would = place.ns("ns cancel data --dry_run")
    assert would.returncode == 0, would.stderr
    assert place.ended("data") == {"prepare_data": "completed"}, place.logs("data")
    assert len(rows_of(place.folder / "there/own-sums/test.jsonl")) == 10
    unknown = place.ns("ns prepare_data gsm9k --cluster=real")
    assert unknown.returncode != 0
    assert "did you mean 'gsm8k'" in unknown.stderr
    assert len(place.experiments("prepare_data")) == 0


def test_the_last_job_scores_a_group_of_ones_own(place: Place) -> None:
    (place.folder / "sums.py").write_text(GROUP)
    assert place.ns("ns prepare_data ./sums.py").returncode == 0
    with reachable_server(Script(answer=Answer(kind="text", text="\\boxed{0}"))) as server:
        done = place.ns(
            "ns eval --cluster=real --benchmarks=./sums.py --server_type=vllm --model=fake "
            f"--server_address={server.url} --output_dir=out --expname=group"
        )
        assert done.returncode == 0, done.stderr
        states = place.ended("group")
    assert list(states)[-1] == "summarize"
    assert len(states) == 3 + 2 + 1
    assert set(states.values()) == {"completed"}, (states, place.logs("group"))
    score = json.loads((place.folder / "out/eval-results/both/metrics.json").read_text())["both"]["score"]
    assert score == {"num_benchmarks_in_group": 2, "overall": (3 * 50.0 + 25.0) / 4}
    assert set(json.loads((place.folder / "out/metrics.json").read_text())) == {"both", "both.SUMS", "both.MORE"}


@pytest.mark.nightly
def test_two_models_on_nodes_of_their_own(place: Place) -> None:
    (place.folder / "task.py").write_text(TASK)
    write(place.folder / "in.jsonl", SUMS)
    done = place.ns(f"{line(HOSTED)} --cluster=real --expname=both")
    assert done.returncode == 0, done.stderr
    assert place.ended("both") == {"generate": "completed"}, place.logs("both")
    assert {row["generation"] for row in rows_of(place.folder / "out/output.jsonl")} == {"one and two"}


@pytest.mark.nightly
def test_a_server_on_another_node_is_found(place: Place) -> None:
    done = place.ns(
        f"ns eval --cluster=real --benchmarks=./sums.py --server_type=generic --server_gpus=0 --model=fake "
        f"--heterogeneous --output_dir=out --expname=het --server_entrypoint={SERVED}",
    )
    assert done.returncode == 0, done.stderr
    assert set(place.ended("het").values()) == {"completed"}, place.logs("het")
    job = place.experiments("het")[0].jobs[0]
    with open(f"{job.logs}/server.log") as log:
        served_on = log.readline().split()[-1]
    ran_on = (place.folder / "out/eval-logs/run.log").read_text().split(" on ")[1].split()[0]
    assert served_on != ran_on
    assert len(rows_of(place.folder / "out/eval-results/own-sums/output.jsonl")) == 10
    assert (place.folder / "out/metrics.json").is_file()


def test_a_copy_goes_on_where_the_time_limit_stopped_the_job(place: Place) -> None:
    with reachable_server(answers(0.5)) as server:
        done = place.ns(
            f"ns eval --cluster=real --benchmarks=./sums.py --server_type=vllm --model=fake --dependent_jobs=1 "
            f"--server_address={server.url} --output_dir=out --expname=limit ++max_concurrent_requests=1"
        )
        assert done.returncode == 0, done.stderr
        handle = place.experiments("limit")[0].jobs[0].handle
        deadline = time.monotonic() + 300
        while len(server.records) < 4:
            assert time.monotonic() < deadline, place.logs("limit")
            time.sleep(0.1)
        # what Slurm sends when the limit is near (a limit is a minute at least)
        subprocess.run(["scancel", "--batch", "--signal=USR1", handle.split(":")[0]], check=True)
        place.ended("limit")
        rows = rows_of(place.folder / "out/eval-results/own-sums/output.jsonl")
        assert [row["id"] for row in rows] == [row["id"] for row in SUMS], place.logs("limit")
        assert all(row["symbolic_correct"] for row in rows)
        prompts = [record.prompt for record in server.records]
        assert len(prompts) == len(set(prompts)) == 10, place.logs("limit")
        assert (place.folder / "out/eval-logs/run.log").read_text().count(" begins: ") == 2


def test_the_exit_code_of_a_command_is_the_jobs(place: Place) -> None:
    words = ('echo "$1" >"$2"; exit 3', "x", "a 'b' $c", str(place.folder / "it is here"))
    done = place.ns("ns run_cmd --cluster=real --expname=mine bash -c", *words)
    assert done.returncode == 0, done.stderr
    assert place.ended("mine") == {"mine": "failed"}
    assert (place.folder / "it is here").read_text() == "a 'b' $c\n"
    assert "client 'main' ended with exit code 3" in place.ns("ns status mine").stdout


@pytest.mark.parametrize(
    "awaited",
    [("experiment serve",), pytest.param(("serves on n", "listens at http://n"), marks=pytest.mark.nightly)],
)
def test_a_server_runs_until_somebody_types_ctrl_c(place: Place, awaited: tuple[str, ...]) -> None:
    words = (
        "ns start_server --cluster=real --server_type=generic --model=fake --server_gpus=0 --expname=serve "
        f"--server_entrypoint={SERVED}"
    ).split()[1:]
    screen, end = os.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "newskills", *words],  # the terminal sends the signal
        cwd=place.folder,
        env={**os.environ, **place.env},
        stdin=end,
        stdout=end,
        stderr=end,
    ) as process:
        os.close(end)
        read_until(screen, awaited)
        os.write(screen, b"\x03")
        read_until(screen, ["Stopped."])
        assert process.wait(300) == 0
    os.close(screen)
    assert place.ended("serve") == {"serve": "cancelled"}


def read_until(screen: int, texts: Sequence[str]) -> None:
    seen = ""
    while not all(text in seen for text in texts):
        seen += os.read(screen, 4096).decode()
