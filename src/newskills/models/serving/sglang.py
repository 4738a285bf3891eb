# SPDX-License-Identifier: Apache-2.0
"""argv of SGLang's server: one process per node, which find each other at a port of the first."""

from __future__ import annotations

from newskills.models.serving.spec import ANY_INTERFACE, ServeCommand, ServeSpec, command, start_words, told

LAYOUT = (
    *("--tp-size", "--tp", "--tensor-parallel-size"),
    *("--pp-size", "--pp", "--pipeline-parallel-size"),
    *("--dp-size", "--dp", "--data-parallel-size"),
)


def make(spec: ServeSpec) -> ServeCommand:
    """Tensor parallel inside a node, pipeline parallel across, unless told."""
    layout: list[str] = []
    if told(spec, *LAYOUT) is None:
        if spec.num_gpus:
            layout += ["--tp-size", str(spec.num_gpus)]
        if spec.num_nodes > 1:
            layout += ["--pp-size", str(spec.num_nodes)]
    if spec.num_nodes > 1:
        layout += ["--nnodes", str(spec.num_nodes), "--node-rank", str(spec.node_rank)]
        layout += ["--dist-init-addr", f"{spec.master}:{spec.master_port}"]
    return command(
        spec,
        [
            *start_words(spec, spec.python, "-m", "sglang.launch_server"),
            *("--model-path", spec.model),
            *("--served-model-name", spec.name),
            "--trust-remote-code",
            *("--host", spec.host or ANY_INTERFACE),
            *("--port", str(spec.port)),
            *layout,
        ],
    )
