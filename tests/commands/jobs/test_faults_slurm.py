# SPDX-License-Identifier: Apache-2.0
"""Evaluations on a real Slurm cluster where things go wrong, or are called as nobody should call them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from tests.commands.clusters import SUMS, Place, answers, reachable_server
from tests.commands.running import rows_of
from tests.launch.slurm.test_slurm_faults import dead
from tests.launch.slurm_cluster import field, require_cluster, scontrol

from newskills.run.records.paths import done_path

ODD = 'it\'s "a" place, with (more) & 100% odd; names'
PROMPT = 'user: |-\n  It\'s a "prompt".\n\n  {problem}\n'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    (tmp_path / ODD).mkdir()
    place = Place(tmp_path / ODD)
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    return place


@pytest.mark.nightly
def test_spaces_and_quotes_in_every_path(place: Place) -> None:
    (place.folder / "my prompt's.yaml").write_text(PROMPT)
    with reachable_server(answers()) as server:
        done = place.ns(
            f"ns eval --cluster=real --server_type=vllm --model=fake --server_address={server.url} --num_chunks=2",
            "--benchmarks=./sums.py:2",
            f"--output_dir={place.folder}/out 'of' $HOME",
            f'--log_dir={place.folder}/its "logs"',
            f"--config_dir={place.folder}/cluster_configs",
            f"--data_dir={place.folder}/data",
            "--expname=odd",
            f"++prompt_config={place.folder}/my prompt's.yaml",
            '++system_message=Say `it` "plainly", don\'t $(shout).',
        )
        assert done.returncode == 0, done.stderr
        assert set(place.ended("odd").values()) == {"completed"}, place.logs("odd")
        first = server.records[0].body["messages"]
    assert first[0]["content"] == 'Say `it` "plainly", don\'t $(shout).'
    assert first[1]["content"].startswith('It\'s a "prompt".\n\nAdd ')
    rows = rows_of(place.folder / "out 'of' $HOME/eval-results/own-sums/output-rs1.jsonl")
    assert [row["id"] for row in rows] == [row["id"] for row in SUMS]
    metrics = json.loads((place.folder / "out 'of' $HOME/metrics.json").read_text())
    assert metrics["own-sums"]["pass@1[avg-of-2]"]["symbolic_correct"] == 100.0
    assert all(Path(job.logs).parent == place.folder / 'its "logs"' for job in place.experiments("odd")[0].jobs)
    assert "summarize" in place.ns("ns status odd").stdout
    assert "completed with exit code 0" in place.ns("ns logs odd").stdout


def test_a_job_of_a_queue_takes_over_from_one_whose_node_dies(place: Place) -> None:
    with reachable_server(answers(0.5)) as server:
        done = place.ns(
            "ns eval --cluster=real --benchmarks=./sums.py:2 --server_type=vllm --model=fake --exclusive "
            f"--expname=queue --num_jobs=2 --num_chunks=5 --work_queue --server_address={server.url} --output_dir=out "
            "++max_concurrent_requests=1"
        )
        assert done.returncode == 0, done.stderr
        handle = place.experiments("queue")[0].jobs[0].handle
        outputs = [place.folder / f"out/eval-results/own-sums/output-rs{seed}.jsonl" for seed in range(2)]
        deadline = time.monotonic() + 300
        while field(scontrol("show", "job", handle), "JobState") != "RUNNING" or len(server.records) < 4:
            assert time.monotonic() < deadline, place.logs("queue")
            time.sleep(0.1)
        with dead(field(scontrol("show", "job", handle), "NodeList")):
            while not all(done_path(output).exists() for output in outputs):
                assert time.monotonic() < deadline, place.logs("queue")
                time.sleep(0.2)
        subprocess.run(["scontrol", "update", f"jobid={handle}", "starttime=now"], check=False)
        assert set(place.ended("queue").values()) == {"completed"}, place.logs("queue")
        assert [row["id"] for output in outputs for row in rows_of(output)] == [row["id"] for row in SUMS] * 2
        assert len({record.prompt for record in server.records}) == len(SUMS)


@pytest.mark.nightly
def test_an_evaluation_whose_node_dies_loses_and_repeats_nothing(place: Place) -> None:
    with reachable_server(answers(0.5)) as server:
        done = place.ns(
            "ns eval --cluster=real --benchmarks=./sums.py --server_type=vllm --model=fake --exclusive --expname=lost "
            f"--server_address={server.url} --output_dir=out ++max_concurrent_requests=1"
        )
        assert done.returncode == 0, done.stderr
        handle = place.experiments("lost")[0].jobs[0].handle
        deadline = time.monotonic() + 300
        while len(server.records) < 4:
            assert time.monotonic() < deadline, place.logs("lost")
            time.sleep(0.1)
        with dead(field(scontrol("show", "job", handle), "NodeList")):
            while field(scontrol("show", "job", handle), "Restarts") == "0":
                assert time.monotonic() < deadline, place.logs("lost")
                time.sleep(0.2)
            # Slurm lets a job wait for two minutes before its next life
            subprocess.run(["scontrol", "update", f"jobid={handle}", "starttime=now"], check=True)
            assert set(place.ended("lost").values()) == {"completed"}, place.logs("lost")
        rows = rows_of(place.folder / "out/eval-results/own-sums/output.jsonl")
        assert [row["id"] for row in rows] == [row["id"] for row in SUMS], place.logs("lost")
        prompts = [record.prompt for record in server.records]
        assert len(set(prompts)) == len(SUMS)
        assert len(prompts) <= len(SUMS) + 1  # the one that was in flight
        assert (place.folder / "out/metrics.json").is_file()
