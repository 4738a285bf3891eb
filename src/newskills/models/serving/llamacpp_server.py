# SPDX-License-Identifier: Apache-2.0
"""The embedded server: llama.cpp's own, in a process of its own (`python -m` this module).

Where NEWSKILLS_LLAMACPP_KEY is set, requests without that key are refused; /health and the list of models are open.

Threads: one per usable core, and they must hardly spin at OpenMP's barriers, for the machine is seldom idle.
Tokens/s measured on 2 CPUs, F16, 16 requests in flight (one request), alone and beside one other busy process:

    1 thread                           83 (74)     71 (77)
    2 threads, libgomp's own spinning  152 (84)    48 (25)
    2 threads, 300 rounds              148 (83)    78 (45)
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError, DataError, NewskillsError, ServerStartError
from newskills.base.store import atomic_write
from newskills.models.kinds import LLAMACPP_KEY
from newskills.models.serving.cpus import usable_cores
from newskills.models.serving.spec import DEFAULT_SLOTS
from newskills.models.serving.weights import require_extra, resolve_weights

SPIN_ROUNDS = "300"
DEFAULT_CONTEXT = 4096
WARNINGS = 2
"""llama.cpp's verbosity: errors and warnings."""
MAGIC = b"GGUF"
"""What a file of weights begins with; the engine's own messages no longer say that it does not."""


def parse_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the server's options."""
    parser = argparse.ArgumentParser(prog="llamacpp_server", description="Serve a GGUF model on the CPU.")
    parser.add_argument("--model", required=True, help="path to a .gguf file, or smollm2")
    parser.add_argument("--alias", help="model name for clients (default: --model as given)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="port; 0 = any free port")
    parser.add_argument("--port-file", type=Path, help="file to write the port to, once the server answers")
    parser.add_argument("--slots", type=_positive_number, default=DEFAULT_SLOTS, help="requests to serve at once")
    parser.add_argument(
        "--ctx-per-slot",
        type=_positive_number,
        default=DEFAULT_CONTEXT,
        help="longest request in tokens, prompt and answer",
    )
    parser.add_argument(
        "--threads", type=_positive_number, default=None, help="threads (default: the usable physical cores)"
    )
    return parser.parse_args(argv)


def start_server(options: argparse.Namespace) -> Any:
    """Start the server; its `listening_address` answers requests.

    Raises NewskillsError: missing extra or library, unknown or broken model, port in use.
    """
    path = resolve_weights(options.model, say=_print_line)
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DataError(f"{path} is not a GGUF file (invalid magic).")
    llama = _import_engine()
    params = llama.CommonParams()
    params.model.path = str(path)
    params.model_alias = {options.alias or options.model}
    params.hostnames, params.port = [options.host], options.port
    params.n_parallel = options.slots
    params.n_ctx = options.slots * options.ctx_per_slot
    threads = options.threads or usable_cores()
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_threads_http = options.slots + 4  # beyond the slots: health checks and clients that wait their turn
    params.use_jinja = params.endpoint_metrics = True
    params.warmup = params.fit_params = params.ui = False
    params.cache_ram_mib = 0  # else it keeps up to 8 GiB of finished prompts
    params.verbosity = WARNINGS
    if key := os.environ.get(LLAMACPP_KEY, "").strip():
        params.api_keys = [key]
    try:
        server = llama.Server(params)
    except RuntimeError as error:
        raise ServerStartError(f"llama.cpp could not serve {path} on port {options.port}: {error}") from error
    _print_line(
        f"serving {path} as {options.alias or options.model} with {threads} threads, {options.slots} slots"
    )
    return server


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT."""
    options = parse_options(argv)
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    try:
        server = start_server(options)
    except NewskillsError as error:
        _print_line(str(error))
        return error.exit_code
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    if options.port_file:
        with atomic_write(options.port_file) as file:
            file.write(server.listening_address.rpartition(":")[2].encode())
    signal.sigwait(stop)
    # The engine's own shutdown waits for the requests in flight, whose callers are gone.
    os._exit(0)


def _import_engine() -> Any:
    require_extra("xllamacpp")
    # libgomp reads this once, when it is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_ROUNDS)
    try:
        import xllamacpp
    except ImportError as error:
        if "gomp" in str(error):
            hint = "It is part of gcc: apt-get install libgomp1, or dnf install libgomp."
        else:
            hint = ""
        raise ConfigError(f"llama.cpp cannot be loaded: {error}.", hint=hint) from error
    return xllamacpp


def _positive_number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} must be at least 1")
    return number


def _print_line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
