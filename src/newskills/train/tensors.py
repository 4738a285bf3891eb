# SPDX-License-Identifier: Apache-2.0
"""Tensors into files: numbers that are none are refused, a disk that is full is told in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from newskills.base.errors import DataError, StorageError, TrainingError
from newskills.train.verbs import NOT_FINITE

if TYPE_CHECKING:
    import numpy as np
    import torch

FLOATS = ("F64", "F32", "F16", "BF16")
"""Types of weights that can be trained, as safetensors names them."""
WRITERS = ("PytorchStreamWriter", "inline_container")
"""What torch's errors name where torch.save could not write."""


@contextmanager
def translate_write_errors(path: Path) -> Iterator[None]:
    """Raise StorageError where safetensors, torch or the system could not write `path`."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if isinstance(error, RuntimeError) and not any(name in str(error) for name in WRITERS):
            raise
        cause = str(error).strip().splitlines()[0].rstrip(".")
        raise StorageError(
            f"{path} cannot be written: {cause}.",
            hint="Finished work is safe. Free some space, or use another folder, then run again.",
        ) from error


def check_finite(tensors: Mapping[str, torch.Tensor], what: str) -> None:
    """Raise TrainingError where a number in `tensors` is inf or nan; `what` begins the sentence."""
    if wrong := [name for name, value in tensors.items() if not value.isfinite().all()]:
        raise TrainingError(
            f"{what}: {len(wrong)} of {len(tensors)} tensors contain numbers that are not finite (first: "
            f"{wrong[0]}).",
            hint=NOT_FINITE,
        )


def check_trainable(folder: Path) -> None:
    """Raise DataError for a model folder whose weights are whole numbers or 8-bit floats that nothing says how to
    scale: they would be trained as if they were the weights. Reads the heads of the files alone.
    """
    from safetensors import SafetensorError, safe_open

    if _is_quantised(folder / "config.json"):
        return
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "pt") as file:
                kinds = {name: str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        wrong = [name for name, kind in kinds.items() if name.endswith(".weight") and kind not in FLOATS]
        if wrong:
            raise DataError(
                f"{path} holds {wrong[0]} as {kinds[wrong[0]]}: quantised weights cannot be trained.",
                hint="Take the checkpoint that they were made of; ++trainer.trl.quantization=nf4 saves memory.",
            )


def _is_quantised(config: Path) -> bool:
    """Return whether config.json says how weights are quantised."""
    try:
        return bool(msgspec.json.decode(config.read_bytes(), type=dict[str, Any]).get("quantization_config"))
    except (OSError, msgspec.DecodeError):
        return False


def check_base(tensors: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Raise DataError where a weight of the model that is to be trained is inf or nan."""
    if wrong := [name for name, value in tensors.items() if value.is_floating_point() and not _is_finite(value)]:
        raise DataError(
            f"The weights in {folder} contain numbers that are not finite, before any training (first of "
            f"{len(wrong)} tensors: {wrong[0]}).",
            hint="Download or convert the model again.",
        )


def _is_finite(tensor: torch.Tensor) -> bool:
    """Return whether all numbers are finite: the largest and the smallest are, as both of any that is none are nan."""
    smallest, largest = tensor.detach().aminmax()
    return bool(smallest.isfinite() and largest.isfinite())


def check_files(folder: Path) -> None:
    """Do `check_finite` for the weights of a model folder, one file at a time. Raises TrainingError, DataError."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    for path in sorted(folder.glob("*.safetensors")):
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        check_finite(tensors, str(path))


def as_stored(array: np.ndarray[Any, Any], kind: np.dtype[Any], name: str) -> np.ndarray[Any, Any]:
    """Return `array` in another floating type. Raises DataError, which `name` begins, where that holds inf or nan."""
    import numpy as np

    with np.errstate(over="ignore"):
        cast = array.astype(kind, copy=False)
    if not np.isfinite(cast).all():
        raise DataError(
            f"{name} contains numbers that are not finite in {kind.name}; no model is written.",
            hint="Convert an earlier checkpoint, or train again with a lower learning rate.",
        )
    return cast


def save_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file that says that torch made it. Raises TrainingError as `check_finite`, StorageError."""
    from safetensors.torch import save_file

    check_finite(tensors, f"{path} is not written")
    with translate_write_errors(path):
        save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata={"format": "pt"})
