# SPDX-License-Identifier: Apache-2.0
"""Plans of trainings on clusters: which jobs there are, what they are told, what is refused before anything runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands.running import ns, write

from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.plan import Job, Pipeline, Ref
from newskills.commands.command import resolve_function
from newskills.commands.loading import load_command
from newskills.commands.table import one_name
from newskills.launch.clusters.config import from_keys
from newskills.launch.executors import make_executor
from newskills.launch.job_script import render_scripts
from newskills.launch.place import Site
from newskills.pipelines.notices import print_note
from newskills.pipelines.submission.prepared import PreparedSubmission

GOLDEN = Path(__file__).with_name("golden")
PAIRS = [{"input": "1 + 1 =", "output": " 2"}]
TALKS = [{"messages": [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}]}]
PLAIN = [{"problem": "1 + 1?", "expected_answer": "2"}]
GYM = [{"responses_create_params": {"input": []}, "agent_ref": {"name": "math"}}]
VERL = [{"data_source": "gsm8k", "prompt": [], "reward_model": {"style": "rule", "ground_truth": "2"}}]
COMMON = "--output_dir=/disk/out --num_gpus=8 --backend=fsdp"
SFT = f"nemo_rl sft --model=/disk/base --training_data=/disk/pairs.jsonl {COMMON}"
GRPO = SFT.replace("sft", "grpo").replace("pairs", "plain")
PPO = f"verl ppo --hf_model=/disk/base --prompt_data=/disk/plain.jsonl {COMMON}"
MEGATRON = (
    "megatron_lm train --megatron_model=/disk/base --tokenizer_model=/disk/base --per_split_data_path=/disk/blend.json "
    "--output_dir=/disk/out --num_gpus=8"
)
CONVERT = (
    "convert --input_model=/disk/out/checkpoints/step_5 --output_model=/disk/model "
    "--convert_from=dcp --convert_to=hf"
)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that containers see as /disk, with data of every form."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("MEGATRON_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, rows in (("pairs", PAIRS), ("talks", TALKS), ("plain", PLAIN), ("gym", GYM), ("verl", VERL)):
        write(tmp_path / f"disk/{name}.jsonl", rows)
    (tmp_path / "disk/base").mkdir()
    (tmp_path / "disk/blend.json").write_text("{}")
    return tmp_path / "disk"


def planned(disk: Path, line: str, *more: str, **keys: object) -> PreparedSubmission:
    """What would be submitted to a cluster with containers."""
    images = {name: f"/images/{name}.sqsh" for name in ("nemo-rl", "verl", "megatron", "nemo-skills", "trtllm")}
    images |= {name: f"/images/{name}.sqsh" for name in ("vllm", "sandbox")}
    config = {
        "executor": "slurm",
        "job_dir": f"{disk}/jobs",
        "mounts": [f"{disk}:/disk"],
        "containers": images,
        "partition": "gpu",
        "timeouts": {"gpu": "04:00:00"},
        "skip_hf_home_check": True,
        **keys,
    }
    words = one_name([*line.split(), *more])
    command = load_command(words[0])
    parsed = command.parse_words(words[1:])
    command.check(parsed)
    assert command.prepare is not None
    return resolve_function(command.prepare)(parsed, from_keys(config, "config", {}))  # type: ignore[return-value]


def plan_of(disk: Path, line: str, *more: str, **keys: object) -> Pipeline:
    return planned(disk, line, *more, **keys).submission.pipeline


def words_of(job: Job) -> list[str]:
    """argv of its main command, references as <attribute>."""
    [command] = [command for command in job.commands() if command.name == "main"]
    words = command.script.argv
    return [f"{word.before}<{word.attribute}>{word.after}" if isinstance(word, Ref) else word for word in words]


def config_of(pipeline: Pipeline) -> dict[str, Any]:
    return yaml.safe_load(pipeline.jobs[0].files["nemo_rl.yaml"])


def test_a_training_is_followed_by_its_conversion(disk: Path) -> None:
    pipeline = plan_of(disk, SFT, "--num_nodes=4", "--dependent_jobs=2", "++sft.seed=7", "++a.b=[1,2]")
    training, conversion = pipeline.jobs
    assert (training.name, training.copies, conversion.depends_on) == ("sft", 2, ("sft",))
    assert training.groups[0].hardware.num_nodes == 4
    assert training.groups[0].hardware.num_gpus == 8
    assert training.groups[0].hardware.exclusive is True
    assert {command.container for command in (*training.commands(), *conversion.commands())} == {"nemo-rl"}
    words = words_of(training)
    assert words[:3] == ["python3", "-m", "newskills.launch.ray_node"]
    assert '--resources={"slurm_managed_ray_cluster": 1}' in words
    assert words[-3:] == ["<folder>/nemo_rl.yaml", "++sft.seed=7", "++a.b=[1,2]"]
    assert config_of(pipeline)["checkpointing"]["checkpoint_must_save_by"] == "00:03:45:00"
    assert training.log_dir == f"{disk}/out/training-logs/sft"
    assert "--target=/disk/out/final_hf_model" in words_of(conversion)
    assert "--step=last" in words_of(conversion)


@pytest.mark.parametrize(
    ("line", "data", "program", "dataset"),
    [
        (SFT, "pairs", "run_sft.py", "ResponseDataset"),
        (SFT, "talks", "run_sft.py", "openai_format"),
        (GRPO, "plain", "run_grpo.py", "ResponseDataset"),
        (GRPO, "gym", "run_grpo_nemo_gym.py", None),
    ],
)
def test_the_first_line_of_the_data_decides(
    disk: Path, line: str, data: str, program: str, dataset: str | None
) -> None:
    pipeline = plan_of(disk, re.sub(r"/\w+\.jsonl", f"/{data}.jsonl", line))
    assert any(word.endswith(f"/{program}") for word in words_of(pipeline.jobs[0]))
    assert config_of(pipeline)["data"]["train"].get("dataset_name") == dataset
    assert config_of(pipeline)["data"]["train"]["data_path"] == f"/disk/{data}.jsonl"


def test_problems_get_the_prompt_that_evaluations_use(disk: Path) -> None:
    training = plan_of(disk, GRPO).jobs[0]
    assert "++data.default.prompt_file=<folder>/prompt.txt" in words_of(training)
    assert training.files["prompt.txt"].format("P{}").endswith("P{}")
    assert "\\boxed{}" in training.files["prompt.txt"].format("P")


def test_lengths_follow_the_user_and_the_model(disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def seen(line: str, *more: str) -> int:
        return config_of(plan_of(disk, line, *more))["policy"]["max_total_sequence_length"]

    print_note.cache_clear()
    assert (seen(SFT), seen(GRPO)) == (4096, 4096)
    assert "no --max_length: 4096 tokens" in capfd.readouterr().err
    (disk / "base/config.json").write_text('{"max_position_embeddings": 2048}')
    assert (seen(SFT), seen(GRPO), seen(GRPO, "--max_length=1000")) == (2048, 2048, 1000)
    assert seen(GRPO, "++policy.max_total_sequence_length=1500") == 1500
    with pytest.raises(ConfigError, match="is 2048 tokens"):
        seen(GRPO, "--max_length=4000")
    words = words_of(plan_of(disk, PPO).jobs[0])
    assert {"data.max_prompt_length=512", "data.max_response_length=1536"} <= set(words)
    words = words_of(
        plan_of(disk, PPO, "++data.max_prompt_length=1000", "++data.max_response_length=31000").jobs[0]
    )
    assert {"data.max_response_length=31000", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=32000"} <= set(
        words
    )
    assert "critic.ppo_max_token_len_per_gpu=64000" in words


def test_the_learning_rate_falls_over_the_steps_that_are_known(
    disk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def schedule(*more: str) -> dict[str, Any] | None:
        parts = config_of(plan_of(disk, SFT, *more))["policy"].get("scheduler")
        return parts[0]["kwargs"] if parts else None

    print_note.cache_clear()
    assert schedule() is None
    assert "the learning rate stays constant" in capfd.readouterr().err
    assert schedule("++sft.max_num_steps=70") == {"T_max": 70, "eta_min": 1e-6}
    write(disk / "pairs.jsonl", PAIRS[:1] * 100)
    assert schedule("++sft.max_num_epochs=2", "++policy.train_global_batch_size=8")["T_max"] == 24
    assert schedule("++sft.max_num_epochs=2", "++sft.max_num_steps=5")["T_max"] == 5
    assert schedule("++sft.max_num_steps=5", "++policy.optimizer.kwargs.lr=1e-7")["eta_min"] == 1e-7


def test_our_grader_is_asked_for_before_anything_starts(disk: Path) -> None:
    words = words_of(plan_of(disk, GRPO).jobs[0])
    assert "--needs=newskills.graders.worker" in words
    assert "newskills.train.pipelines.nemo_rl_program" in words
    assert not any("--needs" in word for word in words_of(plan_of(disk, SFT).jobs[0]))


def test_a_mean_of_steps_and_what_it_removes(disk: Path) -> None:
    more = ["--average_steps=100,200", "--remove_checkpoints_after_average", "--final_hf_path=/disk/mine"]
    _, conversion, mean = plan_of(disk, SFT, *more, "--max_position_embeddings=8192").jobs
    assert mean.depends_on == ("convert",)
    words = words_of(conversion)
    assert {"--step=100", "--step=200", "--target=/disk/out/hf_steps/step_{step}"} <= set(words)
    assert "--max-position-embeddings=8192" in words
    words = words_of(mean)
    steps = ["/disk/out/hf_steps/step_100", "/disk/out/hf_steps/step_200"]
    originals = ["/disk/out/checkpoints/step_100", "/disk/out/checkpoints/step_200"]
    assert words[words.index("--remove") + 1 :] == [*steps, *originals]
    assert "--output_model=/disk/mine" in words
    assert mean.commands()[0].container == "nemo-skills"


def test_conversion_only(disk: Path) -> None:
    line = SFT.replace("--training_data=/disk/pairs.jsonl ", "")
    [conversion] = plan_of(disk, line, "--run_conversion_only", "--conversion_step=300").jobs
    assert (conversion.name, conversion.depends_on) == ("convert", ())
    assert "--step=300" in words_of(conversion)


def test_weights_and_biases(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert config_of(plan_of(disk, SFT))["logger"]["wandb_enabled"] is False
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    pipeline = plan_of(disk, SFT, "--wandb_group=g", "--expname=tune")
    assert config_of(pipeline)["logger"]["wandb"] == {
        "project": "nemo-skills",
        "name": "tune",
        "id": "tune-g-nemo-skills",
        "group": "g",
    }
    assert "s3cret" not in repr(pipeline)
    assert config_of(plan_of(disk, SFT, "--disable_wandb"))["logger"]["wandb_enabled"] is False
    with pytest.raises(ConfigError, match="128 characters"):
        plan_of(disk, SFT, f"--expname={'x' * 99}")


def test_judges_and_a_sandbox_beside_the_trainer(disk: Path) -> None:
    judges = [
        "--server_model=/disk/judge",
        "--server_type=vllm",
        "--server_gpus=4",
        "--server_nodes=2",
        "--n_servers=2",
    ]
    training = plan_of(disk, GRPO, *judges, "--with_sandbox").jobs[0]
    assert [group.name for group in training.groups] == ["main", "judge-0", "judge-1"]
    assert [command.name for command in training.groups[0].commands] == ["sandbox", "main"]
    assert training.groups[1].hardware.num_nodes == 2
    env = training.groups[0].commands[1].script.env
    assert env["NEMO_SKILLS_JUDGE_ADDRESS"] == Ref("judge-0")
    assert env["NEMO_SKILLS_JUDGE_ADDRESS_1"] == Ref("judge-1")
    assert env["NEMO_SKILLS_JUDGE_MODEL"] == "/disk/judge"
    assert env["NEMO_SKILLS_SANDBOX_PORT"] == Ref("sandbox", "port")
    elsewhere = plan_of(disk, PPO, "--server_address=http://judge:1/v1", "--server_model=j").jobs[0]
    env = elsewhere.groups[0].commands[0].script.env
    assert env["NEMO_SKILLS_JUDGE_ADDRESS"] == "http://judge:1/v1"


def test_profiling_and_another_way_to_start_ray(disk: Path) -> None:
    more = [
        "--profile_step_range=3:5",
        "--ray_template=/disk/start-ray",
        "--config=/disk/mine.yaml",
        "--container=nemo",
    ]
    pipeline = plan_of(disk, SFT, *more, containers={"nemo": "/i/nemo.sqsh", "nemo-skills": "/i/n.sqsh"})
    training = pipeline.jobs[0]
    assert training.commands()[0].script.env["NRL_NSYS_PROFILE_STEP_RANGE"] == "3:5"
    assert words_of(training)[:2] == ["/disk/start-ray", "--nodes=1"]
    assert config_of(pipeline)["defaults"] == "/disk/mine.yaml"
    assert training.commands()[0].container == "nemo"


def test_verl_turns_problems_into_its_own_rows(disk: Path) -> None:
    training, conversion = plan_of(
        disk, PPO, "--eval_data=/disk/plain.jsonl", "++algorithm.adv_estimator=grpo"
    ).jobs
    words = words_of(training)
    at = words.index("--to-verl")
    assert words[at + 1 : at + 3] == ["/disk/plain.jsonl", "/disk/out/data/train.jsonl"]
    assert "data.train_files='/disk/out/data/train.jsonl'" in words
    assert "reward.custom_reward_function.name=compute_score" in words
    assert "--deadline=13500" in words
    assert words[-1] == "++algorithm.adv_estimator=grpo"
    assert "verl.model_merger" in words_of(conversion)
    own = words_of(plan_of(disk, PPO.replace("plain", "verl"), "--no-convert_last_ckpt_to_hf").jobs[0])
    assert "--to-verl" not in own
    assert not any("custom_reward_function" in word for word in own)
    assert "data.train_files='/disk/verl.jsonl'" in own


def test_pairs_are_merged_by_a_job_of_their_own(disk: Path) -> None:
    training, conversion, merging = plan_of(disk, PPO, "--lora_rank=16", "--loss=gspo", "--backend=fsdp").jobs
    assert "actor_rollout_ref.model.lora_rank=16" in words_of(training)
    assert "actor_rollout_ref.actor.policy_loss.loss_mode=gspo" in words_of(training)
    assert "--target=/disk/out/lora" in words_of(conversion)
    words = words_of(merging)
    assert words[words.index("merge_lora") :][2:] == [
        *["--base_model=/disk/out/lora", "--adapter=/disk/out/lora/lora_adapter"],
        "--output_model=/disk/out/final_hf_model",
    ]
    _, conversion, merging = plan_of(disk, GRPO, "--lora_rank=16", "--backend=fsdp").jobs
    assert "--target=/disk/out/lora" in words_of(conversion)
    words = words_of(merging)
    assert words[words.index("merge_lora") :][2:4] == ["--base_model=/disk/base", "--adapter=/disk/out/lora"]


def test_megatron_starts_a_process_for_each_gpu(disk: Path) -> None:
    more = ["--num_nodes=2", "--init_cmd=export A=1", "++use_checkpoint_args=true", "--", "--lr", "1e-5"]
    [job] = plan_of(disk, MEGATRON, *more).jobs
    words = words_of(job)
    assert words[:2] == ["bash", "-c"]
    assert words[2].startswith("set -e\nexport A=1\n")
    at = words.index("torch.distributed.run")
    assert words[at : at + 6] == [
        "torch.distributed.run",
        "--nnodes=2",
        "--nproc-per-node=8",
        "--node-rank=<rank>",
        "--master-addr=<node>",
        "--master-port=<meeting_port>",
    ]
    assert words[at + 6] == "pretrain_gpt.py"
    assert words[-3:] == ["--lr", "1e-5", "--use-checkpoint-args"]
    assert "--exit-duration-in-mins=225" in words
    assert "--project=/opt/Megatron-LM" in words
    assert job.commands()[0].script.all_nodes
    old = one_name(["megatron_lm", "megatron-lm train", "--help"])
    assert old == one_name(["megatron-lm", "train", "--help"]) == ["train_megatron_lm", "--help"]


FP8 = "convert --input_model=/disk/base --output_model=/disk/fp8 --convert_from=hf --convert_to=trtllm --dtype=fp8"
TO_MEGATRON = "convert --input_model=/disk/base --output_model=/disk/m --convert_from=hf --convert_to=megatron"

FROM_MEGATRON = (
    "convert --input_model=/disk/m/iter_0000010 --output_model=/disk/model --convert_from=megatron --convert_to=hf"
)


def test_conversions_by_programs_of_others(disk: Path) -> None:
    [job] = plan_of(disk, CONVERT, "--num_gpus=2", "--", "--no-strict").jobs
    words = words_of(job)
    assert {"--checkpoints=/disk/out/checkpoints", "--prefix=step_", "--step=5", "--target=/disk/model"} <= set(
        words
    )
    assert words[-1] == "--no-strict"
    assert job.commands()[0].container == "nemo-rl"
    more = ["--calib_dataset=texts", "--trt_prepare_args=--a 'b c'", "--num_gpus=8", "--", "--max_batch_size=9"]
    [job] = plan_of(disk, FP8, *more).jobs
    words = words_of(job)
    assert job.commands()[0].container == "trtllm"
    assert {"--calib_dataset=texts", "--calib_size=4096", "--qformat=fp8", "--tp_size=8", "b c"} <= set(words)
    assert words[-1] == "--max_batch_size=9"
    [job] = plan_of(disk, TO_MEGATRON, "--model_type=qwen", "--dtype=fp32", "--", "--trust-remote-code").jobs
    words = words_of(job)
    at = words.index("newskills.train.pipelines.megatron_bridge")
    assert words[at + 1 :] == [
        *["import", "--hf-model=/disk/base", "--megatron-path=/disk/m", "--dtype=fp32", "--trust-remote-code"]
    ]
    assert job.commands()[0].container == "megatron"
    assert job.log_dir == f"{disk}/conversion-logs/conversion"
    [job] = plan_of(disk, FROM_MEGATRON, "--hf_model_name=/disk/base").jobs
    words = words_of(job)
    at = words.index("newskills.train.pipelines.megatron_bridge")
    assert words[at + 1 :][:4] == [
        *["export", "--hf-model=/disk/base", "--megatron-path=/disk/m/iter_0000010", "--hf-path=/disk/model"]
    ]
    assert job.commands()[0].container == "megatron"
    [job] = plan_of(disk, CONVERT.replace("dcp", "megatron")).jobs  # of NeMo-RL: …/step_5
    assert "/opt/nemo-rl/examples/converters/convert_megatron_to_hf.py" in words_of(job)
    assert job.commands()[0].container == "nemo-rl"
    [own] = plan_of(
        disk, CONVERT.replace("dcp", "hf").replace("=hf --convert_to=hf", "=hf --convert_to=gguf")
    ).jobs
    assert "--cluster=none" in words_of(own)
    assert own.commands()[0].container == "nemo-skills"


def test_a_mean_as_a_job(disk: Path) -> None:
    line = "average_checkpoints --checkpoints /disk/hf --steps=1,2 --output_model=/disk/mean"
    [job] = plan_of(disk, line, "--remove_checkpoints_after_average").jobs
    words = words_of(job)
    assert words[words.index("--checkpoints") + 1 :][:2] == ["/disk/hf/step_1", "/disk/hf/step_2"]
    assert words[words.index("--remove") + 1 :] == ["/disk/hf/step_1", "/disk/hf/step_2"]


@pytest.mark.parametrize(
    ("line", "more", "said"),
    [
        (SFT.replace("pairs", "plain"), [], "its keys are problem, expected_answer"),
        (SFT.replace("pairs", "none"), [], "There is no"),
        (GRPO.replace("plain", "pairs"), [], "its keys are input, output"),
        (SFT, ["--validation_data=/disk/talks.jsonl"], "is not {input, output}"),
        (SFT, ["--average_steps=5"], "at least two steps"),
        (SFT, ["--remove_checkpoints_after_average"], "needs --average_steps"),
        (SFT, ["--conversion_step=first"], "last or the number of a step"),
        (SFT, ["--profile_step_range=0:5"], "expected A:B"),
        (SFT, ["--model=./nowhere"], "no such folder"),
        (SFT, ["--data_format=plain"], "messages or input_output"),
        (SFT, ["--backend=fspd"], "fspd"),
        (SFT, ["--n_servers=2"], "n_servers"),
        (SFT.replace("--training_data=/disk/pairs.jsonl ", ""), [], "No training data is given."),
        (GRPO, ["--server_model=/j"], "No judge server is given."),
        (GRPO, ["--server_gpus=1"], "give --server_type"),
        (GRPO, ["--prompt_config=generic/maht"], "maht"),
        (PPO.replace("plain", "talks"), [], "its keys are messages"),
        (MEGATRON, ["--entrypoint=evil.sh"], "pretrain_gpt.py"),
        (MEGATRON, ["++a.b=1"], "not nested"),
        (FP8, [], "--dtype=fp8 needs --calib_dataset"),
        (FP8.replace("fp8", "bf16"), [], "serves Hugging Face folders directly"),
        (FROM_MEGATRON, [], "--hf_model_name is missing"),
        (TO_MEGATRON, ["--dtype=fp8"], "only for TensorRT-LLM"),
        (PPO, ["--lora_rank=8", "--backend=megatron"], "--lora_rank needs --backend=fsdp"),
        (GRPO, ["--loss=sapo"], "NeMo-RL has no loss sapo"),
        (SFT, ["--lora_rank=8", "--average_steps=1,2", "--backend=fsdp"], "LoRA pairs are not averaged"),
        (CONVERT.replace("dcp", "nemo"), [], "export the model"),
        (
            CONVERT.replace("dcp", "megatron").replace("=hf", "=trtllm"),
            [],
            "Converting megatron to trtllm is not supported",
        ),
        (CONVERT.replace("step_5", "last"), [], "the folder of one NeMo-RL step"),
        (CONVERT, ["--model_type=deepseek_v3"], "DeepSeek v3"),
        (CONVERT.replace("dcp", "hf"), [], "nothing to convert"),
        ("average_checkpoints --checkpoints /disk/a --output_model=/disk/m", [], "at least two"),
        (
            "average_checkpoints --checkpoints /disk/a /disk/b --output_model=/disk/a --remove /disk/a",
            [],
            "the average is written there",
        ),
    ],
)
def test_what_is_refused_before_anything_is_submitted(disk: Path, line: str, more: list[str], said: str) -> None:
    with pytest.raises((ConfigError, DataError, NewskillsError)) as error:
        plan_of(disk, line, *more)
    assert said in str(error.value)
    assert not (disk / "jobs").exists()


def test_an_empty_file_and_a_broken_row(disk: Path) -> None:
    (disk / "pairs.jsonl").write_text("")
    with pytest.raises(DataError, match="is empty"):
        plan_of(disk, SFT)
    write(disk / "pairs.jsonl", [*PAIRS * 3, {"input": "?"}])
    with pytest.raises(DataError, match="line 4, has no 'output'"):
        plan_of(disk, SFT)


def test_data_that_another_experiment_makes_is_checked_by_the_job(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (disk / "talks.jsonl").unlink()
    line = SFT.replace("pairs", "talks")
    training = plan_of(disk, line, "--run_after=data", "--data_format=messages").jobs[0]
    assert "--check=messages:/disk/talks.jsonl" in words_of(training)
    assert training.files["nemo_rl.yaml"].count("openai_format") == 1


def test_what_nobody_said_is_chosen_and_told(
    disk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(disk))  # no sinfo here
    index = disk / "base/model.safetensors"
    with index.open("wb") as file:
        file.truncate(50_000_000_000)
    line = "nemo_rl sft --expname=my-run --model=/disk/base --training_data=/disk/pairs.jsonl"
    pipeline = plan_of(disk, line, timeouts={}, mounts=[f"{disk}:/disk", f"{disk.parent}/results:/results"])
    told = capsys.readouterr().err
    assert "no --backend: megatron (about 25 billion parameters)" in told
    assert "no --num_gpus: 8 per node (the cluster did not report it)" in told
    assert "no --output_dir: writing to /results/my-run" in told
    assert config_of(pipeline)["policy"]["megatron_cfg"]["enabled"] is True
    assert config_of(pipeline)["logger"]["log_dir"] == "/results/my-run/logs"
    index.unlink()
    for name, backend in (("Qwen3-0.6B", "fsdp"), ("llama-3.1-70b", "megatron"), ("unknown", "fsdp")):
        pipeline = plan_of(disk, line.replace("/disk/base", f"hub/{name}"), "--output_dir=/disk/o")
        assert config_of(pipeline)["policy"]["megatron_cfg"]["enabled"] == (backend == "megatron")
    with pytest.raises(ConfigError, match="Give --output_dir"):
        plan_of(
            disk,
            line,
            mounts=["/elsewhere:/elsewhere", f"{disk}/pairs.jsonl:/disk/pairs.jsonl", f"{disk}/base:/disk/base"],
        )


@pytest.mark.parametrize("name", ["sft", "grpo", "ppo", "megatron", "convert"])
def test_scripts_for_slurm(disk: Path, name: str) -> None:
    lines = {
        "sft": (SFT, ["--num_nodes=2", "--dependent_jobs=1", "--average_steps=1,2"]),
        "grpo": (GRPO, ["--server_model=/disk/judge", "--server_type=vllm", "--server_gpus=4", "--with_sandbox"]),
        "ppo": (PPO, ["--no-exclusive", "--partition=gpu", "--account=me"]),
        "megatron": (MEGATRON, ["--num_nodes=2"]),
        "convert": (FP8, ["--calib_dataset=texts", "--num_gpus=2"]),
    }
    line, more = lines[name]
    ready = planned(disk, line, *more)
    site = Site(cluster=ready.submission.cluster, environ={}, folder="/jobs/exp", code="/jobs/code")
    place = make_executor(site)
    text = ""
    for job in ready.submission.pipeline.jobs:
        for file, content in render_scripts(job, site.job_folder(job), place).items():
            if file == "job.sh":
                start = content[content.index("start_all() {") : content.index("# send_signal")]
                header = "\n".join(row for row in content.splitlines() if row.startswith("#SBATCH"))
                text += f"==> {job.name}/{file}\n{header}\n{start}"
            elif file.endswith((".yaml", ".txt")):
                text += f"==> {job.name}/{file}\n{content}"
            elif file == "main.sh":
                text += f"==> {job.name}/{file}\n{content[content.index('job_argv=(') :]}"
    text = text.replace(str(disk.parent), "/tmp/TEST")
    assert text == (GOLDEN / f"training-{name}.txt").read_text()


def test_python_names_of_the_commands() -> None:
    import newskills

    names = ("sft_nemo_rl", "grpo_nemo_rl", "ppo_verl", "train_megatron_lm", "convert", "average_checkpoints")
    assert all(callable(getattr(newskills, name)) for name in names)
    with pytest.raises(TypeError, match="Missing required argument: 'model'"):
        newskills.sft_nemo_rl(cluster="none")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="training_date"):
        newskills.grpo_nemo_rl(model="m", training_date="x")  # type: ignore[call-arg]


def test_the_whole_command_line(disk: Path) -> None:
    shown = ns(f"ns nemo-rl sft {SFT.removeprefix('nemo_rl sft').replace('/disk', str(disk))} --dry_run", cwd=disk)
    assert shown.returncode == 0, shown.stderr
    assert json.dumps("x") not in shown.stderr
    assert "examples/run_sft.py" in shown.stdout
    wrong = ns("ns nemo_rl stf", cwd=disk)
    assert wrong.returncode != 0
    assert "did you mean 'sft'" in wrong.stderr


SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500}


@pytest.mark.parametrize("line", [SFT, GRPO, PPO])
def test_a_dry_run_estimates_the_memory_of_a_model_that_is_here(disk: Path, line: str) -> None:
    assert "memory" not in planned(disk, line).shown
    (disk / "base/config.json").write_text(json.dumps({"max_position_embeddings": 2048, **SIZES}))
    told = str(planned(disk, line).shown["memory"])
    assert told.startswith("needs about ")
    assert told.endswith("an estimate, without vLLM")
    assert "memory" not in planned(disk, line.replace("fsdp", "megatron")).shown


def test_one_experiment_waits_for_all_of_another(disk: Path) -> None:
    """As in the page's example: a model that does not exist yet is no error, and its jobs are waited for."""
    pipeline = plan_of(disk, GRPO.replace("/disk/base", "/disk/out/final_hf_model"), "--run_after=sft")
    assert [job.run_after for job in pipeline.jobs] == [("sft",), ("sft",)]


