# SPDX-License-Identifier: Apache-2.0
"""What is written for NeMo-RL: keys that it knows, with the values of the recipes."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest

from newskills.base.errors import ConfigError
from newskills.train.pipelines.common import Run, Wandb, clock, step_range, steps_of
from newskills.train.pipelines.nemo_rl import FOREVER, NemoRl, converter, merged

KNOWN = Path(__file__).with_name("nemo_rl_keys.txt")
WANDB = Wandb(project="p", name="tune", group="g")
RUN = Run(name="tune", model="/models/m", output_dir="/out", nodes=2, gpus=8, limit=4 * 3600, wandb=WANDB)


def known_keys() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            section, _, keys = line.partition(": ")
            found[section] |= set(keys.split())
    found[""] = {section.partition(".")[0] for section in found} | {"defaults"}
    return found


def unknown(config: object, known: dict[str, set[str]], at: str = "") -> list[str]:
    """Dotted keys of `config` that are in none of the sections."""
    if isinstance(config, list):
        return [key for item in config for key in unknown(item, known, at)]
    if not isinstance(config, dict):
        return []
    bad = []
    for key, value in config.items():
        path = f"{at}.{key}" if at else key
        bad += [] if key in known[at] else [path]
        bad += unknown(value, known, path)
    return bad


def made(algorithm: str, form: str, backend: str = "fsdp", **more: object) -> dict:
    return NemoRl(
        run=RUN, algorithm=algorithm, backend=backend, form=form, training_data="/d/train.jsonl", **more
    ).config()


EVERY = list(
    product(
        [("sft", "input_output"), ("sft", "messages"), ("grpo", "plain"), ("gym", "gym")],
        ["fsdp", "megatron"],
        [None, "/d/test.jsonl"],
        [False, True],
    )
)


@pytest.mark.parametrize(("kind", "backend", "validation", "tools"), EVERY)
def test_every_key_is_one_that_nemo_rl_knows(kind, backend, validation, tools):
    config = made(kind[0], kind[1], backend, validation_data=validation, tools=tools and kind[1] == "messages")
    assert unknown(config, known_keys()) == []
    assert config["policy"]["dtensor_cfg"]["enabled"] == (backend == "fsdp")
    assert config["policy"]["megatron_cfg"]["enabled"] == (backend == "megatron")
    assert (config["policy"].get("optimizer", 0) is None) == (backend == "megatron")
    assert (config["data"]["validation"] is None) == (validation is None)


def test_a_key_that_it_does_not_know_is_found():
    assert unknown({"sft": {"max_epochs": 1}, "policy": {"scheduler": [{"nam": 1}]}}, known_keys()) == [
        "sft.max_epochs",
        "policy.scheduler.nam",
    ]


def test_supervised_fine_tuning_has_the_defaults_of_the_contract():
    config = made("sft", "input_output")
    assert config["defaults"] == "/opt/nemo-rl/examples/configs/sft.yaml"
    sft, saving, policy, data = (config[name] for name in ("sft", "checkpointing", "policy", "data"))
    assert (sft["max_num_epochs"], sft["max_num_steps"]) == (FOREVER, FOREVER) == (10**8, 10**8)
    assert (sft["val_period"], sft["val_at_start"]) == (0, False)
    assert (saving["keep_top_k"], saving["save_period"]) == (50, 100)
    assert saving["checkpoint_must_save_by"] == "00:03:45:00"
    assert saving["checkpoint_dir"] == "/out/checkpoints"
    assert policy["max_total_sequence_length"] == 4096
    assert policy["sequence_packing"]["enabled"] is True
    assert policy["tokenizer"] == {"chat_template": None, "name": "/models/m"}
    assert policy["optimizer"]["kwargs"] == {"lr": 1e-6, "weight_decay": 0.01, "eps": 1e-8}
    assert (data["add_bos"], data["add_eos"], data["add_generation_prompt"], data["num_workers"]) == (
        False,
        False,
        False,
        10,
    )
    assert config["logger"]["wandb"] == {"project": "p", "name": "tune", "id": "tune-g-p", "group": "g"}
    assert config["cluster"] == {"gpus_per_node": 8, "num_nodes": 2}
    megatron = made("sft", "messages", "megatron")["policy"]
    assert megatron["max_grad_norm"] == 0.0
    assert megatron["megatron_cfg"]["optimizer"] == {
        "lr": 1e-6,
        "min_lr": 1e-6,
        "weight_decay": 0.01,
        "adam_eps": 1e-8,
    }
    assert megatron["megatron_cfg"]["scheduler"]["lr_decay_style"] == "cosine"
    assert megatron["tokenizer"]["chat_template"] == "default"


def test_reinforcement_has_the_recipe_of_the_contract():
    config = made("grpo", "plain", validation_data="/d/test.jsonl")
    grpo, loss = config["grpo"], config["loss_fn"]
    assert (grpo["num_prompts_per_step"], grpo["num_generations_per_prompt"]) == (32, 16)
    assert (grpo["max_num_epochs"], grpo["max_num_steps"], grpo["max_rollout_turns"]) == (1, 10**6, 1)
    assert (loss["reference_policy_kl_penalty"], loss["reference_policy_kl_type"]) == (0.01, "k3")
    assert (loss["kl_input_clamp_value"], loss["kl_output_clamp_value"]) == (20.0, 10.0)
    assert config["policy"]["train_global_batch_size"] == 512
    assert config["data"]["train"]["input_key"] == "problem"
    assert config["data"]["train"]["output_key"] == "expected_answer"
    assert config["data"]["default"]["env_name"] == "math"


def test_gym_changes_nothing_of_its_own_recipe():
    config = made("gym", "gym", "megatron", root="/own", validation_data="/d/v")
    assert config["defaults"] == "/own/examples/nemo_gym/grpo_nanov3.yaml"
    assert "grpo" not in config
    assert config["data"] == {"train": {"data_path": "/d/train.jsonl"}, "validation": {"data_path": "/d/v"}}


def test_another_parent():
    assert made("sft", "messages", parent="/mine.yaml")["defaults"] == "/mine.yaml"


@pytest.mark.parametrize(
    ("limit", "by"), [(4 * 3600, 4 * 3600 - 900), (3600, 2700), (600, 450), (86400 * 2, 86400 * 2 - 900)]
)
def test_the_last_checkpoint_is_saved_before_the_limit(limit, by):
    run = Run(name="n", model="m", output_dir="/o", limit=limit)
    assert run.save_by == by


def test_times_steps_and_ranges():
    assert clock(2 * 86400 + 3 * 3600 + 4 * 60 + 5) == "02:03:04:05"
    assert steps_of(" 100, 200,100", "--x") == [100, 200]
    assert steps_of(None, "--x") == []
    assert step_range("3:5") == "3:5"
    for bad in ("0:5", "5:5", "5", "a:b", "5:3", "-1:3", "3:5:7"):
        with pytest.raises(ConfigError, match="write A:B"):
            step_range(bad)
    for bad in ("1;2", "one", "1,-2", "1.5"):
        with pytest.raises(ConfigError, match="numbers of steps"):
            steps_of(bad, "--average_steps")


def test_names_that_weights_and_biases_refuses():
    with pytest.raises(ConfigError, match="128 characters"):
        Wandb(project="p" * 40, name="n" * 40).check()
    with pytest.raises(ConfigError, match="cannot be in a project's name"):
        Wandb(project="a/b", name="n").check()
    Wandb(project="p", name="n").check()


def test_converters():
    assert converter("fsdp", "/r")[1:] == [
        "/r/examples/converters/convert_dcp_to_hf.py",
        "--config",
        "{checkpoint}/config.yaml",
        "--dcp-ckpt-path",
        "{checkpoint}/policy/weights",
        "--hf-ckpt-path",
        "{target}",
    ]
    assert "{checkpoint}/policy/weights/iter_0000000" in converter("megatron", "/r")


def test_merging_lays_over():
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"b": None}, "d": []}) == {"a": {"b": None, "c": 2}, "d": []}
