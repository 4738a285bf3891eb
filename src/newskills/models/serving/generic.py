# SPDX-License-Identifier: Apache-2.0
"""argv of a server of the user's own."""

from __future__ import annotations

from newskills.base.errors import ConfigError
from newskills.models.serving.spec import ServeCommand, ServeSpec, serve_command, start_words


def make(spec: ServeSpec) -> ServeCommand:
    """Make the command `<entrypoint> --model --num_gpus --num_nodes --port <args>`. Raises ConfigError without an
    entry point."""
    if spec.entrypoint is None:
        raise ConfigError(
            "--server_type=generic does not know how to start its server.",
            hint="Give --server_entrypoint, or --server_address if the server is running.",
        )
    return serve_command(
        spec,
        [
            *start_words(spec),
            *("--model", spec.model),
            *("--num_gpus", str(spec.num_gpus)),
            *("--num_nodes", str(spec.num_nodes)),
            *("--port", str(spec.port)),
        ],
        any_answer=True,
    )
