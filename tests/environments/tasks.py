# SPDX-License-Identifier: Apache-2.0
"""Tasks for agents made of real bugs: releases of a package before and after a fix, from their sources on PyPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from tests.environments.images import ENGINE
from tests.launch.needs import lacking
from tests.shared import RUN, shared_folder

PYTEST = "PYTHONPATH=src:/installed python3 -m pytest -q -rA --tb=short -p no:cacheprovider -W ignore"
MAKEFILE = "FROM {image}\nCOPY installed /installed\n"


TASKS = "tasks"
IMAGE = f"localhost/newskills-agent-tasks-{RUN}:1"
"""The agents' image, with what the tests of the tasks need."""


class Bug(Struct, frozen=True, kw_only=True):
    """`before` has it, `after` does not. Those tests of `after` are run that `words` select, `fail` among them."""

    before: str
    after: str
    issue: str
    files: tuple[str, ...]
    words: str
    fail: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"marshmallow-{self.after}"


BUGS = (
    Bug(
        before="3.0.0",
        after="3.0.1",
        issue="fields.DateTime inside fields.List or fields.Tuple fails when the schema is created: the inner field "
        "looks for `opts` on its parent, which is a field and not the schema.",
        files=("tests/test_fields.py",),
        words="TestParentAndName",
        fail=("tests/test_fields.py::TestParentAndName::test_datetime_list_inner_format",),
    ),
    Bug(
        before="3.2.1",
        after="3.2.2",
        issue="A field with load_only=True and dump_only=True is loaded; it should be neither loaded nor dumped.",
        files=("tests/test_deserialization.py",),
        words="load_only or dump_only",
        fail=(),
    ),
    Bug(
        before="3.9.0",
        after="3.9.1",
        issue="fields.Dict without a field for keys and values accepts what is no mapping on load, and Mapping does "
        "not return its own mapping type.",
        files=("tests/test_deserialization.py", "tests/test_serialization.py"),
        words="dict_field",
        fail=(
            "tests/test_deserialization.py::TestFieldDeserialization::test_dict_field_deserialization",
            "tests/test_serialization.py::TestFieldSerialization::test_dict_field_serialize",
        ),
    ),
)


def make_tasks(folder: Path, image: str) -> None:
    """A task folder for each bug below `folder`/TASKS; the tests are skipped where PyPI cannot be reached."""
    sources = _sources(folder / "sources")
    _pip("install", "--target", str(folder / "image" / "installed"), "pytest", "pytz", "simplejson")
    (folder / "image" / "Dockerfile").write_text(MAKEFILE.format(image=image))
    subprocess.run(
        [ENGINE, "build", "--quiet", f"--tag={IMAGE}", str(folder / "image")], check=True, capture_output=True
    )
    for bug in BUGS:
        task = folder / TASKS / bug.name
        before, after = (sources / f"marshmallow-{version}" for version in (bug.before, bug.after))
        shutil.copytree(before, task / "repository")
        shutil.copytree(after / "tests", task / "tests" / "tests")
        (task / "issue.md").write_text(f"{bug.issue}\n")
        (task / "solution.patch").write_bytes(patch(before / "src", after / "src"))
        (task / "task.yaml").write_text(
            f"image: {IMAGE}\ntest_timeout: 300\ntest_command: {PYTEST} -k '{bug.words}' {' '.join(bug.files)}\n"
            f"FAIL_TO_PASS: [{', '.join(repr(name) for name in bug.fail)}]\n"
        )


def patch(before: Path, after: Path) -> bytes:
    """As `git diff` writes it, of two folders of one name."""
    words = ["git", "diff", "--no-index", "--no-color", "--no-prefix", "--binary", str(before), str(after)]
    shown = subprocess.run(words, check=False, capture_output=True).stdout
    for folder, side in ((before, b"a/"), (after, b"b/")):
        shown = shown.replace(os.fsencode(f"{folder}/").lstrip(b"/"), side + os.fsencode(f"{folder.name}/"))
    return shown.replace(b"--- /a/", b"--- a/").replace(b"+++ /b/", b"+++ b/")


def _sources(folder: Path) -> Path:
    versions = sorted({version for bug in BUGS for version in (bug.before, bug.after)})
    words = [f"marshmallow=={version}" for version in versions]
    for word in words:
        _pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder), word)
    for archive in folder.glob("*.tar.gz"):
        shutil.unpack_archive(archive, folder)
    for folder_of_versions in folder.glob("*/src/*.egg-info"):
        shutil.rmtree(folder_of_versions)
    return folder


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        lacking("PYPI", f"packages cannot be had from PyPI here: {done.stderr.strip()[-200:]}")


def texts_of(body: dict[str, object]) -> str:
    """All that the messages of a request say."""
    messages = body["messages"]
    assert isinstance(messages, list)
    return "\n".join(str(message.get("content")) for message in messages)


def turns_of(body: dict[str, object]) -> int:
    """How many replies it has seen."""
    messages = body["messages"]
    assert isinstance(messages, list)
    return sum(message["role"] == "assistant" for message in messages)


def _remove() -> None:
    subprocess.run([ENGINE, "rmi", "--force", IMAGE], check=False, capture_output=True)


@pytest.fixture(scope="session")
def agent_tasks(agent_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three real bugs of marshmallow (MIT) as task folders."""
    with shared_folder(
        tmp_path_factory, "agent-tasks", lambda folder: make_tasks(folder, agent_image), _remove
    ) as folder:
        yield folder / TASKS
