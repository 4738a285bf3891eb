# SPDX-License-Identifier: Apache-2.0
"""What accelerate launch is told, as the real accelerate (and DeepSpeed, where it is) reads it."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml

from newskills.base.errors import ConfigError
from newskills.train.backends.trl import processes as processes_module
from newskills.train.backends.trl import settings as settings_module
from newskills.train.backends.trl.launching import (
    NodePlace,
    accelerate_config,
    launch_processes,
    place_from,
    torchrun_words,
    wants_launch,
)
from newskills.train.backends.trl.model import FSDP_NEEDS, check_trl_settings
from newskills.train.backends.trl.processes import data_parallel_size, saves_zero3, sharding_strategy
from newskills.train.backends.trl.settings import TrlSettings, chosen_sampler
from newskills.train.settings import TrainerSettings

pytest.importorskip("accelerate")
pytestmark = pytest.mark.filterwarnings("ignore")
TWO = NodePlace(nodes=2, rank=1, address="node1", port=29500)


def told(config: dict[str, Any], folder: Path) -> tuple[Namespace, dict[str, str]]:
    """The arguments of accelerate launch after it has read the file, and what it tells its processes."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    path = folder / "accelerate.yaml"
    path.write_text(yaml.safe_dump(config))
    words = ["--config_file", str(path), "-m", "newskills", "sft"]
    before = dict(os.environ)
    try:
        args, *_ = _validate_launch_command(launch_command_parser().parse_args(words))
        if args.use_deepspeed:
            args.deepspeed_fields_from_accelerate_config = ",".join(config["deepspeed_config"])
            return args, prepare_deepspeed_cmd_env(args)[1]
        return args, prepare_multi_gpu_env(args)
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_two_nodes(tmp_path: Path) -> None:
    config = accelerate_config(TrlSettings(processes=8), TWO)
    args, _ = told(config, tmp_path)
    assert (args.num_machines, args.machine_rank, args.num_processes) == (2, 1, 16)
    assert (args.main_process_ip, args.main_process_port) == ("node1", 29500)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_stages_of_zero(tmp_path: Path, stage: int) -> None:
    settings = TrlSettings(processes=4, split=f"zero{stage}")
    config = accelerate_config(settings, NodePlace())
    assert config["deepspeed_config"]["zero_stage"] == stage
    pytest.importorskip("deepspeed")
    before = dict(os.environ)
    try:
        _, env = told(config, tmp_path)
        os.environ.update(env)
        from accelerate.utils import DeepSpeedPlugin
        from deepspeed.runtime.config import DeepSpeedConfig

        assert sharding_strategy() == f"zero{stage}"
        assert saves_zero3() is (stage == 3)
        plugin = DeepSpeedPlugin()
        plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = 1
        plugin.deepspeed_config["train_batch_size"] = 1
        read = DeepSpeedConfig(plugin.deepspeed_config)
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert read.zero_optimization_stage == stage
    assert read.zero_config.gather_16bit_weights_on_model_save is (stage == 3)


