# SPDX-License-Identifier: Apache-2.0
"""Tensors into files: a disk that is full is told in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from newskills.base.errors import StorageError

if TYPE_CHECKING:
    import torch

WRITERS = ("PytorchStreamWriter", "inline_container")
"""What torch's errors name where torch.save could not write."""


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Raises StorageError where safetensors, torch or the system could not write `path`."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if isinstance(error, RuntimeError) and not any(name in str(error) for name in WRITERS):
            raise
        cause = str(error).strip().splitlines()[0].rstrip(".")
        raise StorageError(
            f"{path} cannot be written: {cause}.",
            hint="What was finished is safe. Make room, or choose another place, then run again.",
        ) from error


def save_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """A safetensors file that says that torch made it. Raises StorageError."""
    from safetensors.torch import save_file

    with written(path):
        save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata={"format": "pt"})
