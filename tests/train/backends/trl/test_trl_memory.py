# SPDX-License-Identifier: Apache-2.0
"""The estimate of activations beside what autograd keeps of a small model; the check before a training begins."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
from tests.train.backends.trl.test_trl_trainer import END, SETTINGS, fine_tune
from tests.train.tiny import CONFIG, tiny_folder, with_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from newskills.base.errors import ConfigError
from newskills.train.backends.trl import fitting
from newskills.train.backends.trl.model import adapter_config
from newskills.train.memory import StepSize, TrainingPlan, memory_by_use
from newskills.train.settings import LoraSettings, TrainerSettings
from newskills.train.shape import model_shape

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SIZES = {
    "vocab_size": 64,
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
}
SEQUENCES, LENGTH = 2, 128


def kept(layers: int, *, half: bool, rank: int, checkpointing: bool) -> int:
    """Bytes that autograd keeps of a forward pass, without weights."""
    model = LlamaForCausalLM(LlamaConfig(**SIZES, num_hidden_layers=layers))
    if rank:
        model = (model.bfloat16() if half else model).requires_grad_(False)
        model.enable_input_require_grads()
        import peft

        model = peft.get_peft_model(model, adapter_config(TrainerSettings(lora=LoraSettings(rank=rank))))
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    weights = {value.untyped_storage().data_ptr() for value in model.parameters()}
    sizes: dict[int, int] = {}
    held = []

    def book(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and storage.data_ptr() not in sizes:
            sizes[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)
        return tensor

    ids = torch.randint(0, 64, (SEQUENCES, LENGTH))
    model.train()
    with (
        torch.autograd.graph.saved_tensors_hooks(book, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=half),
    ):
        output = model(input_ids=ids)
    del output
    return sum(sizes.values())


@pytest.mark.parametrize(("half", "rank"), [(False, 0), (False, 8), (True, 0), (True, 8)])
def test_activations_are_those_that_autograd_keeps(tmp_path: Path, half: bool, rank: int) -> None:
    (tmp_path / "config.json").write_bytes(msgspec.json.encode({**CONFIG, **SIZES, "num_hidden_layers": 1}))
    shape = model_shape(tmp_path)
    assert shape is not None
    plan = TrainingPlan(half=half, gpu=True, rank=rank, targets=LoraSettings().targets)
    step = StepSize(sequences=SEQUENCES, length=LENGTH, scored=LENGTH)
    measured = kept(3, half=half, rank=rank, checkpointing=False) - kept(
        2, half=half, rank=rank, checkpointing=False
    )
    if half and not rank:
        # Copies of the weights for products, which the estimate counts as weights.
        measured -= 2 * shape.in_layers
    estimated = memory_by_use(shape, plan, step)["activations"]
    assert estimated == pytest.approx(measured, rel=0.1)


def test_a_layer_that_is_computed_again_keeps_what_it_reads(tmp_path: Path) -> None:
    layer = kept(3, half=False, rank=0, checkpointing=True) - kept(2, half=False, rank=0, checkpointing=True)
    assert layer == SEQUENCES * LENGTH * 4 * SIZES["hidden_size"]


def test_what_cannot_fit_is_refused_before_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_tokenizer(tiny_folder(tmp_path / "tiny", eos_token_id=END))
    (model / "model.safetensors").unlink()
    settings = msgspec.structs.replace(SETTINGS, weights="full")
    monkeypatch.setattr(fitting, "_memory_capacity", lambda: (1e5, "process"))
    with pytest.raises(
        ConfigError, match=r"needs about [\d.]+ GB of [\d.e-]+ GB on each process: .*optimizer"
    ) as error:
        fine_tune(model, tmp_path / "run", settings=settings)
    assert error.value.hint
    remarks: list[str] = []
    monkeypatch.setattr(fitting, "_memory_capacity", lambda: (3.3e5, "process"))
    with pytest.raises(Exception, match="cannot be loaded"):
        fine_tune(model, tmp_path / "run", settings=settings, remark=remarks.append)
    assert "may run out of memory" in remarks[0]
