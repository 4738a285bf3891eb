# SPDX-License-Identifier: Apache-2.0
"""newskills inside NVIDIA's NeMo Evaluator: what it says of itself, the commands it is run with, its results."""

from __future__ import annotations

import importlib.util
import json
import os
import pkgutil
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, StrictUndefined
from tests.commands.running import ns, write
from tests.conftest import FakeServerFactory
from tests.exchange.evaluated import ANSWERS, BENCHMARK, records

from newskills.base.errors import DataError
from newskills.commands.loading import load_command
from newskills_evaluator.harness import ALIASES, framework_text, list_evaluations, main, target
from newskills_evaluator.results_yml import results_document, sample_record, task_results, write_samples

EVALUATOR = importlib.util.find_spec("nemo_evaluator") is not None
needs_evaluator = pytest.mark.skipif(not EVALUATOR, reason="no nemo-evaluator here: pip install nemo-evaluator")


def merged(one: Any, other: Any) -> Any:
    """As NeMo Evaluator lays the settings of a task, and of a run, over the general ones."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one if other is None else other
    return {**one, **{key: merged(one.get(key), value) for key, value in other.items()}}


FRAMEWORK = yaml.safe_load(framework_text())
TASKS = {entry["defaults"]["config"]["type"]: entry["defaults"] for entry in FRAMEWORK["evaluations"]}
ENDPOINT = {"url": "http://localhost:3825", "model_id": "my-model", "type": "chat", "api_key_name": None}


def rendered(task: str, params: dict[str, Any] | None = None, endpoint: dict[str, Any] | None = None) -> str:
    """The command of a run, rendered as NeMo Evaluator 0.2 does: again and again until nothing changes."""
    run = {
        "config": {"output_dir": "/results", "params": params or {}},
        "target": {"api_endpoint": endpoint or {}},
    }
    blank = dict.fromkeys(("limit_samples", "max_new_tokens", "max_retries", "temperature", "top_p"))
    base = merged({"config": {"params": {**blank, "request_timeout": None}}}, FRAMEWORK["defaults"])
    values = merged(merged(merged(base, TASKS[task]), {"target": {"api_endpoint": ENDPOINT}}), run)
    values["target"]["api_endpoint"].setdefault("api_key_name", None)
    before, text = "", values["command"]
    while text != before:
        before, text = text, Environment(undefined=StrictUndefined).from_string(text).render(values)
    return text


def parsed(line: str) -> list[Any]:
    """The commands of a line, as their own parsers understand them."""
    steps, words = [], shlex.split(line)
    cut = words.index("&&")
    for step in (words[:cut], words[cut + 1 :]):
        assert step[0] == "ns"
        steps.append(load_command(step[1]).parse_words(step[2:]))
    return steps


def test_the_file_is_current() -> None:
    assert main(["--check"]) == 0, "run: python -m newskills.interop.harness"


def test_an_old_file_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("newskills_evaluator.harness.target", lambda: tmp_path / "framework.yml")
    assert main(["--check"]) == 1
    assert "is not current" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_the_evaluator_finds_the_package_in_the_namespace() -> None:
    """As it looks for it: packages with an __init__ in core_evals, which has none itself."""
    import core_evals

    assert core_evals.__file__ is None
    assert "newskills" in [module.name for module in pkgutil.iter_modules(core_evals.__path__)]  # type: ignore[unreachable]
    assert target().parent.name == "newskills"


def test_tasks_have_names_that_the_evaluator_takes() -> None:
    names = [entry["name"] for entry in list_evaluations()]
    assert len(set(names)) == len(names) > 400
    assert not [name for name in names if "." in name]
    assert set(ALIASES) <= set(names)
    assert len(ALIASES) == 26


def test_tasks_give_lines_that_are_understood() -> None:
    """All with settings of their own, and some of the others, which differ in their names only."""
    others = [task for task in TASKS if task not in ALIASES]
    for task in [*ALIASES, *others[::25]]:
        defaults = TASKS[task]
        prepare, evaluate = parsed(rendered(task))
        assert prepare.options.benchmarks, task
        assert evaluate.options.server_address == ["http://localhost:3825"], task
        assert evaluate.options.benchmarks.partition(":")[0] == defaults["config"]["params"]["task"], task
        assert evaluate.overrides["max_concurrent_requests"] == "16", task


def test_what_a_run_may_set_arrives() -> None:
    params = {
        "limit_samples": 5,
        "max_new_tokens": 100,
        "max_retries": 2,
        "temperature": 0.5,
        "top_p": 0.0,
        "request_timeout": 60,
        "parallelism": 4,
        "extra": {"num_repeats": 3, "data_dir": "/data", "dataset_split": "train", "use_sandbox": True},
    }
    prepare, evaluate = parsed(rendered("gsm8k", params, {"api_key_name": "MY_KEY", "type": "completions"}))
    assert prepare.options.data_dir == evaluate.options.data_dir == "/data"
    assert (evaluate.options.benchmarks, evaluate.options.split) == ("gsm8k:3", "train")
    assert evaluate.options.with_sandbox
    assert dict(evaluate.overrides) == {
        "server.api_key_env_var": "MY_KEY",
        "inference.endpoint_type": "text",
        "inference.tokens_to_generate": "100",
        "inference.timeout": "60",
        "inference.temperature": "0.5",
        "inference.top_p": "1e-05",
        "server.max_retries": "2",
        "max_samples": "5",
        "max_concurrent_requests": "4",
    }


def test_a_judge_arrives() -> None:
    judge = {"url": "http://judge/v1", "model_id": "j", "api_key": "JUDGE_API_KEY", "args": "++a=1"}
    (_, evaluate) = parsed(rendered("ns_hle_aa", {"extra": {"judge": judge}}))
    options = evaluate.options
    assert (options.judge_model, options.judge_server_address, options.judge_server_type) == (
        "j",
        "http://judge/v1",
        "openai",
    )
    assert options.metric_type == "hle-aa"
    assert options.extra_judge_args.split() == [
        "++server.api_key_env_var='JUDGE_API_KEY'",
        "++structured_output=HLE_JUDGE_AA",
        "++a=1",
    ]


def test_no_value_is_read_by_the_shell(tmp_path: Path) -> None:
    hostile = "it's $(touch x) `touch x`; touch x #\n\"'"
    line = rendered("gsm8k", {"extra": {"system_message": hostile}}, {"model_id": hostile})
    (_, evaluate) = parsed(line)
    assert evaluate.options.model == [hostile]
    assert evaluate.overrides["system_message"] == hostile
    done = subprocess.run(
        ["bash", "-c", f"ns() {{ printf '%s\\0' \"$@\"; }}; {line}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"--model={hostile}" in done.stdout.split("\0")
    assert not (tmp_path / "x").exists()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text(BENCHMARK)
    return tmp_path


def scores(results: dict[str, Any], task: str) -> dict[str, Any]:
    return results["tasks"][task]["metrics"]["pass@1"]["scores"]


def test_results_of_a_run(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(ANSWERS)
    write(here / "out/eval-results/gsm8k/output.jsonl", records())
    done = ns("ns summarize_results out", cwd=here)
    assert done.returncode == 0, done.stderr
    results = task_results(here / "out")
    share = scores(results, "gsm8k")["symbolic_correct"]
    assert share["value"] == pytest.approx(100 * 4 / 6)
    assert share["stats"]["count"] == 6
    assert share["stats"]["stderr"] == pytest.approx(100 * (4 / 6 * 2 / 6 / 6) ** 0.5)
    assert scores(results, "gsm8k")["num_entries"]["value"] == 6
    (here / "out/metrics.json").unlink()
    assert scores(task_results(here / "out"), "gsm8k")["symbolic_correct"] == share, "from the benchmark's folder"
    document = results_document(command="ns eval", config={}, target={}, results=results)
    assert list(document) == ["command", "config", "git_hash", "results", "target"]
    assert server.records == []


def test_groups_are_told_apart(tmp_path: Path) -> None:
    values = {"pass@1": {"accuracy": 50.0}}
    (tmp_path / "metrics.json").write_text(json.dumps({"bfcl_v3": values, "bfcl_v3.simple": values}))
    results = task_results(tmp_path)
    assert (list(results["groups"]), list(results["tasks"])) == (["bfcl_v3"], ["bfcl_v3.simple"])


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{",
        "[]",
        '{"gsm8k": 3}',
        '{"gsm8k": {"pass@1": {"num_entries": 6, "unscored": 6}}}',
        '{"gsm8k": {"pass@1": {"symbolic_correct": null, "by": {"a": 1}, "list": [1]}}}',
    ],
)
def test_a_run_without_a_score_is_no_success(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "metrics.json").write_text(text)
    with pytest.raises(DataError):
        task_results(tmp_path)


def test_samples(tmp_path: Path) -> None:
    rows = [*records(), {"id": "u", "generation": "", "outcome": "unscored", "symbolic_correct": False}]
    write(tmp_path / "out/eval-results/gsm8k/output-rs0.jsonl", rows)
    assert write_samples(tmp_path / "out", tmp_path / "samples") == 7
    lines = (tmp_path / "samples/gsm8k/output-rs0.jsonl").read_text().splitlines()
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    assert first == {
        "id": "s0",
        "generation": "\\boxed{0}",
        "num_generated_tokens": 5,
        "num_prompt_tokens": 20,
        "sub_query_id": 0,
        "score": 1,
        "score_name": "symbolic_correct",
        "query": "Add 0 and 0.",
        "answer": "0",
        "ground_truth": "0",
    }
    assert (last["score"], last["score_name"]) == (None, None), "unscored is not wrong"


@pytest.mark.parametrize("row", [{}, {"generation": None, "num_generated_tokens": True, "outcome": 3, "id": 4}])
def test_odd_records_fit_the_form(row: dict[str, Any]) -> None:
    record = sample_record(row)
    assert (record["generation"], record["num_generated_tokens"], record["score"]) == ("", 0, None)


@needs_evaluator
def test_nemo_evaluator_runs_it_behind_its_proxy(here: Path, fake_server: FakeServerFactory) -> None:
    """The proxy has an address of its own, without /v1, and sends all that comes to the whole route."""
    server = fake_server(ANSWERS)
    endpoint = {"url": f"{server.base_url}/chat/completions", "model_id": "my-model", "type": "chat"}
    endpoint["api_key_name"] = "MY_KEY"
    params = {"task": str(here / "sums.py"), "max_new_tokens": 64, "extra": {"num_repeats": 2}}
    config = {"type": "newskills.gsm8k", "output_dir": str(here / "out"), "params": params}
    done = run_eval(here, {"config": config, "target": {"api_endpoint": endpoint}})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "not used in the command template" not in done.stdout + done.stderr
    results = yaml.safe_load((here / "out/results.yml").read_text())
    assert {"command", "config", "git_hash", "results", "target"} <= set(results)
    modes = results["results"]["tasks"]["own-sums"]["metrics"]
    assert modes["pass@1[avg-of-2]"]["scores"]["symbolic_correct"]["value"] == pytest.approx(100 * 4 / 6)
    assert len(server.records) == 12
    assert {record.headers.get("authorization") for record in server.records} == {"Bearer s3cret"}
    samples = here / "out/nemo-evaluator-per-sample-outputs/own-sums/output-rs1.jsonl"
    assert [json.loads(line)["score"] for line in samples.read_text().splitlines()] == [1, 1, 1, 1, 0, 0]


@pytest.mark.nightly
@needs_evaluator
def test_nemo_evaluator_is_told_of_a_run_that_failed(here: Path) -> None:
    endpoint = {"url": "http://127.0.0.1:9", "model_id": "my-model", "type": "chat"}
    endpoint["adapter_config"] = {"mode": "client"}  # type: ignore[assignment]
    params = {"task": str(here / "sums.py"), "max_retries": 0, "extra": {"args": "++endpoint_patience=0.1"}}
    config = {"type": "gsm8k", "output_dir": str(here / "out"), "params": params}
    done = run_eval(here, {"config": config, "target": {"api_endpoint": endpoint}})
    assert done.returncode != 0
    assert not (here / "out/results.yml").exists()


@needs_evaluator
def test_nemo_evaluator_lists_the_tasks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nemo_evaluator.core.entrypoint", "ls"], capture_output=True, text=True, check=True
    )
    assert {f"  * {task}" for task in TASKS} <= set(done.stdout.splitlines())


def run_eval(here: Path, config: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """`nemo-evaluator run_eval --run_config FILE`, as the command of a container."""
    (here / "config.yml").write_text(yaml.safe_dump(config))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "nemo_evaluator.core.entrypoint", "run_eval", "--run_config", "config.yml"],
        cwd=here,
        env={**os.environ, "PATH": path, "MY_KEY": "s3cret", "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
