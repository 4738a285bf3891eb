# SPDX-License-Identifier: Apache-2.0
"""Results of real evaluations go to local files, to the real library of W&B (offline), and to MLflow's file store."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.night import by_day

from newskills.base.errors import AuthError, ConfigError, DataError
from newskills_evaluator.export_results import (
    ExportPlan,
    FinishedJob,
    collect_results,
    export_results,
    flat_scores,
)
from newskills_evaluator.exporters.mlflow_runs import metric_name

INVOCATION = "0123456789abcdef"
KEY = "0123456789012345678901234567890123456789"
METRICS = {
    "aime25": {
        "pass@1[avg-of-8]": {"num_entries": 30, "symbolic_correct": 41.25, "no_answer": 2.5},
        "pass@8": {"num_entries": 30, "symbolic_correct": 70.0},
    }
}


def plan(folder: Path, *destinations: str, tasks: int = 2, **settings: Any) -> ExportPlan:
    """Of `tasks` tasks, of which the second has other numbers."""
    jobs = []
    for number in range(tasks):
        run = folder / f"aime25.{number}"
        (run / "artifacts").mkdir(parents=True, exist_ok=True)
        metrics = json.loads(json.dumps(METRICS))
        metrics["aime25"]["pass@8"]["symbolic_correct"] += number
        (run / "artifacts/metrics.json").write_text(json.dumps(metrics))
        jobs.append(
            FinishedJob(
                id=f"{INVOCATION}.{number}",
                task="nemo_skills.ns_aime2025",
                benchmark="aime25",
                model="m",
                folder=str(run),
            )
        )
    return ExportPlan(
        invocation=INVOCATION, executor="slurm", destinations=destinations, settings=settings, jobs=tuple(jobs)
    )


def test_scores_are_called_as_in_nemo_evaluator(tmp_path: Path) -> None:
    scores = collect_results(plan(tmp_path, tasks=1))[0].scores
    assert scores["aime25_pass@1[avg-of-8]_symbolic_correct"] == 41.25
    assert scores["aime25_pass@8_symbolic_correct"] == 70.0
    same = {"tasks": {"t": {"metrics": {"em": {"scores": {"em": {"value": 0.5}, "f1": {"value": None}}}}}}}
    assert flat_scores(same) == {"t_em": 0.5}


def test_local_json_and_csv_are_kept_up_to_date(tmp_path: Path) -> None:
    for kind in ("json", "csv"):
        folder = tmp_path / kind
        wanted = {"format": kind, "output_dir": str(folder), "log_metrics": ["symbolic_correct"]}
        said: list[str] = []
        for tasks in (2, 1):
            made = plan(tmp_path / "runs", "local", tasks=tasks, local=wanted)
            assert export_results(made, {}, said.append) == 0
        assert (folder / INVOCATION / f"{INVOCATION}.1/artifacts/metrics.json").is_file()
    whole = json.loads((tmp_path / f"json/{INVOCATION}/processed_results.json").read_text())
    entries = whole["benchmarks"]["aime25"]["models"]["m"]
    assert [entry["job_id"] for entry in entries] == [f"{INVOCATION}.1", f"{INVOCATION}.0"]
    assert entries[0]["harness"] == "nemo_skills"
    assert set(entries[0]["scores"]) == {
        "aime25_pass@1[avg-of-8]_symbolic_correct",
        "aime25_pass@8_symbolic_correct",
    }
    text = (tmp_path / f"csv/{INVOCATION}/processed_results.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["aime25_pass@8_symbolic_correct"] for row in rows] == ["71.0", "70.0"]
    assert rows[0]["Invocation ID"] == INVOCATION


def test_what_cannot_be_exported_is_told_and_the_rest_is_exported(tmp_path: Path) -> None:
    made = plan(tmp_path, "local", local={"output_dir": str(tmp_path / "out"), "format": "json"})
    Path(made.jobs[1].folder, "artifacts/metrics.json").unlink()
    said: list[str] = []
    assert export_results(made, {}, said.append) == 0
    assert any("nemo_skills.ns_aime2025) is left out" in line for line in said)
    Path(made.jobs[0].folder, "artifacts/metrics.json").unlink()
    with pytest.raises(DataError, match="no results to export"):
        export_results(made, {}, said.append)
    wrong = plan(tmp_path, "local", "wandb", local={"format": "xml"}, wandb={"project": "p"})
    assert export_results(wrong, {"HOME": str(tmp_path)}, said.append) == 2
    assert "json or csv" in said[-2]
    assert "wandb login" in said[-1]


SEEN = """
import struct, sys
from wandb.proto import wandb_internal_pb2
data, at = open(sys.argv[1], "rb").read(), 7
while at + 7 <= len(data):
    size, kind = struct.unpack("<HB", data[at + 4 : at + 7])
    assert kind == 1, "a record in several pieces"
    record = wandb_internal_pb2.Record()
    record.ParseFromString(data[at + 7 : at + 7 + size])
    at += 7 + size
    kind = record.WhichOneof("record_type")
    if kind == "run":
        run = record.run
        print("run", run.run_id, run.display_name, run.run_group, run.job_type, run.project)
    for item in record.summary.update if kind == "summary" else ():
        print("summary", item.key or "/".join(item.nested_key), item.value_json)
    if kind == "artifact":
        print("artifact", record.artifact.name, record.artifact.type, len(record.artifact.manifest.contents))
