# SPDX-License-Identifier: Apache-2.0
"""What `ns serve_tinker` does: the Tinker API on this machine's CPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base import aio
from newskills.base.errors import ConfigError
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import DryRun, doc
from newskills.pipelines.serving.ended import EndedService
from newskills.pipelines.serving.token import Open, TokenFile, check_reach, token_of

DEFAULT_TOKEN_ENV = "NEWSKILLS_TINKER_TOKEN"  # noqa: S105 - its name
PREFIX = "tml-"
"""With what the client wants every key to begin."""


class ServeTinkerOptions(Struct, frozen=True, kw_only=True):
    model: Annotated[str, doc("Hugging Face folder, .gguf file, or smollm2; several separated by commas")]
    output_dir: Annotated[
        str, doc("folder for the states that clients save; another service on the same folder has the same states")
    ]
    model_name: Annotated[
        str | None, doc("names of the models for clients, separated by commas (default: names of their folders)")
    ] = None
    host: Annotated[str, doc("address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 = a free one")] = 9070
    dtype: Annotated[str, doc("number format of the frozen weights: auto, bfloat16, float32")] = "auto"
    threads: Annotated[int, Meta(ge=0, description="threads of the trainer; 0 = one per core")] = 0
    token_env: Annotated[str, doc("environment variable with the key that clients must send, if it is set")] = (
        DEFAULT_TOKEN_ENV
    )
    token_file: TokenFile = None
    open: Open = False
    dry_run: DryRun = False


def serve_tinker(parsed: Parsed[ServeTinkerOptions]) -> EndedService | None:
    """Serve until it is stopped; return the service that has ended, None for a dry run. Raises ConfigError, AuthError,
    ServerStartError."""
    options = parsed.options
    root = Path(options.output_dir).expanduser().absolute()
    token = _client_key(options, os.environ)
    check_reach(options.host, token, open_to_all=options.open)
    names = _named_models(options)
    if options.dry_run:
        show_dry_run(
            [
                *(("reads", model, name or "") for name, model in names),
                ("listens", f"{options.host}:{options.port or 'a free port'}", _describe_access(token)),
                ("writes", root, "training runs and their checkpoints"),
            ]
        )
        return None
    require_train("torch", "safetensors", "tokenizers", "numpy")
    _require_protobuf()
    from newskills.run.training.examples import model_folder
    from newskills_tinker.server.engine import ModelEngine
    from newskills_tinker.server.serving import TinkerServerSettings, serve_until_stopped

    folders = [
        model_folder(model, root / "models" / Path(model).stem, say=_print_line).absolute() for _, model in names
    ]
    models = {name or _client_name(folder): folder for (name, _), folder in zip(names, folders, strict=True)}
    engine = ModelEngine(dtype=options.dtype, threads=options.threads)
    place = TinkerServerSettings(host=options.host, port=options.port, root=root, token=token)
    for name in models:
        _print_line(f"model {name}")
    _print_line(_describe_access(token))
    return EndedService(aio.run(lambda: serve_until_stopped(models, engine, place, say=_print_line)))


def _require_protobuf() -> None:
    """Raise ConfigError where protobuf is missing: a checkout brings this package without what it depends on."""
    try:
        import google.protobuf  # noqa: F401 - whether it is here
    except ImportError as error:
        raise ConfigError(
            "This needs protobuf, which this environment does not have.", hint="Run: pip install protobuf"
        ) from error


def _named_models(options: ServeTinkerOptions) -> list[tuple[str | None, str]]:
    """Return (name, model) of each model. Raises ConfigError where their numbers differ."""
    models = [part.strip() for part in options.model.split(",")]
    model_names = []
    if options.model_name:
        model_names = options.model_name.split(",")
    if model_names and len(model_names) != len(models):
        raise ConfigError(f"--model has {len(models)} models, but --model_name has {len(model_names)} names.")
    names: list[str | None] = [name.strip() for name in model_names] or [None] * len(models)
    return list(zip(names, models, strict=True))


def _client_name(folder: Path) -> str:
    """Return the folder's name in a form by which the client finds the tokenizer: from a name with two slashes it would
    take off the last part."""
    name = str(folder)
    if name.count("/") == 2:
        return f"{name}/"
    return name


def _client_key(options: ServeTinkerOptions, environ: Mapping[str, str]) -> str:
    """Return the key for clients. Raises AuthError where one was asked for and is not there, ConfigError for one that
    no client could send."""
    token = token_of(options.token_env, options.token_file, environ, usual=DEFAULT_TOKEN_ENV)
    if token and not token.startswith(PREFIX):
        raise ConfigError(f"The key must begin with {PREFIX}: the Tinker client refuses others.")
    return token


def _describe_access(token: str) -> str:
    if token:
        return "Clients need the key."
    return "No key is set: anyone who can reach this port can use it."


def _print_line(text: str) -> None:
    sys.stdout.write(f"{printable(text)}\n")
    sys.stdout.flush()
