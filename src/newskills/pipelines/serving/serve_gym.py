# SPDX-License-Identifier: Apache-2.0
"""What `ns serve_gym` does: a benchmark or a grader as a resources server of NeMo Gym, or the folder that starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec.structs import replace

from newskills.base import aio
from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import split_folder
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.keys import keys_of
from newskills.pipelines.serving.ended import EndedService
from newskills.pipelines.serving.gym_folder import GymFolder, gym_address, server_name, write_folder
from newskills.pipelines.serving.serve_gym_options import GymKeys, ServeGymOptions
from newskills.pipelines.serving.serve_rewards import describe_rewards, grader_of, print_with_time
from newskills.pipelines.serving.token import check_reach, describe_access
from newskills.prompts.renderer import load_prompt
from newskills.run.rewarding.graders import Capacity, RewardGrader
from newskills.run.rewarding.gym_server import serve_gym
from newskills.run.rewarding.gym_tools import GymTools
from newskills.run.rewarding.gym_wire import gym_row
from newskills.run.rewarding.questions import QuestionFormat, asking_of
from newskills.run.rewarding.server import RewardServerSettings

POLICY = "policy"
"""Name of the model that is asked, which only Gym knows."""


def run_gym_server(parsed: Parsed[ServeGymOptions]) -> EndedService | None:
    """Serve until it is stopped; return the service that has ended, None for a dry run and where a folder is written.
    Raises ConfigError, UnknownNameError, DataError, ServerStartError."""
    options = parsed.options
    keys = keys_of(GymKeys, parsed)
    if keys is None:
        return None
    name, settings = grader_of(options.benchmark, options.grader, options.data_dir, keys)
    if keys.reward.judges:
        load_prompt(keys.reward.judge.prompt)
    asking = _question_format(options, keys)
    if options.folder is not None:
        _write_gym_folder(options, asking, list(parsed.overrides.items()))
        return None
    host, port = options.host, options.port
    if options.gym_address:
        host, port = gym_address(os.environ)
    check_reach(host, "", open_to_all=options.open or options.gym_address, takes_token=False)
    capacity = Capacity(workers=options.workers, at_once=options.max_concurrent)
    source = RewardGrader(name, settings, keys.sandbox, capacity)
    if options.dry_run:
        where = f"{host}:{port or 'a free port'}"
        show_dry_run(
            [("listens", where, describe_access("")), ("grades", source.label, describe_rewards(keys.reward))]
        )
        return None
    listening = RewardServerSettings(host=host, port=port)
    config = asking.config if asking is not None else None
    if config is not None and config.tool_modules:
        tools = GymTools(replace(config, sandbox=keys.sandbox))
    else:
        tools = None
    return EndedService(
        aio.run(lambda: serve_gym(source, keys.reward, asking, listening, say=print_with_time, tools=tools))
    )


def _question_format(options: ServeGymOptions, keys: GymKeys) -> QuestionFormat | None:
    """Return how the benchmark asks; None for a grader alone. Raises ConfigError for one whose answers take more than
    one reply."""
    tools: Row = {}
    if keys.tool_modules:
        tools = {"tool_modules": list(keys.tool_modules), "tool_overrides": keys.tool_overrides}
    if options.benchmark is None:
        if tools:
            raise ConfigError("++tool_modules: only rows of a --benchmark offer tools.")
        return None
    benchmark = get_benchmark(options.benchmark)
    asking = asking_of(benchmark, _rows_file(options, benchmark), POLICY, [Layer("command line", tools)])
    asking.check_one_answer(benchmark.name)
    if not asking.one_reply and not asking.config.tool_modules:
        raise ConfigError(
            f"{benchmark.name} uses the solver {asking.config.selected_by or asking.config.solved_by}, which talks to "
            "the model itself; in NeMo Gym an agent does that.",
            hint="Serve a benchmark with the solver chat; with tools: ++tool_modules=[python].",
        )
    return asking


def _rows_file(options: ServeGymOptions, benchmark: Benchmark) -> Path:
    folder = Path(benchmark.folder) if benchmark.folder else split_folder(benchmark, options.data_dir)
    return folder / f"{options.split or benchmark.split}.jsonl"


def _write_gym_folder(
    options: ServeGymOptions, asking: QuestionFormat | None, keys: list[tuple[str, str]]
) -> None:
    """Write the folder. Raises ConfigError, DataError."""
    if options.benchmark is None or asking is None:
        raise ConfigError(
            "--folder writes the rows of a benchmark.",
            hint="Rows of your own: ns serve_gym --grader=NAME, and its address in a config of Gym.",
        )
    benchmark = get_benchmark(options.benchmark)
    file = _rows_file(options, benchmark)
    if not file.is_file():
        raise DataError(f"There is no {file}.", hint=f"ns prepare_data {options.benchmark}")
    words = [f"--benchmark={options.benchmark}", f"--max_concurrent={options.max_concurrent}"]
    if options.data_dir:
        words.append(f"--data_dir={Path(options.data_dir).absolute()}")
    made = GymFolder(
        name=server_name(benchmark.name),
        title=benchmark.title,
        words=[*words, f"--workers={options.workers}", *(f"++{key}={value}" for key, value in keys)],
        requirement=benchmark.requires or "newskills",
        split=options.split or benchmark.split,
    )
    folder = Path(str(options.folder)).expanduser()
    if options.dry_run:
        show_dry_run(
            [("reads", file, "rows"), ("writes", folder / "resources_servers" / made.name, "what Gym starts")]
        )
        return
    sys.stdout.write(write_folder(folder, made, (gym_row(asking, row) for row in read_rows(file))) + "\n")
