# SPDX-License-Identifier: Apache-2.0
"""What GitHub runs: each workflow is read, and what a release checks of its files is run as it stands there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from newskills import __version__
from newskills.base.libraries import APPLICATIONS, LIBRARIES, library_source

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
_COMMIT = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
_UNPINNED = {"pypa/gh-action-pypi-publish@release/v1"}
"""Its own branch of releases: the commit of a release was not to be had for certain."""


def read(file: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(file.read_text())
    assert isinstance(loaded, dict)
    return loaded


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_may_only_read_and_uses_pinned_actions(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step), step
        assert "${{ github." not in step.get("run", ""), "a shell would run what the name of a branch holds"
        if str(step.get("uses")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, step
    text = file.read_text()
    used = re.findall(r"\buses: *(.+)", text)
    assert len(used) == sum("uses" in step for step in steps(workflow))
    assert {action for action in used if not _COMMIT.fullmatch(action)} <= _UNPINNED
    assert "secrets." not in text


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_commands_of_the_repository_are_there(file: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(read(file)):
        command = str(step.get("run", ""))
        for script in re.findall(r"(?<![\w/.*])\.\w[\w./-]*", command):
            if not script.startswith(".venv"):
                assert (ROOT / script).exists(), command
        for target in re.findall(r"\bmake ([a-z]+)\b", command):
            assert target in targets, command


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with the files of this version, and the changelog of its release."""
    (tmp_path / "dist").mkdir()
    for name in ("newskills", *LIBRARIES, *APPLICATIONS):
        (tmp_path / f"dist/{name}-{__version__}-py3-none-any.whl").touch()
    for name in (*LIBRARIES, *APPLICATIONS):
        (tmp_path / library_source(name)).mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text(f"## Unreleased\n\n## {__version__} (2026-12-01)\n")
    return tmp_path


def checked(folder: Path, tag: str) -> list[int]:
    """Exit codes of what the workflow checks of the tag, as bash runs it."""
    commands = [str(step.get("run", "")) for step in steps(read(ROOT / ".github/workflows/release.yml"))]
    checks = [command for command in commands if "GITHUB_REF_NAME" in command]
    assert len(checks) == 2
    environ = {"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": tag}
    return [
        subprocess.run(
            ["bash", "-ec", check], cwd=folder, env=environ, capture_output=True, check=False
        ).returncode
        for check in checks
    ]


def test_a_release_is_refused_for_another_version_than_its_tag(release: Path) -> None:
    assert checked(release, f"v{__version__}") == [0, 0]
    assert all(checked(release, "v99.0.0"))
    for name in ("newskills", *LIBRARIES, *APPLICATIONS):
        wheel = release / f"dist/{name}-{__version__}-py3-none-any.whl"
        wheel.unlink()
        assert checked(release, f"v{__version__}")[0] != 0, name
        wheel.touch()
    (release / "CHANGELOG.md").write_text("## Unreleased\n")
    assert checked(release, f"v{__version__}") == [0, 1]


def test_only_the_job_that_publishes_gets_an_identity() -> None:
    jobs = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert "permissions" not in jobs["build"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write", "contents": "read"}
