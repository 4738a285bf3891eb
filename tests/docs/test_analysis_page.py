# SPDX-License-Identifier: Apache-2.0
"""The page on analysis: its commands and programs print what stands below them, and its schema is the one in use."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tests.commands.running import ns

from newskills.view.analysis.arrow import SCHEMA_VERSION, arrow_type
from newskills.view.analysis.comparisons import COMPARISON_COLUMNS
from newskills.view.analysis.database import RESULT_TABLES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
NO_FENCE = r"((?:(?!```).)*)"
EXAMPLES = re.findall(rf"```(bash|python)\n{NO_FENCE}```\n\n```text\n{NO_FENCE}```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert duckdb.__version__
    place = tmp_path_factory.mktemp("page")
    script = ROOT / "docs" / "notebooks" / "make_results.py"
    subprocess.run([sys.executable, script, "results"], cwd=place, check=True)
    return place


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert all(output.strip() for _, _, output in EXAMPLES)


@pytest.mark.parametrize(("kind", "code", "output"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_print_what_they_say(kind: str, code: str, output: str, folder: Path) -> None:
    if kind == "bash":
        words = shlex.split(code.replace("\\\n", " "))
        done = ns("ns", *words[1:], cwd=folder)
    else:
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == output


def test_the_schema_is_the_one_in_use() -> None:
    """A column that changes here needs another version of the schema."""
    assert f"version {SCHEMA_VERSION} of the schema" in PAGE
    columns_by_table = {name: table.columns for name, table in RESULT_TABLES.items()} | {
        "comparisons": COMPARISON_COLUMNS
    }
    for name, columns in columns_by_table.items():
        section = PAGE.partition(f"### {name}\n")[2].partition("\n### ")[0]
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", section, re.MULTILINE)
        assert rows == [(column.name, column.kind, column.unit, column.meaning) for column in columns]


def test_types_are_those_of_the_page() -> None:
    for kind, arrow in re.findall(r"^\| (\w+) \| `(\w+.*?)` \| [A-Z ]+ \|$", PAGE, re.MULTILINE):
        shown = str(arrow_type(kind))
        assert arrow in (shown, "dictionary<int32, string>")
        assert arrow == shown or shown.startswith("dictionary<values=string, indices=int32")


def test_the_page_on_the_hub_shows_what_is_printed(folder: Path) -> None:
    page = (ROOT / "docs" / "push.md").read_text(encoding="utf-8")
    commands = re.findall(r"^ns push .*$", page, re.MULTILINE)
    outputs = re.findall(rf"```text\n(?=file ){NO_FENCE}```", page, re.DOTALL)  # the other one is of a training
    assert len(commands) == len(outputs) == 2
    for command, output in zip(commands, outputs, strict=True):
        lines = zip(ns(command, cwd=folder).stdout.splitlines(), output.splitlines(), strict=True)
        for printed, shown in lines:  # sizes depend on the version of pyarrow
            assert re.sub(r"[\d.]+ kB| +", "", printed) == re.sub(r"[\d.]+ kB| +", "", shown)
