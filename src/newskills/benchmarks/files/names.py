# SPDX-License-Identifier: Apache-2.0
"""Which names of benchmarks are files, told without loading what reads them."""

from __future__ import annotations

import re
from pathlib import Path

DESCRIPTIONS = (".yaml", ".yml")
TEXT_SUFFIX = ".txt"
DATA_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", TEXT_SUFFIX)
_PACKED = (".gz", ".zst")
SETTINGS = ("columns", "kind", "answer_as")
"""`++` keys that describe a file of questions, beside those of a generation."""


def is_described(name: str) -> bool:
    """Return whether `name` is a YAML file that describes a benchmark, or a file of questions."""
    path = name.lower()
    return path.endswith(DESCRIPTIONS) or strip_packing_suffix(path).endswith(DATA_SUFFIXES)


def is_table(name: str) -> bool:
    """Return whether `name` is a file of questions."""
    return strip_packing_suffix(name.lower()).endswith(DATA_SUFFIXES)


def is_text_file(name: str) -> bool:
    """Return whether `name` is a text, which is one document."""
    return strip_packing_suffix(name.lower()).endswith(TEXT_SUFFIX)


def is_file_name(name: str) -> bool:
    """Return whether `name` is a file that defines benchmarks, in Python or without."""
    return name.endswith(".py") or is_described(name)


def strip_packing_suffix(path: str) -> str:
    """Return `path` without the ending of what it is packed with."""
    if path.endswith(_PACKED):
        return path[: path.rfind(".")]
    return path


def name_of_file(path: Path) -> str:
    """Return what a benchmark is called whose file says no name."""
    name = path.name
    for _ in range(2):
        if name.lower().endswith((*DESCRIPTIONS, *DATA_SUFFIXES, *_PACKED)):
            name = name[: name.rfind(".")]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "questions"
