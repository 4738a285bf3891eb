# SPDX-License-Identifier: Apache-2.0
"""Judges of `ns eval` as jobs: processes of this machine, and a real Slurm cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from tests.commands import judged
from tests.commands.clusters import SERVED, Place, reachable_server
from tests.commands.judged import answering, judging
from tests.commands.running import rows_of
from tests.conftest import FakeServerFactory
from tests.launch.slurm_cluster import require_cluster
from tests.server import Fault

TREE = """\
eval on mine (executor none): 4 jobs
├── judged-sums-rs0
│   └── client main: … -m newskills.run {main.folder}
├── judged-sums-rs1
│   └── client main: … -m newskills.run {main.folder}
├── judge-judged-sums (after judged-sums-rs0, judged-sums-rs1)
│   ├── server server: …
│   └── client main: … -m newskills.run {main.folder} --server {server.address}
└── summarize (after judge-judged-sums)
    └── client summary: summarize_results …
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (place.folder / "judged.py").write_text(judged.BENCHMARK)
    assert place.ns("ns prepare_data ./judged.py").returncode == 0
    place.config("mine", "executor: none")
    return place


def evaluation(address: str, *options: str, cluster: str = "mine") -> str:
    return " ".join(
        [
            f"ns eval --cluster={cluster} --benchmarks=./judged.py:2 --num_jobs=-1 --server_type=vllm --model=fake",
            f"--server_address={address} --output_dir=out --judge_model=fake --accept_lost=20",
            *options,
        ]
    )


def at(address: str) -> str:
    return f"--judge_server_type=vllm --judge_server_address={address}"


def hosted(script: object = None) -> tuple[str, str]:
    words = f"--judge_server_type=generic --judge_server_gpus=0 --judge_server_entrypoint={SERVED}"
    return words, f"--judge_server_args=--script '{json.dumps(script or {'answer': {'text': 'Judgement: Yes'}})}'"


def test_the_plan_is_the_golden_one(place: Place) -> None:
    line, arguments = hosted()
    done = place.ns(evaluation("http://127.0.0.1:9/v1", line), arguments, "--dry_run")
    assert done.returncode == 0, done.stderr
    tree = done.stdout.partition("\n\n")[0] + "\n"
    tree = re.sub(r"(client main): \S+", r"\1: …", tree)
    tree = re.sub(r"(server server): .*", r"\1: …", tree)
    assert tree == TREE
    assert "2 to do of 2, by fake" in done.stdout
    assert not (place.folder / "out").exists()


def test_a_judge_has_a_job_of_its_own_with_its_server_beside_it(
    place: Place, fake_server: FakeServerFactory
) -> None:
    model = fake_server(answering(), process=True)
    line, arguments = hosted()
    kwargs = '--judge_sbatch_kwargs={"nice": 7}'
    done = place.ns(evaluation(model.url, line), arguments, kwargs)
    assert done.returncode == 0, done.stderr + place.logs("eval")
    jobs = {job.name: job for job in place.experiments("eval")[0].jobs}
    assert set(jobs["judge-judged-sums"].depends_on) == {"judged-sums-rs0", "judged-sums-rs1"}
    assert set(jobs["summarize"].depends_on) == {"judge-judged-sums"}
    plans = {name: json.loads(Path(job.folder, "plan.json").read_text()) for name, job in jobs.items()}
    assert '"nice": 7' in json.dumps(plans["judge-judged-sums"])
    assert '"nice": 7' not in json.dumps(plans["judged-sums-rs0"])
    assert len(model.records) == 20
    metrics = json.loads((place.folder / "out/metrics.json").read_text())["judged-sums"]
    assert metrics["pass@1[avg-of-2]"]["judge_correct"] == 100.0
    assert (place.folder / "out/eval-results/judged-sums/benchmark.json").is_file()
    again = place.ns(evaluation(model.url, line), arguments, kwargs)
    assert "nothing to do" in again.stderr


@pytest.mark.nightly
def test_done_decides_what_is_judged(place: Place, fake_server: FakeServerFactory) -> None:
    model, judge = fake_server(answering(), process=True), fake_server(judging(), process=True)
    words = evaluation(model.url, at(judge.url))
    assert place.ns(words).returncode == 0
    folder = place.folder / "out/eval-results/judged-sums"
    (folder / "output-rs1.jsonl.done").unlink()
    (folder / "output-rs1.jsonl").unlink()
    done = place.ns(words)
    assert done.returncode == 0, done.stderr
    assert [job.name for job in place.experiments("eval")[0].jobs] == ["judge-judged-sums-rs1", "summarize"]
    assert (len(model.records), len(judge.records)) == (20, 30)
    anew = place.ns(words, "--extra_judge_args=++skip_filled=false")
    assert anew.returncode == 0, anew.stderr
    assert (len(model.records), len(judge.records)) == (20, 50)


