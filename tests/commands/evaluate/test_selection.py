# SPDX-License-Identifier: Apache-2.0
"""Answers chosen out of several, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import records, write_input
from tests.server import Answer, Script

from newskills.cli import main

RANDOM = Script(answer=Answer(kind="random", modulus=3), rewards={"boxed{2}": 1.0, "boxed{0}": -1.0})


def generate(folder: Path, url: str, *more: str) -> int:
    return main(
        [
            "generate",
            "--server_type=vllm",
            "--model=fake",
            f"--server_address={url}",
            f"--input_file={folder}/input.jsonl",
            f"--output_dir={folder}/out",
            "++prompt_config.user=Solve this: {problem}",
            "++inference.temperature=0.7",
            *more,
        ]
    )


@pytest.mark.parametrize("name", ["majority", "weighted_vote", "best_of_n", "genselect", "gensynthesis"])
def test_each_kind_by_its_name(tmp_path: Path, fake_server: FakeServerFactory, name: str) -> None:
    server = fake_server(RANDOM)
    write_input(tmp_path, 2)
    code = generate(tmp_path, server.base_url, f"--generation_type={name}", "++solver_config.samples=4")
    assert code == 0
    found = records(tmp_path / "out" / "output.jsonl")
    assert [record["generation"][:14] for record in found] == ["The answer is "] * 2


def test_a_reward_model_beside_the_model(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(RANDOM)
    write_input(tmp_path, 3)
    reward = [
        f"++models.reward.{key}" for key in (f"base_url={server.url}", "model=r", "server_type=vllm_pooling")
    ]
    given = ["--generation_type=best_of_n", "++solver_config.samples=8", "++solver_config.scorer=reward", *reward]
    assert generate(tmp_path, server.base_url, *given) == 0
    for record in records(tmp_path / "out" / "output.jsonl"):
        assert record["reward_model_score"] == max(record["scores"])
        assert len(record["scores"]) == 8


def test_stored_solutions_are_compared_seed_by_seed(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="random", modulus=10**6)))
    write_input(tmp_path, 2)
    assert generate(tmp_path, server.base_url, "--num_random_seeds=5") == 0
    drawn = len(server.records)
    code = main(
        [
            "generate",
            "--server_type=vllm",
            "--model=fake",
            f"--server_address={server.base_url}",
            f"--input_file={tmp_path}/input.jsonl",
            f"--output_dir={tmp_path}/chosen",
            "--num_random_seeds=2",
            "++prompt_config.user=Solve this: {problem}",
            "++parallel_thinking.mode=genselect",
            "++parallel_thinking.window_size=3",
            f"++parallel_thinking.generation_dir={tmp_path}/out",
        ]
    )
    assert code == 0
    assert len(server.records) - drawn == 2 * 2
    texts = {
        record["generation"] for seed in range(5) for record in records(tmp_path / f"out/output-rs{seed}.jsonl")
    }
    for seed in range(2):
        for record in records(tmp_path / "chosen" / f"output-rs{seed}.jsonl"):
            assert record["generation"] in texts
            assert len(record["solution_list"]) == 5


def test_a_cluster_may_find_the_solutions_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that waits for the one that writes them; the prompts are checked without them."""
    write_input(tmp_path, 1)
    (tmp_path / "slurm.yaml").write_text(
        f"executor: slurm\njob_dir: {tmp_path}/jobs\naccount: a\npartition: batch\nmounts: [{tmp_path}:/seen]\n"
        "env_vars: [HF_HOME=/seen/hf]\ncontainers: {nemo-skills: /a.sqsh, vllm: /b.sqsh}\n"
    )
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    given = [
        "generate",
        "--dry_run",
        "--cluster=slurm",
        f"--config_dir={tmp_path}",
        "--model=/seen/model",
        "--server_type=vllm",
        "--server_gpus=8",
        "--input_file=/seen/input.jsonl",
        "--output_dir=/seen/out",
        "++prompt_config.user=Solve this: {problem}",
        "++parallel_thinking.mode=genselect",
        "++parallel_thinking.generation_dir=/seen/solutions",
    ]
    assert main(given) == 0
    assert "/seen/solutions" in capsys.readouterr().out
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "output-rs0.jsonl").write_text("no JSON\n")
    assert main(given) == 2
    assert "output-rs0.jsonl, line 1" in capsys.readouterr().err


def test_bad_settings_say_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_input(tmp_path, 1)
    for given, said in (
        ("++parallel_thinking.mode=genselekt", "genselect"),
        ("++parallel_thinking.genselect.regex=Judgment", "needs a group"),
        ("++solver_config.window_size=64", "32"),
    ):
        kind = ["--generation_type=genselect"] if "solver_config" in given else []
        assert generate(tmp_path, "http://127.0.0.1:9", given, *kind) == 2
        assert said in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.local_model
def test_a_real_model_compares_its_own_solutions(tmp_path: Path, local_model: Path) -> None:
    (tmp_path / "input.jsonl").write_text(json.dumps({"problem": "What is 2 + 3? Answer with a number."}) + "\n")
    code = main(
        [
            "generate",
            "--server_type=llamacpp",
            f"--model={local_model}",
            f"--input_file={tmp_path}/input.jsonl",
            f"--output_dir={tmp_path}/out",
            "++prompt_config.user=Solve this: {problem}",
            "++inference.temperature=0.9",
            "++inference.tokens_to_generate=24",
            "++parallel_thinking.mode=genselect",
            "++parallel_thinking.window_size=3",
            "++max_concurrent_requests=4",
        ]
    )
    assert code == 0
    (record,) = records(tmp_path / "out" / "output.jsonl")
    assert record["generation"].strip()
    assert record["num_generated_tokens"] == (
        record["total_solution_generated_tokens"] + record["genselect_num_generated_tokens"]
    )
