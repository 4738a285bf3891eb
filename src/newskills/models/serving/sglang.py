# SPDX-License-Identifier: Apache-2.0
"""argv of SGLang's server: one process per node, which find each other at a port of the first."""

from __future__ import annotations

from newskills.models.serving.spec import (
    ANY_INTERFACE,
    ServeCommand,
    ServeSpec,
    argument_value,
    serve_command,
    start_words,
)

START = """\
import importlib.util, os, shutil, sys
path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
program, package = shutil.which("sglang", path=path), importlib.util.find_spec("sglang")
folders = package.submodule_search_locations or () if package else ()
if program and any(os.path.exists(os.path.join(folder, "cli", "serve.py")) for folder in folders):
    words = [program, "serve"]
else:
    words = [sys.executable, "-m", "sglang.launch_server"]
os.execv(words[0], [*words, *sys.argv[1:]])
"""
"""Start the server as the installed version does: `sglang serve`, which came in 0.5.5, else its older module. Which one
it is is known only where the engine is installed, often inside a container."""
LAYOUT = (
    *("--tp-size", "--tp", "--tensor-parallel-size"),
    *("--pp-size", "--pp", "--pipeline-parallel-size"),
    *("--dp-size", "--dp", "--data-parallel-size"),
)


def make(spec: ServeSpec) -> ServeCommand:
    """Make the command: tensor parallel inside a node, pipeline parallel across nodes, unless set otherwise."""
    layout: list[str] = []
    if argument_value(spec, *LAYOUT) is None:
        if spec.num_gpus:
            layout += ["--tp-size", str(spec.num_gpus)]
        if spec.num_nodes > 1:
            layout += ["--pp-size", str(spec.num_nodes)]
    if spec.num_nodes > 1:
        layout += ["--nnodes", str(spec.num_nodes), "--node-rank", str(spec.node_rank)]
        layout += ["--dist-init-addr", f"{spec.master}:{spec.master_port}"]
    return serve_command(
        spec,
        [
            *start_words(spec, spec.python, "-c", START),
            *("--model-path", spec.model),
            *("--served-model-name", spec.name),
            "--trust-remote-code",
            *("--host", spec.host or ANY_INTERFACE),
            *("--port", str(spec.port)),
            *layout,
        ],
    )
