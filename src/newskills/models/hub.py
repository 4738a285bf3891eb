# SPDX-License-Identifier: Apache-2.0
"""Folders of a model on the Hugging Face hub, in the hub's own cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from newskills.base.errors import ConfigError

MODEL_FILES = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model")
IGNORED = ("*/*", "consolidated*")
"""The same weights in other forms."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_hub_name(name: str) -> bool:
    """Return whether the name could be one of the hub: `organisation/model`."""
    return _NAME.fullmatch(name) is not None and not name.endswith(".gguf")


def hub_folder(name: str, files: Sequence[str], hint: str, revision: str | None = None) -> Path:
    """Return the folder with the `files` (patterns) of the model `name`, fetched where the cache lacks them.

    Raises ConfigError, with `hint`, where the hub does not give them, or a library is missing.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ConfigError(
            f"{name} must come from the Hugging Face hub.", hint="Run: pip install 'newskills[hf]'"
        ) from error
    try:
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=list(files), ignore_patterns=list(IGNORED))
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConfigError(
            f"{name} is not a folder here, and could not be downloaded from the Hugging Face hub: {cause}.",
            hint=hint,
        ) from error
