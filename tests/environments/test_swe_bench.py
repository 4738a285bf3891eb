# SPDX-License-Identifier: Apache-2.0
"""SWE-bench by the one line of its page: a task of the same schema, made here, judged by the official package."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import swebench
from tests.commands.running import ns, rows_of, write
from tests.environments.images import ENGINE, own_containers
from tests.environments.tasks import BUGS, PYTEST, patch, texts_of, turns_of
from tests.environments.tasks import IMAGE as TASKS_IMAGE

from newskills.base.records import Row
from newskills.benchmarks import get_benchmark
from newskills.metrics import make_metric

FIXED, UNTOUCHED, WRONG = INSTANCES = tuple(
    f"marshmallow-code__marshmallow-{number}" for number in (1357, 1358, 1359)
)
"""One task under three names, for a model that treats each in another way."""
IMAGE = "localhost/sweb.eval.x86_64.marshmallow-code_1776_marshmallow-{number}"
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
PASSES = "tests/test_fields.py::TestParentAndName::test_simple_field_parent_and_name"
NOTES = "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+hello\n"
OTHER = "diff --git a/no.py b/no.py\n--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture(scope="module")
def rows(agent_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Row]]:
    """Raw rows as SWE-bench's data sets hold them; their images are on this machine."""
    bug, task = BUGS[0], agent_tasks / BUGS[0].name
    images = [IMAGE.format(number=instance.rpartition("-")[2]) for instance in INSTANCES]
    file = tmp_path_factory.mktemp("image") / "Dockerfile"
    file.write_text(MAKEFILE.format(image=TASKS_IMAGE))
    tags = [f"--tag={image}" for image in images]
    build = [ENGINE, "build", "--quiet", *tags, "--file", str(file), str(task)]
    subprocess.run(build, check=True, capture_output=True)
    shown = [ENGINE, "run", "--rm", "--network=none", images[0], "git", "-C", "/testbed", "rev-parse", "HEAD"]
    commit = subprocess.run(shown, check=True, capture_output=True, text=True).stdout.strip()
    before = task / "repository" / "tests" / "test_fields.py"
    after = task / "tests" / "tests" / "test_fields.py"
    test_patch = patch(before.parent, after.parent).decode()
    yield [
        {
            "repo": "marshmallow-code/marshmallow",
            "instance_id": instance,
            "base_commit": commit,
            "patch": (task / "solution.patch").read_text(),
            "test_patch": test_patch,
            "problem_statement": f"{bug.issue} ({instance})",
            "version": "3.0",
            "FAIL_TO_PASS": json.dumps(bug.fail),
            "PASS_TO_PASS": json.dumps([PASSES]),
            "eval_script": SCRIPT.format(
                commit=commit, test_patch=test_patch, command=f"{PYTEST} -k {bug.words} tests/test_fields.py"
            ),
            "log_parser": "parse_log_pytest",
            "eval_type": "pass_and_fail",
            "image": f"{image}:latest",
        }
        for instance, image in zip(INSTANCES, images, strict=True)
    ]
    subprocess.run([ENGINE, "rmi", "--force", *images], check=False, capture_output=True)


def prepared(folder: Path, raw: Sequence[Row]) -> dict[str, str]:
    """The benchmark swe-bench with these tasks."""
    make = get_benchmark("swe-bench").row
    assert make is not None
    made = []
    for number, instance in enumerate(raw):
        row = make(instance, number)
        assert isinstance(row, dict)
        made.append({**row, "container_formatter": "docker://localhost/sweb.eval.x86_64.{instance_id}"})
    write(folder / "data" / "swe-bench" / "default.jsonl", made)
    return {"NEWSKILLS_DATA_DIR": str(folder / "data")}


def test_the_package_is_the_pinned_one() -> None:
    assert swebench.__version__ == "5.0.2"


