# SPDX-License-Identifier: Apache-2.0
"""`ns generate` and `ns eval` with tools, end to end: real processes, the real sandbox, a real MCP server."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of, write
from tests.server import FakeServer, Script

PROBLEMS = [{"problem": f"What is {n} times 7?", "expected_answer": str(7 * n), "id": f"p{n}"} for n in range(6)]
TOOLS = Path(__file__).parents[2] / "tools"
OWN, MCP = TOOLS / "own_tools.py", TOOLS / "mcp_server.py"


def call(name: str, number: int = 1, /, **arguments: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def line(server: FakeServer, *options: str, command: str = "generate") -> str:
    return " ".join(
        [
            f"ns {command} --server_type=vllm --model=fake --server_address={server.base_url}",
            "--output_dir=out --input_file=in.jsonl ++prompt_config=generic/math",
            *options,
        ]
    )


def last_result(body: dict[str, Any]) -> str:
    """A model that answers with the last result of its tools."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return rf"So it is \boxed{{{results[-1] if results else '?'}}}."


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "in.jsonl", PROBLEMS)
    return tmp_path


@pytest.fixture
def model() -> Iterator[Callable[..., FakeServer]]:
    servers = []

    def start(*turns: Any) -> FakeServer:
        servers.append(FakeServer(Script(tool_turns=turns), answer=last_result))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_a_notebook_for_each_row(here: Path, model: Callable[..., FakeServer]) -> None:
    write(here / "in.jsonl", [{**PROBLEMS[3], "id": f"p{n}"} for n in range(6)])
    code = [
        call("stateful_python_code_exec", n, code=code)
        for n, code in enumerate(("x = 3", "x *= 7; x", "print(x)"))
    ]
    server = model((code[0],), (code[1], code[2]))
    done = ns(line(server, "--with_sandbox ++tool_modules=[python] ++max_tool_calls=5 ++eval_type=math"), cwd=here)
    assert done.returncode == 0, done.stderr
    for record in rows_of(here / "out/output.jsonl"):
        assert record["outcome"] == "correct", record
        assert record["num_tool_calls"] == 3
        metrics = record["tool_metrics"]
        assert metrics["num_tool_errors"] == 0
        assert metrics["PythonTool"]["num_code_executions"] == 3
        assert metrics["PythonTool"]["num_code_timeouts"] == 0
        results = [message["content"] for message in record["conversation"] if message["role"] == "tool"]
        assert results == ["", "21", "21"]
        assert record["tools"][0]["function"]["name"] == "stateful_python_code_exec"
    assert json.loads((here / "out/run.json").read_text())["units"][0]["config"]["tool_modules"] == ["python"]


def test_older_names_settings_and_other_names_for_the_model(here: Path, model: Callable[..., FakeServer]) -> None:
    server = model((call("run", code_to_run="while True: pass"),))
    options = [
        "++tool_modules=[nemo_skills.mcp.servers.python_tool::DirectPythonTool]",
        "++tool_overrides.DirectPythonTool.exec_timeout_s=1",
        "++schema_overrides.DirectPythonTool.stateful_python_code_exec.name=run",
        "++schema_overrides.DirectPythonTool.stateful_python_code_exec.parameters.code.name=code_to_run",
        "++max_samples=2 --with_sandbox",
    ]
    done = ns(line(server, *options), cwd=here)
    assert done.returncode == 0, done.stderr
    for record in rows_of(here / "out/output.jsonl"):
        assert record["tool_metrics"]["PythonTool"]["num_code_timeouts"] == 1
        assert record["tools"][0]["function"]["parameters"]["required"] == ["code_to_run"]
        assert "timed out after 1" in record["conversation"][-2]["content"]


def test_own_functions_and_an_mcp_server_side_by_side(here: Path, model: Callable[..., FakeServer]) -> None:
    server = model((call("roll", 1, sides=20), call("variable", 2, name="TEST_KEY"), call("add", 3, a=40, b=2)))
    options = [
        f"++tool_modules=[{OWN}::roll,sums=mcp]",
        f"++tool_overrides.sums.command={sys.executable}",
        f"++tool_overrides.sums.args=[{MCP}]",
        "++tool_overrides.sums.environment=[TEST_KEY]",
    ]
    done = ns(line(server, *options), cwd=here, env={"TEST_KEY": "s3cret"})
    assert done.returncode == 0, done.stderr
    for record in rows_of(here / "out/output.jsonl"):
        results = [message["content"] for message in record["conversation"] if message["role"] == "tool"]
        assert results == ["[20]", "s3cret", "42"]
    assert "s3cret" not in (here / "out/run.json").read_text() + done.stdout + done.stderr
    again = ns(line(server, *options), cwd=here, env={"TEST_KEY": "s3cret"})
    assert again.returncode == 0, again.stderr
    assert len(server.records) == 2 * len(PROBLEMS)


def test_a_tool_that_cannot_be_used_leaves_rows_unscored(here: Path, model: Callable[..., FakeServer]) -> None:
    server = model((call("count", by=13),))
    options = [f"++tool_modules=[{OWN}::Counter]", "++max_samples=3", "++eval_type=math"]
    done = ns(line(server, *options, "++server.enable_soft_fail=true"), cwd=here)
    assert done.returncode == 0, done.stderr
    for record in rows_of(here / "out/output.jsonl"):
        assert (record["outcome"], record["outcome_cause"]) == ("unscored", "tool")
        assert record["error"] == "FatalToolError"
    done = ns(line(server, *options, "--rerun_done"), cwd=here)
    assert done.returncode == 1
    assert "Thirteen is out of order" in done.stderr


