# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters into their base, and the average of checkpoints: folders in, a folder out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.store import atomic_folder, write_json
from newskills.base.terminal import listed
from newskills.train.backends.cpu.weights import padding_token
from newskills.train.tensors import save_tensors

if TYPE_CHECKING:
    import torch

PREFIX = "base_model.model."
HEAD = "score.weight"
"""The head of a reward model, [1, width]; PEFT keeps it beside the pairs."""
BASE = "base_model_name_or_path in adapter_config.json names its base model."


SAVED_HEADS = {"score", "classifier"}
"""What PEFT saves for a sequence classifier (a reward model): only `score` is a Llama's."""


class _Adapter(Struct, frozen=True):
    """adapter_config.json of PEFT; the fields that change what a product means."""

    r: int
    lora_alpha: float
    peft_type: str = "LORA"
    use_rslora: bool = False
    use_dora: bool = False
    fan_in_fan_out: bool = False
    rank_pattern: dict[str, int] = {}
    alpha_pattern: dict[str, float] = {}
    modules_to_save: list[str] | None = None

    def scale(self, where: Path) -> float:
        """Return alpha / r. Raises ConfigError for an adapter that is not a plain pair of matrices."""
        odd = {
            "use_dora": self.use_dora,
            "fan_in_fan_out": self.fan_in_fan_out,
            "rank_pattern": self.rank_pattern,
            "alpha_pattern": self.alpha_pattern,
            "modules_to_save": set(self.modules_to_save or ()) - SAVED_HEADS,
            "peft_type": self.peft_type != "LORA",
        }
        if unmerged := [name for name, value in odd.items() if value]:
            raise ConfigError(
                f"{where} uses {', '.join(unmerged)}, which cannot be merged.", hint="Merge it with PEFT."
            )
        return float(self.lora_alpha / (self.r**0.5 if self.use_rslora else self.r))


def merge_lora(base: Path, adapter: Path, target: Path) -> int:
    """Merge W + alpha / r · B A for every pair (in float32, stored as `base` stores it); return how many pairs.

    An adapter with the head of a reward model makes `target` one (LlamaForSequenceClassification with one label).

    Raises DataError for a folder that lacks something or a pair that fits no tensor of `base`.
    """
    from safetensors.torch import load_file

    try:
        config = msgspec.json.decode((adapter / "adapter_config.json").read_bytes(), type=_Adapter)
        pairs = load_file(adapter / "adapter_model.safetensors")
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{adapter} is not a LoRA adapter: {error}.") from error
    scale = config.scale(adapter)
    head = pairs.pop(f"{PREFIX}{HEAD}", None)
    modules = sorted({name.removeprefix(PREFIX).rpartition(".lora_")[0] for name in pairs})
    left = set(modules)

    def merged(name: str, tensor: torch.Tensor) -> torch.Tensor:
        module = name.removesuffix(".weight")
        if module not in left:
            return tensor
        left.discard(module)
        a, b = (pairs[f"{PREFIX}{module}.lora_{side}.weight"].float() for side in "AB")
        if (b.shape[0], a.shape[1]) != tuple(tensor.shape):
            size = " × ".join(map(str, tensor.shape))
            raise DataError(
                f"The adapter {adapter} does not belong to the model {base}: its pair for {module} makes "
                f"{b.shape[0]} × {a.shape[1]}, the model has {size}.",
                hint=BASE,
            )
        return (tensor.float() + scale * (b @ a)).to(tensor.dtype)

    with atomic_folder(target) as folder:
        _rewrite_tensors(base, folder, merged)
        if left:
            raise DataError(
                f"{base} has no tensor for {listed(sorted(left), 3)} of the adapter {adapter}.", hint=BASE
            )
        if head is not None:
            _make_reward_model(folder, head)
    return len(modules)


def _make_reward_model(folder: Path, head: torch.Tensor) -> None:
    """Put the head beside the weights in `folder`, and say so in config.json."""
    from safetensors.torch import load_file

    path = sorted(folder.glob("*.safetensors"))[-1]
    save_tensors({**load_file(path), HEAD: head}, path)
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        listing = msgspec.json.decode(index.read_bytes(), type=dict[str, Any])
        listing["weight_map"][HEAD] = path.name
        write_json(index, listing)
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=dict[str, Any])
    architecture = str(config["architectures"][0]).replace("ForCausalLM", "ForSequenceClassification")
    labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, "num_labels": 1}
    write_json(
        folder / "config.json",
        {**config, "architectures": [architecture], "pad_token_id": padding_token(folder), **labels},
    )


def copy_model(base: Path, target: Path) -> None:
    """Copy the model folder to `target` as it is. Raises DataError for one without weights."""
    with atomic_folder(target) as folder:
        _rewrite_tensors(base, folder, lambda _, tensor: tensor)


def average_checkpoints(folders: Sequence[Path], target: Path) -> None:
    """Write the mean of the weights to `target`, tensor by tensor, in float64.

    Raises ConfigError for fewer than two folders, DataError where they are not alike.
    """
    from safetensors.torch import load_file

    if len(folders) < 2:
        raise ConfigError("An average needs at least two checkpoints.")
    files = [sorted(path.name for path in folder.glob("*.safetensors")) for folder in folders]
    if empty := [str(folder) for folder, names in zip(folders, files, strict=True) if not names]:
        raise DataError(f"There is no *.safetensors in {', '.join(empty)}.")
    if other := [str(folder) for folder, names in zip(folders, files, strict=True) if names != files[0]]:
        raise DataError(f"{', '.join(other)} splits its weights into other files than {folders[0]}.")

    with atomic_folder(target) as new:
        for name in files[0]:
            sums: dict[str, torch.Tensor] = {}
            for folder in folders:
                tensors = load_file(folder / name)
                _check_alike(tensors, sums, folder)
                for key, value in tensors.items():
                    sums[key] = sums[key] + value.double() if key in sums else value.double()
            kinds = {key: value.dtype for key, value in tensors.items()}
            save_tensors({key: (value / len(folders)).to(kinds[key]) for key, value in sums.items()}, new / name)
        _copy_others(folders[-1], new)


def _check_alike(tensors: Mapping[str, torch.Tensor], sums: Mapping[str, torch.Tensor], folder: Path) -> None:
    if sums and {key: value.shape for key, value in tensors.items()} != {k: v.shape for k, v in sums.items()}:
        raise DataError(f"{folder} is a checkpoint of another model: its tensors have other names or sizes.")


def _rewrite_tensors(base: Path, target: Path, change: Callable[[str, torch.Tensor], torch.Tensor]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(base.glob("*.safetensors"))
    if not files:
        raise DataError(f"{base} has no *.safetensors.")
    for path in files:
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        save_tensors({name: change(name, tensor) for name, tensor in tensors.items()}, target / path.name)
    _copy_others(base, target)


def _copy_others(source: Path, target: Path) -> None:
    """Copy configuration and tokenizer; neither weights in other forms nor the state of an optimizer."""
    for path in source.iterdir():
        if path.suffix in (".json", ".jinja", ".txt", ".model") and path.is_file():
            shutil.copyfile(path, target / path.name)
