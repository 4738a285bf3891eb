# SPDX-License-Identifier: Apache-2.0
"""Code packages of real git repositories, here and over a real ssh server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.launch.repositories import commit, git, repository, write
from tests.launch.sshd import remote, sshd
from tests.night import by_day

import newskills
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, StorageError
from newskills.base.libraries import APPLICATIONS, LIBRARIES, library_source
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.machines.shell import LocalMachine, Shell
from newskills.launch.machines.ssh import RemoteMachine
from newskills.launch.package import Package, PackageOptions, make_package

__all__ = ["remote", "sshd"]

SLURM = ClusterConfig(executor="slurm", name="slurm", job_dir="/unused")
FILES = {"train.py": "print('one')\n", "pack age/it's.txt": "x\n", "bin/run": "#!/bin/sh\n"}
OURS = ("newskills", *LIBRARIES, *APPLICATIONS)
OWN = {"newskills/__init__.py": "", "newskills/cli.py": ""}  # so that the installed one need not be copied


def packed(
    root: Path,
    folder: Path,
    *,
    shell: Shell | None = None,
    environ: dict[str, str] | None = None,
    say: PrintLine | None = None,
    cluster: ClusterConfig = SLURM,
    **options: Any,
) -> Package:
    made, _ = make_package(
        cluster,
        shell or LocalMachine(),
        str(root),
        environ or {},
        PackageOptions(folder=folder, **options),
        say or (lambda text: None),
    )
    return made


def names(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] not in OURS
    }


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    place = repository(tmp_path / "my repo", {**FILES, **OWN})
    (place / "bin" / "run").chmod(0o755)
    (place / "link").symlink_to("train.py")
    commit(place, {})
    return place


def test_committed_files_and_newskills(repo: Path, tmp_path: Path) -> None:
    git(repo, "rm", "-rq", "newskills")
    commit(repo, {})
    made = packed(tmp_path / "jobs", repo / "bin")
    code = Path(made.path)
    assert code == tmp_path / "jobs" / "packages" / made.hash
    assert names(code) == {*FILES, "link"}
    assert os.access(code / "bin" / "run", os.X_OK)
    assert os.readlink(code / "link") == "train.py"
    assert made.commit == git(repo, "rev-parse", "HEAD").strip()
    assert (made.repository, made.uncommitted, made.without) == (str(repo), (), ())
    assert made.copied > 100_000
    version = subprocess.run(
        [
            *(sys.executable, "-S", "-c"),
            f"import {', '.join(OURS)}; print(newskills.__version__, *(m.__file__ for m in ({', '.join(OURS)})))",
        ],
        env={"PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        check=True,
    )
    places = [str(code / name / "__init__.py") for name in OURS]
    assert version.stdout.split() == [newskills.__version__, *places]
    assert not list(code.rglob("__pycache__/x"))


def test_same_content_is_not_copied_twice(repo: Path, tmp_path: Path) -> None:
    first = packed(tmp_path / "jobs", repo)
    again = packed(tmp_path / "jobs", repo)
    assert (again.path, again.copied) == (first.path, 0)
    commit(repo, {})  # another commit with the same files
    assert packed(tmp_path / "jobs", repo).path == first.path
    commit(repo, {"train.py": "print('two')\n"})
    other = packed(tmp_path / "jobs", repo)
    assert other.path != first.path
    assert Path(first.path, "train.py").read_text() == "print('one')\n"
    assert Path(other.path, "train.py").read_text() == "print('two')\n"
    assert len(os.listdir(tmp_path / "jobs" / "packages")) == 2


def test_over_ssh_the_second_submission_copies_nothing(repo: Path, tmp_path: Path, remote: RemoteMachine) -> None:
    (repo / "big").write_bytes(os.urandom(300_000))
    commit(repo, {})
    first = packed(tmp_path / "jobs", repo, shell=remote)
    assert first.copied > 300_000
    assert names(Path(first.path)) == {*FILES, "link", "big"}
    assert os.readlink(Path(first.path, "link")) == "train.py"
    second = packed(tmp_path / "jobs", repo, shell=remote)
    assert (second.path, second.copied) == (first.path, 0)
    assert os.listdir(tmp_path / "jobs" / "packages") == [first.hash]


def test_many_submit_at_once(repo: Path, tmp_path: Path) -> None:
    made: list[Package] = []
    threads = [threading.Thread(target=lambda: made.append(packed(tmp_path / "jobs", repo))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len({one.path for one in made}) == 1
    assert os.listdir(tmp_path / "jobs" / "packages") == [made[0].hash]
    assert names(Path(made[0].path)) == {*FILES, "link"}


def test_changed_files_are_an_error_that_names_them(repo: Path, tmp_path: Path) -> None:
    write(repo, {"train.py": "changed\n", "new one.py": "x\n", "bin/__pycache__/run.cpython-311.pyc": ""})
    (repo / "bin" / "run").unlink()
    git(repo, "add", "new one.py")
    with pytest.raises(ConfigError) as caught:
        packed(tmp_path / "jobs", repo)
    assert "3 files" in str(caught.value)
    for name in ("train.py", "new one.py", "bin/run"):
        assert name in str(caught.value)
    assert "NEWSKILLS_DISABLE_UNCOMMITTED_CHANGES_CHECK=1" in caught.value.hint
    assert not (tmp_path / "jobs").exists()


def test_files_that_git_does_not_track_are_named_and_no_error(repo: Path, tmp_path: Path) -> None:
    """Such as the results of an earlier run, and their locks."""
    write(repo, {"out/output.jsonl": "{}\n", "out/.output.jsonl.lock": "", "results/x": ""})
    said: list[str] = []
    made = packed(tmp_path / "jobs", repo, say=said.append)
    assert said == [
        "2 new files are not packaged, since git does not track them: out/.output.jsonl.lock, out/output.jsonl"
    ]
    assert not Path(made.path, "out").exists()
    assert "out/output.jsonl" in made.uncommitted


@pytest.mark.parametrize("prefix", ["NEWSKILLS", "NEMO_SKILLS"])
def test_uncommitted_files_can_be_allowed(repo: Path, tmp_path: Path, prefix: str) -> None:
    write(repo, {"train.py": "changed\n", **{f"new{i:02}": "" for i in range(20)}, "\x1b[2Jevil": ""})
    said: list[str] = []
    environ = {f"{prefix}_DISABLE_UNCOMMITTED_CHANGES_CHECK": "1"}
    made = packed(tmp_path / "jobs", repo, environ=environ, say=said.append)
    assert Path(made.path, "train.py").read_text() == "print('one')\n"
    assert not Path(made.path, "new00").exists()
    assert len(made.uncommitted) == 22
    assert "21 new files" in said[0]
    assert "and 11 more" in said[0]
    assert "1 file of" in said[1]
    assert "\x1b" not in said[0]
    assert packed(tmp_path / "jobs", repo, allow_uncommitted=True).path == made.path


def test_ignored_files_are_neither_packaged_nor_an_error(repo: Path, tmp_path: Path) -> None:
    commit(repo, {".gitignore": "out/\n"})
    write(repo, {"out/big.bin": "x"})
    made = packed(tmp_path / "jobs", repo)
    assert made.uncommitted == ()
    assert not Path(made.path, "out").exists()


def test_prepared_data_goes_along(repo: Path, tmp_path: Path) -> None:
    code = {".gitignore": "*.jsonl\n!open/**\n", "a/recipes/b c/prepare.py": ""}
    commit(repo, code)
    data = {
        "dataset/mine/test.jsonl": "{}\n",
        "a/recipes/b c/train.jsonl": "{}\n",
        "open/datasets/x.jsonl": "{}\n",
    }
    write(repo, {**data, "results/output.jsonl": "{}\n", ".venv/dataset/x.jsonl": "{}\n", "dataset/notes.txt": ""})
    said: list[str] = []
    made = packed(tmp_path / "jobs", repo, say=said.append)
    assert "1 new file is not packaged" in said[1]
    assert "dataset/notes.txt" in said[1]
    assert names(Path(made.path)) == {*FILES, *code, "link", *data}
    assert "3 files of prepared data" in said[0]
    write(repo, {"dataset/mine/test.jsonl": '{"a": 1}\n'})
    assert packed(tmp_path / "jobs", repo).path != made.path


def test_changed_data_that_is_committed_counts_as_code(repo: Path, tmp_path: Path) -> None:
    commit(repo, {"dataset/mine/test.jsonl": "{}\n", "dataset/mine/old.jsonl": "{}\n"})
    write(repo, {"dataset/mine/test.jsonl": "changed\n"})
    (repo / "dataset" / "mine" / "old.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"2 files .*old.jsonl, dataset/mine/test.jsonl"):
        packed(tmp_path / "jobs", repo)


@pytest.mark.parametrize("package_name", by_day(OURS[1:], [*LIBRARIES][:1] + [*APPLICATIONS][:1]))
def test_a_repository_that_has_newskills(tmp_path: Path, package_name: str) -> None:
    own = {"src/newskills/__init__.py": "MINE = 1\n", "src/newskills/cli.py": "", "README": ""}
    library = library_source(package_name)
    repo = repository(tmp_path / "fork", own)
    before = packed(tmp_path / "jobs", repo)
    assert os.readlink(Path(before.path, "newskills")) == "src/newskills"
    assert Path(before.path, package_name, "_version.py").is_file()  # of a time when there was no such library
    assert not Path(before.path, package_name).is_symlink()
    commit(repo, {f"{library}/__init__.py": "MINE = 2\n", f"{library}/_version.py": ""})
    made = packed(tmp_path / "jobs", repo)
    assert os.readlink(Path(made.path, package_name)) == library
    assert Path(made.path, package_name, "__init__.py").read_text() == "MINE = 2\n"
    assert Path(made.path, "newskills", "__init__.py").read_text() == "MINE = 1\n"
    installed = packed(tmp_path / "jobs", repo, environ={"NEMO_SKILLS_FORCE_INSTALLED_PACKAGE": "1"})
    for name in ("newskills", package_name):
        assert "MINE" not in Path(installed.path, name, "__init__.py").read_text()
    assert installed.path != made.path


def test_a_folder_in_the_way_of_newskills(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", {"newskills/results.txt": ""})
    with pytest.raises(ConfigError, match="would hide the package"):
        packed(tmp_path / "jobs", repo)


def test_outside_of_git(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    write(tmp_path / "plain", {"secret.txt": "x"})
    made = packed(tmp_path / "jobs", tmp_path / "plain")
    assert (made.commit, made.repository) == ("", "")
    assert names(Path(made.path)) == set()
    assert Path(made.path, "newskills", "cli.py").is_file()
    repo = repository(tmp_path / "repo", FILES)
    write(repo, {"train.py": "changed"})
    pattern = packed(tmp_path / "jobs", repo, environ={"NEMO_SKILLS_FORCE_PATTERN_PACKAGER": "1"})
    assert pattern.path == made.path


def test_executor_none_uses_the_repository_itself(repo: Path, tmp_path: Path) -> None:
    write(repo, {"new.py": ""})
    none = ClusterConfig(job_dir=str(tmp_path / "jobs"))
    made = packed(tmp_path / "jobs", repo / "bin", cluster=none)
    assert (made.path, made.hash, made.copied, made.uncommitted) == (str(repo), "", 0, ("new.py",))
    assert not (tmp_path / "jobs").exists()
    assert packed(tmp_path, tmp_path, cluster=none).path == str(tmp_path)


def test_dry_run_copies_nothing(repo: Path, tmp_path: Path) -> None:
    made = packed(tmp_path / "jobs", repo, dry_run=True)
    assert made.copied == 0
    assert not (tmp_path / "jobs").exists()
    assert packed(tmp_path / "jobs", repo).path == made.path


def test_submodules_are_named(repo: Path, tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"x": ""})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "third party/inner")
    commit(repo, {})
    said: list[str] = []
    made = packed(tmp_path / "jobs", repo, say=said.append)
    assert made.without == ("third party/inner",)
    assert said == ["submodules are not packaged: third party/inner"]
    assert not Path(made.path, "third party", "inner", "x").exists()


def test_further_repositories(repo: Path, tmp_path: Path) -> None:
    other = repository(tmp_path / "other", {"lib.py": ""})
    made = packed(tmp_path / "jobs", repo, repositories={"lib": other})
    assert Path(made.path, "lib", "lib.py").is_file()
    with pytest.raises(ConfigError, match="hide the folder bin"):
        packed(tmp_path / "jobs", repo, repositories={"bin": other})
    with pytest.raises(ConfigError, match="not a git repository"):
        packed(tmp_path / "jobs", repo, repositories={"lib": tmp_path})


def test_broken_repositories(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(ConfigError, match="no commit yet"):
        packed(tmp_path / "jobs", tmp_path / "empty")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("nonsense")
    with pytest.raises(ConfigError, match="git rev-parse failed"):
        packed(tmp_path / "jobs", tmp_path / "odd")


def test_where_nothing_can_be_written(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        packed(tmp_path / "file", repo)
