# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.train.pipelines.harvest …  -- CONVERTER…`: checkpoints of a trainer → Hugging Face folders.

Standard library only: it runs in the images of trainers. CONVERTER's words may have {checkpoint} and {target} in them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from newskills.base.errors import StorageError, storage_error
from newskills.train.pipelines.inside import PYTHON, python_words, trainer_environment

LAST = "last"
INDEX = "model.safetensors.index.json"
RECORD = "converted.json"
"""Which checkpoint a folder was made from."""
SLICED = "DCP_SHARDING_INFO"
"""Key in the header of safetensors that hold slices of tensors (torch.distributed.checkpoint)."""
HF_METADATA, FILE_OF_TENSOR = ".hf_metadata", "fqn_to_file_index_mapping.json"
"""What NeMo-RL's checkpoints keep beside such slices: configuration, and the number of each tensor's file."""
ADAPTER = "adapter_model.safetensors"
"""LoRA pairs in PEFT's form: no model of its own, and copied as they are."""
TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
)
"""Files of the first model that a converter may have left behind."""


class HarvestError(Exception):
    """No model can be made of the checkpoints; the text says why."""


def parse_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="harvest", description="Convert checkpoints to Hugging Face folders.")
    parser.add_argument("--checkpoints", required=True, help="folder with one folder per step")
    parser.add_argument("--prefix", default="step_", help="prefix of the names of these folders")
    parser.add_argument("--step", action="append", required=True, help="step number, or last; may be repeated")
    parser.add_argument(
        "--target", required=True, help="folder to write; with several steps, {step} in it is replaced"
    )
    parser.add_argument("--model", default="", help="model that the training started from")
    parser.add_argument("--max-position-embeddings", type=int)
    parser.add_argument("--plain", default="", help="path of safetensors in a checkpoint that needs no converter")
    parser.add_argument("--project", default="", help="folder of the trainer")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_options(argv)
    try:
        for step in options.step:
            source = checkpoint_of(Path(options.checkpoints), options.prefix, step)
            target = Path(options.target.replace("{step}", source.name.removeprefix(options.prefix)))
            if is_harvested(target, source):
                _print_message(f"{target} already exists, made from {source}")
                continue
            convert_checkpoint(source, target, options)
            _print_message(f"{source} → {target}")
    except (HarvestError, StorageError) as error:
        _print_message(str(error))
        return 1
    except OSError as error:
        _print_message(str(storage_error(error, error.filename2 or error.filename or options.target)))
        return 1
    return 0


