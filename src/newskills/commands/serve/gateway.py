# SPDX-License-Identifier: Apache-2.0
"""`ns gateway`: a recording proxy between any program and any model."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.serving.gateway_options import GatewayKeys, GatewayOptions

COMMAND = Command(
    name="gateway",
    summary="Put any program before any model, and record what it does: the gateway speaks OpenAI Chat Completions "
    "and Responses, Anthropic Messages and Gemini generateContent, streamed or not, so that Claude Code or Codex work "
    "with a model that only chats. What is set by ++inference.* holds whatever programs say. ns view and ns samples "
    "show the records.",
    options=GatewayOptions,
    config=GatewayKeys,
    result="newskills.pipelines.serving.gateway:run_gateway",
    examples=(
        "ns gateway --server_type=vllm --server_address=http://localhost:8000 --model=Qwen/Qwen3-8B",
        "ns gateway --server_type=llamacpp --model=smollm2 ++inference.temperature=0 --max_requests=200",
        "ns gateway --server_type=anthropic --model=claude-sonnet-4-5 --socket=/tmp/gateway.sock --output_dir=records",
    ),
)
