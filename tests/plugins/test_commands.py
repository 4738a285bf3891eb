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
class Without:
    def find_spec(self, name, path=None, target=None):
        if name in ("newskills_aimo", "newskills_tinker"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
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


@pytest.mark.parametrize(
    ("line", "distribution"),
    [
        ("aimo evaluate --model=m", "newskills-aimo"),
        ("serve_tinker --model=m --output_dir=out", "newskills-tinker"),
        ("tinker_sft model_name=m", "newskills-tinker"),
        ("tinker rl --help", "newskills-tinker"),
    ],
)
def test_an_application_that_is_not_installed_is_named(line: str, distribution: str) -> None:
    program = [sys.executable, "-c", f"{WITHOUT}{LOADED}"]
    done = subprocess.run([*program, *line.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{distribution}, which is not installed" in done.stderr
    assert f"pip install {distribution}" in done.stderr
    overview = subprocess.run([*program, "--help"], capture_output=True, text=True, check=False)
    assert "usage: ns COMMAND" in overview.stdout
    assert "serve_tinker" in overview.stdout
