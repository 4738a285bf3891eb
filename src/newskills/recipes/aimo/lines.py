# SPDX-License-Identifier: Apache-2.0
"""A stage as the `ns` lines that it is made of."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.recipes.aimo.settings import RlStage, SftStage, Stage
from newskills.train.loops.schedule import steps_of

Backend = Literal["cpu", "trl"]
FINAL = "final_hf_model"
DATA, TRAIN, VALIDATION, BUILT = "data", "train.jsonl", "validation.jsonl", "built.jsonl"


class Line(Struct, frozen=True, kw_only=True):
    """`ns command places --options ++keys`; what is None is not said.

    why      what it is for
    lenient  keys that the command does not have may be left out, with a note: not every trainer has all of them
    """

    command: str
    places: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}
    keys: Mapping[str, Any] = {}
    why: str = ""
    lenient: bool = False

    @property
    def words(self) -> list[str]:
        options = [f"--{name}={_text(value)}" for name, value in self.options.items() if value is not None]
        keys = [f"++{name}={_text(value)}" for name, value in self.keys.items() if value is not None]
        return [*self.places, *options, *keys]

    @property
    def shown(self) -> str:
        return shlex.join(["ns", *self.command.split(), *self.words])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return msgspec.json.encode(value).decode()
    return str(value)


class Reporting(Struct, frozen=True, kw_only=True):
    """What is written down on the way. `save_samples`: the share of samples that is kept; 0 = none."""

    report_to: Literal["tensorboard", "wandb", "none"] = "tensorboard"
    run_name: str = ""
    save_samples: float = 0.0
    samples_filename: str = "samples.jsonl"


def data_line(stage: Stage, dataset: str | None, tests: Sequence[str], places: Mapping[str, Any]) -> Line:
    """Problems of `dataset` (None: of the files alone, in a form of our own) without those of `tests`."""
    sft = isinstance(stage, SftStage)
    files = ",".join(stage.data_files) or None
    keys = {
        "output_path": Path(stage.output) / DATA / BUILT,
        "input_files": files if dataset else None,
        "preprocessed_dataset_files": None if dataset else files,
        "num_output_samples": stage.max_samples,
        "downsampling_method": None if stage.max_samples is None or not sft else "random",
        "random_seed": stage.seed,
        "prompt_config": stage.prompt if sft else None,
        "filters.trim_solutions": False if sft else None,
        "filters.remove_len_outlier_problems": False,
        "filters.remove_contaminated": bool(tests),
    }
    options = {
        "config_name": "stem_sft" if sft else "math_rl",
        "dataset": dataset,
        **places,
        "decontaminate": ",".join(tests) or None,
    }
    why = "the problems to learn from, without those of the tests"
    return Line(command="prepare_training_data", options=options, keys=keys, why=why)


def convert_line(start: str, folder: Path) -> Line:
    """A .gguf file, or the model known by name, as a Hugging Face folder."""
    options = {"input_model": start, "output_model": folder, "convert_from": "gguf", "convert_to": "hf"}
    return Line(command="convert", options=options, why="the model in a form that can be trained")


def sft_line(stage: SftStage, start: str, backend: Backend, rows: int | None, reporting: Reporting) -> Line:
    """`rows`: what the training file holds, for the length of the warm-up; None: nobody knows yet."""
    steps = None if rows is None else steps_of(stage.epochs, rows, stage.batch)
    keys = {
        **_common(stage, backend, steps, reporting),
        "batch_size": stage.batch,
        "trainer.quantization": stage.quantisation if backend == "trl" and stage.quantisation != "none" else None,
    }
    options = _places(stage, start, backend)
    return Line(command="sft", options=options, keys=keys, why="learns the solutions", lenient=True)


def rl_line(stage: RlStage, start: str, backend: Backend, rows: int | None, reporting: Reporting) -> Line:
    problems = stage.batch // stage.num_generations
    steps = None if rows is None else steps_of(stage.epochs, rows, problems)
    keys = {
        **_common(stage, backend, steps, reporting),
        "prompt_config": stage.prompt,
        "eval_type": "math",
        "batch_size": problems,
        "group_size": stage.num_generations,
        "schedule": stage.schedule,
        "max_tokens": stage.max_tokens,
        "temperature": stage.temperature,
        "top_p": stage.top_p,
        "reward.correct": stage.correct,
        "reward.wrong": stage.wrong,
        "reward.no_answer": stage.wrong,
        "reward.format.box": stage.boxed,
        "reward.length.penalty": stage.length_penalty or None,
        "reward.judge.weight": stage.judge_weight if stage.judge_model else None,
        "reward.judge.server.model": stage.judge_model or None,
        "reward.judge.server.server_type": stage.judge_server_type if stage.judge_model else None,
        "reward.judge.server.base_url": stage.judge_address or None,
    }
    options = _places(stage, start, backend)
    return Line(command="grpo", options=options, keys=keys, why="learns from rewards", lenient=True)


def _places(stage: Stage, start: str, backend: Backend) -> dict[str, Any]:
    return {
        "model": start,
        "training_data": Path(stage.output) / DATA / TRAIN,
        "output_dir": stage.output,
        "backend": backend,
    }


def _common(stage: Stage, backend: Backend, steps: int | None, reporting: Reporting) -> dict[str, Any]:
    """Keys of both kinds of training. The cpu trainer has pairs on all layers, and no dropout."""
    return {
        "epochs": stage.epochs,
        "learning_rate": stage.learning_rate,
        "schedule": stage.schedule,
        "warmup_steps": None if steps is None else round(stage.warmup * steps),
        "weight_decay": stage.weight_decay,
        "max_grad_norm": stage.max_grad_norm,
        "save_every": stage.save_steps,
        "seed": stage.seed,
        "trainer.lora.rank": stage.lora_rank,
        "trainer.lora.alpha": stage.lora_alpha,
        "trainer.lora.dropout": stage.lora_dropout if backend == "trl" else None,
        "trainer.lora.targets": stage.lora_modules if backend == "trl" else None,
    }
