# SPDX-License-Identifier: Apache-2.0
"""argv of our server for models of transformers, and what must be there before it starts."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.models.hub import MODEL_FILES, hub_folder, is_hub_name
from newskills.models.kinds import TRANSFORMERS_KEY
from newskills.models.serving.hf.options import check_adapter, folder_of, parse_server_options
from newskills.models.serving.spec import ServeCommand, ServeSpec, serve_command, start_words

PACKAGES = ("torch", "transformers", "accelerate", "peft")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
"""Files of which a model's tokenizer has one."""


def make(spec: ServeSpec) -> ServeCommand:
    """Return the command of the server. Raises ConfigError for several nodes."""
    if spec.num_nodes > 1:
        raise ConfigError(
            "The transformers server runs on one node; leave out --server_nodes, or use vllm or sglang."
        )
    spec = msgspec.structs.replace(spec, host=spec.host or "127.0.0.1")
    return serve_command(
        spec,
        [
            *start_words(spec, spec.python, "-m", "newskills.models.serving.hf.server"),
            *("--model", spec.model),
            *("--alias", spec.name),
            *("--host", str(spec.host)),
            *("--port", str(spec.port)),
            *("--gpus", str(spec.num_gpus)),
        ],
        key_variable=TRANSFORMERS_KEY,
    )


def prepare(spec: ServeSpec, say: Callable[[str], None]) -> None:
    """Ensure that the extra is installed, and that the model's files are on disk. Raises ConfigError, DataError."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise ConfigError(
            f"--server_type=transformers needs {', '.join(missing)}, which this environment does not have.",
            hint="Run: pip install 'newskills[transformers]' (without a GPU, install torch from its CPU index first).",
        )
    options = parse_server_options(["--model", spec.model, "--gpus", str(spec.num_gpus), *spec.extra_args])
    if options.adapter:
        check_adapter(options.adapter)
    folder = folder_of(spec.model)
    if folder is None and not is_hub_name(spec.model):
        raise DataError(
            f"There is no folder {spec.model}, and it is no name on the Hugging Face hub.",
            hint="--server_type=llamacpp serves .gguf files and smollm2; ns convert makes a folder of them.",
        )
    if folder is None:
        say(f"Looking for {spec.model} on the Hugging Face hub ...")
        hint = "Give the folder of a model, or check name, --revision and network."
        hub_folder(spec.model, MODEL_FILES, hint, options.revision or None)
        return
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} is no model of transformers: it has no config.json.")
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise DataError(
            f"{folder} has no tokenizer.", hint="Copy tokenizer.json and tokenizer_config.json into it."
        )
