# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of trainers become Hugging Face folders: whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.disks import small_disk
from tests.train.tiny import CONFIG, tensors, tiny_folder, with_tokenizer

from newskills.run.hosting.servers import free_port
from newskills.train.pipelines.harvest import main

CONVERTER = """
import pathlib, shutil, sys
source, target, how = map(pathlib.Path, sys.argv[1:])
target.mkdir()
if str(how) == "fails":
    (target / "half").write_text("x")
    sys.exit(3)
if str(how) == "empty":
    sys.exit()
import torch
from safetensors.torch import load_file
weights = load_file(source / "weights.safetensors")
weights["tied"] = weights["model.norm.weight"]
torch.save(weights, target / "pytorch_model.bin")
shutil.copyfile(source / "config.json", target / "config.json")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "converter.py").write_text(CONVERTER)
    with_tokenizer(tiny_folder(tmp_path / "base"))
    for step in (2, 10):
        folder = tmp_path / f"checkpoints/step_{step}"
        folder.mkdir(parents=True)
        save_file({name: value + step for name, value in tensors().items()}, folder / "weights.safetensors")
        (folder / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "checkpoints/tmp_step_11").mkdir()
    return tmp_path


def harvest(place: Path, *words: str, how: str = "whole", step: str = "last") -> int:
    options = [f"--checkpoints={place}/checkpoints", f"--step={step}", f"--model={place}/base", *words]
    if not any(word.startswith("--target") for word in words):
        options.append(f"--target={place}/model")
    return main([*options, "--", sys.executable, f"{place}/converter.py", "{checkpoint}", "{target}", how])


def test_pairs_are_copied_as_they_are(place: Path) -> None:
    """They are no model: under a model's name they would be served as one."""
    pairs = place / "checkpoints/step_10/weights"
    pairs.mkdir()
    save_file({"base_model.model.x.lora_A.weight": torch.ones(2, 2)}, pairs / "adapter_model.safetensors")
    (pairs / "adapter_config.json").write_text('{"r": 2}')
    assert harvest(place, "--plain=weights", how="fails") == 0
    assert {path.name for path in (place / "model").iterdir()} >= {
        "adapter_model.safetensors",
        "adapter_config.json",
    }
    assert not (place / "model/model.safetensors").exists()
    assert harvest(place, "--plain=weights", how="fails") == 0  # it is there already


@pytest.mark.nightly
def test_the_last_checkpoint_becomes_a_folder_with_tokenizer_and_safetensors(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harvest(place, "--max-position-embeddings=77") == 0
    model = place / "model"
    weights = load_file(model / "model.safetensors")
    assert weights["model.norm.weight"].equal(tensors()["model.norm.weight"] + 10)
    assert weights["tied"].equal(weights["model.norm.weight"])
    assert not list(model.glob("*.bin"))
    assert json.loads((model / "config.json").read_text())["max_position_embeddings"] == 77
    assert (model / "tokenizer.json").is_file()
    assert (model / "chat_template.jinja").is_file()
    assert harvest(place) == 0
    assert "already exists, made from" in capsys.readouterr().err


def test_weights_that_are_no_numbers_are_no_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place / "checkpoints/step_10"
    save_file({"model.norm.weight": torch.tensor([1.0, float("nan")])}, folder / "weights.safetensors")
    assert harvest(place) == 1
    assert "model.norm.weight in model.safetensors is not finite" in capsys.readouterr().err
    assert not (place / "model").exists()


@pytest.mark.nightly
def test_several_steps_have_folders_of_their_own(place: Path) -> None:
    assert harvest(place, "--step=2", f"--target={place}/hf/step_{{step}}", step="10") == 0
    assert sorted(path.name for path in (place / "hf").iterdir()) == ["step_10", "step_2"]


@pytest.mark.parametrize(
    ("words", "how", "step", "said"),
    [
        ((), "fails", "last", "exit code 3"),
        ((), "empty", "last", "no config.json"),
        ((), "whole", "5", "its steps are 2, 10"),
        (("--checkpoints=/nowhere",), "whole", "last", "has saved nothing yet"),
        (("--prefix=global_step_",), "whole", "last", "has saved nothing yet"),
    ],
)
def test_what_cannot_be_converted_leaves_nothing_behind(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], how: str, step: str, said: str
) -> None:
    if how == "empty":
        (place / "base/config.json").unlink()
    assert harvest(place, *words, how=how, step=step) == 1
    assert said in capsys.readouterr().err
    assert not (place / "model").exists()


