# SPDX-License-Identifier: Apache-2.0
"""The types of the Python API as users meet them: `mypy --strict` on their scripts, completion in their editor."""

from __future__ import annotations

import re
from pathlib import Path

import jedi
import pytest
from mypy import api as mypy

from newskills._api.stub import write_stub

FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGE = Path(__file__).parents[1] / "docs" / "python.md"
EXAMPLE = PAGE.parent / "examples" / "python" / "evaluate_sums.py"

RIGHT = """
import newskills
from pathlib import Path
from newskills import Benchmark, Evaluation, Experiment, Generation, Model, aevaluate, evaluate, evaluate_async
from newskills import generate, grade, run_cmd, wrap_arguments

done = evaluate(
    ctx=wrap_arguments("++inference.temperature=0.6"),
    benchmarks=["gsm8k", "math-500"],
    model="my-model",
    server_gpus=2,
    judge_pipeline_kwargs={"num_jobs": 2},
)
score: float = done.reports[0].numbers["pass@1"]["symbolic_correct"].value
lost: int = newskills.eval(benchmarks="gsm8k").result.ledger.lost
mine = evaluate(
    benchmarks=[Benchmark(name="mine", category="math", title="Mine"), "gsm8k:4"],
    model=Model("policy", server="vllm", address=["http://a:8000", "http://b:8000"]),
    judge_model=Model("judge", server="openai"),
    settings=Generation(temperature=0.7, tool_modules=["python"], sandbox={"host": "node"}),
    output_dir=Path("results"),
)
values: dict[str, float] = {name: number.value for name, number in mine.scores.items()}
replies: list[object] = [sample.record["generation"] for sample in mine.samples(outcome="wrong", number=3)]
table: str = mine.table()
files: list[Path] = generate(model=[Model("a"), "b"], input_file=Path("in.jsonl")).outputs
right: int = grade(rows=[{"generation": "4", "expected_answer": "4"}]).ledger.correct
first = run_cmd(ctx=wrap_arguments("echo HI"), cluster="slurm")
rows = generate(input_file="in.jsonl", cluster={"executor": "slurm"}, run_after=[first, "earlier"])
assert isinstance(rows, Experiment)
name: str = rows.id
newskills.prepare_data(benchmarks=["gsm8k"], an_option_of_the_benchmark="x")
state: str = newskills.profile_evaluate(config="mine.yaml", batch="my-cluster")[0].tasks[0].state
address: str = newskills.start_server(model="m", server_type="vllm").address
jobs: tuple[object, ...] = newskills.plan(command="eval", words=["--benchmarks=gsm8k"]).jobs
level: str = newskills.serve_sandbox(action="doctor").isolation_level
page: str = newskills.serve_view(folders=["a", Path("b")]).address
names: list[str] = [item.title for item in newskills.list_names(kind="graders")]
low: float = newskills.aimo_evaluate(model="m")["gsm8k"].low
folder: Path = newskills.merge_lora(base_model="a", adapter="b", output_model="c")


async def at_a_checkpoint() -> Evaluation:
    await evaluate_async(benchmarks="gsm8k")
    return await aevaluate(benchmarks="gsm8k")
"""

WRONG = {
    "newskills.evaluate(benchmark='gsm8k')": 'Unexpected keyword argument "benchmark" for "evaluate"',
    "newskills.evaluate(model='x')": 'Missing named argument "benchmarks"',
    "newskills.evaluate(benchmarks='x', num_chunks='two')": 'Argument "num_chunks" to "evaluate" has incompatible type',
    "newskills.generate(input_file=3)": 'expected "str | Path | None"',
    "newskills.convert(input_model='a', output_model='b', convert_from='hf', convert_to='pt')": "Literal['pt']",
    "newskills.evaluate(benchmarks='x').report": '"Evaluation" has no attribute "report"',
    "newskills.evaluate(benchmarks=[3])": 'expected "str | Benchmark | Group"',
    "newskills.evaluate(benchmarks='x', settings={'temperature': 1})": 'expected "Generation | None"',
    "newskills.Generation(temprature=1)": 'Unexpected keyword argument "temprature" for "Generation"',
    "newskills.Generation(temperature='hot')": 'expected "float | None"',
    "newskills.Model('x', adress='y')": 'Unexpected keyword argument "adress" for "Model"',
    "verdicts: str = newskills.grade(rows=[])": 'variable has type "str"',
    "lost: int = newskills.generate(input_file='x').ledger": 'expression has type "Ledger"',
    "newskills.run_cmd(command='x').jobs": '"None" of "Experiment | None"',
    "newskills.wrap_arguments(3)": "incompatible type",
    "newskills.evaluates": "Module has no attribute",
}


