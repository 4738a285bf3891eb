# SPDX-License-Identifier: Apache-2.0
"""What calls return that make models, import results, submit configs, serve: paths, states, scores, addresses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apps.evaluator.test_profile_evaluate import Project
from tests.commands.clusters import SERVED, answers
from tests.commands.running import rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Script

import newskills
from newskills.base.errors import NewskillsError

GRADED = {"problem": "2 + 2?", "expected_answer": "4", "generation": r"\boxed{4}", "symbolic_correct": True}
SERVICES = {
    "serve_rewards": "newskills.serve_rewards(grader='math', port=0)",
    "serve_gym": "newskills.serve_gym(grader='math', port=0)",
    "serve_evals": "newskills.serve_evals(output_root='evals', port=0)",
    "gateway": "newskills.serve_gateway(server_type='openai', server_address='http://127.0.0.1:9', model='m', port=0)",
}
SERVING = """
import newskills, sys
ended = newskills.start_server(
    model="fake", server_type="generic", server_gpus=0, server_entrypoint=sys.argv[1], log_dir=sys.argv[2]
)
print("ended", ended.model, ended.address, ended.log_file, ended.exit_code, flush=True)
"""


@pytest.fixture
def project(tmp_path: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, fake_server(answers()).url)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return made


def test_models_that_are_made_are_returned(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gguf")
    from tests.train.convert.test_convert import adapter_of
    from tests.train.tiny import tiny_folder, with_tokenizer

    base = with_tokenizer(tiny_folder(tmp_path / "base", eos_token_id=48))
    adapter_of(base, tmp_path / "adapter")
    merged = newskills.merge_lora(
        base_model=str(base), adapter=str(tmp_path / "adapter"), output_model=str(tmp_path / "merged")
    )
    assert merged == tmp_path / "merged"
    mean = newskills.average_checkpoints(checkpoints=[str(base), str(merged)], output_model=str(tmp_path / "mean"))
    assert mean == tmp_path / "mean"
    with_tokenizer(mean)
    file = newskills.convert(
        input_model=str(mean), output_model=str(tmp_path / "mean.gguf"), convert_from="hf", convert_to="gguf"
    )
    assert file.read_bytes()[:4] == b"GGUF"
    dry = tmp_path / "dry"
    assert (
        newskills.convert(
            input_model=str(file), output_model=str(dry), convert_from="gguf", convert_to="hf", dry_run=True
        )
        is None
    )
    assert not dry.exists()


def test_folders_of_imported_results_are_returned(tmp_path: Path) -> None:
    for name in ("gsm8k", "math"):
        write(tmp_path / f"theirs/eval-results/{name}/output-rs0.jsonl", [GRADED])
    folders = newskills.import_results(path=str(tmp_path / "theirs"), output_dir=tmp_path / "ours")
    assert sorted(folder.name for folder in folders) == ["gsm8k", "math"]
    assert [rows_of(folder / "output-rs0.jsonl")[0]["problem"] for folder in folders] == ["2 + 2?"] * 2


def test_an_evaluation_of_a_config_returns_its_tasks_with_scores(project: Project) -> None:
    [invocation] = newskills.profile_evaluate(config="mine.yaml")
    [task] = invocation.tasks
    assert (task.job_id, task.state, task.exit_code) == (f"{invocation.id}.0", "success", 0)
    assert task.scores["own-sums_pass@1_symbolic_correct"] == 100.0
    assert (task.folder / "artifacts/results.yml").is_file()
    assert newskills.profile_evaluate(config="mine.yaml", dry_run=True) is None


def test_a_batch_returns_before_its_tasks_have_scores(project: Project) -> None:
    [invocation] = newskills.profile_evaluate(config="mine.yaml", batch="here")
    [task] = invocation.tasks
    assert (task.state, task.exit_code) == ("pending", None)
    project.until(invocation.id, "success")
    assert task.scores["own-sums_pass@1_symbolic_correct"] == 100.0


def test_a_task_that_fails_is_an_error_with_the_next_command(
    tmp_path: Path, fake_server: FakeServerFactory, project: Project
) -> None:
    refusing = fake_server(Script(answer=Answer(), faults=[Fault(kind="status", status=401)]))
    project.config(
        target={"api_endpoint": {"url": f"{refusing.url}/v1/chat/completions", "model_id": "m"}},
    )
    with pytest.raises(NewskillsError, match=r"Evaluation \w{16} ended with exit code \d+: .*sums") as failed:
        newskills.profile_evaluate(config="mine.yaml")
    assert "ns resume" in str(failed.value)


def test_a_server_that_was_stopped_says_where_it_was(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SERVING, str(SERVED), str(tmp_path / "logs")]
    with subprocess.Popen(argv, cwd=tmp_path, env={**os.environ}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "fake is served at http://127.0.0.1:" in first
        process.send_signal(signal.SIGINT)
        last = process.stdout.read().splitlines()[-1]
    word, model, address, log, code = last.split()
    assert (word, model, code, process.returncode) == ("ended", "fake", "0", 0)
    assert f"served at {address} " in first
    assert Path(log) == tmp_path / "logs/server.log"
    assert Path(log).is_file()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_that_was_stopped_says_where_it_was(name: str, tmp_path: Path) -> None:
    script = f"import newskills\nended = {SERVICES[name]}\nprint('ended', ended.address, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ready = next(line for line in process.stdout if " at http://" in line)
        process.send_signal(signal.SIGINT)
        word, address = process.stdout.read().splitlines()[-1].split()
    assert (word, process.returncode) == ("ended", 0)
    assert f" at {address}" in ready


def test_an_evaluation_is_looked_up_and_exported(project: Project, tmp_path: Path) -> None:
    [made] = newskills.profile_evaluate(config="mine.yaml")
    [latest] = newskills.info(last=1)
    assert (latest.id, latest.exit_code, latest.tasks[0].scores) == (made.id, 0, made.tasks[0].scores)
    assert newskills.info(id=made.id)[0].config["target"]["api_endpoint"]["model_id"]
    scores, folder = newskills.export(id=[made.id], format="json", output_dir=tmp_path / "out")
    assert scores == tmp_path / f"out/{made.id}/processed_results.json"
    assert f"{made.id}.0" in scores.read_text()
    assert (folder / f"{made.id}.0/artifacts/results.yml").is_file()
    tables = newskills.export(
        id=[str(made.tasks[0].folder / "artifacts")], to="csv", output_dir=tmp_path / "tables"
    )
    assert all(path.is_file() for path in tables)
    assert len(tables) > 1
    assert newskills.export(id=[made.id], dry_run=True) is None
    with pytest.raises(NewskillsError, match="1 export failed"):
        newskills.export(id=[made.id], format="xml")


def test_patches_and_batches_are_written(tmp_path: Path) -> None:
    patches = [{"instance_id": "a__b-1", "generation": "", "model_patch": "diff"}, {"instance_id": "a__b-2"}]
    write(tmp_path / "patches.jsonl", patches)
    made = newskills.swe_bench(
        action="export", input_file=tmp_path / "patches.jsonl", output_file=tmp_path / "predictions.jsonl"
    )
    assert (made.output, made.records) == (tmp_path / "predictions.jsonl", 2)
    assert [bool(row["model_patch"]) for row in rows_of(made.output)].count(False) == made.without_patch
    code = [{"problem_id": f"Challenge_{n}_main", "generated_code": "def answer(): ..."} for n in range(70)]
    write(tmp_path / "code.jsonl", code)
    batch = newskills.critpt(
        action="export", input_file=tmp_path / "code.jsonl", output_file=tmp_path / "batch.json"
    )
    assert (batch.problems, batch.accuracy, batch.output.is_file()) == (70, None, True)


def test_what_would_be_done_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    assert newskills.quickstart(dry_run=True, output_dir=tmp_path / "quickstart") is None
    assert not (tmp_path / "quickstart").exists()
