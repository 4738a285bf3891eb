# SPDX-License-Identifier: Apache-2.0
"""`ns grpo`: reinforcement learning on this machine, rewarded by a grader."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands.command import Command
from newskills.commands.shared.training import (
    FINAL,
    TRAINING,
    LocalOptions,
    PromptKeys,
    TrainingRun,
    check_trainer,
    config_of,
    held_out_of,
    identity,
    keys_of,
    measured_by,
    questions_in,
    remark,
    run_training,
    split_questions,
)
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import doc
from newskills.pipelines.pages import prompt_text
from newskills.recipes.leakage import check_overlap, texts_of
from newskills.recipes.skill import RewardConfig, Skill
from newskills.recipes.training import context_of, fitting_problems, model_folder
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.policy import PolicyFormat
from newskills.run.rewarding.questions import QuestionFormat, asking_of
from newskills.run.rewarding.rollouts import SolverRollouts, with_code
from newskills.train.loops.evaluation import EvalSettings, HeldOut, kept_apart
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.samples import Problem
from newskills.train.loops.schedule import Schedule, steps_of


class Options(LocalOptions, frozen=True, kw_only=True):
    benchmark: Annotated[str | None, doc("benchmark to train on: its prompt, grader and split")] = None
    split: Annotated[str, doc("split of the benchmark")] = "train"
    training_data: Annotated[
        str | None,
        doc("JSONL file of problems instead of a benchmark, with the fields that prompt and grader need"),
    ] = None
    eval_data: Annotated[
        str | None,
        doc("JSONL file of held-out problems, with the prompt and grader of the training (or --eval_benchmark)"),
    ] = None


class GrpoKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of `ns grpo`."""

    eval_type: Annotated[str | None, Meta(description="another grader than the benchmark's")] = None
    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader")] = msgspec.field(
        default_factory=dict
    )
    batch_size: Annotated[int, Meta(ge=1, description="problems per step")] = 8
    group_size: Annotated[int, Meta(ge=2, description="samples per problem (group size)")] = 8
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    max_tokens: Annotated[
        int, Meta(ge=1, description="longest sample in tokens; with code or tools, of all turns together")
    ] = 256
    code_tags: Annotated[
        str | None,
        Meta(
            description="how code is marked in samples (qwen: ```python); the sandbox runs it, and the model goes on"
        ),
    ] = None
    code_executions: Annotated[int, Meta(ge=1, description="largest number of code blocks per sample")] = 5
    tool_modules: Annotated[
        tuple[str, ...] | None,
        Meta(description="tools that the model may call, as in ns eval: python, mcp, module::Class, …"),
    ] = None
    max_tool_calls: Annotated[int, Meta(ge=1, description="largest number of tool calls per sample")] = 8
    importance_cap: Annotated[
        float,
        Meta(ge=0, description="largest importance weight of a token, with code or tools; 0 = no correction"),
    ] = 2.0
    turn_weight: Annotated[
        float, Meta(ge=0, description="weight of the rewards that an environment gives per turn")
    ] = 0.0
    temperature: Annotated[float, Meta(gt=0, description="temperature of the samples")] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling mass of the samples")] = 1.0
    scale_by_std: Annotated[bool, Meta(description="divide advantages by the group's standard deviation")] = True
    loss: Annotated[
        Literal["importance_sampling", "ppo"],
        Meta(description="ppo: clip the probability ratio (trl always does)"),
    ] = "importance_sampling"
    iterations: Annotated[
        int, Meta(ge=1, description="updates per step with the same samples; more than 1 needs loss ppo")
    ] = 1
    clip_low: Annotated[float, Meta(gt=0, lt=1, description="lower clip: the ratio stays above 1 minus this")] = (
        0.2
    )
    clip_high: Annotated[float, Meta(gt=0, description="upper clip: the ratio stays below 1 plus this")] = 0.2
    kl: Annotated[float, Meta(ge=0, description="weight of the KL divergence from the initial model")] = 0.0
    drop_cut_off: Annotated[bool, Meta(description="ignore samples that reached max_tokens")] = False
    resample: Annotated[
        int,
        Meta(
            ge=0, description="times to draw other problems in place of groups whose rewards are all equal (cpu)"
        ),
    ] = 0
    masked: Annotated[
        str | None, Meta(description="file with problem ids to leave out, one per line (wrong expected answers)")
    ] = None
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 10
    held_out: Annotated[
        int,
        Meta(
            ge=0,
            description="number of training problems (at most a tenth) to hold out for evaluation, if no "
            "others are given; 0 = none",
        ),
    ] = 200
    eval: EvalSettings = EvalSettings(every=20)
    reward: RewardConfig = RewardConfig()

    def layers(self) -> list[Layer]:
        """What the user changes of an evaluation of the skill. Raises ConfigError."""
        changes: dict[str, Any] = {"inference.tokens_to_generate": self.max_tokens}
        if self.code_tags is not None:
            changes |= with_code(self.code_tags, self.code_executions, self.max_tokens)
        if self.tool_modules is not None:
            changes |= {"tool_modules": list(self.tool_modules), "max_tool_calls": self.max_tool_calls}
        return [self.prompt_layer(), Layer("command line", changes)]


