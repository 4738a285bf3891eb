# SPDX-License-Identifier: Apache-2.0
"""The 26 command lines of NeMo Evaluator's `nemo_skills` harness, word by word.

What a test changes of a line: addresses of services, OUT and D (folders of the test), the path of a file that only the
harness's container has, and the package of `python -m … local_sandbox_server`. What a test adds: `++max_samples`.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.test_raw_fixtures import RAW, _prepared
from tests.commands.running import rows_of
from tests.conftest import FakeServerFactory
from tests.docs.test_docs import understand
from tests.night import NIGHTLY
from tests.server import FakeServer

from newskills.base.errors import AuthError, ConfigError, NewskillsError
from newskills.benchmarks import get_benchmark, get_group
from newskills.commands.loading import load_command

ADDRESS = "http://127.0.0.1:8000/v1"
COMMON = (
    "ns prepare_data {b} && ns eval --server_type={server} --model=my-model --server_address=" + ADDRESS + " "
    "--benchmarks={b}{n} --output_dir=OUT {more} ++max_concurrent_requests={c}"
)
JUDGE = "--judge_model={model} --judge_server_address=http://127.0.0.1:8001/v1 --judge_server_type=openai"


def line(b: str, more: str = "", *, n: str = "", c: int = 16, server: str = "openai") -> str:
    return " ".join(COMMON.format(b=b, more=more, n=n, c=c, server=server).split(" ")).replace("  ", " ")


LINES = {
    "ns_aime2024": line("aime24"),
    "ns_aime2025": line("aime25"),
    "ns_aime2026": line("aime26"),
    "ns_hmmt_feb2025": line("hmmt_feb25"),
    "ns_gpqa": line("gpqa"),
    "ns_bfcl_v3": line("bfcl_v3", "++use_client_parsing=False"),
    "ns_bfcl_v4": line("bfcl_v4", "++use_client_parsing=False"),
    "ns_livecodebench": line("livecodebench", "--split=test_v6_2408_2505"),
    "ns_livecodebench_v5": line("livecodebench", "--split=test_v5_2407_2412"),
    "ns_livecodebench_aa": line(
        "livecodebench",
        "--split=test_v5_2407_2412 ++prompt_config=/nemo_run/code/eval_factory_prompts/livecodebench-aa.yaml",
        n=":3",
        c=5,
    ),
    "ns_hle": line("hle"),
    "ns_hle_aa": line(
        "hle",
        JUDGE.format(model="us/azure/openai/gpt-4.1")
        + ' --extra_judge_args=" ++structured_output=HLE_JUDGE_AA " --metric_type=hle-aa',
    ),
    "ns_ruler": (
        "ns prepare_data ruler --data_dir=D --cluster=local --setup=evaluation_128k --max_seq_length=131072 "
        "--tokenizer_path=None --template_tokens=50 && ns eval --server_type=openai --model=my-model "
        f"--server_address={ADDRESS} --benchmarks=ruler.evaluation_128k --output_dir=OUT --data_dir=D "
        "++max_concurrent_requests=16"
    ),
    "ns_mmlu": line("mmlu"),
    "ns_mmlu_pro": line("mmlu-pro"),
    "ns_arena_hard_v2": line(
        "arena-hard-v2",
        JUDGE.format(model="azure/openai/gpt-4.1")
        + ' --extra_judge_args="++server.api_key_env_var=JUDGE_API_KEY ++inference.tokens_to_generate=4096 '
        '++max_concurrent_requests=16"',
    ),
    "ns_scicode": (
        "python -m nemo_skills.code_execution.local_sandbox.local_sandbox_server > OUT/sandbox.log 2>&1 & "
        "SANDBOX_PID=$! && sleep 3 && "
        + line("scicode")
        + " ; EXIT_CODE=$? ; kill $SANDBOX_PID 2>/dev/null || true ; "
        "exit $EXIT_CODE"
    ),
    "ns_aa_lcr": line("aalcr"),
    "ns_ifbench": line("ifbench"),
    "ns_ifeval": line("ifeval"),
    "ns_wmt24pp": line("wmt24pp"),
    "ns_wmt24pp_comet": line("wmt24pp", "--judge_type=comet --judge_model=None"),
    "ns_mmlu_prox": line("mmlu-prox"),
    "ns_mmmu_pro": line("mmmu-pro", server="vllm").replace(" &&", " --skip_data_dir_check &&", 1),
    "ns_critpt": line("critpt", "++inference.repetition_penalty=1.0"),
    "ns_omniscience": line(
        "omniscience",
        "--split=text ++parse_reasoning=False "
        + JUDGE.format(model="gemini-3-flash-preview")
        + ' --extra_judge_args="++server.api_key_env_var=JUDGE_API_KEY"',
    ),
}
OTHERWISE = ("ns_ruler", "ns_scicode", "ns_wmt24pp_comet", "ns_hle", "ns_aa_lcr")
"""Lines with a test of their own."""
PROMPT = "/nemo_run/code/eval_factory_prompts/livecodebench-aa.yaml"
SANDBOX = "python -m nemo_skills.code_execution.local_sandbox.local_sandbox_server"
OWN_SANDBOX = "python -m newskills.sandbox.local_sandbox_server"
AT_LENGTH = ("--max_seq_length=131072", "--max_seq_length=2048 --num_samples=2 --tasks=niah_single_1,vt")
"""What a test of RULER changes, since its prompts are made: 128k tokens take minutes, documents a network."""


def benchmark_of(task: str) -> str:
    return LINES[task].partition("--benchmarks=")[2].partition(" ")[0].partition(":")[0]


def steps(task: str, line: str = "") -> list[list[str]]:
    """The words of each `ns …` of the line."""
    found: list[list[str]] = []
    for word in shlex.split(line or LINES[task]):
        if word == "ns":
            found.append([])
        elif word in ("&&", ";"):
            found.append([]) if found and found[-1] else None
        elif found:
            found[-1].append(word)
    return [words for words in found if words and words[0] in ("prepare_data", "eval")]


def test_there_are_26() -> None:
    assert len(LINES) == 26


@pytest.mark.parametrize("task", LINES)
def test_each_command_and_key_is_understood(task: str) -> None:
    prepare, evaluate = steps(task)
    understand(prepare)
    understand(evaluate)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data of all lines: invented rows in the schema of their source, real ones where a mirror has them."""
    root = tmp_path_factory.mktemp("data")
    mirror = os.environ.get("NEWSKILLS_MIRROR", "")
    for name in {benchmark_of(task) for task in LINES}:
        file = next(iter(RAW.glob(f"{name}.*")), None)
        if file is not None:
            made = tmp_path_factory.mktemp("raw")
            _prepared(file.name, made)
            (made / "data" / name).rename(root / name)
        elif mirror and not name.startswith("ruler"):
            shell(f"ns prepare_data {name} --data_dir={root}", root, {"NEWSKILLS_OFFLINE": "1"})
    return root


