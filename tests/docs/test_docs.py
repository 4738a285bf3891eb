# SPDX-License-Identifier: Apache-2.0
"""The pages say nothing that the commands would refuse."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from runpy import run_path

import pytest

from newskills._version import __version__
from newskills.base.errors import NewskillsError
from newskills.benchmarks.files.names import SETTINGS
from newskills.benchmarks.lm_eval.names import WISHES
from newskills.commands.loading import load_command
from newskills.commands.table import command_names, one_name
from newskills.config.fields import leaves
from newskills.config.layers import Layer, resolve
from newskills.config.values import parse_value
from newskills.graders import make_grader
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.plan import resolve_config

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("apps/*/README.md")),
]
GENERATED = run_path(str(ROOT / "docs" / "generated_pages.py"))["generated_pages"]
generated_pages = cache(GENERATED)
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
IN_TABLE = re.compile(r"^\| `(ns [^`]+)`", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")
SHELL = {"", "bash", "sh", "console"}
BETWEEN = {"|", "&", "&&", ";"}
OF_THE_COMMAND = {"dataset", "split", *SETTINGS, *WISHES}
"""Keys that `generate` and `eval` read themselves."""

AROUND_OTHERS = ("plan", "rehearse")


def commands_in(text: str) -> Iterator[list[str]]:
    """The words after `ns` of each command in a page's shell blocks and tables; `…` stands for words left out."""
    lines = [line for match in FENCE.finditer(text) if match[1] in SHELL for line in joined(match[2])]
    for line in [*lines, *IN_TABLE.findall(text)]:
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), ";"]:
            if word not in BETWEEN:
                words.append(word)
                continue
            if words[:1] == ["ns"]:
                yield [w for w in words[1:] if w != "…"]
            words = []


def joined(block: str) -> list[str]:
    """Lines of a block, continued ones made one."""
    return block.replace("\\\n", " ").splitlines()


def understand(words: list[str]) -> None:
    """Parses a command with its own parser and checks its `++` keys. Raises NewskillsError; runs nothing."""
    if words[0] in AROUND_OTHERS:
        words = words[1:]
    words = one_name(words)
    command = load_command(words[0])
    parsed = command.parse_words(words[1:])
    if parsed.help:
        return
    command.check(parsed)
    if command.config is not None:
        own = {key: value for key, value in parsed.overrides.items() if key not in OF_THE_COMMAND}
        if command.config is GenerationConfig:
            resolve_config([Layer("the page", own)])
        else:
            resolve(command.config, [Layer("the page", own)])
    elif command.any_keys and getattr(parsed.options, "grader", None):
        settings = {key: parse_value(str(text)) for key, text in parsed.overrides.items()}
        make_grader(parsed.options.grader, settings)


def refused_in(text: str) -> Iterator[str]:
    for words in commands_in(text):
        try:
            understand(words)
        except NewskillsError as error:
            yield f"ns {shlex.join(words)}: {error}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_are_understood(page: Path) -> None:
    assert list(refused_in(page.read_text(encoding="utf-8"))) == []


def test_commands_on_the_pages_of_benchmarks_are_understood() -> None:
    pages = {name: text for name, text in generated_pages().items() if name.startswith("benchmarks/")}
    assert len(pages) > 300
    assert {name: found for name, text in pages.items() if (found := list(refused_in(text)))} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert [target for target in missing if page.parent.name != "docs" or target not in generated_pages()] == []


def test_commands_are_found_and_wrong_ones_refused() -> None:
    page = "```\nns eval … \\\n  --benchmarks=gsm8k | ns grade '++a b'  # note\n```\n"
    page += "```text\nns no such\n```\n| `ns list` | x |\n"
    page += '=== "A tab"\n\n    ```\n    ns view results\n    ```\n'
    expected = [["eval", "--benchmarks=gsm8k"], ["grade", "++a b"], ["view", "results"], ["list"]]
    assert list(commands_in(page)) == expected
    for wrong in (
        "eval --benchmark=gsm8k",
        "generate ++temprature=1",
        "grade ++relaxed=true",
        "evall",
        "list ++a=1",
    ):
        with pytest.raises(NewskillsError):
            understand(wrong.split())


def test_generated_files_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_performance_page_has_the_places_that_the_bench_fills() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert text.index("<!-- bench: begin -->") < text.index("<!-- bench: end -->")


def test_the_install_page_names_the_wheel_that_is_built() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert f"dist/newskills-{__version__}-py3-none-any.whl" in text


@pytest.mark.parametrize("name", command_names())
def test_pages_of_commands_have_examples_and_all_options(name: str) -> None:
    page = generated_pages()[f"commands/{name}.md"]
    command = load_command(name)
    unfolded = page.replace(" \\\n    ", " ")
    assert all(line in unfolded for line in command.examples)
    assert "\n## Examples\n" in page or not command.examples
    shown = set(re.findall(r"^\| (?:`-\w`, )?`([^`]+)` \|", page, re.MULTILINE))
    options = leaves(command.options).values()
    flags = {leaf.path.upper() if leaf.extra.get("positional") else f"--{leaf.path}" for leaf in options}
    keys = {f"++{path}" for path in leaves(command.config)} if command.config else set()
    assert flags | keys <= shown


def test_every_benchmark_says_where_its_rows_come_from() -> None:
    pages = [text for name, text in generated_pages().items() if name.startswith("benchmarks/")]
    lines = [line for text in pages for line in text.splitlines()]
    sources = [line.split("|")[2].strip() for line in lines if line.startswith("| source |")]
    assert sources
    assert [source for source in sources if not source or source == "generated by"] == []
