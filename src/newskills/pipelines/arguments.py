# SPDX-License-Identifier: Apache-2.0
"""What the options of several pipelines mean."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from newskills.base.errors import ConfigError
from newskills.config.ids import parse_ids
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.pipelines.notices import notice
from newskills.pipelines.options import WorkOptions

_CREDENTIALS = re.compile(r"(https?://)[^/@\s]+@")
OLD_TEMPLATES = "prompt_template"


def user_layer(overrides: Mapping[str, Text], *, consumed: Sequence[str] = ()) -> Layer:
    """The `++` keys as the last layer. What has no effect any more is dropped with a notice."""
    values = {key: value for key, value in overrides.items() if key not in consumed}
    if template := values.pop(OLD_TEMPLATES, None):
        notice(f"++prompt_template={template} is ignored: the model's own chat template is used")
    return Layer("command line", values)


def command_line(command: str) -> str:
    """What to type to go on: this process's own words, quoted, without any key or password in them."""
    words = sys.argv[1:]
    if not words or words[0].replace("-", "_") != command:
        return f"ns {command} …"
    return shlex.join(["ns", *(_masked(word) for word in words)])


def _masked(word: str) -> str:
    if "api_key" in word.partition("api_key_env_var")[0]:
        return f"{word.partition('=')[0]}=***"
    return _CREDENTIALS.sub(r"\1***@", word)


def chunk_ids(options: WorkOptions) -> tuple[int, ...]:
    """`--chunk_ids` as numbers; none = all. Raises ConfigError."""
    return () if options.chunk_ids is None else tuple(parse_ids(options.chunk_ids, "--chunk_ids"))


def read_json(text: str, option: str) -> dict[str, object]:
    """The JSON object of an option. Raises ConfigError."""
    import msgspec

    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{option}: expected a JSON object ({error}).") from error


def default_output(expname: str) -> Path:
    """Where results go when nobody said so."""
    path = Path("results") / expname
    notice(f"no --output_dir: writing to {path}")
    return path