@contextmanager
def _roll_out(
    skill: Skill, asking: QuestionFormat, base: Path, rows: list[Row]
) -> Iterator[SolverRollouts | None]:
    """How problems are solved that take several replies. Raises ConfigError, SandboxError where that cannot be here."""
    if asking.one_reply:
        yield None
        return
    form = PolicyFormat(tokenizer=skill.tokenizer, stops=skill.stops, context=context_of(base))
    with SolverRollouts(asking, form) as rollouts:
        if rows:
            rollouts.check(rows[0])
        yield rollouts


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (keys, packages), DataError (rows, overlap), TrainingError."""
    options = parsed.options
    keys = keys_of(GrpoKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    benchmark, data = _skill(options, keys)
    out, rows = Path(options.output_dir), _unmasked(read_rows(data), keys.masked)
    steps = keys.steps or steps_of(keys.epochs, max(1, len(rows)), keys.batch_size)
    # A text that goes on behind an output needs the chat template, which a name or a file does not have yet.
    early = [] if Path(options.model).is_dir() else [Layer("this check", {"inference.endpoint_type": "chat"})]
    asking = asking_of(benchmark, data, options.model, [*keys.layers(), *early])
    asking.check_one_answer(options.benchmark or str(data))
    if not asking.one_reply and options.backend != "cpu":
        raise ConfigError(
            f"--backend={options.backend} samples one reply per problem; {options.benchmark or data} takes several "
            f"(solver {asking.config.solved_by}).",
            hint="Use --backend=cpu.",
        )
    check_overlap(
        lambda: (text for row in rows for text in texts_of(row)),
        {**_held_out_questions(options), **measured_by(options)},
        allowed=options.allow_overlap,
        say=remark,
    )
    if options.dry_run:
        if rows:
            sys.stdout.write(f"first prompt of {data}:\n{prompt_text(asking.request(rows[0]))}\n\n")
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                ("reads", data, f"{len(rows)} problems, prompt {benchmark.prompt or 'of the rows'}"),
                (
                    "writes",
                    out,
                    f"{steps} steps of {keys.batch_size} × {keys.group_size}, grader {benchmark.grader}",
                ),
                ("writes", out / FINAL, "the trained model"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    asking = asking_of(benchmark, data, str(base), keys.layers())
    skill = Skill(base, asking)
    room = keys.limit(base), keys.max_tokens, keys.too_long
    config = config_of(GrpoConfig, keys, steps)
    settings = {**identity(keys), "steps": steps, "data": str(data)}
    with (
        BatchGrader(benchmark.grader, benchmark.grader_config) as verdict,
        held_out_of(options, keys, base) as other,
        _roll_out(skill, asking, base, rows) as roll_out,
    ):
        problems = fitting_problems([skill.problem(row) for row in rows], *room, say=print)
        scorer = msgspec.structs.replace(skill.scorer(verdict, keys.reward), roll_out=roll_out)
        held_out, held_out_problems = other, list[Problem]()
        if options.eval_data is not None:
            rows = list(read_rows(Path(options.eval_data)))
            held_out_problems = fitting_problems([skill.problem(row) for row in rows], *room, say=print)
            if not held_out_problems:
                raise DataError(f"{options.eval_data} has no problem to evaluate on.")
        elif other is None:
            problems, held_out_problems = kept_apart(problems, keys.held_out)
        if held_out_problems:
            longest = max(keys.eval.max_tokens, keys.max_tokens)
            eval_settings = msgspec.structs.replace(keys.eval, max_tokens=longest)
            held_out = HeldOut(problems=held_out_problems, scorer=scorer, settings=eval_settings)
        return run_training(
            options,
            keys,
            TrainingRun(title="GRPO", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.grpo(problems, config, folder, scorer, hooks),
        )


def _held_out_questions(options: Options) -> dict[str, list[str]]:
    """What --eval_data asks, and the split of the benchmark that is measured, where it is here."""
    questions = split_questions(options.benchmark, options.data_dir)
    if options.eval_data is not None:
        questions[options.eval_data] = questions_in(Path(options.eval_data))
    return questions


def _unmasked(rows: Iterable[Row], masked: str | None) -> list[Row]:
    """The rows whose `id` is not in the file. Raises DataError where it names none of them."""
    if masked is None:
        return list(rows)
    try:
        ids = set(Path(masked).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{masked} cannot be read: {error}.") from error
    every = list(rows)
    kept = [row for row in every if str(row.get("id")) not in ids]
    if len(kept) == len(every):
        raise DataError(f"No problem has an id listed in {masked}.", hint="It should hold one id per line.")
    return kept


def _skill(options: Options, keys: GrpoKeys) -> tuple[Benchmark, Path]:
    """Prompt, grader and the file of problems."""
    if (options.benchmark is None) == (options.training_data is None):
        raise ConfigError("ns grpo trains on a --benchmark or on --training_data: give one of them.")
    if options.benchmark is not None:
        benchmark = get_benchmark(options.benchmark)
        data = load_rows(benchmark, options.split, options.data_dir)
    else:
        benchmark, data = (
            Benchmark(name="grpo", category="reasoning", title="problems of the user's own"),
            Path(str(options.training_data)),
        )
    changed: dict[str, Any] = {"grader": keys.eval_type}
    if keys.eval_type is not None or keys.eval_config:
        kept = benchmark.grader_config if keys.eval_type is None else {}
        changed["grader_config"] = {**kept, **keys.eval_config}
    changes = {name: value for name, value in changed.items() if value is not None}
    return msgspec.structs.replace(benchmark, **changes), data


COMMAND = Command(
    name="grpo",
    summary="Train a small model with reinforcement learning on this machine (GRPO, LoRA on a CPU): the "
    "grader that evaluates gives the reward. A killed or stopped run resumes with the same command "
    "and reaches the same numbers. Needs newskills[train,local].",
    options=Options,
    config=GrpoKeys,
    run=run,
    aliases={"hf_model": "model"},
    examples=(
        "ns grpo --model=training/sft/final_hf_model --benchmark=sorting-lesson --output_dir=training/grpo ++steps=30",
        "ns grpo --model=smollm2 --training_data=problems.jsonl --output_dir=training/math "
        "++prompt_config=generic/math ++eval_type=math",
    ),
    essentials=(
        *TRAINING,
        "benchmark",
        "eval_data",
        "++prompt_config",
        "++eval_type",
        "++group_size",
        "++max_tokens",
        "++temperature",
        "++kl",
        "++held_out",
        "++reward.correct",
        "++reward.wrong",
    ),
)
