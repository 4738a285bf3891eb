# SPDX-License-Identifier: Apache-2.0
"""Patches for the harness of SWE-bench, and its reports in the layout that it writes.

The harness itself needs containers: a package of its name that writes such reports stands in for it.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from tests.commands.running import ns, write

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.graders.software.task import patch_of
from newskills.metrics import make_metric
from newskills.run.harnesses.swe_bench import read_reports, with_reports, write_predictions

DIFF = "diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a\n+b\n"
HARNESS = """
import argparse, json, pathlib
parser = argparse.ArgumentParser()
for name in ("dataset_name", "predictions_path", "run_id", "max_workers", "timeout", "report_dir"):
    parser.add_argument(f"--{name}", required=True)
given = parser.parse_args()
known = {json.loads(line)["instance_id"] for line in open(given.dataset_name)}
lists = {"resolved_ids": [], "unresolved_ids": [], "empty_patch_ids": [], "error_ids": []}
for line in open(given.predictions_path):
    told = json.loads(line)
    name, patch = told["instance_id"], told["model_patch"]
    assert name in known and given.max_workers == "2" and given.timeout == "60"
    place = pathlib.Path("logs/run_evaluation", given.run_id, told["model_name_or_path"], name)
    if not patch.strip():
        lists["empty_patch_ids"].append(name)
        continue
    place.mkdir(parents=True)
    if "conflict" in patch:
        (place / "run_instance.log").write_text(">>>>> Patch Apply Failed:\\n")
        lists["error_ids"].append(name)
        continue
    report = {"patch_exists": True, "patch_successfully_applied": True, "resolved": "+b" in patch}
    (place / "report.json").write_text(json.dumps({name: report}))
    lists["resolved_ids" if report["resolved"] else "unresolved_ids"].append(name)
