# SPDX-License-Identifier: Apache-2.0
"""A stage as the `ns` lines that it is made of."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.train.loops.folder import SAMPLES
from newskills.train.loops.schedule import steps_of
from newskills.train.trainers import TRAINERS
from newskills_aimo.recipe.settings import RlStage, SftStage, Stage, TirStage

Backend = Literal["cpu", "trl"]
FINAL = "final_hf_model"
DATA, TRAIN, BUILT = "data", "train.jsonl", "built.jsonl"
HELD_OUT, HELD_OUT_NAME, VALIDATION = "newskills_aimo.recipe.held_out::BENCHMARK", "aimo-held-out", "validation"
HELD_OUT_PROGRAMS, PROGRAMS = "newskills_aimo.recipe.held_out::WITH_PROGRAMS", "qwen"
"""The same problems for answers with programs, and how these are marked."""


class CommandLine(Struct, frozen=True, kw_only=True):
    """`ns command places --options ++keys`; options and keys that are None are left out.

    why      what it is for
    lenient  what the command does not have may be left out, with a note: not every trainer has everything
    """

    command: str
    places: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}
    keys: Mapping[str, Any] = {}
    why: str = ""
    lenient: bool = False

    @property
    def words(self) -> list[str]:
        options = [f"--{name}={_format_value(value)}" for name, value in self.options.items() if value is not None]
        keys = [f"++{name}={_format_value(value)}" for name, value in self.keys.items() if value is not None]
        return [*self.places, *options, *keys]

    @property
    def shell_text(self) -> str:
        return shlex.join(["ns", *self.command.split(), *self.words])


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return msgspec.json.encode(value).decode()
    return str(value)


class ReportingOptions(Struct, frozen=True, kw_only=True):
    """Where metrics go beside metrics.jsonl, and the share of samples that is kept; None = all of them."""

    report_to: tuple[str, ...] = ()
    run_name: str = ""
    project: str | None = None
    save_samples: float | None = None
    samples_filename: str = SAMPLES


def data_line(stage: Stage, dataset: str | None, tests: Sequence[str], places: Mapping[str, Any]) -> CommandLine:
    """Return the line for the problems of `dataset` (None: of the files alone, in a form of our own) without
    those of `tests`."""
    files_key = "input_files" if dataset else "preprocessed_dataset_files"
    config_name, downsampling, solution_keys = "math_rl", None, dict[str, Any]()
    if isinstance(stage, SftStage):
        config_name = "stem_sft"
        solution_keys = {"prompt_config": stage.prompt, "filters.trim_solutions": False}
        if stage.max_samples is not None:
            downsampling = "random"
    keys = {
        "output_path": Path(stage.output) / DATA / BUILT,
        files_key: ",".join(stage.data_files) or None,
        "num_output_samples": stage.max_samples,
        "downsampling_method": downsampling,
        "random_seed": stage.seed,
        **solution_keys,
        "filters.remove_len_outlier_problems": False,
        "filters.remove_contaminated": bool(tests),
    }
    options = {
        "config_name": config_name,
        "dataset": dataset,
        **places,
        "decontaminate": ",".join(tests) or None,
    }
    why = "the training problems, without those of the tests"
    return CommandLine(command="prepare_training_data", options=options, keys=keys, why=why)


def convert_line(start: str, folder: Path) -> CommandLine:
    """Return the command line that converts a .gguf file, or the model known by name, to a Hugging Face folder."""
    options = {"input_model": start, "output_model": folder, "convert_from": "gguf", "convert_to": "hf"}
    return CommandLine(command="convert", options=options, why="the model in a format that can be trained")


class Sizes(Struct, frozen=True):
    """Rows to learn from, and problems that are asked on the way."""

    rows: int
    held_out: int


def sft_line(
    stage: SftStage, start: str, backend: Backend, sizes: Sizes | None, reporting: ReportingOptions
) -> CommandLine:
    """Return the line of `ns sft`. `sizes` of the files are None where they are not known yet."""
    steps = None if sizes is None else steps_of(stage.epochs, sizes.rows, stage.batch)
    options = _path_options(stage, start, backend, reporting)
    keys = {
        **_common_keys(stage, backend, steps, reporting),
        "batch_size": stage.batch,
        "max_length": stage.max_length,
    }
    if _has_evaluation(stage, sizes):
        benchmark = HELD_OUT
        keys["eval.every"] = stage.eval_steps
        if isinstance(stage, TirStage):
            benchmark = HELD_OUT_PROGRAMS
            keys |= {"eval.code_tags": PROGRAMS, "eval.code_executions": stage.max_executions}
        options |= {
            "eval_benchmark": benchmark,
            "eval_split": VALIDATION,
            "data_dir": Path(stage.output) / DATA,
        }
    if TRAINERS.properties(backend).quantizes and stage.quantisation != "none":
        keys["trainer.trl.quantization"] = stage.quantisation
    return CommandLine(command="sft", options=options, keys=keys, why="training on the solutions", lenient=True)


def rl_line(
    stage: RlStage, start: str, backend: Backend, sizes: Sizes | None, reporting: ReportingOptions
) -> CommandLine:
    """Return the line of `ns grpo`, as `sft_line`; batches are counted in samples there, and in problems here."""
    problems = stage.batch // stage.num_generations
    steps = None if sizes is None else steps_of(stage.epochs, sizes.rows, problems)
    keys = {
        **_common_keys(stage, backend, steps, reporting),
        "prompt_config": stage.prompt,
        "eval_type": "math",
        "batch_size": problems,
        "group_size": stage.num_generations,
        "max_tokens": stage.max_tokens,
        "temperature": stage.temperature,
        "top_p": stage.top_p,
        "kl": stage.beta,
        **_reward_keys(stage),
    }
    options = _path_options(stage, start, backend, reporting)
    if _has_evaluation(stage, sizes):
        options["eval_data"] = held_out_file(Path(stage.output))
        keys |= {
            "eval.every": stage.eval_steps,
            "eval.max_problems": stage.eval_samples,
            "eval.batch_size": stage.eval_batch_size,
            "eval.temperature": stage.eval_temperature,
            "eval.max_tokens": stage.max_tokens,
        }
    if TRAINERS.properties(backend).trl_settings and stage.vllm == "colocate":
        keys |= {"trainer.trl.sampler": "vllm", "trainer.trl.vllm_memory": stage.vllm_memory}
    return CommandLine(command="grpo", options=options, keys=keys, why="training on rewards", lenient=True)


def _has_evaluation(stage: Stage, sizes: Sizes | None) -> bool:
    return bool(stage.eval_steps) and (sizes is None or sizes.held_out > 0)


def held_out_file(output: Path) -> Path:
    """Return where the problems lie that are asked on the way, as a benchmark of the data folder."""
    return output / DATA / HELD_OUT_NAME / f"{VALIDATION}.jsonl"


def _reward_keys(stage: RlStage) -> dict[str, Any]:
    reward: dict[str, Any] = {
        "correct": stage.correct,
        "wrong": stage.wrong,
        "no_answer": stage.wrong,
        "format.box": stage.boxed,
        "length.penalty": stage.length_penalty or None,
    }
    if stage.judge_model:
        reward |= {
            "judge.weight": stage.judge_weight,
            "judge.server.model": stage.judge_model,
            "judge.server.server_type": stage.judge_server_type,
            "judge.server.base_url": stage.judge_address or None,
        }
    return {f"reward.{name}": value for name, value in reward.items()}


def _path_options(stage: Stage, start: str, backend: Backend, reporting: ReportingOptions) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": start,
        "training_data": Path(stage.output) / DATA / TRAIN,
        "output_dir": stage.output,
        "backend": backend,
    }
    if "wandb" in reporting.report_to:
        options |= {"wandb_name": reporting.run_name, "wandb_project": reporting.project}
    return options


def _common_keys(stage: Stage, backend: Backend, steps: int | None, reporting: ReportingOptions) -> dict[str, Any]:
    """Return the keys of both kinds of training. The cpu trainer has pairs on all layers, and no dropout."""
    keys: dict[str, Any] = {
        "epochs": stage.epochs,
        "learning_rate": stage.learning_rate,
        "schedule": stage.schedule,
        "warmup_steps": None if steps is None else round(stage.warmup * steps),
        "weight_decay": stage.weight_decay,
        "max_grad_norm": stage.max_grad_norm,
        "save_every": stage.save_steps,
        "keep": stage.keep,
        "seed": stage.seed,
        "report_to": reporting.report_to or None,
        "trainer.lora.rank": stage.lora_rank,
        "trainer.lora.alpha": stage.lora_alpha,
    }
    if TRAINERS.properties(backend).trl_settings:
        keys |= {
            "trainer.lora.dropout": stage.lora_dropout,
            "trainer.lora.targets": stage.lora_modules,
            "trainer.trl.micro_batch_size": stage.batch_size,
            "trainer.trl.gradient_checkpointing": True,
            "trainer.trl.attention": stage.attention or None,
        }
    return keys
