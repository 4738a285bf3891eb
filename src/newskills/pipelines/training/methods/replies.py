# SPDX-License-Identifier: Apache-2.0
"""What trainings on better and worse replies share: the files, and the pairs that they stand for."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import write_rows
from newskills.base.terminal import counted
from newskills.benchmarks import get_benchmark
from newskills.pipelines.dry_run import Step
from newskills.pipelines.training.methods.held_out import measured_by, print_remark, split_questions
from newskills.pipelines.training.methods.method_options import PairKeys, PairOptions, ReplyKeys, ReplyOptions
from newskills.run.rewarding.questions import asking_of
from newskills.run.training.leakage import check_overlap
from newskills.run.training.preferences import (
    PairCount,
    Preference,
    as_pair,
    fitting_pairs,
    pair_outputs,
    read_preferences,
)
from newskills.run.training.skill import Skill
from newskills.train.loops.dpo import Pair

PAIRS = "pairs.jsonl"
"""Where pairs that were made of graded outputs are, below the output folder."""


def input_files(command: str, options: ReplyOptions) -> list[Path]:
    """Return the files to train on. Raises ConfigError, DataError."""
    if (options.training_data is None) == (not options.input_files):
        raise ConfigError(f"ns {command} trains on --training_data or on --input_files: give one of them.")
    if options.training_data is not None:
        files = [Path(options.training_data)]
    else:
        files = [Path(name) for pattern in options.input_files for name in (sorted(glob(pattern)) or [pattern])]
    if missing := [file for file in files if not file.is_file()]:
        raise DataError(f"There is no file {missing[0]}.")
    return files


def asked_by(options: ReplyOptions, keys: ReplyKeys, base: Path, file: Path) -> Skill:
    """Return the skill with which the replies of --input_files, of which `file` is one, were asked for. Raises
    ConfigError."""
    if options.benchmark is None and keys.prompt_config is None:
        raise ConfigError(
            "--input_files needs the prompt that asked for the replies.",
            hint="Give --benchmark=NAME, or ++prompt_config=NAME.",
        )
    if options.benchmark is not None:
        benchmark = get_benchmark(options.benchmark)
    else:
        benchmark = Benchmark(name="replies", category="reasoning", title="problems of the user's own")
    asking = asking_of(benchmark, file, str(base), [keys.prompt_layer()])
    asking.check_one_reply(options.benchmark or str(file))
    return Skill(base, asking)


def check_prompts(options: ReplyOptions, prompts: Sequence[list[Row] | str]) -> None:
    """Raise DataError where a problem that is evaluated on is among the prompts, unless that is allowed."""
    check_overlap(
        lambda: (text for prompt in prompts for text in _prompt_texts(prompt)),
        {**split_questions(options.benchmark, options.data_dir), **measured_by(options)},
        allowed=options.allow_overlap,
        say=print_remark,
    )


def content_of(rows: object) -> str:
    """Return a hash of what is trained on."""
    return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


def described_pairs(options: PairOptions, files: Sequence[Path]) -> list[Step]:
    """Return the files as steps of a dry run."""
    return [("reads", file, "pairs" if options.training_data else "graded outputs") for file in files]


def read_pairs(
    options: PairOptions, keys: PairKeys, base: Path, files: Sequence[Path]
) -> tuple[list[Preference], list[Pair]]:
    """Return the pairs as texts, and as token ids for the model in `base`: those that fit into its context.

    Raises ConfigError (no prompt), DataError (pairs that are none, overlap with what is evaluated on).
    """
    skill, preferences = _read_preferences(options, keys, base, files)
    check_prompts(options, [preference.prompt for preference in preferences])
    pairs = [as_pair(preference, skill) for preference in preferences]
    return preferences, fitting_pairs(pairs, keys.limit(base), drop=keys.too_long != "error", say=print)


def pairs_identity(files: Sequence[Path], preferences: Sequence[Preference]) -> dict[str, Any]:
    """Return the settings of the data that name a run."""
    return {"data": [str(file) for file in files], "pairs": content_of(preferences)}


def _read_preferences(
    options: PairOptions, keys: PairKeys, base: Path, files: Sequence[Path]
) -> tuple[Skill, list[Preference]]:
    if options.training_data is not None:
        return Skill(base, template=keys.chat_template_kwargs), read_preferences(files[0])
    skill = asked_by(options, keys, base, files[0])
    preferences, count = pair_outputs(
        files, skill, keys.pairs_per_problem, keys.seed, keep_cut_off=not keys.drop_cut_off
    )
    target = Path(options.output_dir) / PAIRS
    write_rows(target, (msgspec.to_builtins(preference) for preference in preferences))
    sys.stdout.write(f"{target}: {_pairs_summary(count, len(preferences))}\n")
    return skill, preferences


def _pairs_summary(count: PairCount, pairs: int) -> str:
    used = count.problems - count.all_correct - count.all_wrong
    reasons = [
        f"{number} {what}"
        for number, what in (
            (count.all_correct, "with only correct replies"),
            (count.all_wrong, "with only wrong replies"),
        )
        if number
    ]
    summary = f"{counted(pairs, 'pair')} of {used} of {counted(count.problems, 'problem')}"
    if reasons:
        summary += f" (left out: {', '.join(reasons)})"
    ignored = [
        f"{number} {what}"
        for number, what in ((count.unscored, "without a verdict"), (count.cut_off, "truncated"))
        if number
    ]
    if ignored:
        summary += f"; replies ignored: {', '.join(ignored)}"
    return summary


def _prompt_texts(prompt: list[Row] | str) -> list[str]:
    if isinstance(prompt, str):
        return [prompt]
    return [turn["content"] for turn in prompt if isinstance(turn.get("content"), str)]