@pytest.mark.nightly
def test_nothing_is_judged_where_answers_are_missing(place: Place, fake_server: FakeServerFactory) -> None:
    model = fake_server(answering(faults=(Fault(kind="status", status=400, marker="Add 3 and"),)), process=True)
    judge = fake_server(judging(), process=True)
    words = evaluation(model.url, at(judge.url))
    failed = place.ns(words)
    assert failed.returncode != 0
    assert "output-rs0.jsonl.done: its job has not finished" in place.logs("eval")
    assert not judge.records
    assert not (place.folder / "out/metrics.json").exists()
    model.script = answering()
    done = place.ns(words)
    assert done.returncode == 0, done.stderr + place.logs("eval")
    assert (len(model.records), len(judge.records)) == (20 + 2, 20)


@pytest.mark.nightly
def test_a_rehearsal_plays_the_judge_too(place: Place) -> None:
    line, arguments = hosted()
    words = evaluation("http://127.0.0.1:9/v1", line).replace("ns eval", "ns rehearse eval")
    words = words.replace(
        "--server_type=vllm", f"--server_type=generic --server_gpus=0 --server_entrypoint={SERVED}"
    )
    words = words.replace("--server_address=http://127.0.0.1:9/v1", "")
    done = place.ns(words, arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\[ok\] +judge-judged-sums +ran here", done.stdout)
    assert not (place.folder / "out").exists()


@pytest.mark.nightly
def test_judges_on_slurm(place: Place) -> None:
    require_cluster()
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    with reachable_server(answering()) as model:
        line, arguments = hosted({"answer": {"kind": "table", "table": judged.VERDICTS, "template": "Judgement: %s",
                                             "text": "Judgement: Yes"}})  # fmt: skip
        done = place.ns(
            evaluation(model.url, line, "--num_chunks=2 --expname=judged", cluster="real"), arguments, timeout=200
        )
        assert done.returncode == 0, done.stderr
        states = place.ended("judged")
        assert len(states) == 6
        assert set(states.values()) == {"completed"}, (states, place.logs("judged"))
        assert len(model.records) == 20
    folder = place.folder / "out/eval-results/judged-sums"
    for seed in range(2):
        outcomes = [row["outcome"] for row in rows_of(folder / f"output-rs{seed}.jsonl")]
        assert outcomes == ["wrong" if n == 4 else "unscored" if n == 7 else "correct" for n in range(10)]
    metrics = json.loads((place.folder / "out/metrics.json").read_text())["judged-sums"]
    assert metrics["pass@1[avg-of-2]"]["judge_correct"] == pytest.approx(100 * 8 / 9)


def test_a_panel_of_services_gets_its_keys_by_the_names_of_variables(
    place: Place, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST_JUDGE", "secret-of-the-first")
    monkeypatch.setenv("SECOND_JUDGE", "secret-of-the-second")
    model = fake_server(answering(), process=True)
    first = fake_server(msgspec.structs.replace(judging(), api_key="secret-of-the-first"), process=True)
    second = fake_server(msgspec.structs.replace(judging(), api_key="secret-of-the-second"), process=True)
    keys = "++server.api_key_env_var=FIRST_JUDGE ++models.model1.api_key_env_var=SECOND_JUDGE"
    words = evaluation(model.url, at(f"{first.url},{second.url}"), "--expname=panel")
    words = words.replace("--judge_model=fake", "--judge_model=one,two")
    done = place.ns(words, f"--extra_judge_args={keys}")
    assert done.returncode == 0, done.stderr + place.logs("panel")
    assert (len(first.records), len(second.records)) == (20, 20)
    records = rows_of(place.folder / "out/eval-results/judged-sums/output-rs0.jsonl")
    assert [set(row["judge_panel"]) for row in records] == [{"one", "two"}] * 10
    for path in place.folder.rglob("*"):
        if path.is_file():
            assert b"secret-of-the-" not in path.read_bytes(), path


@pytest.mark.nightly
def test_the_servers_of_a_panel_start_beside_it(place: Place, fake_server: FakeServerFactory) -> None:
    check_hosted_panel(place, fake_server(answering(), process=True).url, "mine")


@pytest.mark.nightly
def test_a_panel_on_slurm(place: Place) -> None:
    require_cluster()
    place.config("real", "executor: slurm\ndefault_timeout: 00:10:00")
    with reachable_server(answering()) as model:
        check_hosted_panel(place, model.url, "real")


def check_hosted_panel(place: Place, address: str, cluster: str) -> None:
    """Run an evaluation whose two judges are servers of the judges' job."""
    line, arguments = hosted()
    words = evaluation(address, line, "--expname=panel", cluster=cluster)
    words = words.replace("--judge_model=fake", "--judge_model=one,two")
    done = place.ns(words, arguments, timeout=200)
    assert done.returncode == 0, done.stderr + place.logs("panel")
    assert set(place.ended("panel").values()) == {"completed"}, place.logs("panel")
    for seed in range(2):
        records = rows_of(place.folder / f"out/eval-results/judged-sums/output-rs{seed}.jsonl")
        assert [set(row["judge_panel"]) for row in records] == [{"one", "two"}] * 10
        assert {row["outcome"] for row in records} == {"correct"}
    metrics = json.loads((place.folder / "out/metrics.json").read_text())["judged-sums"]
    assert metrics["pass@1[avg-of-2]"]["judge_split"] == 0.0
