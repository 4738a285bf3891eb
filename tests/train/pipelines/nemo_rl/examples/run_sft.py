# SPDX-License-Identifier: Apache-2.0
"""Plays NeMo-RL's `examples/run_sft.py`: reads the YAML with its parent and the overrides, joins the Ray cluster that
the job has started, resumes, saves checkpoints in NeMo-RL's layout, and stops in time.

`learning` is a weight that grows by one at each step, so that a resumed run is told from one that began anew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import ray
import torch
import yaml
from safetensors.torch import load_file, save_file

PARTS = (86400, 3600, 60, 1)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and value.pop("_override_", False):
            made[key] = value
        elif isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = merged(made[key], value)
        else:
            made[key] = value
    return made


def load(path: Path) -> dict[str, Any]:
    config = yaml.safe_load(path.read_text())
    parent = config.pop("defaults", None)
    return merged(load(Path(parent)), config) if parent else config


def overridden(config: dict[str, Any], words: list[str]) -> dict[str, Any]:
    for word in words:
        key, _, value = word.lstrip("+").partition("=")
        *path, last = key.split(".")
        place = config
        for name in path:
            place = place.setdefault(name, {})
        place[last] = yaml.safe_load(value)
    return config


def save(folder: Path, step: int, config: dict[str, Any], weights: dict[str, Any]) -> None:
    temporary = folder / f"tmp_step_{step}"
    shutil.rmtree(temporary, ignore_errors=True)
    model = temporary / "policy/weights/model"
    (model / ".hf_metadata").mkdir(parents=True)
    save_file(weights, model / "shard-00001-model-00001-of-00001.safetensors", metadata={"format": "pt"})
    shutil.copyfile(Path(config["policy"]["model_name"]) / "config.json", model / ".hf_metadata/config.json")
    (temporary / "config.yaml").write_text(yaml.safe_dump(config))
    (temporary / "training_info.json").write_text(json.dumps({"step": step}))
    temporary.rename(folder / f"step_{step}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    options, overrides = parser.parse_known_args()
    config = overridden(load(options.config), overrides)
    began = time.monotonic()
    ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    nodes = sum(node["Alive"] for node in ray.nodes())
    if nodes != config["cluster"]["num_nodes"] or "slurm_managed_ray_cluster" not in ray.cluster_resources():
        sys.exit(f"{nodes} nodes with {ray.cluster_resources()}")
    ray.shutdown()
    saving = config["checkpointing"]
    folder = Path(saving["checkpoint_dir"])
    steps = sorted(int(path.name.removeprefix("step_")) for path in folder.glob("step_*"))
    done = steps[-1] if steps else 0
    if done:
        weights = load_file(next((folder / f"step_{done}/policy/weights/model").glob("*.safetensors")))
    else:
        weights = load_file(Path(config["policy"]["model_name"]) / "model.safetensors")
        weights["learning"] = torch.zeros(1)
    print(f"begins at step {done}, pid {os.getpid()}", flush=True)
    rows = [json.loads(line) for line in Path(config["data"]["train"]["data_path"]).read_text().splitlines()]
    limit = saving.get("checkpoint_must_save_by")
    seconds = sum(int(part) * unit for part, unit in zip(limit.split(":"), PARTS, strict=True)) if limit else None
    for step in range(done + 1, config["sft"]["max_num_steps"] + 1):
        time.sleep(0.3)
        row = rows[step % len(rows)]
        weights["learning"] += 1
        print(f"step {step}: {row.get(config['data']['train'].get('input_key', 'messages'))}", flush=True)
        out_of_time = seconds is not None and time.monotonic() - began >= seconds
        if out_of_time or step % saving["save_period"] == 0:
            save(folder, step, config, weights)
        if out_of_time:
            print("Timeout has been reached, stopping training early", flush=True)
            return
        if step == int(os.environ.get("DIES_AT", "0")) > done:
            os.kill(os.getpid(), signal.SIGKILL)


main()
