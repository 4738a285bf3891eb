# SPDX-License-Identifier: Apache-2.0
import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.train.tiny import CONFIG, VOCAB, tiny_folder, with_tokenizer

from newskills.base.errors import ConfigError, DataError, StorageError, TrainingError
from newskills.models.tokenizer import HFTokenizer
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.convert.from_gguf import gguf_to_hf
from newskills.train.convert.merge import average_checkpoints, merge_lora
from newskills.train.convert.to_gguf import hf_to_gguf
from newskills.train.loops.sft import example
from newskills.train.verbs import AdamParams, SamplingParams

FULL = CpuTrainerConfig(lora=LoraConfig(rank=4, alpha=8), dtype="float32", threads=1)


def adapter_of(folder: Path, target: Path) -> CpuTrainer:
    trainer = CpuTrainer(folder, FULL)
    for _ in range(3):
        trainer.forward_backward([example([1, 2, 3], [4, 5, 6, 0])], "cross_entropy")
        trainer.optim_step(AdamParams(learning_rate=0.05))
    trainer.save_adapter(target)
    return trainer


@pytest.mark.parametrize("tied", [True, False])
def test_to_gguf_and_back_is_the_same_model(tmp_path: Path, tied: bool) -> None:
    pytest.importorskip("gguf")
    folder = with_tokenizer(tiny_folder(tmp_path / "hf", dtype=torch.float16, eos_token_id=VOCAB - 1))
    if not tied:
        weights = load_file(folder / "model.safetensors")
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"] * 2
        save_file(weights, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(CONFIG | {"tie_word_embeddings": False}))
    hf_to_gguf(folder, tmp_path / "model.gguf")
    gguf_to_hf(tmp_path / "model.gguf", tmp_path / "again")
    one, other = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "again"))
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name
    before, after = HFTokenizer(str(folder)), HFTokenizer(str(tmp_path / "again"))
    assert before.encode("AB1234<|end|>") == after.encode("AB1234<|end|>")
    assert len(after.encode("AB")) == 1
    assert after.render([{"role": "user", "content": "A"}]) == "<user>A"
    config = json.loads((tmp_path / "again/config.json").read_text())
    assert config["rope_theta"] == 10000.0
    assert config["tie_word_embeddings"] is tied
    assert config["num_key_value_heads"] == 2


def test_a_merged_model_is_the_adapted_one(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "base")
    trainer = adapter_of(folder, tmp_path / "adapter")
    assert merge_lora(folder, tmp_path / "adapter", tmp_path / "merged") == 14
    greedy = SamplingParams(max_tokens=8, temperature=0)
    prompts = [[1, 2, 3], [9, 8], [20]]
    merged = CpuTrainer(tmp_path / "merged", FULL)
    assert [[one.tokens for one in group] for group in merged.sample(prompts, 1, greedy)] == [
        [one.tokens for one in group] for group in trainer.sample(prompts, 1, greedy)
    ]
    with pytest.raises(StorageError):
        merge_lora(folder, tmp_path / "adapter", tmp_path / "merged")


