# SPDX-License-Identifier: Apache-2.0
"""The options that the commands of the three-stage recipe share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.pipelines.options import AtLeastOne, DryRun, doc

MODEL = doc("training folder, Hugging Face folder or name, .gguf file, or smollm2")


class AnswerOptions(Struct, frozen=True, kw_only=True):
    """Who answers, and how."""

    model: Annotated[str, MODEL]
    server_address: Annotated[str | None, doc("address of a running OpenAI-compatible server")] = None
    output_dir: Annotated[str | None, doc("folder for records and tables (default: results/aimo/<model>)")] = None
    dry_run: DryRun = False


class BenchmarkOptions(AnswerOptions, frozen=True, kw_only=True):
    """How benchmarks are measured."""

    max_samples: Annotated[AtLeastOne | None, doc("problems per benchmark (default: all)")] = None
    num_samples: Annotated[int, Meta(ge=1, description="answers per problem; 1 = greedy")] = 1
    use_tir: Annotated[bool, doc("the model writes code, which the sandbox runs")] = False
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None


UseVllm = Annotated[bool, doc("serve with vLLM on the GPUs of this machine; otherwise llama.cpp on the CPU")]
