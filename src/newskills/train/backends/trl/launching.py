# SPDX-License-Identifier: Apache-2.0
"""Several processes on one or more nodes: what accelerate launch is told, on CPUs torchrun. Loads neither of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.models.serving.gpus import visible_gpus
from newskills.train.backends.trl.settings import TrlSettings

NODES, NODE, ADDRESS, PORT = "NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"
"""Variables by which a job of several nodes (`--num_nodes`) tells the command on each of them where it is."""
CONFIG = "accelerate.yaml"
LAUNCHED = "LOCAL_RANK"
"""Variable that every process of accelerate launch and torchrun has."""
STARTED = "NEWSKILLS_TRAINING_STARTED"
"""Variable of processes that `launch_processes` has started, so that none of them starts others."""


class NodePlace(Struct, frozen=True, kw_only=True):
    """This node among several, and where the first process listens."""

    nodes: int = 1
    rank: int = 0
    address: str | None = None
    port: int | None = None


def place_from(environ: Mapping[str, str]) -> NodePlace:
    """Read the place of this node from `environ`. Raises ConfigError for variables that are no numbers, and for several
    nodes without a meeting place."""
    try:
        nodes, rank = int(environ.get(NODES) or 1), int(environ.get(NODE) or 0)
        port = int(environ[PORT]) if environ.get(PORT) else None
    except ValueError as error:
        raise ConfigError(f"{NODES}, {NODE} and {PORT} have to be whole numbers: {error}.") from error
    if nodes == 1:
        return NodePlace()
    if not environ.get(ADDRESS) or port is None:
        raise ConfigError(
            f"{NODES}={nodes}, but {ADDRESS} and {PORT} do not say where the first node listens.",
            hint="Start it with: ns run_cmd --num_nodes=… --num_gpus=… ns …",
        )
    return NodePlace(nodes=nodes, rank=rank, address=environ[ADDRESS], port=port)


def accelerate_config(settings: TrlSettings, place: NodePlace) -> dict[str, Any]:
    """Return the file for `accelerate launch --config_file`, on GPUs. Precision comes with the training's own
    arguments."""
    split, offload = settings.split, settings.offload
    kind = {"none": "MULTI_GPU", "fsdp": "FSDP"}.get(split, "DEEPSPEED")
    processes, shared = settings.processes * place.nodes, settings.context_parallel
    parts: dict[str, Any] = {}
    if kind == "DEEPSPEED":
        parts["deepspeed_config"] = _deepspeed_settings(int(split[-1]), place, offload=offload)
    if kind == "FSDP":
        # torchao (accelerate 1.15) wants weights that are there before it converts them.
        loading = {"fsdp_cpu_ram_efficient_loading": not settings.fp8}
        parts["fsdp_config"] = {**FSDP, **loading, "fsdp_offload_params": offload}
    if shared > 1:
        parts["parallelism_config"] = {
            "parallelism_config_cp_size": shared,
            "parallelism_config_dp_shard_size": processes // shared,
        }
    if settings.fp8:
        parts["fp8_config"] = {"backend": "AO"}
    return {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": kind,
        "downcast_bf16": "no",
        "enable_cpu_affinity": False,
        "machine_rank": place.rank,
        "main_process_ip": place.address,
        "main_process_port": place.port,
        "main_training_function": "main",
        "mixed_precision": "fp8" if settings.fp8 else "no",
        "num_machines": place.nodes,
        "num_processes": processes,
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
        **parts,
    }


def torchrun_words(settings: TrlSettings, place: NodePlace) -> list[str]:
    """Return the words that start processes on CPUs: without mpirun accelerate launch starts one there, however many
    it is told.

    Raises ConfigError for what is to be divided where no GPU is.
    """
    if settings.split != "none":
        raise ConfigError(
            f"++trainer.trl.split={settings.split} needs GPUs, but none is visible here.",
            hint="Leave it out: processes on CPUs have all weights each.",
        )
    words = ["torch.distributed.run", f"--nproc_per_node={settings.processes}"]
    if place.nodes == 1:
        return [*words, "--standalone"]
    where = [f"--master_addr={place.address}", f"--master_port={place.port}"]
    return [*words, f"--nnodes={place.nodes}", f"--node_rank={place.rank}", *where]


FSDP = {
    "fsdp_version": 2,
    "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "fsdp_state_dict_type": "FULL_STATE_DICT",
    "fsdp_reshard_after_forward": True,
    "fsdp_cpu_ram_efficient_loading": True,
    "fsdp_sync_module_states": True,
    "fsdp_activation_checkpointing": False,
}
"""Layers are whole for as long as they compute; checkpoints hold all weights. One process reads the model, the others
get their parts from it."""


def _deepspeed_settings(stage: int, place: NodePlace, *, offload: bool) -> dict[str, Any]:
    device = "cpu" if offload else "none"
    made = {
        "zero_stage": stage,
        "offload_optimizer_device": device,
        "offload_param_device": device if stage == 3 else "none",
        "zero3_init_flag": False,
    }
    if stage == 3:
        made["zero3_save_16bit_model"] = True
    if place.nodes > 1:
        made["deepspeed_multinode_launcher"] = "standard"
    return made


def wants_launch(settings: TrlSettings, environ: Mapping[str, str]) -> bool:
    """Return whether this process is to start others, and to be none of them itself."""
    if LAUNCHED in environ:
        return False
    alone = settings.processes == 1 and settings.split == "none" and not settings.fp8
    return not alone or environ.get(NODES, "1") not in ("", "1")


def first_process() -> bool:
    """Return whether this is the one of several processes (accelerate launch, torchrun) that writes."""
    return os.environ.get("RANK", "0") == "0"


def launch_processes(settings: TrlSettings, words: Sequence[str], folder: Path) -> int:
    """Run `python -m newskills WORDS` in all processes of this node; return its exit code.

    Raises ConfigError.
    """
    import subprocess

    if STARTED in os.environ:
        raise ConfigError(
            f"This process was started to train with others, but {LAUNCHED} does not say which one it is.",
            hint="Start it with torchrun --nproc_per_node=… -m newskills …",
        )
    place = place_from(os.environ)
    if gpus := visible_gpus():
        _check_gpus(settings, gpus)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (CONFIG if place.rank == 0 else f"{place.rank}.{CONFIG}")
        path.write_text(yaml.safe_dump(accelerate_config(settings, place), sort_keys=True))
        starter = ["accelerate.commands.launch", "--config_file", str(path)]
    else:
        starter = torchrun_words(settings, place)
    argv = [sys.executable, "-m", *starter, "-m", "newskills", *words]
    return subprocess.call(argv, env={**os.environ, STARTED: "1"})


def _check_gpus(settings: TrlSettings, gpus: int) -> None:
    """Raise ConfigError for more processes than GPUs."""
    if settings.processes > gpus:
        raise ConfigError(
            f"++trainer.trl.processes={settings.processes}, but this node has {gpus} GPUs for it.",
            hint=f"Set ++trainer.trl.processes={gpus}; more nodes: ns run_cmd --num_nodes=… --num_gpus={gpus} ns …",
        )
