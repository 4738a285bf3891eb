# SPDX-License-Identifier: Apache-2.0
"""One step over the rows, whose answers are their gold ones or none at all."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path

import ray

values = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:])
values = {key: value.strip("'") for key, value in values.items()}
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False, logging_level="ERROR")
assert len(ray.nodes()) == int(values["trainer.nnodes"])
ray.shutdown()
module = values["reward.custom_reward_function.path"].removeprefix("pkg://")
reward = getattr(importlib.import_module(module), values["reward.custom_reward_function.name"])
rows = [json.loads(line) for line in Path(values["data.train_files"]).read_text().splitlines()]
rewards = []
for index, row in enumerate(rows):
    truth = row["reward_model"]["ground_truth"]
    answer = f"\\boxed{{{truth}.0}}" if index % 2 else "?"
    rewards.append(reward(row["data_source"], answer, truth, row["extra_info"])["score"])
print("rewards:", rewards, flush=True)
assert all("\\boxed{}" in row["prompt"][0]["content"] for row in rows)
actor = Path(values["trainer.default_local_dir"]) / "global_step_1/actor"
(actor / "huggingface").mkdir(parents=True)
shutil.copyfile(Path(values["actor_rollout_ref.model.path"]) / "model.safetensors", actor / "model.safetensors")
shutil.copyfile(Path(values["actor_rollout_ref.model.path"]) / "config.json", actor / "huggingface/config.json")