def test_rows_that_have_both_forms(disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(disk / "pairs.jsonl", [PAIRS[0] | TALKS[0]])
    pipeline = plan_of(disk, SFT)
    assert config_of(pipeline)["data"]["train"]["dataset_name"] == "openai_format"
    assert config_of(pipeline)["policy"]["tokenizer"]["chat_template"] == "default"
    assert "messages is used" in capsys.readouterr().err


def test_a_mean_never_takes_the_place_of_another_model(disk: Path) -> None:
    (disk / "out/final_hf_model").mkdir(parents=True)
    with pytest.raises(ConfigError, match="already exists"):
        plan_of(disk, SFT, "--average_steps=1,2")
    assert len(plan_of(disk, SFT, "--average_steps=1,2", "--final_hf_path=/disk/mine").jobs) == 3


def test_both_places_say_the_same_of_nemo_checkpoints(tmp_path: Path) -> None:
    convert = "ns convert --input_model=a --output_model=b --convert_from=nemo --convert_to=hf --model_type=llama"
    for line in (convert, "ns eval --benchmarks=gsm8k --model=m --server_type=nemo --output_dir=out"):
        done = ns(line, cwd=tmp_path)
        assert done.returncode == 2
        assert "newskills cannot serve or convert .nemo checkpoints" in done.stderr
        assert "ns convert" not in done.stderr
