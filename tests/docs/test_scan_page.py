# SPDX-License-Identifier: Apache-2.0
"""The page on scans and diagnoses: its commands print what stands below them, its tables are those in use."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory

from newskills.view.diagnosis.groups import GROUPS
from newskills.view.scans import SCANNERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scan.md").read_text(encoding="utf-8")
NO_FENCE = r"((?:(?!```).)*)"
EXAMPLES = re.findall(rf"```(bash|python)\n{NO_FENCE}```\n\n```text\n{NO_FENCE}```", PAGE, re.DOTALL)
FILES = {"wanders.yaml": "yaml", "labels.jsonl": "json", "short.py": "python"}
ADDRESS = "http://127.0.0.1:8000/v1"


def wanders(body: dict[str, Any]) -> str:
    """A model that finds loops, invents a quote for one problem, and answers one in French."""
    text = str(body["messages"][-1]["content"])
    if "times 5 plus" in text:
        return '{"label": "yes", "quotes": ["I would rather talk about the weather."]}'
    if "times 6 plus" in text:
        return "Non, la réponse traite du problème."
    label = "yes" if "Let us see. Let us see." in text else "no"
    return f'{{"label": "{label}", "quotes": ["Let us see."]}}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    script = ROOT / "docs" / "notebooks" / "make_results.py"
    subprocess.run([sys.executable, script, "results"], cwd=place, check=True)
    for name, kind in FILES.items():
        match = re.search(rf"`{re.escape(name)}`:\n\n```{kind}\n{NO_FENCE}```", PAGE, re.DOTALL)
        assert match is not None
        (place / name).write_text(match[1], encoding="utf-8")
    return place


def output_of(kind: str, code: str, folder: Path, server: str) -> str:
    if kind == "python":
        return subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
    words = shlex.split(code.replace("\\\n", " ").replace(ADDRESS, server))
    done = ns("ns", *words[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_examples_print_what_they_say(folder: Path, fake_server: FakeServerFactory) -> None:
    assert len(EXAMPLES) == 7
    server = fake_server(answer=wanders)
    for kind, code, output in EXAMPLES:
        assert output_of(kind, code, folder, server.base_url) == output, code


def test_tables_are_those_in_use() -> None:
    scanners = {name: properties.looks_for for name, properties in SCANNERS.built_in().items()}
    groups = {text.title: text.rule for text in GROUPS.values()}
    rows = dict(re.findall(r"^\| `?([\w ]+?)`? \| (.+) \|$", PAGE, re.MULTILINE))
    for name, meaning in (scanners | groups).items():
        assert rows[name] == meaning
