# SPDX-License-Identifier: Apache-2.0
"""Sets of prompts that ask the same thing in other words, to measure how much the wording matters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.registry import fold
from newskills.base.type_errors import type_fault
from newskills.prompts.names import find_prompt
from newskills.prompts.schema import read_yaml

PROMPT_SETS = Path(__file__).parent / "prompt_sets"


class Variant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One wording. `extract_regex` finds the answer where it asks for a form of its own."""

    prompt_config: str
    extract_regex: str | list[str] | None = None


def prompt_set_names() -> list[str]:
    """Names of the sets that come with newskills, sorted."""
    return sorted(path.relative_to(PROMPT_SETS).with_suffix("").as_posix() for path in PROMPT_SETS.rglob("*.yaml"))


def load_prompt_set(spec: str) -> dict[str, tuple[Variant, ...]]:
    """benchmark → wordings, of a set's name or of a path that ends in `.yaml`; every prompt in it exists.

    `prompt` is another spelling of `prompt_config`. Raises ConfigError, UnknownNameError.
    """
    path = _path(spec)
    values, _ = read_yaml(path)
    if not isinstance(values, dict) or not all(isinstance(variants, list) for variants in values.values()):
        raise ConfigError(f"{path}: expected benchmark: [{{prompt_config: …}}, …].")
    return {str(benchmark): tuple(_variant(v, path) for v in variants) for benchmark, variants in values.items()}


def wordings_among(
    sets: Mapping[str, Sequence[Variant]], names: Sequence[str], prompt: str
) -> Sequence[Variant] | None:
    """Those of the first of `names` that a set has, else those of the prompt; None for neither."""
    for name in (*names, prompt):
        for existing, variants in sets.items():
            if fold(existing) == fold(name):
                return variants
    return None


def why_no_wordings(prompt: str) -> str:
    """Why a benchmark that is asked with `prompt` comes without other wordings."""
    if not prompt:
        return "its rows are whole conversations"
    if prompt == "generic/default":
        return "its rows are whole prompts"
    return f"no other wording of `{prompt}` comes with newskills"


def _path(spec: str) -> Path:
    if spec.endswith((".yaml", ".yml")):
        path = Path(spec).expanduser()
        if path.is_file():
            return path
        raise ConfigError(f"There is no file {path} with a set of prompts.")
    for name in prompt_set_names():
        if fold(spec) in (fold(name), fold(name.rpartition("/")[2])):
            return PROMPT_SETS / f"{name}.yaml"
    raise UnknownNameError("set of prompts", spec, prompt_set_names())


def _variant(raw: Any, path: Path) -> Variant:
    if isinstance(raw, dict) and "prompt" in raw and "prompt_config" not in raw:
        raw = {"prompt_config" if key == "prompt" else key: value for key, value in raw.items()}
    try:
        variant = msgspec.convert(raw, Variant)
        for regex in (
            [variant.extract_regex] if isinstance(variant.extract_regex, str) else variant.extract_regex or []
        ):
            re.compile(regex)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {raw}: {type_fault(error, raw)}.") from error
    except re.error as error:
        raise ConfigError(f"{path}: {raw}: {error}.") from error
    find_prompt(variant.prompt_config)
    return variant
