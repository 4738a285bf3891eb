# SPDX-License-Identifier: Apache-2.0
"""The memory that the cpu trainer tells beside the peak of what PyTorch allocates in the whole training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.tiny import tiny_folder

pytest.importorskip("trl")
from tests.train.backends.trl.test_memory_measured import SHAPES, allocated, folders, methods, sequences

from newskills.train.backends.cpu.memory import cpu_parts, largest_part, stored_bytes
from newskills.train.loops.sft import SftConfig
from newskills.train.memory import GB
from newskills.train.settings import TrainerSettings
from newskills.train.shape import model_shape
from newskills.train.trainers import make_trainer

__all__ = ["folders"]
pytestmark = pytest.mark.slow
SFT = SftConfig(steps=2, batch_size=4, save_every=0)


def ratio(base: Path, dtype: str, method: Any, data: Any, folder: Path) -> float:
    settings = TrainerSettings(dtype=dtype, threads=1)
    shape, part = model_shape(base), largest_part(method, data)
    assert shape is not None
    assert part is not None
    value = {"float32": 4, "bfloat16": 2}[dtype]
    estimate = sum(cpu_parts(shape, part, settings.lora.rank, value, stored_bytes(base)).values())
    return estimate / allocated("cpu", base, settings, method, data, folder)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("shape", SHAPES)
def test_fine_tuning(shape: str, dtype: str, folders: dict[str, Path], tmp_path: Path) -> None:
    examples = sequences(8, SHAPES[shape].vocab_size)
    assert ratio(folders[shape], dtype, SFT, examples, tmp_path) == pytest.approx(1.0, abs=0.15)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["dpo", "kto", "grpo"])
def test_other_methods(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    method, data = methods(SHAPES["llama"].vocab_size)[name]
    assert ratio(folders["llama"], "float32", method, data, tmp_path) == pytest.approx(1.0, abs=0.15)


def test_what_does_not_fit_is_told_before_the_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from newskills.train.backends.cpu import local
    from newskills.train.loops.folder import TrainingFolder
    from newskills.train.loops.stepping import Hooks

    base = tiny_folder(tmp_path / "tiny")
    remarks: list[str] = []
    trainer = make_trainer("cpu", base, TrainerSettings(dtype="float32", threads=1))
    short = msgspec.structs.replace(SFT, steps=1)
    rows = sequences(4, 60, length=12)
    assert trainer.run(short, rows, TrainingFolder(tmp_path / "quiet", {}), Hooks(remark=remarks.append))
    assert remarks == []
    monkeypatch.setattr(local, "machine_memory", lambda: 1e-4 * GB)
    assert trainer.run(short, rows, TrainingFolder(tmp_path / "full", {}), Hooks(remark=remarks.append))
    assert len(remarks) == 1
    assert remarks[0].startswith("This training needs about 0.0")
    assert "of 0.0001 GB on each machine: " in remarks[0]
    assert remarks[0].endswith("It may run out of memory. Use a smaller model, or ++trainer.dtype=bfloat16.")
