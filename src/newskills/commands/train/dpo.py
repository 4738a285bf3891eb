# SPDX-License-Identifier: Apache-2.0
"""`ns dpo`: learning from preferences on this machine."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.store import write_rows
from newskills.base.terminal import counted
from newskills.benchmarks import get_benchmark
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
    remark,
    run_training,
    split_questions,
)
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.options import doc
from newskills.recipes.leakage import check_overlap
from newskills.recipes.preferences import (
    PairCount,
    Preference,
    as_pair,
    fitting_pairs,
    pair_outputs,
    read_preferences,
)
from newskills.recipes.skill import Skill
from newskills.recipes.training import model_folder
from newskills.run.rewarding.questions import asking_of
from newskills.train.loops.dpo import DpoConfig
from newskills.train.loops.schedule import Schedule, steps_of

PAIRS = "pairs.jsonl"
"""Where pairs that were made of graded outputs are, below the output folder."""


class Options(LocalOptions, frozen=True, kw_only=True):
    training_data: Annotated[
        str | None, doc("JSONL file of {prompt, chosen, rejected}: texts used unchanged, or conversations")
    ] = None
    input_files: Annotated[
        list[str],
        doc("instead: graded output files of several seeds; correct replies are paired with wrong ones"),
    ] = msgspec.field(default_factory=list)
    benchmark: Annotated[str | None, doc("benchmark of --input_files: its prompt (or ++prompt_config)")] = None


class DpoKeys(PromptKeys, frozen=True, kw_only=True):
    """`++` keys of `ns dpo`."""

    learning_rate: Annotated[float, Meta(gt=0, description="peak learning rate")] = 5e-5
    batch_size: Annotated[int, Meta(ge=1, description="pairs per step")] = 8
    beta: Annotated[float, Meta(gt=0, description="beta: how much a difference from the initial model counts")] = (
        0.1
    )
    pairs_per_problem: Annotated[int, Meta(ge=1, description="most pairs of one problem (--input_files)")] = 2
    drop_cut_off: Annotated[
        bool, Meta(description="ignore replies that reached their limit of tokens (--input_files)")
    ] = False
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 20


def run(parsed: Parsed[Options]) -> int:
    """Returns the exit code. Raises ConfigError (options, packages), DataError (pairs, overlap), TrainingError."""
    options = parsed.options
    keys = keys_of(DpoKeys, parsed)
    if keys is None:
        return 0
    check_trainer(options, keys)
    files, out = _files(options), Path(options.output_dir)
    if options.dry_run:
        show_dry_run(
            [
                ("reads", options.model, "the model"),
                *(("reads", file, "pairs" if options.training_data else "graded outputs") for file in files),
                ("writes", out, f"steps of {keys.batch_size} pairs: metrics.jsonl, checkpoints"),
                ("writes", out / FINAL, "the trained model"),
            ]
        )
        return 0
    require_train("torch", "safetensors", "tokenizers")
    base = model_folder(options.model, out / "base_hf_model", say=print)
    skill, preferences = _preferences(options, keys, base, files)
    check_overlap(
        lambda: (text for preference in preferences for text in _prompt_texts(preference)),
        {**split_questions(options.benchmark, options.data_dir), **measured_by(options)},
        allowed=options.allow_overlap,
        say=remark,
    )
    pairs = [as_pair(preference, skill) for preference in preferences]
    pairs = fitting_pairs(pairs, keys.limit(base), drop=keys.too_long != "error", say=print)
    steps = keys.steps or steps_of(keys.epochs, len(pairs), keys.batch_size)
    config = config_of(DpoConfig, keys, steps)
    content = hashlib.sha256(msgspec.json.encode(preferences)).hexdigest()
    settings = {**identity(keys), "steps": steps, "data": [str(file) for file in files], "pairs": content}
    with held_out_of(options, keys, base) as held_out:
        return run_training(
            options,
            keys,
            TrainingRun(title="DPO", base=base, settings=settings, held_out=held_out),
            lambda trainer, folder, hooks: trainer.dpo(pairs, config, folder, hooks),
        )


def _files(options: Options) -> list[Path]:
    """What the pairs are made of. Raises ConfigError, DataError."""
    if (options.training_data is None) == (not options.input_files):
        raise ConfigError("ns dpo trains on --training_data or on --input_files: give one of them.")
    if options.training_data is not None:
        files = [Path(options.training_data)]
    else:
        files = [Path(name) for pattern in options.input_files for name in (sorted(glob(pattern)) or [pattern])]
    if missing := [file for file in files if not file.is_file()]:
        raise DataError(f"There is no file {missing[0]}.")
    return files


def _preferences(
    options: Options, keys: DpoKeys, base: Path, files: Sequence[Path]
) -> tuple[Skill, list[Preference]]:
    if options.training_data is not None:
        return Skill(base, template=keys.chat_template_kwargs), read_preferences(files[0])
    if options.benchmark is None and keys.prompt_config is None:
        raise ConfigError(
            "--input_files needs the prompt that asked for the replies.",
            hint="Give --benchmark=NAME, or ++prompt_config=NAME.",
        )
    benchmark = (
        get_benchmark(options.benchmark)
        if options.benchmark is not None
        else Benchmark(name="dpo", category="reasoning", title="problems of the user's own")
    )
    asking = asking_of(benchmark, files[0], str(base), [keys.prompt_layer()])
    asking.check_one_reply(options.benchmark or str(files[0]))
    skill = Skill(base, asking)
    preferences, count = pair_outputs(
        files, skill, keys.pairs_per_problem, keys.seed, keep_cut_off=not keys.drop_cut_off
    )
    target = Path(options.output_dir) / PAIRS
    write_rows(target, (msgspec.to_builtins(preference) for preference in preferences))
    sys.stdout.write(f"{target}: {_summary(count, len(preferences))}\n")
    return skill, preferences


def _summary(count: PairCount, pairs: int) -> str:
    used = count.problems - count.all_correct - count.all_wrong
    reasons = [
        f"{number} {what}"
        for number, what in (
            (count.all_correct, "with only correct replies"),
            (count.all_wrong, "with only wrong replies"),
        )
        if number
    ]
    unused = f" (left out: {', '.join(reasons)})" if reasons else ""
    ignored = [
        f"{number} {what}"
        for number, what in ((count.unscored, "without a verdict"), (count.cut_off, "cut off"))
        if number
    ]
    replies = f"; replies ignored: {', '.join(ignored)}" if ignored else ""
    return f"{counted(pairs, 'pair')} of {used} of {counted(count.problems, 'problem')}{unused}{replies}"


def _prompt_texts(preference: Preference) -> list[str]:
    if isinstance(preference.prompt, str):
        return [preference.prompt]
    return [turn["content"] for turn in preference.prompt if isinstance(turn.get("content"), str)]


COMMAND = Command(
    name="dpo",
    summary="Train a small model on preferred and rejected replies on this machine (DPO; LoRA on a CPU). Pairs come "
    "from a file, or from graded outputs: correct replies beside wrong ones to the same problem. A killed or stopped "
    "run resumes with the same command and reaches the same numbers. Needs newskills[train,local].",
    options=Options,
    config=DpoKeys,
    run=run,
    aliases={"hf_model": "model"},
    examples=(
        "ns dpo --model=training/sft/final_hf_model --training_data=pairs.jsonl --output_dir=training/dpo",
        "ns dpo --model=training/sft/final_hf_model --benchmark=sorting-lesson "
        "--input_files 'results/eval-results/sorting-lesson/output-rs*.jsonl' --output_dir=training/dpo",
    ),
    essentials=(*TRAINING, "input_files", "benchmark", "++beta", "++pairs_per_problem", "++too_long"),
)
