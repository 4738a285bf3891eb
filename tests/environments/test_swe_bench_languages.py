# SPDX-License-Identifier: Apache-2.0
"""SWE-bench Multilingual and Pro on tasks of their schemas that are no Python: the fix resolves, nothing else does.

The programs of this machine run in sessions of the sandbox; logs are read by the official package, or by the task's own
parser.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.launch.needs import lacking

from newskills.base.records import Row
from newskills.benchmarks import get_benchmark
from newskills.environments.config import EnvironmentConfig
from newskills.run.harnesses.swe_bench import grade_in_containers
from newskills_sandbox.probes import run_probes, strongest_level

pytest.importorskip("swebench")

JAVASCRIPT = "exports.add = (a, b) => a - b;\nexports.twice = (a) => 2 * a;\n"
JAVASCRIPT_TEST = """\
const test = require('node:test');
const assert = require('node:assert');
const sums = require('../sums.js');
test('adds', () => assert.strictEqual(sums.add(2, 3), 5));
test('doubles', () => assert.strictEqual(sums.twice(4), 8));
"""
C = "int add(int a, int b) { return a - b; }\nint twice(int a) { return 2 * a; }\n"
C_TEST = """\
#include <stdio.h>
int add(int, int);
int twice(int);
static int show(int good, const char *name) { printf("%s: %s\\n", good ? "PASS" : "FAIL", name); return !good; }
int main(void) { return show(add(2, 3) == 5, "adds") + show(twice(4) == 8, "doubles"); }
"""
TASKS = {
    "javascript": ("immutable-js/immutable-js", "sums.js", JAVASCRIPT, "tests/sums.js", JAVASCRIPT_TEST),
    "c": ("jqlang/jq", "sums.c", C, "tests/sums.c", C_TEST),
}
RUNS = {
    "javascript": ("parse_log_tap", "node --test-reporter=tap tests/sums.js", "- {}"),
    "c": ("parse_log_jq", "gcc -o sums sums.c tests/sums.c && ./sums", "{}"),
}
SCRIPT = """#!/bin/bash
set -uxo pipefail
git apply -v - <<'EOF_114329324912'
{test_patch}EOF_114329324912
: '>>>>> Start Test Output'
{command}
: '>>>>> End Test Output'
"""
PARSER = """\
import json, re, sys
text = open(sys.argv[1]).read()
states = {"ok": "PASSED", "not ok": "FAILED"}
tests = [{"name": name, "status": states[said]} for said, name in re.findall(r"^(ok|not ok) \\d+ - (.+)$", text, re.M)]
json.dump({"tests": tests}, open(sys.argv[3], "w"))
"""
NOTES = "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+hello\n"
OTHER = "diff --git a/no b/no\n--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n"
VERDICTS = [
    ("correct", "all tests pass"),
    ("no_answer", "the patch is empty"),
    ("wrong", "tests fail"),
    ("wrong", "the patch does not apply"),
]


@pytest.fixture(autouse=True)
def isolated() -> None:
    """Sessions need name spaces (CI: NEWSKILLS_TEST_CONTAINERS=1)."""
    if strongest_level(run_probes()) != "a":
        lacking("CONTAINERS", "this machine does not give sessions folders of their own")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def raw_task(folder: Path, language: str) -> tuple[Row, Path]:
    """(row as the data set holds it, the repository): the fix is a `+`, the tests come with the test patch."""
    repo, file, text, test_file, test = TASKS[language]
    place = folder / language
    (place / "tests").mkdir(parents=True)
    (place / file).write_text(text)
    (place / "python").write_text('#!/bin/sh\nexec python3 "$@"\n')
    (place / "python").chmod(0o755)
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "base")
    commit = git(place, "rev-parse", "HEAD").strip()
    (place / file).write_text(text.replace("a - b", "a + b"))
    patch = git(place, "diff")
    git(place, "checkout", "-q", ".")
    (place / test_file).write_text(test)
    git(place, "add", "-A")
    test_patch = git(place, "diff", "--cached")
    git(place, "reset", "-q", "--hard")
    row = {
        "repo": repo,
        "instance_id": f"{repo.replace('/', '__')}-1",
        "base_commit": commit,
        "patch": patch,
        "test_patch": test_patch,
        "problem_statement": "add subtracts.",
        "version": "1",
    }
    return row, place


def graded(benchmark: str, raw: Row, repository: Path, patches: Sequence[str]) -> list[tuple[str, str]]:
    """Outcome and reason of each patch; an environment in which nothing can run is unscored."""
    make = get_benchmark(benchmark).row
    assert make is not None
    row = make(raw, 0)
    assert isinstance(row, dict)
    rows = [{**row, "repository": str(repository)}]
    records = [{"instance_id": raw["instance_id"], "model_patch": patch} for patch in patches]
    done = grade_in_containers(records, rows, EnvironmentConfig(engine="sandbox", at_once=2), timeout=120)
    return [(record["outcome"], record["why"]) for record in done]


@pytest.mark.parametrize("language", TASKS)
def test_multilingual(language: str, tmp_path: Path) -> None:
    parser, command, name = RUNS[language]
    if shutil.which(command.split()[0]) is None:
        lacking("CONTAINERS", f"this machine has no {command.split()[0]}")
    raw, repository = raw_task(tmp_path, language)
    raw |= {
        "FAIL_TO_PASS": [name.format("adds")],
        "PASS_TO_PASS": [name.format("doubles")],
        "eval_script": SCRIPT.format(test_patch=raw["test_patch"], command=command),
        "log_parser": parser,
        "eval_type": "pass_and_fail",
        "image": "swebench/none",
    }
    assert graded("swe-bench-multilingual", raw, repository, (raw["patch"], "", NOTES, OTHER)) == VERDICTS


def test_pro(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        lacking("CONTAINERS", "this machine has no node")
    raw, repository = raw_task(tmp_path, "javascript")
    join = get_benchmark("swe-bench-pro").join
    assert join is not None
    tests = tmp_path / "tests.patch"
    tests.write_text(raw["test_patch"])
    git(repository, "apply", "--index", str(tests))
    git(repository, "commit", "-q", "-m", "tests")
    solved = git(repository, "rev-parse", "HEAD").strip()
    raw |= {
        "before_repo_set_cmd": f"git clean -fd\ngit -c safe.directory='*' checkout {solved} -- tests/sums.js",
        "selected_test_files_to_run": "['tests/sums.js']",
        "fail_to_pass": "['adds']",
        "pass_to_pass": "['doubles']",
        "requirements": "It adds.",
        "interface": "None.",
        "repo_language": "js",
        "dockerhub_tag": "none",
    }
    files = {
        "run_scripts/{}/run_script.sh": 'node --test-reporter=tap "$1"\n',
        "run_scripts/{}/parser.py": PARSER,
        "dockerfiles/base_dockerfile/{}/Dockerfile": 'FROM x\n  ENV PATH="$PWD:$PATH"\n',
    }
    texts = [{"_file": name.format(raw["instance_id"]), "text": text} for name, text in files.items()]
    (joined,) = join([*texts, raw])
    binary = "diff --git a/pic b/pic\nnew file mode 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n"
    patches = (raw["patch"] + binary, "", NOTES, OTHER)
    assert graded("swe-bench-pro", joined, repository, patches) == VERDICTS
    broken = {**joined, "_files": {**joined["_files"], "parser.py": "raise SystemExit(1)\n"}}
    assert graded("swe-bench-pro", broken, repository, (raw["patch"],)) == [("wrong", "tests fail")]
    lost = {**joined, "before_repo_set_cmd": "PATH=/nowhere"}
    assert graded("swe-bench-pro", lost, repository, (raw["patch"],))[0][0] == "unscored"


def test_rows_without_their_scripts_are_refused() -> None:
    make = get_benchmark("swe-bench-pro").row
    assert make is not None
    with pytest.raises(ValueError, match=r"has no run_script\.sh, parser\.py for a-1"):
        make({"instance_id": "a-1", "_files": {}}, 0)
