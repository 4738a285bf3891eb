# SPDX-License-Identifier: Apache-2.0
"""Plays Megatron-LM's `pretrain_gpt.py`: its processes meet, resume, and stop: the first job after two steps."""

from __future__ import annotations

import argparse
import json
import os
import socket
from pathlib import Path

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--load", type=Path, required=True)
parser.add_argument("--save", type=Path, required=True)
parser.add_argument("--train-iters", type=int, required=True)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--exit-duration-in-mins", type=int, required=True)
options, _ = parser.parse_known_args()

torch.set_num_threads(1)
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
hosts: list[str] = [""] * dist.get_world_size()
dist.all_gather_object(hosts, socket.gethostname())
saved = sorted(options.load.iterdir())
iteration = json.loads(saved[-1].read_text())["iteration"] if saved else 0
limited = not saved
while iteration < options.train_iters and not (limited and iteration == 2):
    iteration += 1
if dist.get_rank() == 0:
    state = {"iteration": iteration, "ranks": len(hosts), "sum": total.item(), "nodes": len(set(hosts))}
    state |= {"init": os.environ.get("FROM_INIT"), "bf16": options.bf16}
    (options.save / f"iter_{iteration:07d}").write_text(json.dumps(state))
    if iteration < options.train_iters:
        print(f"exiting program after {options.exit_duration_in_mins} minutes", flush=True)
dist.barrier()
dist.destroy_process_group()
