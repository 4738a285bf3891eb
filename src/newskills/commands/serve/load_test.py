# SPDX-License-Identifier: Apache-2.0
"""`ns load_test`: latency and throughput of an endpoint under load."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.load_testing.options import LoadTestOptions

COMMAND = Command(
    name="load_test",
    summary="Measure an endpoint under load: time to first token, time per output token, inter-token and end-to-end "
    "latency, throughput, errors, goodput under limits, as vllm bench serve defines them. Requests are kept in flight "
    "(--concurrency) or sent at a rate (--rate); several values make a sweep, --find finds the highest one within "
    "--limits. ++inference.*, ++prompt_config and ++server.* are those of ns eval.",
    options=LoadTestOptions,
    any_keys=True,
    run="newskills.pipelines.load_testing.work:run",
    result="newskills.pipelines.load_testing.work:measure_load",
    examples=(
        "ns load_test --server_type=vllm --server_address=http://localhost:8000 --model=Qwen/Qwen3-8B",
        "ns load_test --server_type=vllm --server_gpus=1 --model=Qwen/Qwen3-8B --rate=1,2,4,8 --seconds=60",
        "ns load_test --server_type=openai --model=gpt-4o-mini --benchmarks=gsm8k --concurrency=8 --num_requests=100",
        "ns load_test --server_type=sglang --server_address=http://localhost:30000 --model=q --find=rate "
        "--limits=ttft:500,tpot:50",
    ),
)
