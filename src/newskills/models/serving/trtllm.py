# SPDX-License-Identifier: Apache-2.0
"""argv of TensorRT-LLM's server: one MPI rank on one node, one task per GPU across nodes."""

from __future__ import annotations

from newskills.models.serving.spec import (
    ANY_INTERFACE,
    ServeCommand,
    ServeSpec,
    argument_value,
    serve_command,
    start_words,
)

ONE_NODE = ("mpirun", "-n", "1", "--oversubscribe", "--allow-run-as-root")
SEVERAL_NODES = ("trtllm-llmapi-launch",)
LAYOUT = ("--tp-size", "--pp-size")


def make(spec: ServeSpec) -> ServeCommand:
    """Make the command: tensor parallel inside a node, pipeline parallel across nodes, unless set otherwise."""
    layout: list[str] = []
    if argument_value(spec, *LAYOUT) is None:
        if spec.num_gpus:
            layout += ["--tp_size", str(spec.num_gpus)]
        if spec.num_nodes > 1:
            layout += ["--pp_size", str(spec.num_nodes)]
    if spec.served_name is not None:
        layout += ["--served_model_name", spec.served_name]
    return serve_command(
        spec,
        [
            *(ONE_NODE if spec.num_nodes == 1 else SEVERAL_NODES),
            *start_words(spec, "trtllm-serve"),
            spec.model,
            *("--host", spec.host or ANY_INTERFACE),
            *("--port", str(spec.port)),
            *layout,
        ],
        tasks_per_node=1 if spec.num_nodes == 1 else max(1, spec.num_gpus),
    )
