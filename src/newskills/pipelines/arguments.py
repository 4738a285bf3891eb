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
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import WorkOptions
from newskills.prompts.official.table import PromptSource

_CREDENTIALS = re.compile(r"(https?://)[^/@\s]+@")
OLD_TEMPLATES = "prompt_template"


def user_layer(overrides: Mapping[str, Text], *, consumed: Sequence[str] = ()) -> Layer:
    """Return the `++` keys as the last layer. A key that has no effect any more is dropped with a notice."""
    values = {key: value for key, value in overrides.items() if key not in consumed}
    if template := values.pop(OLD_TEMPLATES, None):
        print_note(f"++prompt_template={template} is ignored: the model's own chat template is used")
    return Layer("command line", values)


def prompt_layer(source: PromptSource | None) -> list[Layer]:
    """Return a layer with the wording of prompts that `--prompt_source` asks for; no layer where it is not given."""
    if source is not None:
        return [Layer("--prompt_source", {"prompt_source": source})]
    return []


def command_line(command: str) -> str:
    """Return the command to type to continue: this process's own words, quoted, without any key or password in them."""
    words = sys.argv[1:]
    if not words or words[0].replace("-", "_") != command:
        return f"ns {command} …"
    return shlex.join(["ns", *(_mask_credentials(word) for word in words)])


def _mask_credentials(word: str) -> str:
    if "api_key" in word.partition("api_key_env_var")[0]:
        return f"{word.partition('=')[0]}=***"
    return _CREDENTIALS.sub(r"\1***@", word)


QUEUED_CHUNKS = 8
"""Chunks of an input for each job that shares a queue: a job that is slow or lost holds up a small part."""


def chunk_count(options: WorkOptions) -> int | None:
    """Return `--num_chunks`, or as many as a queue needs; None where the input is not cut. Raises ConfigError."""
    if not options.work_queue:
        return options.num_chunks
    if options.num_jobs is None or options.num_jobs < 1:
        raise ConfigError("--work_queue needs the number of jobs.", hint="Add --num_jobs=4, for example.")
    if options.rerun_done:
        raise ConfigError(
            "--work_queue and --rerun_done exclude each other: each job would begin the work of the others again.",
            hint="Use another --output_dir, or leave out --work_queue.",
        )
    return options.num_chunks or QUEUED_CHUNKS * options.num_jobs


def chunk_ids(options: WorkOptions) -> tuple[int, ...]:
    """Return `--chunk_ids` as numbers; empty for all chunks. Raises ConfigError."""
    if options.chunk_ids is None:
        return ()
    return tuple(parse_ids(options.chunk_ids, "--chunk_ids"))


def read_json(text: str, option: str) -> dict[str, object]:
    """Parse the JSON object of an option; an empty text gives an empty object. Raises ConfigError."""
    import msgspec

    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{option}: expected a JSON object ({error}).") from error


def default_output(expname: str) -> Path:
    """Return where results go without `--output_dir`, and print it."""
    path = Path("results") / expname
    print_note(f"no --output_dir: writing to {path}")
    return path
