# SPDX-License-Identifier: Apache-2.0
"""A training of several jobs on a real Slurm cluster, with Ray on two nodes, up to the model; the trainer is played."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests.commands.clusters import Place
from tests.commands.running import write
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import HOST, Sshd, sshd
from tests.train.tiny import tiny_folder, with_tokenizer

__all__ = ["sshd"]

NEMO_RL = Path(__file__).parents[2] / "train/pipelines/nemo_rl"
MEGATRON = NEMO_RL.with_name("megatron_lm")
LINE = (
    "ns nemo_rl sft --cluster=real --expname=tune --hf_model={model} --training_data=train.jsonl --output_dir=out "
    "--num_nodes=2 --num_gpus=2 --backend=fsdp --nemo_rl_path={root} --no-exclusive --disable_wandb"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    require_cluster()
    place = Place(tmp_path)
    place.config("real", "executor: slurm\ndefault_timeout: 00:05:00\nenv_vars: [DIES_AT=8]")
    write(tmp_path / "train.jsonl", [{"input": f"{n} + {n} =", "output": str(2 * n)} for n in range(5)])
    with_tokenizer(tiny_folder(tmp_path / "base"))
    return place


@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_a_chain_goes_on_where_the_limit_or_a_crash_stopped_it_and_ends_with_a_model(place: Place) -> None:
    line = LINE.format(model=place.folder / "base", root=NEMO_RL)
    done = place.ns(
        line,
        "--dependent_jobs=3",
        "--average_steps=4,8",
        "--remove_checkpoints_after_average",
        "--max_position_embeddings=96",
        "++checkpointing.checkpoint_must_save_by=00:00:00:02",
        "++sft.max_num_steps=10",
        "++checkpointing.save_period=2",
    )
    assert done.returncode == 0, done.stderr
    states = place.ended("tune", patience=600)
    logs = place.logs("tune")
    assert states == {"sft": "completed", "convert": "completed", "average": "completed"}, (states, logs)
    assert "the trainer has saved its work because of the time limit" in logs
    assert "client 'main' ended with exit code 75" in logs
    assert "job time with exit code 75" in logs
    begun = [int(step) for step in re.findall(r"begins at step (\d+)", logs)]
    assert begun == sorted(set(begun)), logs
    assert len(begun) >= 3
    out = place.folder / "out"
    assert not (out / "checkpoints/step_4").exists()
    assert not (out / "checkpoints/step_8").exists()
    assert (out / "checkpoints/step_10").is_dir()
    model = out / "final_hf_model"
    assert json.loads((model / "config.json").read_text())["max_position_embeddings"] == 96
    assert (model / "tokenizer.json").is_file()
    mean, base = load_file(model / "model.safetensors"), load_file(place.folder / "base/model.safetensors")
    assert mean.pop("learning").item() == 6.0
    assert all(mean[name].equal(base[name]) for name in base)
    assert list((out / "training-logs/sft").glob("sft_*_sbatch.log"))


def test_from_a_laptop_the_first_line_of_the_data_is_looked_at(place: Place, sshd: Sshd) -> None:
    place.env["NEWSKILLS_SSH_CONFIG"] = str(sshd.config)
    before = f"export SLURM_CONF='{os.environ.get('SLURM_CONF', '')}'"
    place.config("far", f'executor: slurm\nssh_tunnel:\n  host: {HOST}\n  pre_command: "{before}"')
    write(place.folder / "talks.jsonl", [{"messages": [], "tools": []}])
    line = (
        f"ns nemo_rl sft --cluster=far --hf_model=some/model --output_dir={place.folder}/out "
        f"--training_data={place.folder}/talks.jsonl --dry_run --show_scripts"
    )
    shown = place.ns(line)
    assert shown.returncode == 0, shown.stderr
    assert "dataset_name: openai_format" in shown.stdout
    assert "use_preserving_dataset: true" in shown.stdout
    assert "no --num_gpus: 8 per node\n" in shown.stderr
    assert "checkpoint_must_save_by: 00:03:45:00" in shown.stdout
    write(place.folder / "talks.jsonl", [{"question": "?"}])
    wrong = place.ns(line)
    assert wrong.returncode == 2
    assert "its keys are question" in wrong.stderr


@pytest.mark.nightly
def test_processes_of_megatron_meet_on_two_nodes(place: Place) -> None:
    write(place.folder / "blend.json", [{}])
    line = (
        f"ns megatron_lm train --cluster=real --expname=pre --megatron_model={place.folder}/base --tokenizer_model=t "
        f"--per_split_data_path=blend.json --output_dir=out --num_nodes=2 --num_gpus=1 --no-exclusive --disable_wandb "
        f"--megatron_path={MEGATRON} --dependent_jobs=1 ++train_iters=3 ++bf16=true"
    )
    done = place.ns(line, "--init_cmd=export FROM_INIT=yes")
    assert done.returncode == 0, done.stderr
    states = place.ended("pre")
    logs = place.logs("pre")
    assert states == {"megatron-lm-train": "completed"}, (states, logs)
    ends = [json.loads(path.read_text()) for path in sorted((place.folder / "out/checkpoints").iterdir())]
    assert [end["iteration"] for end in ends] == [2, 3], logs
    assert ends[-1] == {"iteration": 3, "ranks": 2, "sum": 1.0, "nodes": 2, "init": "yes", "bf16": True}
