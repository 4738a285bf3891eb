# SPDX-License-Identifier: Apache-2.0
"""The options of the server (`--server_args`), read without PyTorch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.models.hub import is_hub_name

Quantization = Literal["none", "4bit", "8bit"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
DEFAULT_BATCH = 16
DEFAULT_BATCH_ON_GPU = 64


class ServerOptions(Struct, frozen=True, kw_only=True):
    """What is served, and how. Empty texts and zeros: the usual."""

    model: str
    alias: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    gpus: int = 0
    adapter: str = ""
    revision: str = ""
    quantization: Quantization = "none"
    dtype: Dtype = "auto"
    batch: int = 0
    context: int = 0
    trust_remote_code: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise ConfigError in place of printing the usage and leaving."""
        flags = ", ".join(flag for action in self._actions for flag in action.option_strings[-1:])
        raise ConfigError(f"--server_args of the transformers server: {message}.", hint=f"It has {flags}.")


def server_parser() -> argparse.ArgumentParser:
    """Make the parser of the server's options."""
    made = _Parser(
        prog="newskills.models.serving.hf.server",
        description="Serve a model of transformers on CPU or GPUs.",
        allow_abbrev=False,
    )
    made.add_argument("--model", required=True, help="folder, or name on the Hugging Face hub")
    made.add_argument("--alias", default="", help="model name for clients (default: --model as given)")
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=0, help="port; 0 = any free port")
    made.add_argument("--gpus", type=int, default=0, help="GPUs to divide the model among; 0 = CPU")
    made.add_argument("--adapter", default="", help="LoRA adapter of PEFT: folder, or name on the hub")
    made.add_argument("--revision", default="", help="branch, tag or commit of a model on the hub")
    made.add_argument(
        "--quantization", choices=get_args(Quantization), default="none", help="bits of weights (GPU)"
    )
    made.add_argument("--dtype", choices=get_args(Dtype), default="auto", help="auto: as stored; float32 on a CPU")
    made.add_argument("--batch", type=int, default=0, help="requests that are computed at once")
    made.add_argument("--context", type=int, default=0, help="longest request in tokens, prompt and answer")
    made.add_argument(
        "--trust-remote-code",
        "--trust_remote_code",
        action="store_true",
        help="run the code that comes with the model",
    )
    return made


def parse_server_options(argv: Sequence[str] | None = None) -> ServerOptions:
    """Parse the words of the server's command line. Raises ConfigError for what is wrong with them or their values."""
    values: dict[str, Any] = vars(server_parser().parse_args(argv))
    options = msgspec.convert(values, ServerOptions)
    if options.quantization != "none" and options.gpus == 0:
        raise ConfigError(
            f"--quantization={options.quantization} needs a GPU: bitsandbytes computes there only.",
            hint="Leave it out or use --dtype=bfloat16; --server_type=llamacpp serves quantised files on a CPU.",
        )
    if options.quantization != "none" and find_spec("bitsandbytes") is None:
        raise ConfigError(
            f"--quantization={options.quantization} needs bitsandbytes.", hint="pip install bitsandbytes"
        )
    folder = folder_of(options.model)
    if folder is not None and options.revision:
        raise ConfigError(f"{folder} is a folder, which has no revisions: leave out --revision.")
    return options


def check_adapter(name: str) -> None:
    """Raise DataError for what is no adapter: neither a folder with one, nor a name on the hub."""
    folder = folder_of(name)
    if folder is None and not is_hub_name(name):
        raise DataError(f"There is no folder {name} with an adapter, and it is no name on the Hugging Face hub.")
    if folder is not None and not (folder / "adapter_config.json").is_file():
        raise DataError(f"{folder} is no adapter of PEFT: it has no adapter_config.json.")


def folder_of(model: str) -> Path | None:
    """Return the folder of a model that is here; None for a name on the hub."""
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    return None
