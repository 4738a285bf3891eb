# SPDX-License-Identifier: Apache-2.0
"""argv of vLLM's OpenAI server (`vllm serve`). Several nodes: Ray must run on all of them; this goes to the head.

Tensor parallel inside a node, pipeline parallel across (https://docs.vllm.ai/en/latest/serving/parallelism_scaling),
unless the user's arguments say something about parallelism: then nothing is added to it.
"""

from __future__ import annotations

import msgspec

from newskills.base.errors import ConfigError
from newskills.models.serving.spec import (
    ANY_INTERFACE,
    ServeCommand,
    ServeSpec,
    argument_value,
    installed_program,
    serve_command,
    start_words,
)

TENSOR = ("--tensor-parallel-size", "-tp")
PIPELINE = ("--pipeline-parallel-size", "-pp")
DATA = ("--data-parallel-size", "-dp")
QUIET = "--no_verbose"


def make(spec: ServeSpec) -> ServeCommand:
    """Make the command for a single replica over all GPUs of all nodes."""
    return _serve_command(spec, _parallel_arguments(spec))


def batch_words(spec: ServeSpec) -> list[str]:
    """Return the command that answers a file of requests, but for its files and the model (`vllm run-batch`). Raises
    ConfigError."""
    start = start_words(spec, installed_program(spec, "vllm"), "run-batch")
    return [*start, "--trust-remote-code", *_parallel_arguments(spec), *spec.extra_args]


def _parallel_arguments(spec: ServeSpec) -> list[str]:
    layout: list[str] = []
    if argument_value(spec, *TENSOR, *PIPELINE, *DATA) is None:
        if spec.num_gpus:
            layout += ["--tensor-parallel-size", str(spec.num_gpus)]
        if spec.num_nodes > 1:
            layout += ["--pipeline-parallel-size", str(spec.num_nodes)]
    if spec.num_nodes > 1 and argument_value(spec, "--distributed-executor-backend") is None:
        layout += ["--distributed-executor-backend", "ray"]
    return layout


def make_data_parallel(spec: ServeSpec) -> ServeCommand:
    """Make the command for replicas behind one address: one per node, or as many as fit with
    `--tensor-parallel-size`.

    Raises ConfigError where replicas do not fill the nodes.
    """
    if argument_value(spec, *DATA) is not None:
        return _serve_command(spec, ["--data-parallel-backend", "ray"])
    gpus = max(1, spec.num_gpus)
    width = _count_or_default(argument_value(spec, *TENSOR), gpus) * _count_or_default(
        argument_value(spec, *PIPELINE), 1
    )
    if gpus % width:
        raise ConfigError(
            f"--server_type=vllm_dp_ray: replicas of {width} GPUs do not fill nodes of {gpus}.",
            hint="Choose a --tensor-parallel-size that divides --server_gpus.",
        )
    layout = [] if argument_value(spec, *TENSOR) is not None else ["--tensor-parallel-size", str(gpus)]
    layout += ["--data-parallel-size", str(spec.num_nodes * gpus // width)]
    layout += ["--data-parallel-size-local", str(gpus // width)]
    return _serve_command(spec, [*layout, "--data-parallel-backend", "ray"])


def _serve_command(spec: ServeSpec, layout: list[str]) -> ServeCommand:
    extra = ["--disable-uvicorn-access-log" if word == QUIET else word for word in spec.extra_args]
    spec = msgspec.structs.replace(spec, extra_args=extra)
    if spec.entrypoint is None:
        start = [installed_program(spec, "vllm"), "serve", spec.model]
    else:
        start = [*start_words(spec), "--model", spec.model]
    return serve_command(
        spec,
        [
            *start,
            *("--served-model-name", spec.name),
            "--trust-remote-code",
            *("--host", spec.host or ANY_INTERFACE),
            *("--port", str(spec.port)),
            *layout,
        ],
    )


def _count_or_default(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ConfigError(f"--server_args: '{text}': expected a number of GPUs.")
    return int(text)