def test_divided_weights(tmp_path: Path) -> None:
    config = accelerate_config(TrlSettings(processes=4, split="fsdp"), NodePlace())
    _, env = told(config, tmp_path)
    assert env["ACCELERATE_USE_FSDP"] == "true"
    assert {name: env[name] for name in FSDP_NEEDS} == FSDP_NEEDS
    assert env["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"


def test_what_waits_in_the_memory_of_the_machine(tmp_path: Path) -> None:
    config = accelerate_config(TrlSettings(processes=4, split="fsdp", offload=True), NodePlace())
    _, env = told(config, tmp_path)
    assert env["FSDP_OFFLOAD_PARAMS"] == "true"
    assert env["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "true"
    zero = accelerate_config(TrlSettings(processes=4, split="zero2", offload=True), NodePlace())
    assert zero["deepspeed_config"]["offload_optimizer_device"] == "cpu"
    assert zero["deepspeed_config"]["offload_param_device"] == "none"
    whole = accelerate_config(TrlSettings(processes=4, split="zero3", offload=True), NodePlace())
    assert whole["deepspeed_config"]["offload_param_device"] == "cpu"


def test_processes_that_share_a_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TrlSettings(processes=4, split="fsdp", context_parallel=2)
    _, env = told(accelerate_config(settings, TWO), tmp_path)
    from accelerate import ParallelismConfig

    for name, value in env.items():
        if name.startswith("PARALLELISM_CONFIG_"):
            monkeypatch.setenv(name, value)
    mesh = ParallelismConfig()
    assert (mesh.cp_size, mesh.dp_shard_size, mesh.total_size) == (2, 4, 8)
    assert env["ACCELERATE_USE_PARALLELISM_CONFIG"] == "true"
    monkeypatch.setattr(processes_module, "process_count", lambda: 8)
    assert data_parallel_size() == 4


def test_products_in_8_bit_floats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accelerate.utils.launch.is_fp8_available", lambda: True)
    assert wants_launch(TrlSettings(fp8=True), {})
    for split in ("none", "fsdp"):
        settings = TrlSettings(processes=2, fp8=True, split=split)
        args, env = told(accelerate_config(settings, NodePlace()), tmp_path)
        assert (args.mixed_precision, env["ACCELERATE_MIXED_PRECISION"]) == ("fp8", "fp8")
        assert env["ACCELERATE_FP8_BACKEND"] == "AO"
    assert env["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "false"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"context_parallel": 2}, "needs weights that are divided"),
        (
            {"context_parallel": 2, "split": "fsdp", "packing": True},
            r"packing does not go with .*context_parallel=2",
        ),
        ({"context_parallel": 2, "split": "fsdp", "attention": "eager"}, "attention=eager does not go with"),
        ({"context_parallel": 2, "split": "fsdp"}, "1 processes were started of which 1 share a sequence"),
        ({"fp8": True}, "fp8 trains all weights"),
    ],
)
def test_what_does_not_go_together_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_trl_settings(TrainerSettings(trl=TrlSettings(**changed)))
    with pytest.raises(ConfigError, match="fp8 needs a GPU"):
        check_trl_settings(TrainerSettings(weights="full", trl=TrlSettings(fp8=True)))


@pytest.mark.parametrize(("saved", "refused"), [("true", False), ("false", True)])
def test_weights_in_parts_are_gathered_or_refused(
    monkeypatch: pytest.MonkeyPatch, saved: str, *, refused: bool
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL", saved)
    with pytest.raises(ConfigError, match="ZeRO-3. without gathering" if refused else "paged needs all weights"):
        check_trl_settings(TrainerSettings(trl=TrlSettings(sampler="paged")))


def test_vllm_samples_on_a_gpu_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "find_spec", lambda name: name)
    assert chosen_sampler(TrlSettings(), gpu=True).sampler == "vllm"
    assert chosen_sampler(TrlSettings(), gpu=False).sampler == "transformers"
    assert chosen_sampler(TrlSettings(sampler="paged"), gpu=True).sampler == "paged"
    monkeypatch.setattr(settings_module, "find_spec", lambda name: None)
    assert chosen_sampler(TrlSettings(), gpu=True).sampler == "transformers"


def test_processes_of_a_cpu_and_of_gpus() -> None:
    settings = TrlSettings(processes=2)
    gpus = accelerate_config(settings, NodePlace())
    assert (gpus["distributed_type"], gpus["use_cpu"], gpus["num_processes"]) == ("MULTI_GPU", False, 2)
    assert torchrun_words(settings, NodePlace()) == ["torch.distributed.run", "--nproc_per_node=2", "--standalone"]
    where = ["--nnodes=2", "--node_rank=1", "--master_addr=node1", "--master_port=29500"]
    assert torchrun_words(settings, TWO)[2:] == where
    for split in ("zero2", "fsdp"):
        with pytest.raises(ConfigError, match="needs GPUs"):
            torchrun_words(TrlSettings(split=split), NodePlace())


def test_what_was_started_starts_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWSKILLS_TRAINING_STARTED", "1")
    with pytest.raises(ConfigError, match="LOCAL_RANK does not say which one it is"):
        launch_processes(TrlSettings(processes=2), ["sft"], tmp_path)


def test_where_this_node_is() -> None:
    assert place_from({}) == NodePlace()
    variables = {"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
    assert place_from(variables) == TWO
    with pytest.raises(ConfigError, match="do not say where the first node listens"):
        place_from({"NNODES": "2"})
    with pytest.raises(ConfigError, match="whole numbers"):
        place_from({"NNODES": "two"})
    assert wants_launch(TrlSettings(processes=2), {})
    assert not wants_launch(TrlSettings(processes=2), {"LOCAL_RANK": "0"})
    assert not wants_launch(TrlSettings(), {})
    assert not wants_launch(TrlSettings(), {"NNODES": "1"})
    assert wants_launch(TrlSettings(), {"NNODES": "2"})  # each node would train alone, into the same folder
    assert not wants_launch(TrlSettings(), {"NNODES": "2", "LOCAL_RANK": "0"})


@pytest.mark.parametrize(
    ("stage", "variable", "expected"),
    [(1, None, "zero1"), (2, "1", "zero2"), (3, "2", "zero3"), ("auto", "1", "zero1"), (None, None, "zero2")],
)
def test_a_deepspeed_file_of_ones_own_says_what_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: object, variable: str | None, expected: str
) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({"zero_optimization": {} if stage is None else {"stage": stage}}))
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_CONFIG_FILE", str(path))
    if variable is not None:
        monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", variable)
    assert sharding_strategy() == expected


def test_a_deepspeed_file_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_CONFIG_FILE", "/nowhere/ds.json")
    with pytest.raises(ConfigError, match=r"ACCELERATE_DEEPSPEED_CONFIG_FILE .*/nowhere/ds\.json"):
        sharding_strategy()
