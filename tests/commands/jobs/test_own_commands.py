# SPDX-License-Identifier: Apache-2.0
"""The ways in which `ns run_cmd` and `run_cmd` are told a command of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands.running import ns

import newskills
from newskills.base.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("cluster", ["", "--cluster=none", "--cluster=local"])
def test_one_quoted_word_is_a_text_for_bash(folder: Path, cluster: str) -> None:
    done = ns(f"ns run_cmd {cluster}", "echo HI && pwd", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "HI" in done.stdout
    assert str(folder) in done.stdout


def test_one_quoted_word_may_set_variables_and_end_with_a_code_of_its_own(folder: Path) -> None:
    assert ns("ns run_cmd", "WHO=me; exit 4", cwd=folder).returncode == 4


def test_a_program_with_a_blank_in_its_name_is_that_program(folder: Path) -> None:
    program = folder / "my program"
    program.write_text("#!/bin/sh\necho ran as $0\n")
    program.chmod(0o755)
    done = ns("ns run_cmd", str(program), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"ran as {program}" in done.stdout


def test_several_words_are_no_text(folder: Path) -> None:
    done = ns("ns run_cmd echo", "HI && pwd", cwd=folder)
    assert "HI && pwd" in done.stdout


def test_wrap_arguments_carries_a_command(folder: Path) -> None:
    newskills.run_cmd(ctx=newskills.wrap_arguments("echo HI > said && pwd >> said"), expname="said")
    assert (folder / "said").read_text() == f"HI\n{folder}\n"


def test_a_command_is_for_run_cmd_only_and_there_is_one(folder: Path) -> None:
    command = newskills.wrap_arguments("echo HI")
    with pytest.raises(ConfigError, match=r"'echo' is no \+\+key=value"):
        newskills.generate(ctx=command, output_dir="o", input_file="i.jsonl", model="m", server_type="openai")
    with pytest.raises(ConfigError, match="Two commands"):
        newskills.run_cmd(ctx=command, command="true")
    with pytest.raises(ConfigError):
        newskills.wrap_arguments("++a=1 echo")