def test_a_tool_that_nobody_can_use_stops_the_run(here: Path, model: Callable[..., FakeServer]) -> None:
    rows = [{**PROBLEMS[0], "id": f"q{n}"} for n in range(200)]
    write(here / "in.jsonl", rows)
    server = model((call("count", by=13),))
    done = ns(line(server, f"++tool_modules=[{OWN}::Counter] ++max_concurrent_requests=4"), cwd=here)
    assert done.returncode == 1
    assert "Thirteen is out of order" in done.stderr
    assert len(server.records) < 30


def test_tools_that_are_not_the_same_are_no_resume(here: Path, model: Callable[..., FakeServer]) -> None:
    server = model((call("roll"),))
    done = ns(line(server, f"++tool_modules=[{OWN}::roll] ++max_samples=2"), cwd=here)
    assert done.returncode == 0, done.stderr
    changed = ns(line(server, f"++tool_modules=[{OWN}::roll] ++max_samples=2 ++max_tool_calls=3"), cwd=here)
    assert changed.returncode == 2
    assert "max_tool_calls (-1 → 3)" in changed.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("++tool_modules=[pyton]", "did you mean 'python'"),
        ("++tool_modules=[python]", "--with_sandbox"),
        ("++tool_modules=[python] ++code_execution=true ++code_tags=qwen", "choose one of them"),
        ("++tool_modules=[python] ++solver=sc_tir ++code_tags=qwen", "a separate solver"),
        (
            "++tool_modules=[exa] ++inference.endpoint_type=text ++inference.tokens_to_generate=9",
            "chat or responses",
        ),
        ("++tool_overrides.PythonTool.timeout=3", "needs tool_modules"),
        ("++solver=tools", "needs tool_modules"),
        ("++tool_modules=[exa]", "export EXA_API_KEY="),
        ("++tool_modules=[mcp]", "a command or a url"),
        ("++tool_modules=[mcp] ++tool_overrides.mcp.command=/no/such/server", "cannot be used"),
        ("++tool_modules=[exa] ++tool_overrides.Exo.max_result=3", "did you mean 'ExaTool'"),
        ("++tool_modules=[exa] ++tool_overrides.exa.max_result=3", "did you mean 'max_results'"),
        ("++tool_modules=[exa] ++max_tool_calls=-2", "max_tool_calls"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_request(
    here: Path, model: Callable[..., FakeServer], options: str, words: str
) -> None:
    server = model()
    done = ns(line(server, options), cwd=here)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not server.records


def test_a_dry_run_names_the_tools(here: Path, model: Callable[..., FakeServer]) -> None:
    server = model()
    done = ns(line(server, f"++tool_modules=[{OWN}::roll] --dry_run"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "[tools]\nroll(sides, times): Rolls a die. It always shows its highest number.\n" in done.stdout
    assert not server.records


def test_megatron_takes_no_tools(here: Path, model: Callable[..., FakeServer]) -> None:
    server = model()
    options = line(server, f"++tool_modules=[{OWN}::roll]").replace("server_type=vllm", "server_type=megatron")
    done = ns(options, cwd=here)
    assert done.returncode == 2
    assert "megatron does not accept tools" in done.stderr


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_server_behind(
    here: Path, model: Callable[..., FakeServer], how: signal.Signals
) -> None:
    file = here / "pid"
    server = model((call("slow", seconds=600),))
    words = [
        *line(server).split()[1:],
        "++tool_modules=[mcp]",
        f"++tool_overrides.mcp={{command: {sys.executable}, args: [{MCP}, --pid, {file}], timeout: 900}}",
    ]
    process = subprocess.Popen([sys.executable, "-m", "newskills", *words], cwd=here, stderr=subprocess.PIPE)
    until = time.monotonic() + 300
    while len(server.records) < len(PROBLEMS):
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.5)
    mcp = int(file.read_text().split()[0])
    for _ in range(2):
        process.send_signal(how)
        time.sleep(0.2)
    process.communicate(timeout=300)
    until = time.monotonic() + 300
    while Path(f"/proc/{mcp}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not list((here / "out").glob("output.jsonl"))


BENCHMARK = """
from newskills.base.benchmark import Benchmark

def rows(split):
    for n in range(6):
        yield {"id": f"p{n}", "problem": f"What is {n} times 7?", "expected_answer": str(7 * n)}

BENCHMARK = Benchmark(
    name="own-products", category="math-natural", title="Products", generate_rows=rows, prompt="generic/math",
    grader="math", metric="math", samples=0,
)
"""


def test_an_evaluation_with_tools(here: Path, model: Callable[..., FakeServer]) -> None:
    (here / "products.py").write_text(BENCHMARK)
    (here / "tools.py").write_text("def product() -> int:\n    return 21\n")
    assert ns("ns prepare_data ./products.py --data_dir data", cwd=here).returncode == 0
    server = model((call("product"),))
    start = f"ns eval --server_type=vllm --model=fake --server_address={server.url} --output_dir=out"
    done = ns(
        f"{start} --data_dir data --benchmarks ./products.py:2 ++tool_modules=[./tools.py::product]", cwd=here
    )
    assert done.returncode == 0, done.stderr
    folder = here / "out/eval-results/own-products"
    for seed in (0, 1):
        outcomes = [record["outcome"] for record in rows_of(folder / f"output-rs{seed}.jsonl")]
        assert outcomes == ["wrong"] * 3 + ["correct"] + ["wrong"] * 2
    metrics = json.loads((folder / "metrics.json").read_text())["own-products"]["pass@1[avg-of-2]"]
    assert metrics["symbolic_correct"] == pytest.approx(100 / 6)


def test_tools_are_listed(here: Path) -> None:
    listed = ns("ns list tools", cwd=here).stdout.split()
    science = ["coolprop", "particle", "periodictable", "radioactivedecay"]
    assert listed == sorted(["arxiv", "exa", "mcp", "python", "tavily", "wikipedia", *science])
