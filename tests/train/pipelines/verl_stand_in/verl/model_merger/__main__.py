# SPDX-License-Identifier: Apache-2.0
"""Plays `python -m verl.model_merger merge`, with its arguments."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("operation", choices=["merge"])
parser.add_argument("--backend", choices=["fsdp", "megatron"], required=True)
parser.add_argument("--local_dir", type=Path, required=True)
parser.add_argument("--target_dir", type=Path, required=True)
options = parser.parse_args()
options.target_dir.mkdir()
shutil.copyfile(options.local_dir / "model.safetensors", options.target_dir / "model.safetensors")
shutil.copyfile(options.local_dir / "huggingface/config.json", options.target_dir / "config.json")