def checkpoint_of(folder: Path, prefix: str, step: str) -> Path:
    """Return the folder of a step's checkpoint. Raises HarvestError where there is none; it names the steps that there
    are."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)\Z", re.ASCII)
    steps = {
        int(match[1]): path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (match := pattern.match(path.name)) and path.is_dir()
    }
    if not steps:
        raise HarvestError(f"{folder} has no checkpoint ({prefix}N): the training has saved nothing yet.")
    if step == LAST:
        return steps[max(steps)]
    if int(step) not in steps:
        raise HarvestError(f"{folder} has no step {step}; its steps are {', '.join(map(str, sorted(steps)))}.")
    return steps[int(step)]


def is_harvested(target: Path, source: Path) -> bool:
    """Return whether `target` is a finished folder made from the same checkpoint; one made from another is removed.
    Raises HarvestError for anything else that is there."""
    if not target.exists():
        return False
    try:
        record = json.loads((target / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict):
        raise HarvestError(
            f"{target} already exists, but was not written by this conversion. Give another folder."
        )
    if record.get("checkpoint") == str(source):
        return True
    shutil.rmtree(target)
    return False


def convert_checkpoint(source: Path, target: Path, options: argparse.Namespace) -> None:
    """Convert the whole folder or nothing. Raises HarvestError, StorageError, OSError."""
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _fill_folder(temporary, source, options)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fill_folder(temporary: Path, source: Path, options: argparse.Namespace) -> None:
    ready = source / options.plain if options.plain else None
    if ready is not None and (ready / ADAPTER).exists():
        shutil.copytree(ready, temporary)
        _write_record(temporary, source)
        return
    if ready is not None and any(ready.glob("*.safetensors")):
        gather_shards(ready, temporary)
    else:
        _run_converter(options, source, temporary)
    copy_tokenizer(temporary, source, options.model)
    if options.max_position_embeddings is not None:
        change_config(temporary / "config.json", max_position_embeddings=options.max_position_embeddings)
    _check_output(temporary)
    _write_record(temporary, source)


def _write_record(folder: Path, source: Path) -> None:
    (folder / RECORD).write_text(json.dumps({"checkpoint": str(source)}) + "\n", encoding="utf-8")


def _run_converter(options: argparse.Namespace, source: Path, target: Path) -> None:
    words = [
        word.replace("{checkpoint}", str(source)).replace("{target}", str(target)) for word in options.command
    ]
    if words[0] == PYTHON:
        words = [*python_words(options.project), *words[1:]]
    done = subprocess.run(
        words, check=False, cwd=options.project or None, env=trainer_environment(options.project)
    )
    if done.returncode != 0:
        raise HarvestError(f"the converter ended with exit code {done.returncode} for {source}.")


def gather_shards(ready: Path, target: Path) -> None:
    """Write shards of tensors under Hugging Face's names, with an index where there are several; slices are put
    together.
    """
    target.mkdir()
    shards = sorted(ready.glob("*.safetensors"))
    headers = {shard: _read_header(shard) for shard in shards}
    if any(SLICED in header.get("__metadata__", {}) for header in headers.values()):
        _join_slices(ready, target, headers)
    else:
        names: dict[str, str] = {}
        for number, shard in enumerate(shards, 1):
            if len(shards) == 1:
                name = "model.safetensors"
            else:
                name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            shutil.copyfile(shard, target / name)
            names |= {key: name for key in headers[shard] if key != "__metadata__"}
        if len(shards) > 1:
            index = {
                "metadata": {"total_size": sum(shard.stat().st_size for shard in shards)},
                "weight_map": names,
            }
            (target / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    for folder in (ready, ready / HF_METADATA):
        for path in folder.glob("*.json"):
            if path.name not in (INDEX, FILE_OF_TENSOR):
                shutil.copyfile(path, target / path.name)


def _join_slices(ready: Path, target: Path, headers: Mapping[Path, Mapping[str, Any]]) -> None:
    """Write slices of tensors, as PyTorch's distributed checkpoints have them, as whole tensors."""
    from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

    files = {name: 1 for header in headers.values() for name in header if name != "__metadata__"}
    tensor_files = ready / HF_METADATA / FILE_OF_TENSOR
    if tensor_files.is_file():
        files |= {
            name: int(number) for name, number in json.loads(tensor_files.read_text(encoding="utf-8")).items()
        }
    consolidate_safetensors_files(str(ready), str(target), files)


def _read_header(path: Path) -> dict[str, Any]:
    """Return the header of a safetensors file: 8 bytes of length, then JSON
    (https://huggingface.co/docs/safetensors)."""
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header


def copy_tokenizer(target: Path, source: Path, model: str) -> None:
    """Copy tokenizer and generation settings: those that were saved with the checkpoint, else those of the first
    model.
    """
    if model:
        places = [source / "policy" / "tokenizer", source / "actor" / "huggingface", Path(model)]
    else:
        places = []
    for place in places:
        for name in (*TOKENIZER, "config.json"):
            if (place / name).is_file() and not (target / name).exists():
                shutil.copyfile(place / name, target / name)


def change_config(path: Path, **values: object) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, **values}, indent=2) + "\n", encoding="utf-8")


def _check_output(target: Path) -> None:
    if not (target / "config.json").is_file():
        raise HarvestError(f"the converter wrote no config.json to {target}.")
    if not any(target.glob("*.safetensors")):
        _from_pickle(target)
    _check_finite(target)


def _check_finite(target: Path) -> None:
    """Raise HarvestError for weights that are not finite; they are read one tensor at a time."""
    from safetensors import safe_open

    for path in sorted(target.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                if not file.get_tensor(name).isfinite().all():
                    raise HarvestError(f"{name} in {path.name} is not finite: the training has diverged.")


def _from_pickle(target: Path) -> None:
    """Turn weights of older converters into safetensors. Nothing but tensors is unpickled. Raises StorageError."""
    files = sorted(target.glob("pytorch_model*.bin"))
    if not files:
        raise HarvestError(f"the converter wrote no weights to {target}.")
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    for path in files:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        name = path.name.replace("pytorch_model", "model").replace(".bin", ".safetensors")
        copies = {
            key: value.clone().contiguous() for key, value in tensors.items()
        }  # tied ones share their memory
        try:
            save_file(copies, target / name, metadata={"format": "pt"})
        except SafetensorError as error:
            raise storage_error(OSError(str(error)), target / name) from error
        path.unlink()
    index = target / "pytorch_model.bin.index.json"
    if index.is_file():
        text = index.read_text(encoding="utf-8").replace("pytorch_model", "model").replace(".bin", ".safetensors")
        (target / INDEX).write_text(text, encoding="utf-8")
        os.unlink(index)


def _print_message(text: str) -> None:
    sys.stderr.write(f"harvest: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
