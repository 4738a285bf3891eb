# SPDX-License-Identifier: Apache-2.0
"""What commands print, as values: names, agents, checks, plans, logs, rows, servers beside the program."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
import yaml
from tests.apps.aimo.test_answering import QUESTIONS
from tests.apps.evaluator.test_profile_evaluate import Project
from tests.commands.clusters import answers
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Script
from tests.view.comparison.runs import answers as answered
from tests.view.comparison.runs import write_run

import newskills
from newskills.base.errors import NewskillsError
from newskills.base.store import write_rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.setenv("NEWSKILLS_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def test_names_agents_and_candidates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [listed] = newskills.list_names(search="chinese simpleqa")
    assert (listed.name, listed.rows, listed.needs, listed.prepared) == (
        "chinese-simpleqa",
        "3,000",
        "judge",
        False,
    )
    assert [item.name for item in newskills.list_names(kind="graders", search="tau2")] == ["tau2"]
    [agent] = newskills.list_agents(action="list", names=["codex"], folder=folder)
    assert (agent.name, agent.protocol, agent.folder) == ("codex", "responses", None)
    python = {agent.name: agent.comes for agent in newskills.list_agents(folder=folder) if agent.comes}
    assert python["mini-swe-agent"]
    assert newskills.completion(shell="words", words=["eval", "--benchm"]) == "--benchmarks=\n"
    assert newskills.completion(shell="bash").startswith("_ns_complete() {")
    states = {finding.what: finding.state for finding in newskills.doctor()}
    assert states["newskills"] == "ok"
    assert capsys.readouterr().out == ""


def test_a_cluster_is_written_and_its_manifest_made(folder: Path) -> None:
    options = {"non_interactive": True, "executor": "ray", "job_dir": "/shared/jobs", "config_dir": folder}
    path = newskills.setup(name="mine", test=False, **options)
    assert yaml.safe_load(path.read_text())["job_dir"] == "/shared/jobs"
    assert newskills.setup(name="other", dry_run=True, **options) is None
    assert not (folder / "other.yaml").exists()
    manifest = newskills.kuberay(cluster=str(path), image="registry/ray:1", claim="shared")
    assert yaml.safe_load(manifest)["kind"] == "RayCluster"


def test_work_is_planned_rehearsed_and_its_logs_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--cluster=none", "--expname=greeting", "echo hi there"]
    planned = newskills.plan(command="run_cmd", words=words)
    [job] = planned.jobs
    assert job.commands()[0].script.argv[-1] == "echo hi there"
    assert f"{job.name} on none (executor none): 1 jobs" in planned.text
    assert not (folder / "experiments").exists()
    here = newskills.plan(command="prepare_data", words=["gsm8k"])
    assert (here.jobs, "gsm8k" in here.text) == ((), True)
    with pytest.raises(NewskillsError, match="ns doctor submits nothing, so there is no plan"):
        newskills.plan(command="doctor")
    assert capsys.readouterr().out == ""
    checks = {check.what: check.state for check in newskills.rehearse(command="run_cmd", words=words)}
    assert (checks["plan"], checks["greeting"]) == ("ok", "ok")
    assert capsys.readouterr().out == ""
    done = newskills.run_cmd(cluster="none", expname="greeting", command="echo hi there")
    assert newskills.logs(name=done, command="main") == ["hi there"]
    assert capsys.readouterr().out == ""
    assert newskills.logs(name=done, command="main", follow=True) == ["hi there"]
    assert capsys.readouterr().out == "hi there\n"
    with pytest.raises(NewskillsError, match="ended with exit code 3"):
        newskills.run_cmd(cluster="none", expname="failing", command="exit 3")
    with pytest.raises(NewskillsError, match="ended with exit code 3"):
        newskills.logs(name="failing", follow=True)


def test_results_are_asked_in_sql_and_shown(folder: Path) -> None:
    pytest.importorskip("duckdb")
    write_run(folder / "base", {0: answered("+-" * 30)})
    sql = "SELECT outcome, count(*) AS n FROM samples GROUP BY ALL ORDER BY ALL"
    assert newskills.query(sql=sql, results=["base"]) == [
        {"outcome": "correct", "n": 30},
        {"outcome": "wrong", "n": 30},
    ]
    every = "SELECT id FROM samples ORDER BY id"
    assert [len(newskills.query(sql=every, results="base", **limit)) for limit in ({}, {"rows": 3})] == [60, 3]
    with newskills.serve_view(folders="base") as viewer:
        assert urlopen(viewer.address, timeout=30).status == 200
    with pytest.raises(URLError):
        urlopen(viewer.address, timeout=30)
    page = newskills.serve_view(folders="base", export=folder / "page")
    assert b"<!doctype html" in urlopen(page.address, timeout=30).read().lower()
    assert newskills.serve_view(folders="base", dry_run=True) is None


def test_a_sandbox_runs_beside_the_program(folder: Path) -> None:
    machine = newskills.serve_sandbox(action="doctor")
    assert (machine.address, machine.isolation_level in "ab") == ("", True)
    assert newskills.serve_sandbox(action="serve", dry_run=True) is None
    with newskills.serve_sandbox(action="serve", port=0, preload="json") as sandbox:
        body = json.dumps({"generated_code": "print(6 * 7)", "language": "python", "timeout": 20}).encode()
        request = Request(f"{sandbox.address}/execute", body, {"Content-Type": "application/json"})
        assert json.load(urlopen(request, timeout=60))["stdout"] == "42\n"
        assert sandbox.isolation_level == machine.isolation_level
    with pytest.raises(URLError):
        urlopen(sandbox.address, timeout=30)
    with pytest.raises(NewskillsError, match="not_a_host"):
        newskills.serve_sandbox(action="serve", host="not_a_host", port=0)


@pytest.mark.nightly
def test_failed_tasks_are_submitted_again(
    folder: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake_server(Script(answer=Answer(), faults=[Fault(kind="status", status=401)]))
    for name, value in Project(folder, server.url).env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NewskillsError, match="ended with exit code"):
        newskills.profile_evaluate(config="mine.yaml")
    server.script = answers()
    [latest] = newskills.info(last=1)
    again = newskills.resume(id=latest.id, follow=True)
    assert (again.id, [task.state for task in again.tasks]) == (latest.id, ["success"])


def test_the_recipe_returns_scores_and_files(folder: Path, fake_server: FakeServerFactory) -> None:
    write_rows(folder / "data/gsm8k/test.jsonl", QUESTIONS)
    table = {row["problem"]: row["expected_answer"] for row in QUESTIONS[:6]}
    server = fake_server(Script(answer=Answer(kind="table", table=table, text=r"\boxed{999}")))
    model = {"model": "m", "server_address": server.url}
    place = {"data_dir": "data", "output_dir": "out"}
    scores = newskills.aimo_evaluate(benchmark="gsm8k", **model, **place)
    assert {name: (score.value, score.n) for name, score in scores.items()} == {"gsm8k": (75.0, 8)}
    assert newskills.aimo_evaluate_all(benchmarks="gsm8k", **model, **place) == scores
    assert newskills.aimo_regenerate_summary(output_dir="out") == {Path("out"): scores}
    (folder / "run/checkpoint-5").mkdir(parents=True)
    (folder / "run/checkpoint-5/config.json").write_text("{}")
    points = newskills.aimo_evaluate_checkpoints(
        benchmark="gsm8k", model="run", server_address=server.url, data_dir="data", output_dir="curve"
    )
    assert points == {5: scores}
    answers_file = newskills.aimo_generate(problem="Add 3 and 3.", output_dir="out", **model)
    assert json.loads(answers_file.read_text())["generation"] == r"The answer is \boxed{6}."
    assert newskills.aimo_train(stage="cot", base_model="a", dry_run=True) is None
    with pytest.raises(NewskillsError, match="has no evaluation records"):
        newskills.aimo_regenerate_summary(output_dir="nowhere")
