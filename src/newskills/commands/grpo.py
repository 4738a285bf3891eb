# SPDX-License-Identifier: Apache-2.0
"""`ns grpo`: reinforcement learning on this machine, rewarded by a grader."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands._command import Command
from newskills.commands._dry_run import show_dry_run
from newskills.commands._options import AtLeastOne, DryRun, doc
from newskills.commands._training import ended, keys_of, require_train, steps_shown, stop_on_signals
from newskills.commands.sft import FINAL
from newskills.config.command_line import Parsed
from newskills.recipes.skill import RewardConfig, Skill
from newskills.recipes.training import TrainerSettings, model_folder, trained
from newskills.run.rewarding import Verdicts
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, grpo
from newskills.train.loops.schedule import Schedule, steps_of


class Options(Struct, frozen=True, kw_only=True):
    model: Annotated[str, doc("Hugging Face folder, .gguf file, or smollm2")]
    output_dir: Annotated[str, doc("folder of checkpoints and metrics; the same folder goes on where it was")]
    benchmark: Annotated[str | None, doc("whose prompt, grader and split to learn from")] = None
    split: Annotated[str, doc("of the benchmark")] = "train"
    training_data: Annotated[str | None, doc("JSONL of problems instead, with what prompt and grader need")] = None
    data_dir: Annotated[str | None, doc("where prepared data lies")] = None
    backend: Annotated[Literal["cpu"], doc("cpu: LoRA in this process, for small Llama models")] = "cpu"
    dry_run: DryRun = False


class GrpoKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of `ns grpo`."""

    prompt_config: Annotated[str | None, Meta(description="other prompt than the benchmark's")] = None
    eval_type: Annotated[str | None, Meta(description="other grader than the benchmark's")] = None
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader")] = {}
    epochs: Annotated[float, Meta(gt=0, description="passes over the problems, unless steps is set")] = 1.0
    steps: Annotated[AtLeastOne | None, Meta(description="batches of problems")] = None
    batch_size: Annotated[int, Meta(ge=1, description="problems of a step")] = 8
    group_size: Annotated[int, Meta(ge=2, description="samples of each problem")] = 8
    learning_rate: Annotated[float, Meta(gt=0, description="at its highest")] = 2e-4
    schedule: Annotated[Schedule, Meta(description="of the learning rate after warm-up")] = "constant"
    warmup_steps: Annotated[int, Meta(ge=0, description="steps up to the learning rate")] = 0
    weight_decay: Annotated[float, Meta(ge=0, description="of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Meta(ge=0, description="longer gradients are cut to this; 0 = never")] = 1.0
    max_tokens: Annotated[int, Meta(ge=1, description="of a sample")] = 256
    temperature: Annotated[float, Meta(gt=0, description="of the samples")] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1, description="of the samples")] = 1.0
    scale_by_std: Annotated[bool, Meta(description="divide advantages by the group's standard deviation")] = True
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 10
    seed: Annotated[int, Meta(description="of the order of the problems and of the samples")] = 0
    reward: RewardConfig = RewardConfig()
    trainer: TrainerSettings = TrainerSettings()


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    keys = keys_of(GrpoKeys, parsed)
    if keys is None:
        return 0
    benchmark, data = _skill(options, keys)
    out, rows = Path(options.output_dir), list(read_rows(data))
    steps = keys.steps or steps_of(keys.epochs, max(1, len(rows)), keys.batch_size)
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                ("reads", data, f"{len(rows)} problems, prompt {benchmark.prompt}"),
                (
                    "writes",
                    out,
                    f"{steps} steps of {keys.batch_size} × {keys.group_size}, grader {benchmark.grader}",
                ),
                ("writes", out / FINAL, "the model with the pairs merged"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    skill = Skill(base, benchmark.prompt)
    problems = [skill.problem(row) for row in rows]
    names = set(GrpoConfig.__struct_fields__) - {"steps", "loss"}
    given = {name: value for name, value in msgspec.structs.asdict(keys).items() if name in names}
    config = GrpoConfig(steps=steps, **given)
    folder = TrainingFolder(
        out, {**msgspec.to_builtins(keys), "steps": steps, "model": options.model, "data": str(data)}
    )
    with Verdicts(benchmark.grader, benchmark.grader_config) as verdict, stop_on_signals() as stop:
        reward = skill.reward(verdict, keys.reward)
        whole = trained(
            base,
            folder,
            out / FINAL,
            keys.trainer,
            lambda client, at: grpo(
                client,
                problems,
                config,
                at,
                reward=reward,
                decode=skill.tokenizer.decode,
                stops=skill.stops,
                told=steps_shown("GRPO"),
                stop=stop,
            ),
        )
    folder.close()
    return ended(whole, out / FINAL, folder)


def _skill(options: Options, keys: GrpoKeys) -> tuple[Benchmark, Path]:
    """Prompt, grader and the file of problems."""
    if (options.benchmark is None) == (options.training_data is None):
        raise ConfigError("ns grpo learns from a --benchmark or from --training_data: name one of them.")
    if options.benchmark is not None:
        benchmark = get_benchmark(options.benchmark)
        data = load_rows(benchmark, options.split, options.data_dir)
    else:
        benchmark, data = (
            Benchmark(name="grpo", category="reasoning", title="problems of the user's own"),
            Path(str(options.training_data)),
        )
    changed: dict[str, Any] = {"prompt": keys.prompt_config, "grader": keys.eval_type}
    if keys.eval_type is not None or keys.eval_config:
        kept = benchmark.grader_config if keys.eval_type is None else {}
        changed["grader_config"] = {**kept, **keys.eval_config}
    given = {name: value for name, value in changed.items() if value is not None}
    return msgspec.structs.replace(benchmark, **given), data


COMMAND = Command(
    name="grpo",
    summary="Reinforce a small model on this machine (GRPO, LoRA on a CPU): the grader that measures is the reward. A "
    "killed or stopped run goes on with the same command, to the same numbers. Needs newskills[train,local].",
    options=Options,
    config=GrpoKeys,
    run=run,
    aliases={"hf_model": "model"},
    examples=(
        "ns grpo --model=training/sft/final_hf_model --benchmark=sorting-lesson --output_dir=training/grpo ++steps=30",
        "ns grpo --model=smollm2 --training_data=problems.jsonl --output_dir=training/math "
        "++prompt_config=generic/math ++eval_type=math",
    ),
)