"""
"""Reads W&B's own file of an offline run: short records, as LevelDB writes them into its log."""


@pytest.mark.parametrize("mode", by_day(["per_task", "multi_task"], ["multi_task"]))
def test_runs_of_wandb_offline(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("wandb", reason="no wandb here: pip install 'newskills[wandb]'")
    made = plan(tmp_path / "runs", "wandb", wandb={"project": "p", "entity": "e", "log_mode": mode, "tags": ["t"]})
    environ = {
        **os.environ,
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(tmp_path),
        "WANDB_SILENT": "true",
        "WANDB_API_KEY": KEY,
        "HOME": str(tmp_path),
    }
    place = tmp_path / "export.json"
    place.write_bytes(msgspec.json.encode(made))
    done = subprocess.run(
        [sys.executable, "-m", "newskills.interop.auto_export", str(place)],
        env=environ, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == (2 if mode == "per_task" else 1)
    seen = [
        subprocess.run([sys.executable, "-c", SEEN, file], capture_output=True, text=True, check=True).stdout
        for file in files
    ]
    if mode == "per_task":
        assert f"run {INVOCATION}-0 eval-{INVOCATION}-nemo_skills.ns_aime2025 {INVOCATION} evaluation p" in seen[0]
        assert "summary aime25_pass@8_symbolic_correct 70" in seen[0]
        assert "summary aime25_pass@8_symbolic_correct 71" in seen[1]
        assert f"artifact {INVOCATION}_aime25 evaluation_result" in seen[0]
    else:
        assert f"run {INVOCATION} eval-{INVOCATION} {INVOCATION} evaluation p" in seen[0]
        assert "summary aime25.1/aime25_pass@8_symbolic_correct 71" in seen[0]
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_wandb_says_what_it_lacks(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="no wandb here: pip install 'newskills[wandb]'")
    from newskills_evaluator.exporters.wandb_runs import export

    results = collect_results(plan(tmp_path))
    with pytest.raises(AuthError, match="wandb login"):
        export(results, {"project": "p"}, {"HOME": str(tmp_path)}, print)
    with pytest.raises(ConfigError, match=r"\[wandb\] project"):
        export(results, {}, {"WANDB_MODE": "offline"}, print)
    with pytest.raises(ConfigError, match="per_task or multi_task"):
        export(results, {"log_mode": "both"}, {"WANDB_MODE": "offline"}, print)


def test_runs_of_mlflow_in_a_file_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="no mlflow here: pip install 'newskills[mlflow]'")
    uri = f"file://{tmp_path}/store"
    settings = {"tracking_uri": "MY_TRACKING", "experiment_name": "sums", "tags": {"team": "a"}}
    made = plan(tmp_path / "runs", "mlflow", mlflow={**settings})
    said: list[str] = []
    for _ in range(2):
        assert export_results(made, {"MY_TRACKING": uri}, said.append) == 0, said
    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("sums").experiment_id])
    assert len(runs) == 2
    scores = {run.data.tags["job_id"]: run.data.metrics["aime25_pass_at_8_symbolic_correct"] for run in runs}
    assert scores == {f"{INVOCATION}.0": 70.0, f"{INVOCATION}.1": 71.0}
    assert {run.data.tags["team"] for run in runs} == {"a"}
    assert runs[0].data.params["invocation_id"] == INVOCATION


def test_mlflow_needs_an_address(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="no mlflow here: pip install 'newskills[mlflow]'")
    said: list[str] = []
    assert export_results(plan(tmp_path, "mlflow"), {}, said.append) == 1
    assert "MLFLOW_TRACKING_URI" in said[-1]


def test_names_of_metrics_that_mlflow_takes() -> None:
    assert metric_name("aime25_pass@1[avg-of-8]_symbolic_correct") == "aime25_pass_at_1_avg-of-8_symbolic_correct"
