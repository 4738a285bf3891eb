# SPDX-License-Identifier: Apache-2.0
"""env.toml: where it is found, what profiles inherit, and what is said of faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.errors import ConfigError, DataError, UnknownNameError, UserError
from newskills_evaluator.profiles import EnvFile, find_env_file, merged_profile, profile_of, read_env_file


def read(folder: Path, text: str) -> EnvFile:
    (folder / "env.toml").write_text(text)
    return read_env_file(folder / "env.toml")


def test_the_nearest_file_up_to_the_project_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "project/a/b"
    inner.mkdir(parents=True)
    (tmp_path / "env.toml").touch()
    assert find_env_file(inner, {}) == tmp_path / "env.toml"
    (tmp_path / "project/pyproject.toml").touch()
    assert find_env_file(inner, {}) is None
    (tmp_path / "project/env.toml").touch()
    assert find_env_file(inner, {}) == tmp_path / "project/env.toml"
    assert find_env_file(inner, {"NEMOTRON_ENV_FILE": str(tmp_path / "env.toml")}) == tmp_path / "env.toml"
    with pytest.raises(DataError, match="NEWSKILLS_ENV_FILE names /nope"):
        find_env_file(inner, {"NEWSKILLS_ENV_FILE": "/nope"})


def test_children_win_and_variables_are_merged(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        """
        [a]
        executor = "slurm"
        nodes = 1
        env_vars = { X = "1", Y = 1 }
        mounts = ["/a:/a"]
        [b]
        extends = "a"
        container = "c:1"
        [c]
        extends = "b"
        nodes = 4
        env_vars = { X = "2" }
        mounts = "/c:/c"
        """,
    )
    profile = profile_of("c", merged_profile(file, "c"))
    assert (profile.executor, profile.nodes, profile.container_image) == ("slurm", 4, "c:1")
    assert profile.env_vars == {"X": "2", "Y": "1"}
    assert profile.mounts == ("/c:/c",)
    assert profile.time == "04:00:00"
    assert "extends" not in profile.settings


@pytest.mark.parametrize(
    ("text", "name", "what"),
    [
        ("[a]\nextends='b'\n[b]\nextends='a'", "a", "a → b → a"),
        ("[a]\nextends='bb'\n[bbb]", "a", r"\[a\] extends 'bb'; did you mean 'bbb'"),
        ("[a]\nextends=1", "a", "expected the name of one profile"),
        ("[cluster]", "clutser", r"did you mean 'cluster'\? They are the sections"),
        ("[wandb]\n[a]", "wandb", "is not a profile; its profiles: a"),
        ("[a]\nexecutor='lepton'", "a", r"executor 'lepton' is not supported.*local, docker, slurm"),
        (
            "[a]\nexecutor='moon'\nnodes='x'",
            "a",
            "executor: invalid enum value 'moon'; nodes: expected a whole number, got 'x'",
        ),
        ("x = 1", "a", "'x' is outside any section"),
        ("[a", "a", "is not TOML"),
        ("[wandb]\nproject=1", "a", "project in .wandb.: expected text"),
    ],
)
def test_faults_are_told(tmp_path: Path, text: str, name: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        profile_of(name, merged_profile(read(tmp_path, text), name))


def test_without_a_file_the_next_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no env\.toml in this folder or above.*NEWSKILLS_ENV_FILE"):
        merged_profile(read_env_file(None), "x")
    with pytest.raises(UnknownNameError):
        merged_profile(read(tmp_path, "[a]"), "x")