def test_adapters_that_do_not_fit(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "base")
    adapter = tmp_path / "adapter"
    adapter_of(folder, adapter)
    with pytest.raises(DataError, match="is not a LoRA adapter"):
        merge_lora(folder, tmp_path, tmp_path / "merged")
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"use_dora": True}))
    with pytest.raises(ConfigError, match="uses use_dora"):
        merge_lora(folder, adapter, tmp_path / "merged")
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    pairs = load_file(adapter / "adapter_model.safetensors")
    strange = {name.replace("layers.1", "layers.7"): value for name, value in pairs.items()}
    save_file(strange, adapter / "adapter_model.safetensors")
    with pytest.raises(DataError, match=r"has no tensor for model\.layers\.7"):
        merge_lora(folder, adapter, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_the_average_of_checkpoints(tmp_path: Path) -> None:
    folders = [tiny_folder(tmp_path / name) for name in "abc"]
    for index, folder in enumerate(folders):
        weights = load_file(folder / "model.safetensors")
        save_file({name: value + index for name, value in weights.items()}, folder / "model.safetensors")
    average_checkpoints(folders, tmp_path / "mean")
    mean, first = (load_file(folder / "model.safetensors") for folder in (tmp_path / "mean", folders[0]))
    for name, value in first.items():
        torch.testing.assert_close(mean[name], value + 1)
    assert (tmp_path / "mean/config.json").is_file()
    with pytest.raises(ConfigError, match="at least two"):
        average_checkpoints(folders[:1], tmp_path / "other")
    save_file({"x": torch.zeros(1)}, folders[1] / "model.safetensors")
    with pytest.raises(DataError, match="is a checkpoint of another model"):
        average_checkpoints(folders, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_files_that_cannot_be_converted(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but not really")
    with pytest.raises(DataError, match="not a readable GGUF file"):
        gguf_to_hf(tmp_path / "broken.gguf", tmp_path / "hf")
    with pytest.raises(DataError, match="cannot be read"):
        hf_to_gguf(tmp_path, tmp_path / "x.gguf")
    folder = with_tokenizer(tiny_folder(tmp_path / "odd"), pre="other")
    with pytest.raises(ConfigError, match="does not support"):
        hf_to_gguf(folder, tmp_path / "x.gguf")
    other = with_tokenizer(tiny_folder(tmp_path / "other", architectures=["GPT2LMHeadModel"]))
    with pytest.raises(ConfigError, match=re.escape("['GPT2LMHeadModel']")):
        hf_to_gguf(other, tmp_path / "x.gguf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.gguf", "odd", "other"]


def test_numbers_that_are_none_are_no_model(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "base", dtype=torch.float16)
    adapter_of(folder, tmp_path / "adapter")
    path = tmp_path / "adapter/adapter_model.safetensors"
    pairs = load_file(path)
    first = next(iter(pairs))
    save_file(pairs | {first: torch.full_like(pairs[first], float("nan"))}, path)
    with pytest.raises(TrainingError, match=r"1 of 20 tensors contain numbers that are not finite \(first: model"):
        merge_lora(folder, tmp_path / "adapter", tmp_path / "merged")
    save_file({name: value + 1e4 for name, value in pairs.items()}, path)  # finite, but not in float16
    with pytest.raises(TrainingError, match="14 of 20 tensors contain numbers that are not finite"):
        merge_lora(folder, tmp_path / "adapter", tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    other = tiny_folder(tmp_path / "other", dtype=torch.float16)
    weights = load_file(other / "model.safetensors")
    save_file(weights | {"model.norm.weight": torch.full((32,), float("inf"))}, other / "model.safetensors")
    with pytest.raises(TrainingError, match=r"model\.norm\.weight"):
        average_checkpoints([folder, other], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_numbers_too_large_for_the_other_form_are_no_model(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    folder = with_tokenizer(tiny_folder(tmp_path / "hf", eos_token_id=VOCAB - 1))
    weights = load_file(folder / "model.safetensors")
    large = "model.layers.1.mlp.up_proj.weight"
    save_file(weights | {large: weights[large] * 1e6}, folder / "model.safetensors")
    with pytest.raises(DataError, match=f"{large} contains numbers that are not finite in float16"):
        hf_to_gguf(folder, tmp_path / "model.gguf")
    assert not (tmp_path / "model.gguf").exists()
    save_file(weights, folder / "model.safetensors")
    hf_to_gguf(folder, tmp_path / "model.gguf")
    reader = gguf.GGUFReader(tmp_path / "model.gguf", "r+")
    next(tensor for tensor in reader.tensors if tensor.name == "output_norm.weight").data[0] = 1e6
    reader.data.flush()
    with pytest.raises(DataError, match=r"model\.norm\.weight contains numbers that are not finite in float16"):
        gguf_to_hf(tmp_path / "model.gguf", tmp_path / "again")
    assert not (tmp_path / "again").exists()
