# SPDX-License-Identifier: Apache-2.0
"""Parts of patches that take over how tests run are left out, whatever form they have; nothing else is."""

from __future__ import annotations

import pytest

from newskills.base.records import Score
from newskills.graders.software.steering import note_steering, without_steering

FIX = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a\n+b\n"


def new(path: str) -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    "part",
    [
        new("sitecustomize.py"),
        new("src/usercustomize.py"),
        new("lib/site-packages/x.pth"),
        new("pytest.py"),
        new("_pytest/__init__.py"),
        new("src/unittest/__init__.py"),
        new("pytest.ini"),
        "diff --git a/sitecustomize.py b/sitecustomize.py\nnew file mode 100644\nindex 0..1\n",
        "diff --git a/a.py b/pytest.py\nsimilarity index 100%\nrename from a.py\nrename to pytest.py\n",
        "diff --git a/a.py b/pytest.py\nsimilarity index 100%\ncopy from a.py\ncopy to pytest.py\n",
        "--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+x\n",
        f"{FIX}--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/sitecustomize.py b/sitecustomize.py\nnew file mode 100644\nGIT binary patch\nliteral 1\nx\n",
    ],
)
def test_what_steers_is_left_out(part: str) -> None:
    rest, steering = without_steering(FIX + part if part.startswith("diff") else part + FIX)
    assert steering
    assert rest == FIX
    score = note_steering(Score(outcome="wrong", fields={}, grader="x@1", why=""), part, steering)
    assert score.fields["suspicious"].startswith("left out ")


@pytest.mark.parametrize(
    "part",
    [
        new("src/_pytest/mark.py"),
        new("tests/test_pytest.py"),
        new("docs/sitecustomize.md"),
        new("src/a/__init__.py"),
        FIX.replace("src/a.py", "pytest.ini"),
        FIX.replace("src/a.py", "sitecustomize.py"),
        FIX.replace("src/a.py", "src/_pytest/__init__.py"),
        "",
    ],
)
def test_all_else_stays(part: str) -> None:
    assert without_steering(FIX + part) == (FIX + part, [])
    score = Score(outcome="correct", fields={}, grader="x@1", why="")
    assert note_steering(score, FIX + part, []) is score
