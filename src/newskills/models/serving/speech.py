# SPDX-License-Identifier: Apache-2.0
"""Start of NVIDIA's speech NIMs (Riva), in their container or where their program is.

Clients speak gRPC at the first port; HTTP, which tells whether the models are loaded, has the next one, and the three
behind it are Triton's (https://docs.nvidia.com/nim/riva/asr/latest/configuration.html).
"""

from __future__ import annotations

from newskills.base.errors import ConfigError
from newskills.models.serving.spec import ServeCommand, ServeSpec, argument_value, serve_command, start_words

START = "/opt/nim/start_server.sh"
PORTS = (
    "NIM_GRPC_API_PORT",
    "NIM_HTTP_API_PORT",
    "NIM_GRPC_TRITON_PORT",
    "NIM_HTTP_TRITON_PORT",
    "NIM_TRITON_METRICS_PORT",
)
SETTINGS = {
    "--nim-tags-selector": "NIM_TAGS_SELECTOR",
    "--nim-disable-model-download": "NIM_DISABLE_MODEL_DOWNLOAD",
    "--nim-export-path": "NIM_EXPORT_PATH",
    "--container-id": "CONTAINER_ID",
}
"""Words of `--server_args` → the variables of the NIM that they set."""


def make(spec: ServeSpec) -> ServeCommand:
    """Make the command `/opt/nim/start_server.sh` with its settings in the environment. Raises ConfigError for
    other arguments."""
    settings = {variable: argument_value(spec, flag, f"--{variable}") for flag, variable in SETTINGS.items()}
    flags = {flag.replace("_", "-") for flag in (*SETTINGS, *(f"--{name}" for name in SETTINGS.values()))}
    for word in spec.extra_args:
        flag = word.partition("=")[0].replace("_", "-")
        if flag.startswith("-") and flag not in flags:
            raise ConfigError(f"A speech NIM has no argument {word}; it has {', '.join(SETTINGS)}.")
    env = {name: str(spec.port + number) for number, name in enumerate(PORTS)}
    env["NIM_DISABLE_MODEL_DOWNLOAD"] = "true"
    env |= {name: value for name, value in settings.items() if value is not None}
    bare = ServeSpec(model=spec.model, server_type=spec.server_type, host=spec.host, port=spec.port)
    return serve_command(
        bare,
        start_words(spec, START),
        env=env,
        health_path="/v1/health/ready",
        ready_offset=PORTS.index("NIM_HTTP_API_PORT"),
    )
