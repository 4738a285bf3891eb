# SPDX-License-Identifier: Apache-2.0
"""Commands that other packages add, and those of applications that are not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands.running import ns

PLUGIN = """
from typing import Annotated
from msgspec import Struct
from newskills.commands.command import Command
from newskills.pipelines.options import doc

class Options(Struct, frozen=True, kw_only=True):
    name: Annotated[str, doc("whom to greet", {"positional": True})]

def run(parsed):
    print(f"Hello {parsed.options.name}")
    return 0

COMMAND = Command(name="say_hello", summary="Greet somebody.", options=Options, run=run)
"""
LOADED = """
import sys
from newskills.cli import main
code = main(sys.argv[1:])
print("entry points read:", "importlib.metadata" in sys.modules)
sys.exit(code)
"""

WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        applications = ("newskills_aimo", "newskills_evaluator", "newskills_tinker")
        return None if name in applications else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A folder in which a package that adds a command is installed."""
    (tmp_path / "greeting.py").write_text(PLUGIN)
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[newskills.commands]\nsay_hello = greeting:COMMAND\n")
    return str(tmp_path)


def started(path: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys\nsys.path.insert(0, {path!r})\n{LOADED}"
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("word", ["say_hello", "say-hello"])
def test_a_package_adds_a_command(path: str, word: str) -> None:
    done = started(path, word, "you")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Hello you")
    assert "whom to greet" in started(path, word, "--help").stdout


def test_entry_points_are_read_only_for_a_word_that_no_command_has(path: str) -> None:
    assert "entry points read: True" in started(path, "say_hello", "you").stdout
    for words in (
        ["--help"],
        ["list", "benchmarks"],
        ["sft", "--help"],
        ["aimo", "train", "--help"],
        ["serve_tinker", "--help"],
    ):
        done = started(path, *words)
        assert done.returncode == 0, done.stderr
        assert "entry points read: False" in done.stdout, words


def test_another_word_is_as_unknown_as_before(path: str, tmp_path: Path) -> None:
    done = ns("ns say_goodbye", cwd=tmp_path)
    assert done.returncode == 2
    assert "say_goodbye" in done.stderr
    assert "ns --help" in done.stderr


def without(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", f"{WITHOUT}{LOADED}", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.parametrize(
    ("line", "distribution"),
    [
        ("aimo evaluate --model=m", "newskills-aimo"),
        ("serve_tinker --model=m --output_dir=out", "newskills-tinker"),
        ("tinker_sft model_name=m", "newskills-tinker"),
        ("tinker rl --help", "newskills-tinker"),
        ("evaluate -t gsm8k", "newskills-evaluator"),
        ("info", "newskills-evaluator"),
        ("resume 3f9c0a", "newskills-evaluator"),
        ("nemo_evaluator --help", "newskills-evaluator"),
        ("export 3f9c0a", "newskills-evaluator"),
        ("export 3f9c0a --format inspect", "newskills-evaluator"),
    ],
)
def test_an_application_that_is_not_installed_is_named(line: str, distribution: str, tmp_path: Path) -> None:
    done = without(*line.split(), cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"{distribution}, which is not installed" in done.stderr
    assert f"pip install {distribution}" in done.stderr
    overview = without("--help", cwd=tmp_path).stdout
    assert "usage: ns COMMAND" in overview
    assert "serve_tinker" in overview


@pytest.mark.parametrize("command", ["status", "logs", "cancel"])
def test_jobs_are_looked_after_without_the_keeper_of_invocations(command: str, tmp_path: Path) -> None:
    done = without(command, "3f9c0a", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "experiment '3f9c0a'" in done.stderr


def test_the_api_is_whole_without_applications(tmp_path: Path) -> None:
    program = f"""{WITHOUT}
from newskills import *
from newskills.base.errors import ConfigError
print(Invocation.__name__)
try:
    profile_evaluate(task="gsm8k")
except ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "Invocation", done.stderr
    assert done.stdout.splitlines()[1].count("newskills-evaluator") == 2


def test_results_are_exported_as_logs_without_applications(tmp_path: Path) -> None:
    done = without("export", str(tmp_path), "--format", "inspect", cwd=tmp_path)
    assert "not installed" not in done.stderr
    assert str(tmp_path) in done.stderr
