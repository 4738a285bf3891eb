# SPDX-License-Identifier: Apache-2.0
"""What `ns tinker rl` and `ns tinker sft` share: the service, the data, what is told on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.keys import keys_of
from newskills.pipelines.training.service import ServiceTraining
from newskills.train.data.published import SCHEMAS, Schema, is_published, schema_of
from newskills.train.loops.stopping import StoppedError, stop_on_signals
from newskills_tinker.commands.options import TinkerOptions
from newskills_tinker.recipes import rl, sft
from newskills_tinker.recipes.run_folder import CHECKPOINTS, METRICS
from newskills_tinker.recipes.settings import TinkerRlConfig, TinkerSftConfig

SHOWN = ("reward/batch_mean", "train/accuracy", "loss/mean", "optim/lr", "time/total")
S = TypeVar("S", TinkerRlConfig, TinkerSftConfig)
Learn = Callable[..., bool]


def run_rl(parsed: Parsed[TinkerOptions]) -> int:
    """Train by reinforcement and return the exit code. Raises ConfigError for keys that are missing or do not fit."""
    return _exit_code(train_rl, parsed)


def run_sft(parsed: Parsed[TinkerOptions]) -> int:
    """Fine-tune and return the exit code. Raises ConfigError for keys that are missing or do not fit."""
    return _exit_code(train_sft, parsed)


def train_rl(parsed: Parsed[TinkerOptions]) -> ServiceTraining | None:
    """Train by reinforcement; return the training, None for a dry run. Raises as `_run_to_end`."""
    return _run_to_end(parsed, TinkerRlConfig, rl.train_on_rewards, rl.plan_of)


def train_sft(parsed: Parsed[TinkerOptions]) -> ServiceTraining | None:
    """Fine-tune; return the training, None for a dry run. Raises as `_run_to_end`."""
    return _run_to_end(parsed, TinkerSftConfig, sft.fine_tune, sft.plan_of, sft.with_defaults)


def _exit_code(
    train: Callable[[Parsed[TinkerOptions]], ServiceTraining | None], parsed: Parsed[TinkerOptions]
) -> int:
    try:
        train(parsed)
    except StoppedError as stopped:
        sys.stdout.write(f"{stopped}\n")
        return StoppedError.exit_code
    return 0


def _run_to_end(
    parsed: Parsed[TinkerOptions],
    kind: type[S],
    learn: Learn,
    plan: Callable[[S], str],
    completed: Callable[[S], S] = lambda config: config,
) -> ServiceTraining | None:
    """Read the keys, train, say where the checkpoints are, and return the training.

    Raises ConfigError for keys that are missing or do not fit, StoppedError.
    """
    if missing := [
        name for name in ("model_name", "log_dir") if name not in parsed.overrides and not parsed.explain
    ]:
        raise ConfigError(f"{missing[0]} is missing: give {missing[0]}=…", hint="All keys: ns tinker rl --help")
    keys_set = keys_of(kind, parsed)
    if keys_set is None:
        return None
    config = completed(keys_set)
    options = parsed.options
    if options.dry_run:
        address = os.environ.get("TINKER_BASE_URL") or "the Tinker service"
        show_dry_run(
            [
                ("reads", dataset_file(config, options.data_dir), config.dataset_split),
                ("asks", address, f"to train {config.model_name}, LoRA of rank {config.lora_rank}"),
                ("writes", config.log_dir, plan(config)),
            ]
        )
        return None
    from newskills.train.backends.tinker.client import TinkerClient, service_from

    service = service_from(os.environ, config.model_name, config.lora_rank, config.seed)
    rows = rows_of(config, options.data_dir)
    with TinkerClient(service) as client, stop_on_signals() as stop:
        whole = learn(client, config, rows, on_step=_row_printer(config), stop=stop)
    if not whole:
        raise StoppedError("stopped; run the same command to resume from the last checkpoint")
    folder = Path(config.log_dir)
    sys.stdout.write(f"{folder / CHECKPOINTS}\n")
    last = list(read_rows(folder / CHECKPOINTS))[-1]
    return ServiceTraining(
        checkpoints=folder / CHECKPOINTS,
        sampler_path=last.get("sampler_path", ""),
        state_path=last.get("state_path", ""),
        metrics=list(read_rows(folder / METRICS))[-1],
    )


def dataset_file(config: TinkerRlConfig | TinkerSftConfig, data_dir: str | None) -> Path:
    """Return the JSONL file, given or laid out here. Raises ConfigError."""
    schema = _find_schema(str(config.dataset_name))
    if schema is None:
        return Path(str(config.dataset_name))
    from newskills.pipelines.data.training_sets import split_file, split_of

    return split_file(schema, split_of(schema, config.dataset_split), data_dir)


def rows_of(config: TinkerRlConfig | TinkerSftConfig, data_dir: str | None) -> list[Row]:
    """Return the rows of the dataset, which is fetched where it is not here yet. Raises DataError, ConfigError."""
    path, schema = dataset_file(config, data_dir), _find_schema(str(config.dataset_name))
    if schema is not None:
        from newskills.benchmarks.downloads.fetch import FetchOptions
        from newskills.pipelines.data.training_sets import lay_out

        lay_out(schema, config.dataset_split, data_dir, FetchOptions())
    return list(read_rows(path))


def _find_schema(name: str) -> Schema | None:
    """Return the training set of that name, which may also be the hub's; None means that `name` is a file."""
    if is_published(name):
        return schema_of(name)
    return next((schema for schema in SCHEMAS.values() if schema.hf and schema.hf == name), None)


def _row_printer(config: TinkerRlConfig | TinkerSftConfig) -> Callable[[Row], None]:
    def show_row(row: Row) -> None:
        values = [f"{name} {row[name]:.4g}" for name in SHOWN if name in row]
        done = f"step {row['progress/batch']} ({row['progress/done_frac']:.0%})"
        sys.stderr.write(printable(" · ".join([done, *values])) + "\n")

    if config.verbose:
        return show_row
    return lambda _: None