def test_another_folder_is_never_overwritten(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "model").mkdir()
    (place / "model/precious").write_text("x")
    assert harvest(place) == 1
    assert "was not written by this conversion" in capsys.readouterr().err
    assert (place / "model/precious").read_text() == "x"


@pytest.mark.nightly
def test_a_folder_of_an_older_checkpoint_is_made_again(place: Path) -> None:
    assert harvest(place, step="2") == 0
    assert harvest(place) == 0
    found = load_file(place / "model/model.safetensors")["model.norm.weight"]
    assert found.equal(tensors()["model.norm.weight"] + 10)


SLICED = """
import sys, torch, torch.distributed as dist
from torch.distributed.checkpoint import HuggingFaceStorageWriter, save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
rank, port, target = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
state = {
    "a": distribute_tensor(torch.arange(24.0).reshape(6, 4), mesh, [Shard(0)]),
    "b": distribute_tensor(torch.arange(10.0).reshape(2, 5), mesh, [Shard(1)]),
}
writer = HuggingFaceStorageWriter(target, fqn_to_index_mapping={"a": 1, "b": 1}, save_distributed=True)
save(state, storage_writer=writer)
dist.destroy_process_group()
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_slices_that_several_processes_have_saved_are_put_together(place: Path, tmp_path: Path) -> None:
    """Written by PyTorch's own distributed checkpoints, as NeMo-RL does with more than one GPU."""
    (tmp_path / "save.py").write_text(SLICED)
    model = place / "checkpoints/step_12/policy/weights/model"
    model.mkdir(parents=True)
    port = free_port()
    writers = [
        subprocess.Popen([sys.executable, str(tmp_path / "save.py"), str(rank), str(port), str(model)])
        for rank in range(2)
    ]
    assert [writer.wait(100) for writer in writers] == [0, 0]
    assert len(list(model.glob("*.safetensors"))) == 2
    assert harvest(place, "--plain=policy/weights/model", how="fails") == 0
    weights = load_file(next((place / "model").glob("*.safetensors")))
    assert weights["a"].equal(torch.arange(24.0).reshape(6, 4))
    assert weights["b"].equal(torch.arange(10.0).reshape(2, 5))


def test_whole_shards_are_taken_as_they_are(place: Path) -> None:
    model = place / "checkpoints/step_12/policy/weights/model"
    (model / ".hf_metadata").mkdir(parents=True)
    (model / ".hf_metadata/config.json").write_text(json.dumps(CONFIG | {"trained": True}))
    save_file({"a": torch.ones(2)}, model / "shard-1.safetensors")
    save_file({"b": torch.ones(3)}, model / "shard-2.safetensors")
    assert harvest(place, "--plain=policy/weights/model", how="fails") == 0
    index = json.loads((place / "model/model.safetensors.index.json").read_text())
    assert index["weight_map"] == {
        "a": "model-00001-of-00002.safetensors",
        "b": "model-00002-of-00002.safetensors",
    }
    assert json.loads((place / "model/config.json").read_text())["trained"] is True


@pytest.mark.nightly
def test_a_full_disk_is_told_in_a_sentence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is room for what the converter makes, and not for its weights once more."""
    assert harvest(place) == 0
    capsys.readouterr()
    room = sum(path.stat().st_size for path in (place / "model").iterdir())
    room += (place / "model/model.safetensors").stat().st_size // 2
    with small_disk(place / "disk", f"{room // 1024}k") as disk:
        assert harvest(place, f"--target={disk}/model") == 1
        said = capsys.readouterr().err
        assert "No space is left on the disk: cannot write" in said
        assert len(said.strip().splitlines()) == 1
        assert list(disk.iterdir()) == []