def shell(text: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`text` in bash, with `ns` and `python` those of the tests."""
    return subprocess.run(
        ["bash", "-c", text],
        cwd=cwd,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def ready(task: str, data: Path) -> bool:
    name = benchmark_of(task)
    names = list(group.members) if (group := get_group(name)) else [name]
    places = [get_benchmark(member).data or member for member in names]
    return all((data / place.replace(".", "/")).is_dir() for place in places)


def reply(body: dict[str, Any]) -> str:
    """What the model says, or the judge, in the form that its question asks for."""
    asked = str(body["messages"])
    if body.get("response_format"):
        return json.dumps({"extracted_final_answer": "1", "reasoning": "same", "correct": "yes", "confidence": 90})
    if body["model"] != "my-model":
        return (
            "It is so.\ncorrect: yes\nMy final verdict is tie: [[A=B]]"
            if "[[A=B]]" in asked
            else "A\nJudgement: Yes"
        )
    return "Answer: A. \\boxed{1}\n```python\nx = 1\n```"


@pytest.fixture
def place(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test with what the container of the lines has."""
    monkeypatch.setenv("NEWSKILLS_DATA_DIR", str(data_dir))
    monkeypatch.setenv("NEWSKILLS_OFFLINE", "1")
    monkeypatch.setenv("JUDGE_API_KEY", "k")
    monkeypatch.setenv("TAVILY_API_KEY", "k")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / PROMPT.rpartition("/")[2]).write_text("user: 'Solve this: {question}'\n")
    return tmp_path


def written(task: str, place: Path, server: FakeServer) -> str:
    """The line with the addresses and paths of the test."""
    line = LINES[task].replace("OUT", str(place / "out")).replace(SANDBOX, OWN_SANDBOX)
    line = line.replace(PROMPT, str(place / PROMPT.rpartition("/")[2]))
    for port in ("8000", "8001"):
        line = line.replace(f"127.0.0.1:{port}", f"127.0.0.1:{server.port}")
    return line.replace(" ++max_concurrent", " ++max_samples=1 ++max_concurrent", 1)


