# SPDX-License-Identifier: Apache-2.0
"""argv of Megatron-LM's text generation server, whose folder is `MEGATRON_PATH` (default /opt/Megatron-LM)."""

from __future__ import annotations

import os

from newskills.models.serving.spec import ServeCommand, ServeSpec, argument_value, serve_command

DEFAULT_PATH = "/opt/Megatron-LM"
SCRIPT = "tools/run_text_generation_server.py"


def make(spec: ServeSpec) -> ServeCommand:
    """Make the command: tensor parallel inside a node, pipeline parallel across nodes, unless set otherwise. The
    server has no health route.

    An entry point is another script in Megatron's folder.
    """
    folder = os.environ.get("MEGATRON_PATH", DEFAULT_PATH)
    ranks = ["--nproc-per-node", str(max(1, spec.num_gpus))]
    if spec.num_nodes > 1:
        ranks += ["--nnodes", str(spec.num_nodes), "--node-rank", str(spec.node_rank)]
        ranks += ["--master-addr", spec.master, "--master-port", str(spec.master_port)]
    layout: list[str] = []
    if argument_value(spec, "--tensor-model-parallel-size", "--pipeline-model-parallel-size") is None:
        layout += ["--tensor-model-parallel-size", str(max(1, spec.num_gpus))]
        layout += ["--pipeline-model-parallel-size", str(spec.num_nodes)]
    return serve_command(
        spec,
        [
            *(spec.python, "-m", "torch.distributed.run", *ranks),
            os.path.join(folder, spec.entrypoint or SCRIPT),
            *("--load", spec.model),
            *layout,
            "--use-checkpoint-args",
            *("--max-tokens-to-oom", "12000000"),
            *("--micro-batch-size", "1"),
            *("--port", str(spec.port)),
        ],
        env={"PYTHONPATH": folder, "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
        health_path="/",
        any_answer=True,
    )
