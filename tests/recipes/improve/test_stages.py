# SPDX-License-Identifier: Apache-2.0
"""Stages in a configuration: the three of the recipe for competition mathematics, and what is refused."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests import forkserver
from tests.recipes.improve.words import COUNT, spec_for, words_benchmark, write_training
from tests.train.tiny import tiny_folder, with_tokenizer

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.store import write_rows
from newskills.benchmarks import get_benchmark
from newskills.config.values import Text
from newskills.recipes.improve.problems import load_problems
from newskills.recipes.improve.records import ImproveKeys, ImproveStage, Method
from newskills.recipes.improve.stages import read_config
from newskills.recipes.improve.training import check_solver
from newskills_aimo.recipe.settings import AimoConfig

THREE = Path(__file__).parents[3] / "recipes/improve/three_stages.yaml"
STAGE = "stages:\n  - name: a\n    samples: 0\n    solutions: [s.jsonl]\n"


def test_the_three_stages_of_the_recipe_are_a_configuration() -> None:
    """With the settings that `ns aimo train` has."""
    keys, stages = read_config(str(THREE), {"seed": Text("3")})
    assert [(stage.name, stage.method) for stage in stages] == [("cot", "sft"), ("tir", "sft"), ("rl", "grpo")]
    assert (keys.held_out, keys.seed, stages[2].keys.seed) == (500, 3, 3)
    recipe = AimoConfig()
    for stage, theirs in zip(stages, (recipe.cot, recipe.tir, recipe.rl), strict=True):
        ours = stage.keys
        assert (ours.learning_rate, ours.schedule, ours.warmup) == (
            theirs.learning_rate,
            theirs.schedule,
            theirs.warmup,
        )
        assert (ours.weight_decay, ours.max_grad_norm) == (theirs.weight_decay, theirs.max_grad_norm)
        lora = ours.trainer.lora
        assert (lora.rank, lora.alpha, lora.dropout) == (theirs.lora_rank, theirs.lora_alpha, theirs.lora_dropout)
        assert set(theirs.lora_modules) == set(lora.targets)
        assert stage.prompt_config == theirs.prompt
    cot, tir, rl = (stage.keys for stage in stages)
    assert (cot.epochs, tir.epochs, cot.batch_size, tir.batch_size) == (3, 2, recipe.cot.batch, recipe.tir.batch)
    assert (rl.group_size, rl.kl, rl.max_tokens) == (
        recipe.rl.num_generations,
        recipe.rl.beta,
        recipe.rl.max_tokens,
    )
    assert rl.batch_size == recipe.rl.batch // recipe.rl.num_generations
    assert (rl.reward.correct, rl.reward.wrong, rl.reward.format.box) == (1.0, -0.5, 0.1)
    solved = [stage.apply_to(get_benchmark("math-500")).defaults for stage in stages]
    assert [settings.get("code_execution", False) for settings in solved] == [False, True, False]
    assert [settings["inference.tokens_to_generate"] for settings in solved] == [4096, 8192, 2048]


def test_a_dry_run_shows_the_stages(tmp_path: Path) -> None:
    benchmark = words_benchmark(tmp_path, "words", "Item", "yes")
    get_data = forkserver.ns(["prepare_data", benchmark, "--data_dir=data"], cwd=tmp_path)
    assert get_data.returncode == 0, get_data.stderr
    for name, row in (
        ("sft_cot", {"input": "Thing 1", "output": "yes"}),
        ("sft_tir", {"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]}),
        ("rl_math", {"id": 1, "question": "Thing 2", "expected_answer": "yes"}),
    ):
        write_rows(tmp_path / f"outputs/{name}/data/train.jsonl", [row])
    words = [
        "improve",
        f"--config={THREE}",
        "--model=m",
        f"--benchmark={benchmark}",
        "--data_dir=data",
        "--rounds=3",
    ]
    done = forkserver.ns([*words, "--output_dir=out", "--dry_run"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for line in (
        "stage cot (SFT): 0 problems and 1 example, 3 epochs",
        "stage tir (SFT): 0 problems and 1 example, 2 epochs",
        "stage rl (GRPO): 1 problem, 250 steps",
    ):
        assert line in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("- 1\n", ConfigError, "expected settings, got list"),
        ("stages: 3\n", ConfigError, "`stages` must be a list"),
        ("stages: [cot]\n", ConfigError, "stage 1: expected settings, got str"),
        ("stages:\n  - epochs: 2\n", ConfigError, "`name` must be a short name"),
        ("stages:\n  - name: round-01\n", ConfigError, "not base or round-"),
        ("stages:\n  - name: a/../b\n", ConfigError, "`name` must be a short name"),
        (f"{STAGE}    held_out: 3\n", ConfigError, "`held_out` is one for all rounds"),
        (f"{STAGE}    learning_rates: 3\n", UnknownNameError, "learning_rates"),
        (f"{STAGE}    epochs: -1\n", ConfigError, "epochs"),
        (STAGE.replace("    solutions: [s.jsonl]\n", ""), ConfigError, "nothing to train on"),
        (STAGE + STAGE.partition("\n")[2], ConfigError, "two stages are called a"),
    ],
)
def test_what_is_no_configuration_is_one_sentence(
    tmp_path: Path, text: str, kind: type[Exception], message: str
) -> None:
    path = tmp_path / "improve.yaml"
    path.write_text(text)
    with pytest.raises(kind, match=message):
        read_config(str(path), {})


def test_every_stage_is_kept_apart_from_what_is_evaluated_on(tmp_path: Path) -> None:
    """Examples by hash and by similarity, like problems; a stage of examples alone needs no problems."""
    write_training(tmp_path, "Item", ("yes", "no"))
    benchmark = words_benchmark(tmp_path, "words", "Item", "yes")
    rows = [{"input": f"Thing {number}", "output": "yes"} for number in range(COUNT)]
    write_rows(tmp_path / "examples.jsonl", [*rows, {"input": "item, 5001!", "output": "yes"}])
    config = tmp_path / "improve.yaml"
    config.write_text(f"stages:\n  - name: first\n    samples: 0\n    examples: [{tmp_path}/examples.jsonl]\n")
    stages = read_config(str(config), {}).stages
    spoken: list[str] = []
    problems = load_problems(spec_for(tmp_path, Path("m"), benchmark, stages=stages), spoken.append)
    assert [(len(pool.rows), len(pool.examples)) for pool in problems.pools] == [(0, COUNT), (2 * COUNT, 0)]
    assert "left out: 1 example almost like a problem that is evaluated on" in spoken
    write_rows(tmp_path / "examples.jsonl", [{"input": "<|im_start|>user\nitem 5001<|im_end|>", "output": "yes"}])
    with pytest.raises(DataError, match="1 of 30 questions of words"):
        load_problems(spec_for(tmp_path, Path("m"), benchmark, stages=stages), print)


@pytest.mark.parametrize("shared", [4, 16])
def test_all_models_that_are_compared_have_one_token_limit(tmp_path: Path, shared: int) -> None:
    """That of the longest replies, whatever a stage samples and trains with."""
    write_training(tmp_path, "Item", ("yes", "no"))
    benchmark = words_benchmark(tmp_path, "words", "Item", "yes")
    config = tmp_path / "improve.yaml"
    config.write_text(
        f"max_tokens: {shared}\nstages:\n  - name: long\n    max_tokens: 8\n    method: grpo\n"
        "  - name: short\n    max_tokens: 2\n    method: grpo\n"
    )
    keys, stages = read_config(str(config), {})
    spec = spec_for(tmp_path, Path("m"), benchmark, stages=stages, keys=keys, solutions=())
    limit = "inference.tokens_to_generate"
    base = load_problems(spec, print).evaluated[0].benchmark
    assert base.defaults[limit] == spec.tested_tokens == max(shared, 8)
    assert [stage.apply_to(base).defaults[limit] for stage in stages] == [8, 2]
    assert [stage.apply_to(base, spec.tested_tokens).defaults for stage in stages] == [base.defaults] * 2


CODE: dict[str, Any] = {"code_execution": True, "code_tags": "qwen", "inference.endpoint_type": "text"}


@pytest.mark.parametrize(
    ("method", "settings", "refused"),
    [
        ("sft", CODE, ""),
        ("grpo", CODE, ""),
        ("grpo", {"tool_modules": ["python"]}, ""),
        ("sft", {"tool_modules": ["python"]}, "sends several requests"),
        ("grpo", {"parallel_thinking.mode": "genselect", "inference.temperature": 0.7}, "chooses among"),
    ],
)
def test_replies_of_code_can_be_learnt_and_those_of_tools_only_by_reward(
    tmp_path: Path, method: Method, settings: dict[str, Any], refused: str
) -> None:
    base = with_tokenizer(tiny_folder(tmp_path / "model"))
    benchmark = Benchmark(name="own", category="", title="own", prompt="generic/default", defaults=settings)
    stage = ImproveStage(name="a", keys=ImproveKeys(), method=method)
    with pytest.raises(ConfigError, match=refused) if refused else nullcontext():
        check_solver(stage, benchmark, tmp_path / "problems.jsonl", base)