@pytest.mark.nightly
def test_the_fix_resolves_and_nothing_else_does(tmp_path: Path, rows: list[Row], fake_server: Any) -> None:
    changes = {FIXED: rows[0]["patch"], UNTOUCHED: "", WRONG: NOTES}

    def answer(body: dict[str, Any]) -> str:
        change = next(change for instance, change in changes.items() if instance in texts_of(body))
        commands = (f"git apply - <<'EOF'\n{change}EOF" if change else "true", "echo SUBMIT_CHANGES")
        return f"```bash\n{commands[min(turns_of(body), 1)]}\n```"

    line = (
        "ns eval --benchmarks=swe-bench:1 ++agent=bash --server_type=vllm --model=fake --output_dir=results "
        f"--server_address={fake_server(answer=answer).base_url} ++environment.engine={ENGINE}"
    )
    done = ns(line, cwd=tmp_path, env=prepared(tmp_path, rows), timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own_containers() == []
    files = tmp_path.glob("results/eval-results/swe-bench/output*.jsonl")
    records = {record["instance_id"]: record for file in files for record in rows_of(file)}
    fixed, untouched, wrong = (records[instance] for instance in INSTANCES)
    assert (fixed["outcome"], fixed["grader"]) == ("correct", "swe_bench@2"), fixed.get("test_output")
    assert fixed["swe-bench-metrics"]["resolved"] is True
    assert (untouched["outcome"], untouched["why"]) == ("no_answer", "the patch is empty")
    assert (wrong["outcome"], wrong["why"]) == ("wrong", "tests fail")
    assert wrong["swe-bench-metrics"]["patch_successfully_applied"] is True
    metrics = json.loads((tmp_path / "results/eval-results/swe-bench/metrics.json").read_text())
    assert round(metrics["swe-bench"]["pass@1"]["issues_resolved"], 1) == 33.3


def graded(folder: Path, env: dict[str, str], patches: Sequence[str], *more: str) -> list[Row]:
    """The patches of others, as `ns swe_bench grade` judges them."""
    records = [
        {"id": f"r{number}", "instance_id": FIXED, "model_patch": patch, "num_steps": 4, "cost": 0.5}
        for number, patch in enumerate(patches)
    ]
    write(folder / "out.jsonl", records)
    line = f"ns swe_bench grade out.jsonl --engine={ENGINE} --workers=2 --output_file=graded.jsonl"
    done = ns(line, *more, cwd=folder, env=env, timeout=500)
    assert done.returncode == 0, done.stderr
    assert own_containers() == []
    verdicts = rows_of(folder / "graded.jsonl")
    (folder / "graded.jsonl").unlink()
    return verdicts


@pytest.mark.nightly
def test_patches_of_others_are_graded_in_our_containers(tmp_path: Path, rows: list[Row]) -> None:
    env = prepared(tmp_path, rows)
    fix = rows[0]["patch"]
    gold, empty, conflict = graded(tmp_path, env, (fix, "", OTHER))
    (timed_out,) = graded(tmp_path, env, (fix,), "--timeout=1")
    (failed,) = graded(tmp_path, env, (fix,), "--container_formatter=localhost/no-{instance_id}")
    assert (gold["outcome"], empty["outcome"]) == ("correct", "no_answer")
    assert (conflict["outcome"], conflict["why"]) == ("wrong", "the patch does not apply")
    assert (gold["id"], gold["grader"]) == ("r0", "swe_bench@2")
    assert "eval_script" not in gold
    assert (timed_out["outcome"], timed_out["why"]) == ("wrong", "the tests timed out")
    assert (failed["outcome"], failed["outcome_cause"]) == ("unscored", "environment")
    metric = make_metric("swe-bench")
    for record in (gold, empty, conflict, timed_out, failed):
        metric.update([record])
    row = metric.metrics()["pass@1"]
    names = ("issues_resolved", "no_patch", "patch_cant_apply", "tests_timed_out")
    assert [row[name] for name in names] == [25.0] * 4
    assert (row["environment_failed"], row["avg_steps"], row["avg_cost"]) == (20.0, 4.0, 0.5)
