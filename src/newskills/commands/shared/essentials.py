# SPDX-License-Identifier: Apache-2.0
"""What the short help of the commands that ask models shows; `--help=all` shows the rest."""

from __future__ import annotations

MODEL_AND_RESULTS = (
    "model",
    "server_type",
    "server_address",
    "server_gpus",
    "output_dir",
    "cluster",
    "expname",
    "rerun_done",
    "dry_run",
)
GENERATION = (
    "++prompt_config",
    "++max_samples",
    "++inference.temperature",
    "++inference.top_p",
    "++inference.tokens_to_generate",
    "++inference.reasoning_effort",
    "++parse_reasoning",
    "++code_execution",
    "++max_concurrent_requests",
    "++server.api_key_env_var",
    "++server.enable_soft_fail",
)
