# SPDX-License-Identifier: Apache-2.0
"""Modules of NeMo-Skills: by name, and what is said of task classes. Nothing of a task is run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Script

from newskills.base.errors import ConfigError
from newskills.benchmarks import get_benchmark, get_group
from newskills.commands.table import GROUPS
from newskills.solve import SOLVERS
from newskills.solve.generation_modules import (
    GENERATION_MODULE_MAP,
    METHODS,
    PREFIX,
    read_module,
    refuse_task,
    solver_of_module,
)

PAGE = Path(__file__).parents[2] / "docs/generation-tasks.md"
ANSWERED = "--model=m --server_type=vllm --server_address={url} ++prompt_config=generic/default"


def blocks() -> dict[str, str]:
    """The files of the page."""
    return dict(re.findall(r'```python title="(\S+)"\n(.*?)```', PAGE.read_text(), re.S))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in blocks().items():
        (tmp_path / name).write_text(text)
    write(tmp_path / "in.jsonl", [{"question": " Why? "}, {"question": " "}])
    return tmp_path


@pytest.fixture
def server(fake_server: FakeServerFactory) -> FakeServer | FakeServerProcess:
    return fake_server(Script(models=("m",), answer=Answer(text="Judgement: Yes")))


def generate(here: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    line = f"ns generate --input_file=in.jsonl --output_dir=out {ANSWERED.format(url=url)}"
    return ns(" ".join([line, *words]), cwd=here)


def test_the_solver_of_the_page_does_what_the_task_does(
    here: Path, server: FakeServer | FakeServerProcess
) -> None:
    done = generate(here, server.url, "--generation_module=short.py")
    assert done.returncode == 0, done.stderr
    first, empty = rows_of(here / "out/output.jsonl")
    assert (first["generation"], first["draft"]) == ("Judgement: Yes", "Judgement: Yes")
    assert empty["generation"] == ""
    asked = [r.body["messages"][-1]["content"] for r in server.records if r.body and "messages" in r.body]
    assert "Say it shorter: Judgement: Yes" in asked
    assert not [text for text in asked if not text.strip()]


@pytest.mark.parametrize("maker", ["", "::ShortTask", "::GENERATION_TASK_CLASS"])
def test_a_task_is_named_with_what_it_overrides(
    here: Path, server: FakeServer | FakeServerProcess, maker: str
) -> None:
    done = generate(here, server.url, f"--generation_module=task.py{maker}")
    assert done.returncode == 2
    assert "task.py: ShortTask is a generation task of NeMo-Skills" in done.stderr
    assert "It overrides preprocess_data, prefill_generation, process_single_datapoint." in done.stderr
    assert "process_single_datapoint becomes solve(sample, request, kit)" in done.stderr
    assert "docs/generation-tasks.md" in done.stderr
    assert not [record for record in server.records if record.body]


def test_a_job_of_such_a_task_is_not_submitted(here: Path) -> None:
    (here / "cluster_configs").mkdir()
    (here / "cluster_configs/mine.yaml").write_text("executor: none\n")
    done = generate(here, "http://127.0.0.1:9", "--generation_module=task.py", "--cluster=mine")
    assert done.returncode == 2
    assert "ShortTask is a generation task" in done.stderr


def test_nothing_of_a_task_is_run(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(
        "from pathlib import Path\nPath('ran').touch()\nfrom nemo_skills.inference import generate\n"
        "class Base(generate.GenerationTask):\n    def fill_prompt(self, a, b): ...\n"
        "class Mine(Base):\n    async def process_single_datapoint(self, a, b): ...\n    def own(self): ...\n"
        "GENERATION_TASK_CLASS = Mine\n"
    )
    found = read_module(str(file))
    assert found is not None
    assert (found.task, found.methods, found.imported) == ("Mine", ("fill_prompt", "process_single_datapoint"), 3)
    with pytest.raises(ConfigError, match="Mine is a generation task"):
        refuse_task(f"{file}::SOLVER")
    assert not (tmp_path / "ran").exists()


def test_an_import_that_is_not_needed_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    file.write_text("import json\nfrom nemo_skills.utils import unroll_files\nclass SOLVER: ...\n")
    with pytest.raises(ConfigError, match=r"mixed.py, line 2: it imports nemo_skills"):
        refuse_task(f"{file}::SOLVER")


def test_other_modules_are_left_to_the_import(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text('"""As nemo_skills does it."""\nclass SOLVER: ...\n')
    refuse_task(f"{file}::SOLVER")
    refuse_task("no.such.module::SOLVER")
    file.write_text("GENERATION_TASK_CLASS = (")
    refuse_task(f"{file}::SOLVER")


@pytest.mark.parametrize(
    ("module", "field"),
    [("generate", "generation"), ("llm_math_judge", "judgement")],
)
def test_modules_of_the_reference_system_go_by_their_names(
    here: Path, server: FakeServer | FakeServerProcess, module: str, field: str
) -> None:
    write(
        here / "in.jsonl",
        [{"question": "Why?", "problem": "Why?", "predicted_answer": "1", "expected_answer": "2"}],
    )
    words = f"--model=m --server_type=vllm --server_address={server.url} --generation_module={PREFIX}{module}"
    more = "++prompt_config=generic/default" if module == "generate" else ""
    done = ns(f"ns generate --input_file=in.jsonl --output_dir=out {words} {more}", cwd=here)
    assert done.returncode == 0, done.stderr
    [row] = rows_of(here / "out/output.jsonl")
    assert row[field] == "Judgement: Yes"


def test_what_does_not_fit_is_said(here: Path, server: FakeServer | FakeServerProcess) -> None:
    two = generate(here, server.url, "--generation_module=nemo_skills.inference.generate --generation_type=prover")
    assert "exclude each other" in two.stderr
    unknown = generate(here, server.url, "--generation_module=nemo_skills.inference.eval.bfcl")
    assert unknown.returncode == 2
    assert "ns eval --benchmarks=bfcl_v3" in unknown.stderr


def test_every_name_leads_to_something() -> None:
    assert set(GENERATION_MODULE_MAP.values()) <= set(SOLVERS.names())
    assert solver_of_module("mine.generate") is None
    for name, told in (("eval.bfcl", "bfcl_v3"), ("eval.compute_eval", "compute-eval")):
        with pytest.raises(ConfigError, match=told):
            solver_of_module(PREFIX + name)
    assert get_group("bfcl_v3").members
    assert get_benchmark("compute-eval").solver
    assert "retrieve_similar" in {name for group in GROUPS.values() for name in group}
    text = PAGE.read_text()
    assert all(f"| `{name}` | " in text for name in METHODS)
    assert all(f"| `{PREFIX}{name}` | `{solver}` |" in text for name, solver in GENERATION_MODULE_MAP.items())