pathlib.Path(given.report_dir, f"m.{given.run_id}.json").write_text(json.dumps({**lists, "schema_version": 2}))
"""


@pytest.mark.parametrize(
    ("record", "patch"),
    [
        ({"model_patch": DIFF, "generation": "```diff\nother\n```"}, DIFF),
        ({"swe-bench-outputs": {"model_patch": DIFF}}, DIFF),
        ({"generation": f"First:\n```diff\nno\n```\nthen\n```diff\n{DIFF}```\n"}, DIFF),
        ({"generation": f"<think>```diff\nno\n```</think>It is\n{DIFF}\n"}, DIFF),
        ({"generation": "I cannot."}, ""),
        ({"swe-bench-outputs": None, "generation": ""}, ""),
    ],
)
def test_where_patches_are(record: Row, patch: str) -> None:
    assert patch_of(record) == patch


def test_predictions(tmp_path: Path) -> None:
    rows = [{"instance_id": "a__b-1", "model_patch": DIFF}, {"id": "a__b-2", "generation": ""}]
    assert write_predictions(rows, tmp_path / "p.jsonl", "org/m") == (2, 1)
    assert list(read_rows(tmp_path / "p.jsonl")) == [
        {"instance_id": "a__b-1", "model_name_or_path": "org/m", "model_patch": DIFF},
        {"instance_id": "a__b-2", "model_name_or_path": "org/m", "model_patch": ""},
    ]
    with pytest.raises(DataError, match="instance_id"):
        write_predictions([{"question": "?"}], tmp_path / "q.jsonl", "m")


def test_reports_of_a_run(tmp_path: Path) -> None:
    """Lists of the run, and what single instances say, which counts for more."""
    logs = tmp_path / "logs" / "run_evaluation" / "run" / "m"
    for name, file, text in (
        (
            "solved",
            "report.json",
            json.dumps({"solved": {"patch_exists": True, "patch_successfully_applied": True, "resolved": True}}),
        ),
        (
            "container",
            "report.json",
            json.dumps(
                {
                    "container": {
                        "patch_exists": True,
                        "patch_successfully_applied": False,
                        "resolved": False,
                        "infra_failure": True,
                    }
                }
            ),
        ),
        ("conflict", "run_instance.log", "x\n>>>>> Patch Apply Failed:\ny"),
        ("slow", "run_instance.log", "Test timed out after 1800 seconds."),
        ("crash", "run_instance.log", "docker.errors.APIError"),
    ):
        (logs / name).mkdir(parents=True)
        (logs / name / file).write_text(text)
    (tmp_path / "other.json").write_text("[1]")
    lists = {
        "resolved_ids": ["solved"],
        "unresolved_ids": ["failed", "container"],
        "empty_patch_ids": ["empty"],
        "error_ids": ["conflict", "slow", "crash", "lost"],
    }
    (tmp_path / "m.run.json").write_text(json.dumps(lists))
    names = ["solved", "failed", "conflict", "slow", "empty", "container", "crash", "lost", "never"]
    records = [{"instance_id": name, "model_patch": "" if name == "empty" else DIFF} for name in names]
    graded = list(with_reports(records, read_reports(tmp_path)))
    assert {row["instance_id"]: row["outcome"] for row in graded} == {
        "solved": "correct",
        **dict.fromkeys(("failed", "conflict", "slow"), "wrong"),
        "empty": "no_answer",
        **dict.fromkeys(("container", "crash", "lost", "never"), "unscored"),
    }
    metric = make_metric("swe-bench")
    for row in graded:
        metric.update([row])
    found = metric.metrics()["pass@1"]
    assert (found["issues_resolved"], found["no_patch"], found["patch_cant_apply"]) == (20.0, 20.0, 20.0)
    assert metric.ledger().unscored == 4
    alone = read_reports(tmp_path / "m.run.json")
    assert alone["solved"]["resolved"]
    assert "error" in alone["conflict"]
    for place, text in (("absent", None), ("empty.json", "{}"), ("broken.json", "{")):  # type: ignore[assignment]
        if text is not None:
            (tmp_path / place).write_text(text)
        with pytest.raises(DataError, match="report of the harness"):
            read_reports(tmp_path / place)


def harness(folder: Path, *, engine: bool) -> dict[str, str]:
    """Its stand-in on the path."""
    for name, text in (
        ("swebench/__init__.py", ""),
        ("swebench/harness/__init__.py", ""),
        ("swebench/harness/run_evaluation.py", HARNESS),
        (
            "docker.py",
            "class from_env:\n    def ping(self):\n        "
            + ("pass" if engine else "raise OSError('no engine')"),
        ),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    rows = [
        {"id": name, "instance_id": name, "question": "?"} for name in ("a__b-1", "a__b-2", "a__b-3", "a__b-4")
    ]
    write(tmp_path / "data" / "swe-bench" / "default.jsonl", rows)
    patches = [DIFF, DIFF.replace("+b", "+c"), "", "conflict"]
    write(
        tmp_path / "out.jsonl", [{**row, "model_patch": patch} for row, patch in zip(rows, patches, strict=True)]
    )
    line = (
        "ns swe_bench grade out.jsonl --output_file=graded.jsonl --data_dir=data --workers=2 --timeout=60 "
        "--engine=harness"
    )
    if importlib.util.find_spec("swebench") is None:
        absent = ns(line, cwd=tmp_path)
        assert absent.returncode
        assert "swebench, which runs the tests, is not installed" in absent.stderr
    without = ns(line, cwd=tmp_path, env=harness(tmp_path / "lib", engine=False))
    assert without.returncode
    assert "no container engine answers here: OSError: no engine" in without.stderr
    for again in (False, True):
        done = ns(line, cwd=tmp_path, env=harness(tmp_path / "lib", engine=True))
        assert done.returncode == 0, done.stderr
        outcomes = [row["outcome"] for row in read_rows(tmp_path / "graded.jsonl")]
        assert outcomes == ["correct" if not again else "wrong", "wrong", "no_answer", "wrong"]
        changed = [
            {**row, "model_patch": patch} for row, patch in zip(rows, ["conflict", *patches[1:]], strict=True)
        ]
        write(tmp_path / "out.jsonl", changed)
    exported = ns("ns swe_bench export out.jsonl --output_file=p.jsonl --model_name=m", cwd=tmp_path)
    assert "4 predictions, 1 without a patch" in exported.stdout
    told = ns("ns swe_bench report out.jsonl --output_file=r.jsonl", cwd=tmp_path)
    assert "--reports" in told.stderr