SCRIPTS = {
    "right": RIGHT,
    "example_that_runs": EXAMPLE.read_text(encoding="utf-8"),
    **{f"page_{n}": text for n, text in enumerate(FENCE.findall(PAGE.read_text(encoding="utf-8")))},
    "wrong": "\n".join(["import newskills", *WRONG]),
}
"""Name → a script of a user. One call of mypy checks all of them, since reading newskills is what takes long."""


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    write_stub()


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What users read of `mypy --strict`: script → the lines of errors."""
    folder = tmp_path_factory.mktemp("user")
    for name, text in SCRIPTS.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    command = ["--strict", "--config-file=", "--no-error-summary", "--cache-dir", str(folder / "cache")]
    output, problems, _ = mypy.run([*command, *(str(folder / f"{name}.py") for name in SCRIPTS)])
    assert problems == ""
    lines = [line for line in output.splitlines() if ": error: " in line]
    found = {name: [line for line in lines if f"/{name}.py:" in line] for name in SCRIPTS}
    assert sum(map(len, found.values())) == len(lines), lines
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "wrong"])
def test_mypy_passes_what_is_right(name: str, errors: dict[str, list[str]]) -> None:
    assert errors[name] == []


def test_the_page_has_examples() -> None:
    assert "page_1" in SCRIPTS


@pytest.mark.slow
def test_mypy_finds_what_is_wrong(errors: dict[str, list[str]]) -> None:
    assert len(errors["wrong"]) == len(WRONG)
    for number, (line, expected) in enumerate(WRONG.items(), start=2):
        (error,) = (text for text in errors["wrong"] if f"wrong.py:{number}: " in text)
        assert expected in error, line


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jedi.settings, "cache_directory", str(tmp_path / "cache"))
    return tmp_path / "mine.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import newskills\nnewskills.prepare", {"PreparedData", "prepare_data", "prepare_training_data"}),
        ("import newskills\nnewskills.evaluate(bench", {"benchmarks="}),
        ("from newskills import generate\ngenerate(input_file='x', random_s", {"random_seeds="}),
        ("import newskills\nnewskills.evaluate(benchmarks='x').rep", {"reports"}),
        ("from newskills import Generation\nGeneration(temper", {"temperature="}),
        (
            "from newskills import summarize_results\nsummarize_results(results_dir='x').reports[0].num",
            {"numbers"},
        ),
        ("from newskills import Pipeline\nPipeline('name', 'slurm', []).ru", {"run", "run_after"}),
        ("from newskills.rewards import RewardClient\nRewardClient('x').rew", {"rewards"}),
    ],
)
def test_an_editor_completes(text: str, expected: set[str], editor: Path) -> None:
    assert {each.name for each in jedi.Script(text, path=editor).complete()} == expected


@pytest.mark.slow
def test_an_editor_shows_arguments_and_their_meaning(editor: Path) -> None:
    (shown,) = jedi.Script("import newskills\nnewskills.evaluate(", path=editor).get_signatures()
    assert "benchmarks: str | Benchmark | Group | Sequence[str | Benchmark | Group]" in shown.to_string()
    assert "server_timeout: float=1800.0" in shown.to_string()
    assert "seconds to wait for a started server" in shown.docstring()
