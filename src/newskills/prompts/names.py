# SPDX-License-Identifier: Apache-2.0
"""Which prompts there are, and which one a name means."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.registry import fold

LIBRARY_FOLDER = Path(__file__).parent / "library"
COLLECTIONS = LIBRARY_FOLDER / "robustness"
"""Folder whose files hold several prompts, by the last part of their names."""
_PREFERRED = "generic/"
_KEY = re.compile(r"^([\w.-]+):", re.ASCII | re.MULTILINE)
_PATHS = ("./", "../", "~")
"""What no name begins with."""


@cache
def prompt_files() -> dict[str, Path]:
    """Return name → file of every prompt that comes with newskills, sorted by name."""
    prompts: dict[str, Path] = {}
    for folder, _, files in os.walk(LIBRARY_FOLDER):
        for file in files:
            if file.endswith(".yaml"):
                path = Path(folder, file)
                name = path.relative_to(LIBRARY_FOLDER).with_suffix("").as_posix()
                if path.parent == COLLECTIONS:
                    keys = _KEY.findall(path.read_text(encoding="utf-8"))
                    prompts |= {f"{name}/{key}": path for key in keys}
                else:
                    prompts[name] = path
    return dict(sorted(prompts.items()))


def prompt_names() -> list[str]:
    """Return the names of the prompt library, sorted."""
    return list(prompt_files())


def is_library_file(name: str, path: Path) -> bool:
    """Return whether what `find_prompt` returned comes with newskills."""
    return prompt_files().get(name) == path


def find_prompt(spec: str) -> tuple[str, Path]:
    """Return (name, file) of a name, of the end of a name, or of a path that ends in `.yaml`.

    An end of a name (`math`, `aai/math`) must belong to one prompt only; where several fit, `generic/` goes first.
    Case and `-`/`_` do not matter. Raises UnknownNameError, ConfigError for an end that fits several.
    """
    if spec.endswith((".yaml", ".yml")):
        path = Path(spec).expanduser()
        if path.is_file():
            return spec, path
        if path.is_absolute() or spec.endswith(".yml") or spec.startswith(_PATHS):
            raise ConfigError(f"There is no prompt file {path}.")
        spec = spec.removesuffix(".yaml")
        try:
            name = _resolve_name(spec)
        except UnknownNameError as error:
            raise ConfigError(f"There is no prompt file {path}. {error.message}", hint=error.hint) from error
    else:
        name = _resolve_name(spec)
    return name, prompt_files()[name]


def _resolve_name(spec: str) -> str:
    folded = {fold(name): name for name in prompt_files()}
    wanted = fold(spec)
    if wanted in folded:
        return folded[wanted]
    fitting = [name for key, name in folded.items() if key.endswith(f"/{wanted}")]
    if len(fitting) == 1:
        return fitting[0]
    if (preferred := folded.get(_PREFERRED + wanted)) is not None:
        return preferred
    if fitting:
        raise ConfigError(f"Several prompts end in '{spec}': {', '.join(fitting)}.", hint="Write the full name.")
    ends: set[str] = set()
    if "/" not in spec:
        ends = {name.rpartition("/")[2] for name in prompt_files()}
    hint = "`ns list prompts` shows all names; for a file, give its path, ending in .yaml."
    raise UnknownNameError("prompt", spec, [*prompt_files(), *ends], hint=hint)
