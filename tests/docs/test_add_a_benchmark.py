# SPDX-License-Identifier: Apache-2.0
"""The page that promises a benchmark in five minutes: every file on it is written, every command on it is run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

from newskills.benchmarks.files.format import BenchmarkFile
from newskills.benchmarks.files.kinds import KINDS
from newskills.benchmarks.files.schema import ADDRESS as ADDRESS_OF_SCHEMA

PAGE = (Path(__file__).parents[2] / "docs" / "add-a-benchmark.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
ADDRESS = "http://localhost:8000/v1"
SHORT = 60


def files() -> dict[str, str]:
    return dict(FILE.findall(PAGE))


def test_each_benchmark_is_a_short_file() -> None:
    made = {name: text for name, text in files().items() if name.endswith(".py")}
    assert {"sums.py", "studies.py", "quiz.py", "endings.py", "animals.py", "both.py"} == set(made)
    assert all(len(text.splitlines()) < SHORT for text in made.values())


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_can_be_typed_as_it_stands(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="text", text="Answer: \\boxed{4}")))
    place = {"NEWSKILLS_DATA_DIR": str(here / "data")}
    for block in COMMANDS.findall(PAGE):
        for line in block.splitlines():
            done = ns(shlex.join(shlex.split(line)).replace(ADDRESS, server.url + "/v1"), cwd=here, env=place)
            assert done.returncode == 0, (line, done.stderr)
    read = lambda path: json.loads((here / path).read_text())  # noqa: E731 - short
    assert read("capitals/metrics.json")["capitals"]["pass@1"]["num_entries"] == 2
    assert {"capitals-Europe", "capitals-America"} < set(read("capitals/metrics.json"))
    assert read("described/metrics.json")["mine"]["pass@1"]["num_entries"] == 2
    assert read("results/metrics.json")["sums"]["pass@1"]["symbolic_correct"] == 50.0
    assert {"sums-easy", "sums-hard"} < set(read("results/metrics.json"))
    three = read("three/metrics.json")
    assert {"studies", "quiz", "quiz-de", "quiz-fr", "endings"} <= set(three)
    assert three["studies"]["pass@1"]["num_entries"] == 2
    assert {"acc", "acc_norm"} <= set(three["endings"]["pass@1"])
    assert {"animals", "animals.en", "animals.de", "animals.sw"} == set(read("family/metrics.json"))
    assert set(read("german/metrics.json")) == {"animals.de"}
    together = read("together/eval-results/both/metrics.json")["both"]["score"]
    assert together == {"num_benchmarks_in_group": 2, "overall": 25.0}


def test_the_page_names_all_keys_and_kinds_of_a_description() -> None:
    part = PAGE.partition("## The same, described")[2].partition("## The smallest one in Python")[0]
    names = set(re.findall(r"`(\w+)`", part))
    assert {field.name for field in msgspec.structs.fields(BenchmarkFile)} - {"licence", "homepage"} <= names
    assert set(KINDS) <= names
    assert ADDRESS_OF_SCHEMA in part
