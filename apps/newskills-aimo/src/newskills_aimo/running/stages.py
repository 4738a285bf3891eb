# SPDX-License-Identifier: Apache-2.0
"""What `ns aimo train` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.tables import print_table
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.config.layers import Resolved, explain
from newskills.models.serving.gpus import VISIBLE, visible_gpus
from newskills.pipelines.arguments import user_layer
from newskills.pipelines.notices import print_note
from newskills.train.backends.trl.settings import cannot_quantise
from newskills.train.trainers import TRAINERS
from newskills_aimo.commands.train import LAST, Options
from newskills_aimo.recipe.lines import FINAL, Backend, ReportingOptions
from newskills_aimo.recipe.settings import STAGES, AimoConfig, Stage, StageName, resolve_settings
from newskills_aimo.recipe.training import StagedTraining, for_cpu_trainer, plan_stages, train_stages
from newskills_aimo.running.lines import print_from_first_process, run_line, show_lines, value_after

KEYS = {
    "max_samples": "max_samples",
    "learning_rate": "learning_rate",
    "num_epochs": "epochs",
    "save_steps": "save_steps",
    "logging_steps": "logging_steps",
    "eval_steps": "eval_steps",
    "num_generations": "num_generations",
    "eval_samples": "eval_samples",
    "eval_batch_size": "eval_batch_size",
    "llm_judge_weight": "judge_weight",
}
"""Options → keys of the stages that run, where they have them."""


def run_stages(parsed: Parsed[Options]) -> Path | None:
    """Return the folder of the model that the last stage trained, None for a dry run. Raises NewskillsError."""
    last = _stage_names(parsed.options)[-1]
    return value_after(run, parsed, lambda: Path(_resolve_settings(parsed).value.stage(last).output) / FINAL)


def _stage_names(options: Options) -> tuple[StageName, ...]:
    if options.stage == "full":
        return STAGES
    return (options.stage,)


def _resolve_settings(parsed: Parsed[Options]) -> Resolved[AimoConfig]:
    values = _option_values(parsed, _stage_names(parsed.options))
    return resolve_settings(parsed.options.config, values, user_layer(parsed.overrides).values)


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if options.force_cpu:
        os.environ[VISIBLE] = ""
    stages, resolved = _stage_names(options), _resolve_settings(parsed)
    if parsed.explain:
        print_table([(f"++{key}", value, of) for key, value, of in explain(resolved)], ("key", "value", "from"))
        return 0
    training = _staged_training(options, stages, _check_quantisation(options, resolved.value, stages, resolved))
    if options.dry_run:
        return show_lines(plan_stages(training))
    return train_stages(training, ns=run_line, say=print_from_first_process)


def _option_values(parsed: Parsed[Options], stages: tuple[StageName, ...]) -> dict[str, Any]:
    """Return the values of the options, by key."""
    options = parsed.options
    values_by_key: dict[str, Any] = {}
    for name in stages:
        config_leaves = leaves(AimoConfig)
        for option, key in KEYS.items():
            value = getattr(options, option)
            if value is not None and f"{name}.{key}" in config_leaves:
                values_by_key[f"{name}.{key}"] = value
    if options.base_model:
        values_by_key[f"{stages[0]}.start"] = options.base_model
    if options.output_dir:
        values_by_key |= _output_settings(options.output_dir, stages)
    if not options.flash_attn or find_spec("flash_attn"):
        way = "flash_attention_2" if options.flash_attn else "sdpa"
        values_by_key |= {f"{name}.attention": way for name in stages}
    if not options.vllm or not visible_gpus():
        values_by_key["rl.vllm"] = "none"
    if options.use_llm_judge:
        if not options.llm_judge_model:
            raise ConfigError("--use-llm-judge needs a judge model. Give --llm-judge-model.")
        values_by_key["rl.judge_model"] = options.llm_judge_model
    return values_by_key


def _output_settings(folder: str, stages: tuple[StageName, ...]) -> dict[str, Any]:
    """Return where the stages write, and hence where the next ones start."""
    if len(stages) == 1:
        return {f"{stages[0]}.output": folder}
    own = AimoConfig()
    made = {name: str(Path(folder) / Path(own.stage(name).output).name) for name in stages}
    starts = {f"{later}.start": made[earlier] for earlier, later in pairwise(stages)}
    return {f"{name}.output": place for name, place in made.items()} | starts


def _staged_training(options: Options, stages: tuple[StageName, ...], config: AimoConfig) -> StagedTraining:
    first, last = config.stage(stages[0]), stages[-1]
    run_name = "rl_math_grpo" if last == "rl" else Path(config.stage(last).output).name
    save_samples = options.sample_save_rate if options.save_samples else None
    resume_from = ""
    if options.resume_from_checkpoint not in (None, LAST):
        resume_from = str(options.resume_from_checkpoint)
    backend = _choose_backend(options, for_cpu_trainer(first.start, first.output))
    if is_one_of_several_processes() and not TRAINERS.properties(backend).several_processes:
        raise ConfigError(
            f"The {backend} trainer is one process; start it without a launcher, or add --backend=trl."
        )
    if is_one_of_several_processes() and "rl" in stages and config.rl.vllm == "colocate" and visible_gpus():
        raise ConfigError(
            "Several processes cannot share a GPU with vLLM.", hint="Add --no-vllm, or start a single process."
        )
    return StagedTraining(
        stages=stages,
        config=config,
        backend=backend,
        reporting=ReportingOptions(
            report_to=_report_to(options),
            run_name=options.run_name or run_name,
            project=os.environ.get("WANDB_PROJECT"),
            save_samples=save_samples,
            samples_filename=options.samples_filename,
        ),
        places={"data_dir": options.data_dir, "mirror": options.mirror, "offline": options.offline},
        resume_from=resume_from,
    )


def _report_to(options: Options) -> tuple[str, ...]:
    """Return where metrics go; to TensorBoard also where nobody asked, if it is here."""
    if options.report_to is None:
        if find_spec("tensorboard"):
            return ("tensorboard",)
        return ()
    if options.report_to == "wandb" and os.environ.get("WANDB_DISABLED", "").lower() in ("1", "true"):
        if find_spec("tensorboard"):
            print_note("WANDB_DISABLED is set: metrics go to TensorBoard")
            return ("tensorboard",)
        print_note("WANDB_DISABLED is set: metrics are not logged elsewhere (tensorboard is not installed)")
        return ()
    if options.report_to == "none":
        return ()
    return (options.report_to,)


def _choose_backend(options: Options, fits: bool) -> Backend:
    """Choose the trainer; `fits`: the cpu trainer can train the model."""
    if options.backend != "auto":
        return options.backend
    if fits and (options.force_cpu or not visible_gpus()):
        return "cpu"
    return "trl"


def backend_for(stage: Stage, *, force_cpu: bool = False) -> Backend:
    """Return the trainer for a stage on this machine."""
    if force_cpu:
        os.environ[VISIBLE] = ""
    if for_cpu_trainer(stage.start, stage.output) and not visible_gpus():
        return "cpu"
    return "trl"


def _check_quantisation(
    options: Options, config: AimoConfig, stages: tuple[StageName, ...], resolved: Resolved[AimoConfig]
) -> AimoConfig:
    """Return the settings; without a GPU and bitsandbytes the frozen weights stay whole, with a note.

    Raises ConfigError where the user has asked for 4 bits.
    """
    sft = [name for name in stages if name != "rl" and getattr(config, name).quantisation != "none"]
    why: str | None = "no GPU is visible"
    if visible_gpus():
        why = cannot_quantise()
    if options.backend in TRAINERS and not TRAINERS.properties(options.backend).quantizes:
        why = f"this trainer is the {options.backend} trainer"
    if not sft or why is None:
        return config
    for name in sft:
        if f"{name}.quantisation" in resolved.origin:
            raise ConfigError(
                f"++{name}.quantisation=nf4 cannot be used here: {why}.",
                hint=f"Leave it out, or set ++{name}.quantisation=none: the weights keep their precision.",
            )
    print_note(f"the frozen weights are not quantised to nf4: {why}")
    whole = {name: replace(getattr(config, name), quantisation="none") for name in sft}
    return replace(config, **whole)


def is_one_of_several_processes() -> bool:
    """Return whether a launcher (accelerate, torchrun) has started several processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1
