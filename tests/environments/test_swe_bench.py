# SPDX-License-Identifier: Apache-2.0
"""SWE-bench by the one line of its page: a task of the same schema, made here, judged by the official package."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import swebench
from tests.commands.running import ns, rows_of, write
from tests.environments.images import own_containers
from tests.environments.tasks import BUGS, PYTEST, patch, turns_of

from newskills.base.records import Row
from newskills.benchmarks import get_benchmark
from newskills.metrics import make_metric

INSTANCE = "marshmallow-code__marshmallow-1357"
IMAGE = "localhost/sweb.eval.x86_64.marshmallow-code_1776_marshmallow-1357"
MAKEFILE = """
FROM {image}
COPY repository /testbed
RUN cd /testbed && git init -q . && git add -A -f && git -c user.name=a -c user.email=a@b commit -q -m base
"""
SCRIPT = """#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
git checkout {commit} tests/test_fields.py
git apply -v - <<'EOF_114329324912'
{test_patch}
EOF_114329324912
: '>>>>> Start Test Output'
{command}
: '>>>>> End Test Output'
git checkout {commit} tests/test_fields.py
"""


@pytest.fixture(scope="module")
def instance(agent_image: str, agent_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    """A raw row as SWE-bench's data sets hold them; its image is on this machine."""
    bug, task = BUGS[0], agent_tasks / BUGS[0].name
    file = tmp_path_factory.mktemp("image") / "Dockerfile"
    file.write_text(MAKEFILE.format(image=agent_image))
    build = ["podman", "build", "--quiet", "--tag", IMAGE, "--file", str(file), str(task)]
    subprocess.run(build, check=True, capture_output=True)
    shown = ["podman", "run", "--rm", "--network=none", IMAGE, "git", "-C", "/testbed", "rev-parse", "HEAD"]
    commit = subprocess.run(shown, check=True, capture_output=True, text=True).stdout.strip()
    before = task / "repository" / "tests" / "test_fields.py"
    after = task / "tests" / "tests" / "test_fields.py"
    test_patch = patch(before.parent, after.parent).decode()
    yield {
        "repo": "marshmallow-code/marshmallow",
        "instance_id": INSTANCE,
        "base_commit": commit,
        "patch": (task / "solution.patch").read_text(),
        "test_patch": test_patch,
        "problem_statement": bug.issue,
        "version": "3.0",
        "FAIL_TO_PASS": json.dumps(bug.fail),
        "PASS_TO_PASS": json.dumps(["tests/test_fields.py::TestParentAndName::test_simple_field_parent_and_name"]),
        "eval_script": SCRIPT.format(
            commit=commit, test_patch=test_patch, command=f"{PYTEST} tests/test_fields.py"
        ),
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "image": f"{IMAGE}:latest",
    }
    subprocess.run(["podman", "rmi", "--force", IMAGE], check=False, capture_output=True)


def prepared(folder: Path, instance: Row) -> dict[str, str]:
    """The benchmark swe-bench with this one task."""
    make = get_benchmark("swe-bench").row
    assert make is not None
    row = make(instance, 0)
    assert isinstance(row, dict)
    row["container_formatter"] = "docker://localhost/sweb.eval.x86_64.{instance_id}"
    (folder / "data" / "swe-bench").mkdir(parents=True)
    (folder / "data" / "swe-bench" / "default.jsonl").write_text(json.dumps(row) + "\n")
    return {"NEWSKILLS_DATA_DIR": str(folder / "data")}


