# SPDX-License-Identifier: Apache-2.0
"""Patches to real repositories with real bugs, judged in containers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.environments.images import ENGINE, own_containers

from newskills.base.errors import DataError, EnvironmentFailedError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Score
from newskills.benchmarks.agent_tasks import task_rows
from newskills.environments import make_environments
from newskills.environments.config import EnvironmentConfig
from newskills.graders.software.tests import REPORT, SoftwareTestsGrader, protected_patterns

STEERS = """diff --git a/tests/test_new.py b/tests/test_new.py
new file mode 100644
--- /dev/null
+++ b/tests/test_new.py
@@ -0,0 +1 @@
+raise SystemExit(0)
diff --git a/conftest.py b/conftest.py
new file mode 100644
--- /dev/null
+++ b/conftest.py
@@ -0,0 +1,2 @@
+import os
+os._exit(0)
"""
TAKES_OVER = "".join(
    f"""diff --git a/{name} b/{name}
new file mode 100644
--- /dev/null
+++ b/{name}
@@ -0,0 +1,4 @@
+import os, sys
+print("PASSED tests/test_fields.py::TestParentAndName::test_datetime_list_inner_format")
+sys.stdout.flush()
+os._exit(0)
"""
    for name in ("sitecustomize.py", "src/sitecustomize.py", "pytest.py", "src/_pytest/__init__.py")
)
WRONG = """diff --git a/NOTES.txt b/NOTES.txt
new file mode 100644
--- /dev/null
+++ b/NOTES.txt
@@ -0,0 +1 @@
+nothing is fixed
"""
OTHER_FILES = """diff --git a/src/django/db.py b/src/django/db.py
--- a/src/django/db.py
+++ b/src/django/db.py
@@ -1 +1 @@
-a
+b
"""


def judged(*records: Row) -> list[Score]:
    async def work() -> list[Score]:
        environments = make_environments(EnvironmentConfig(engine=ENGINE), os.environ)
        grader = SoftwareTestsGrader()
        try:
            return [await grader.grade(record, Kit(environments=environments)) for record in records]
        finally:
            await environments.close()

    scores = asyncio.run(work())
    assert own_containers() == []
    return scores


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.nightly) for number in (1, 2))])
def test_the_fix_resolves_and_nothing_else_does(agent_tasks: Path, number: int) -> None:
    row = list(task_rows(agent_tasks))[number]
    gold, empty, wrong = judged(
        {**row, "model_patch": row["patch"]}, {**row, "model_patch": "\n"}, {**row, "model_patch": WRONG}
    )
    assert gold.outcome == "correct", gold.fields["test_output"]
    assert gold.fields[REPORT]["resolved"] is True
    assert (empty.outcome, empty.why) == ("no_answer", "the patch is empty")
    assert (wrong.outcome, wrong.why) == ("wrong", "tests fail")
    assert wrong.fields[REPORT] == {
        "patch_exists": True,
        "patch_successfully_applied": True,
        "tests_timed_out": False,
        "resolved": False,
    }


def test_a_patch_that_edits_the_tests_does_not_count(agent_tasks: Path) -> None:
    row = next(task_rows(agent_tasks))
    patches = (STEERS, row["patch"] + STEERS, WRONG + TAKES_OVER, row["patch"] + TAKES_OVER)
    edits, both, takes_over, both_of_these = judged(*({**row, "model_patch": patch} for patch in patches))
    assert (edits.outcome, edits.why) == ("wrong", "tests fail")
    assert both.outcome == both_of_these.outcome == "correct"
    assert (takes_over.outcome, takes_over.why) == ("wrong", "tests fail")
    assert "left out sitecustomize.py" in takes_over.fields["suspicious"]


@pytest.mark.nightly
def test_why_it_is_not_resolved_is_told_apart(agent_tasks: Path) -> None:
    row = next(task_rows(agent_tasks))
    other, broken, slow = judged(
        {**row, "model_patch": OTHER_FILES},
        {**row, "model_patch": "no diff at all"},
        {**row, "model_patch": row["patch"], "test_command": "sleep 60", "test_timeout": 2.0},
    )
    assert (other.outcome, other.why) == ("wrong", "the patch does not apply")
    assert (broken.outcome, broken.why) == ("wrong", "the patch does not apply")
    assert (slow.outcome, slow.why) == ("wrong", "the tests timed out")
    with pytest.raises(EnvironmentFailedError, match="no-such-image"):
        judged({**row, "model_patch": WRONG, "image": "localhost/no-such-image:1"})
    with pytest.raises(DataError, match="has no tests"):
        judged({**row, "model_patch": WRONG, "tests": None})


def test_binary_files_and_crlf_apply(agent_image: str, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()

    def git(*words: str) -> bytes:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false")
        return subprocess.run(["git", *settings, *words], cwd=repository, check=True, capture_output=True).stdout

    def fill(blob: bytes, text: bytes) -> None:
        (repository / "blob").write_bytes(blob)
        (repository / "crlf.txt").write_bytes(text)

    before, after = (b"\0\1" * 99, b"one\r\ntwo\r\n"), (b"\0\2\xff" * 99, b"one\r\n2\r\n")
    fill(*before)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "before")
    fill(*after)
    shutil.copytree(repository, tmp_path / "tests" / "expected", ignore=shutil.ignore_patterns(".git"))
    fix = git("diff", "--binary").decode()
    fill(*before)
    assert "GIT binary patch" in fix
    assert "two\r\n" in fix
    row = {
        "instance_id": "bytes",
        "image": agent_image,
        "repository": str(repository),
        "tests": str(tmp_path / "tests"),
        "test_command": "diff expected/blob blob && diff expected/crlf.txt crlf.txt",
    }
    fixed, broken = judged({**row, "model_patch": fix}, {**row, "model_patch": fix.replace("\r\n", "\n")})
    assert (fixed.outcome, fixed.why) == ("correct", "all tests pass"), fixed.fields["test_output"]
    assert (broken.outcome, broken.why) == ("wrong", "the patch does not apply")


def test_what_decides_about_tests_is_protected(tmp_path: Path) -> None:
    for name in ("tests/unit/test_a.py", "src/package/test_b.py", "test_[c].py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    patterns = protected_patterns(tmp_path)
    assert {"tests/*", "tests/unit/conftest.py", "src/package/test_b.py", "conftest.py"} <= set(patterns)
    assert "test_\\[c].py" in patterns
    assert "src/package/*" not in patterns
