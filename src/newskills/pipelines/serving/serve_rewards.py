# SPDX-License-Identifier: Apache-2.0
"""What `ns serve_rewards` does: settings of a grader and of rewards, and a server that lives until it is stopped."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from newskills.base import aio
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.terminal import printable
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import split_folder
from newskills.config.command_line import Parsed
from newskills.models.tokenizer import HFTokenizer
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.extras import require_train
from newskills.pipelines.keys import keys_of
from newskills.pipelines.notices import warn_of_hedges
from newskills.pipelines.serving.ended import EndedService
from newskills.pipelines.serving.serve_rewards_options import RewardKeys, ServeRewardsOptions
from newskills.pipelines.serving.token import check_reach, describe_access, token_of
from newskills.prompts.renderer import load_prompt
from newskills.run.planning.plan import in_folder
from newskills.run.rewarding.graders import Capacity, Count, RewardGrader
from newskills.run.rewarding.questions import asking_of
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.rewarding.reward_model import RewardModelSource
from newskills.run.rewarding.server import RewardServerSettings, RewardSource, serve_rewards

DEFAULT_TOKEN_ENV = "NEWSKILLS_REWARDS_TOKEN"  # noqa: S105 - the name of a variable


def run_reward_server(parsed: Parsed[ServeRewardsOptions]) -> EndedService | None:
    """Serve until it is stopped; return the service that has ended, None for a dry run. Raises ConfigError,
    UnknownNameError, AuthError, ServerStartError."""
    options = parsed.options
    keys = keys_of(RewardKeys, parsed)
    if keys is None:
        return None
    source = _reward_source(options, keys)
    count = _token_counter(options.tokenizer)
    if keys.reward.judges:
        load_prompt(keys.reward.judge.prompt)
    listening = RewardServerSettings(
        host=options.host,
        port=options.port,
        token=token_of(options.token_env, options.token_file, os.environ, usual=DEFAULT_TOKEN_ENV),
        max_waiting=options.max_waiting,
    )
    check_reach(options.host, listening.token, open_to_all=options.open)
    if options.dry_run:
        where = f"{options.host}:{options.port or 'a free port'}"
        steps = [("listens", where, describe_access(listening.token)), _judging_step(source, keys)]
        if keys.reward.judges:
            steps.append(("asks", keys.reward.judge.server.model, "the judge"))
        show_dry_run(steps)
        return None
    print_with_time(describe_access(listening.token))
    return EndedService(
        aio.run(lambda: serve_rewards(source, keys.reward, listening, say=print_with_time, count=count))
    )


def _reward_source(options: ServeRewardsOptions, keys: RewardKeys) -> RewardSource:
    """Return the source of the rewards: a reward model, or a grader. Raises ConfigError, UnknownNameError,
    DataError."""
    if options.reward_model is None:
        name, settings = grader_of(options.benchmark, options.grader, options.data_dir, keys)
        capacity = Capacity(workers=options.workers, at_once=options.max_concurrent)
        return RewardGrader(name, settings, keys.sandbox, capacity)
    require_train("torch", "safetensors", "tokenizers")
    if options.grader is not None:
        raise ConfigError("--grader and --reward_model both give the reward.", hint="Leave one of them out.")
    folder = Path(options.reward_model)
    if not (folder / "config.json").is_file():
        raise DataError(
            f"{folder} is not a model folder: it has no config.json.", hint="ns reward_model makes one."
        )
    asking = None
    if options.benchmark is not None:
        benchmark = get_benchmark(options.benchmark)
        asking = asking_of(benchmark, split_folder(benchmark, options.data_dir) / "any.jsonl", str(folder))
    return RewardModelSource(folder, asking, options.workers)


def _judging_step(source: RewardSource, keys: RewardKeys) -> Step:
    if isinstance(source, RewardModelSource):
        return ("scores", source.label, "the number of a reply is its reward")
    return ("grades", source.label, describe_rewards(keys.reward))


def grader_of(
    benchmark_name: str | None, grader: str | None, data_dir: str | None, keys: RewardKeys
) -> tuple[str, Row]:
    """Return the grader's name and settings. Raises ConfigError, UnknownNameError."""
    if (benchmark_name is None) == (grader is None):
        raise ConfigError(
            "Which grader gives the reward? Give either --benchmark or --grader.",
            hint="Or a model: ns serve_rewards --reward_model=FOLDER. See: ns list graders and ns list benchmarks",
        )
    if grader is not None:
        return grader, keys.eval_config
    benchmark = get_benchmark(str(benchmark_name))
    if not benchmark.grader or benchmark.judge is not None:
        raise ConfigError(
            f"Answers to {benchmark.name} are judged by a model; it has no grader.",
            hint="Give a --grader, and make the judge a part of the reward: ++reward.judge.server.model=NAME",
        )
    warn_of_hedges(benchmark)
    folder = Path(benchmark.folder) if benchmark.folder else split_folder(benchmark, data_dir)
    return benchmark.grader, {**in_folder(benchmark.grader_config, folder), **keys.eval_config}


def _token_counter(tokenizer: str | None) -> Count | None:
    if tokenizer is None:
        return None
    made = HFTokenizer(tokenizer)
    return lambda text: len(made.encode(text))


def describe_rewards(config: RewardConfig) -> str:
    """Describe the rewards of the verdicts, and what else counts."""
    more = {
        "form": config.format.box or config.format.think or config.format.pattern,
        "length": config.length.penalty,
        "overlong": config.overlong.max_tokens,
        "judge": config.judges,
    }
    words = [f"correct {config.correct:g}", f"wrong {config.wrong:g}", f"no answer {config.no_answer:g}"]
    return ", ".join([*words, *(name for name, there in more.items() if there)])


def print_with_time(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more; trainers go on
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {printable(text)}\n")
        sys.stdout.flush()