def evaluated(folder: Path, instance: Row, fake_server: Any, fix: str) -> Row:
    """The record of a model that makes the changes `fix`."""
    commands = (f"git apply - <<'EOF'\n{fix}EOF", "echo SUBMIT_CHANGES") if fix else ("echo SUBMIT_CHANGES",)

    def answer(body: dict[str, Any]) -> str:
        return f"```bash\n{commands[min(turns_of(body), len(commands) - 1)]}\n```"

    line = (
        "ns eval --benchmarks=swe-bench:1 ++agent=bash --server_type=vllm --model=fake --output_dir=results "
        f"--server_address={fake_server(answer=answer).base_url} ++environment.engine=podman"
    )
    done = ns(line, cwd=folder, env=prepared(folder, instance), timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    (record,) = [
        row for file in folder.glob("results/eval-results/swe-bench/output*.jsonl") for row in rows_of(file)
    ]
    return record


def test_the_package_is_the_pinned_one() -> None:
    assert swebench.__version__ == "5.0.2"


def test_the_fix_resolves(tmp_path: Path, instance: Row, fake_server: Any) -> None:
    record = evaluated(tmp_path, instance, fake_server, instance["patch"])
    assert (record["outcome"], record["grader"]) == ("correct", "swe_bench@1"), record.get("test_output")
    assert record["swe-bench-metrics"]["resolved"] is True
    metrics = json.loads((tmp_path / "results/eval-results/swe-bench/metrics.json").read_text())
    assert metrics["swe-bench"]["pass@1"]["issues_resolved"] == 100.0


def test_nothing_does_not(tmp_path: Path, instance: Row, fake_server: Any) -> None:
    record = evaluated(tmp_path, instance, fake_server, "")
    assert (record["outcome"], record["why"]) == ("no_answer", "the patch is empty")


def test_wrong_changes_do_not(tmp_path: Path, instance: Row, fake_server: Any) -> None:
    notes = "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+hello\n"
    record = evaluated(tmp_path, instance, fake_server, notes)
    assert (record["outcome"], record["why"]) == ("wrong", "tests fail")
    assert record["swe-bench-metrics"]["patch_successfully_applied"] is True


def test_patches_of_others_are_graded_in_our_containers(tmp_path: Path, instance: Row) -> None:
    env = prepared(tmp_path, instance)
    other = "diff --git a/no.py b/no.py\n--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n"
    patches = (instance["patch"], "", other)
    records = [
        {"id": f"r{number}", "instance_id": INSTANCE, "model_patch": patch, "num_steps": 4, "cost": 0.5}
        for number, patch in enumerate(patches)
    ]
    write(tmp_path / "out.jsonl", records)
    line = "ns swe_bench grade out.jsonl --engine=podman --workers=2 --output_file="
    done = ns(f"{line}graded.jsonl", cwd=tmp_path, env=env, timeout=500)
    assert done.returncode == 0, done.stderr
    slow = ns(f"{line}slow.jsonl --timeout=1", cwd=tmp_path, env=env, timeout=500)
    assert slow.returncode == 0, slow.stderr
    lost = ns(
        f"{line}lost.jsonl --container_formatter=localhost/no-{{instance_id}}", cwd=tmp_path, env=env, timeout=500
    )
    assert lost.returncode == 0, lost.stderr
    assert own_containers() == []
    gold, empty, conflict = rows_of(tmp_path / "graded.jsonl")
    assert (gold["outcome"], empty["outcome"]) == ("correct", "no_answer")
    assert (conflict["outcome"], conflict["why"]) == ("wrong", "the patch does not apply")
    assert (gold["id"], gold["grader"]) == ("r0", "swe_bench@1")
    assert "eval_script" not in gold
    timed_out = rows_of(tmp_path / "slow.jsonl")[0]
    assert (timed_out["outcome"], timed_out["why"]) == ("wrong", "the tests timed out")
    failed = rows_of(tmp_path / "lost.jsonl")[0]
    assert (failed["outcome"], failed["outcome_cause"]) == ("unscored", "environment")
    metric = make_metric("swe-bench")
    for record in (gold, empty, conflict, timed_out, failed):
        metric.update([record])
    row = metric.metrics()["pass@1"]
    names = ("issues_resolved", "no_patch", "patch_cant_apply", "tests_timed_out")
    assert [row[name] for name in names] == [25.0] * 4
    assert (row["environment_failed"], row["avg_steps"], row["avg_cost"]) == (20.0, 4.0, 0.5)
