# SPDX-License-Identifier: Apache-2.0
"""Examples on pages print what stands below them: on results, those of docs/notebooks/make_results.py; elsewhere, those
that need no model and no cluster, with the files of their page."""

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
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
FIRST_COMMANDS = {
    "add-a-benchmark": "ns validate ./sums.py",
    "agents": "ns agents\n",
    "grading": "ns grade",
    "models": "ns generate --dry_run",
    "slurm": "ns prepare_data gsm8k",
}
"""Page → beginning of the example that is run."""
FILES = {
    "problems.jsonl": '{"problem": "What is 2+2?", "expected_answer": "4"}\n',
    "cluster_configs/slurm.yaml": "executor: slurm\njob_dir: /jobs\n",
}
"""What those pages say in words, or in an earlier step."""


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


@pytest.mark.parametrize("page", FIRST_COMMANDS)
def test_examples_with_the_files_of_their_page(page: str, tmp_path: Path, mirror: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for name, content in (FILES | dict(FILE.findall(text))).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content.replace("/jobs", str(tmp_path)), encoding="utf-8")
    commands, _, output = next(it for it in EXAMPLE.findall(text) if it[0].startswith(FIRST_COMMANDS[page]))
    env = {
        "NEWSKILLS_MIRROR": str(mirror),
        "NEWSKILLS_DATA_DIR": str(tmp_path / "data"),
        "NEWSKILLS_AGENTS": str(tmp_path / "agents"),
        "ANTHROPIC_API_KEY": "a key",
    }
    printed = ""
    for line in commands.splitlines():
        done = ns(line, cwd=tmp_path, env=env)
        assert done.returncode == 0, (line, done.stderr)
        printed += done.stdout + done.stderr
    rest = re.sub(r"\S*/python[\d.]*(?= -m)", "python", "\n".join(lines_of(printed)))
    for line in lines_of(output):
        if line not in ("", "…"):
            before, shown, rest = rest.partition(line.rstrip(" …"))
            assert shown, f"{line!r} is not in what is printed, or not in this order:\n{before}"