@pytest.mark.parametrize("task", [task for task in LINES if task not in OTHERWISE][:: 1 if NIGHTLY else 3])
def test_each_line_does_its_work(task: str, place: Path, data_dir: Path, fake_server: FakeServerFactory) -> None:
    if not ready(task, data_dir):
        pytest.skip(f"no data of {benchmark_of(task)} here: set NEWSKILLS_MIRROR")
    server = fake_server(answer=reply)
    (words,) = [words for words in steps(task, written(task, place, server)) if words[0] == "eval"]
    if task == "ns_bfcl_v4" and find_spec("sentence_transformers") is None:
        with pytest.raises(ConfigError, match=r"newskills\[embeddings\]"):
            load_command("eval").main(words[1:])
        return
    assert load_command("eval").main(words[1:]) == 0
    name = benchmark_of(task)
    found = json.loads((place / "out/eval-results" / name / "metrics.json").read_text())
    assert name in found
    assert rows_of(next(iter((place / "out/eval-results").rglob("output*.jsonl"))))


@pytest.mark.parametrize("task", ["ns_hle", "ns_aa_lcr"])
def test_the_usual_judge_is_asked_for_its_key_before_anything_is_sent(
    task: str, place: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(answer=reply)
    words = steps(task, written(task, place, server))[1]
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        load_command("eval").main(words[1:])
    assert server.records == []
    judge = f"--judge_model=j --judge_server_type=openai --judge_server_address={server.url}"
    assert load_command("eval").main([*words[1:], *judge.split()]) == 0


def eventually_refused(port: int) -> bool:
    """Whether nobody listens there any more: a server that is told to end needs a moment."""
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return True
        time.sleep(0.1)
    return False


def test_the_line_of_scicode_starts_and_ends_a_sandbox(
    place: Path, data_dir: Path, fake_server: FakeServerFactory
) -> None:
    """Its exit code is that of the evaluation: what is not in the sandbox here leaves the answers unscored."""
    if not ready("ns_scicode", data_dir):
        pytest.skip("no data of scicode here: set NEWSKILLS_MIRROR")
    server = fake_server(answer=reply)
    line = written("ns_scicode", place, server).replace("ns prepare_data scicode", "true")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    line = line.replace(
        "&& sleep 3", f"&& timeout 30 bash -c 'until echo > /dev/tcp/127.0.0.1/{port}; do sleep 0.1; done'"
    )
    done = shell(line, place, {"NEMO_SKILLS_SANDBOX_PORT": str(port)})
    found = json.loads((place / "out/eval-results/scicode/metrics_extended.json").read_text())["scicode"]
    assert done.returncode == (1 if found["withheld"] else 0), done.stderr
    assert found["ledger"]["causes"] in ({}, {"harness": 1}, {"model": 1})
    assert eventually_refused(port), "the sandbox has ended"


def test_ruler_is_prepared_and_evaluated_by_its_line(
    tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short: prompts of 128k tokens take minutes to make."""
    monkeypatch.chdir(tmp_path)
    server = fake_server(answer=reply)
    line = written("ns_ruler", tmp_path, server).replace("=D", f"={tmp_path / 'data'}")
    assert AT_LENGTH[0] in line
    prepare, evaluate = steps("ns_ruler", line.replace(*AT_LENGTH))
    assert load_command("prepare_data").main(prepare[1:]) == 0
    assert load_command("eval").main(evaluate[1:]) == 0
    found = json.loads((tmp_path / "out/eval-results/ruler/evaluation_128k/metrics.json").read_text())
    assert found


def test_comet_scores_or_says_what_it_needs(place: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(answer=reply)
    words = steps("ns_wmt24pp_comet", written("ns_wmt24pp_comet", place, server))[1]
    with pytest.raises(NewskillsError, match=r"comet"):
        load_command("eval").main(words[1:])
    assert server.records == [], "refused before anything is asked"


def test_no_model_is_needed_where_the_server_s_is_named(place: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(answer=reply)
    words = [w for w in steps("ns_gpqa", written("ns_gpqa", place, server))[1] if not w.startswith("--model")]
    address = [w if not w.startswith("--server_address") else f"--server_address={server.url}" for w in words]
    assert load_command("eval").main([*address[1:], "++server.model=named"]) == 0
    assert {record.body["model"] for record in server.records} == {"named"}
