# SPDX-License-Identifier: Apache-2.0
"""Examples of the pages on results print what stands below them, on the results of docs/notebooks/make_results.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands.running import ns

ROOT = Path(__file__).parents[2]
NO_FENCE = r"((?:(?!```).)*)"
EXAMPLE = re.compile(rf"```(?:bash)?\n(ns {NO_FENCE})```\n\n```text\n{NO_FENCE}```", re.DOTALL)
EXAMPLES_BY_PAGE = {"docs/compare.md": 5, "docs/numbers.md": 1, "docs/evaluate.md": 1}
EXAMPLES = [
    pytest.param(command, output, id=f"{name}-{number}")
    for name in EXAMPLES_BY_PAGE
    for number, (command, _, output) in enumerate(EXAMPLE.findall((ROOT / name).read_text(encoding="utf-8")))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("examples")
    script = ROOT / "docs" / "notebooks" / "make_results.py"
    subprocess.run([sys.executable, script, "results"], cwd=place, check=True)
    return place


def lines_of(text: str) -> list[str]:
    """Return the lines of an output, without blanks at their ends and without empty lines around them."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_no_page_loses_an_example() -> None:
    assert len(EXAMPLES) == sum(EXAMPLES_BY_PAGE.values())


@pytest.mark.parametrize(("command", "output"), EXAMPLES)
def test_examples_print_what_they_show(command: str, output: str, folder: Path) -> None:
    done = ns(command, cwd=folder, env={"NEWSKILLS_DATA_DIR": str(folder / "data")})
    # A gate prints the comparison, too: the page shows what it adds.
    printed = lines_of(done.stderr if "--fail_if" in command else done.stdout)
    expected = lines_of(output)
    if expected[-1] == "…":
        expected.pop()
        printed = printed[: len(expected)]
    assert printed == expected
