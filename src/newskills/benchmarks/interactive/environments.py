# SPDX-License-Identifier: Apache-2.0
"""Environments of other packages as benchmarks: `verifiers:NAME`, `openenv:URL`, `gym:URL`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Option
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.benchmarks.interactive.gym_tasks import gym_rows

ENDLESS = 100
"""Tasks of an environment that makes them without end."""
SEEDS = 10
_PORT = re.compile(r":\d+(/.*)?$|[^/:]/")
"""What an address holds before a number of samples: its port, or a path."""
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


def interactive_benchmark(name: str) -> Benchmark | None:
    """Return the benchmark called `kind:environment`; None where `name` is of no such kind. Raises ConfigError."""
    kind, _, environment = name.partition(":")
    if kind not in _KINDS:
        return None
    if not environment:
        raise ConfigError(f"'{name}' names no environment.", hint=f"For example: {_EXAMPLES[kind]}")
    return _KINDS[kind](environment)


def split_samples(text: str) -> tuple[str, str]:
    """Split `name:samples` into name and samples, which may be missing; the port of an address is no number of
    samples."""
    name, _, count = text.rpartition(":")
    is_address = name.startswith("openenv:") or "://" in name
    if not count.isdecimal() or (is_address and not _PORT.search(name)):
        return text, ""
    return name, count


def _verifiers_benchmark(environment: str) -> Benchmark:
    def made(taskset: Row) -> Benchmark:
        def rows(split: str) -> Iterator[Row]:
            return verifiers_rows(environment, taskset)

        return replace(usual, generate_rows=rows)

    def with_settings(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        return replace(made(_parse_settings(values)), options=benchmark.options)

    usual = _benchmark(
        f"verifiers-{_environment_slug(environment)}",
        f"environment {environment} of the package verifiers",
        solver="verifiers",
        requires="newskills[verifiers]",
        options={
            "taskset": Option(
                meaning="settings of the environment's taskset: name=value (values are JSON or text)",
                apply=with_settings,
            )
        },
    )
    return made({})


def verifiers_rows(environment: str, taskset: Row) -> Iterator[Row]:
    """Yield the tasks of an installed environment, the first 100 where there is no end. Raises ConfigError."""
    from newskills.solve.interactive.verifiers_environment import load_environment

    tasks = load_environment(environment, taskset, {}, 1).taskset
    limit = None if tasks.bounded else ENDLESS
    for number, task in enumerate(islice(iter(tasks), limit)):
        data = task.data.model_dump(mode="json")
        yield {
            "id": str(data.get("id") or data.get("name") or number),
            "question": task.data.prompt_text or str(data.get("name") or f"task {number}"),
            "environment": environment,
            "taskset": taskset,
            "task": data,
        }


def _openenv_benchmark(environment: str) -> Benchmark:
    address = environment if "://" in environment else f"http://{environment}"
    if "://" not in environment and ":" not in environment:
        raise ConfigError(
            f"'openenv:{environment}' is not an address.",
            hint=f"Start the environment's server (`docker run -p 8000:8000 registry.hf.space/"
            f"{environment.replace('/', '-')}:latest`), then: --benchmarks=openenv:http://127.0.0.1:8000",
        )

    def made(count: int) -> Benchmark:
        def rows(split: str) -> Iterator[Row]:
            for seed in range(count):
                yield {"id": f"seed-{seed}", "environment": address, "reset": {"seed": seed}}

        return replace(usual, generate_rows=rows)

    def with_seeds(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        if len(values) != 1 or not values[0].isdecimal() or int(values[0]) < 1:
            raise ConfigError("--seeds needs a number of tasks, for example --seeds=10.")
        return replace(made(int(values[0])), options=benchmark.options)

    usual = _benchmark(
        f"openenv-{_environment_slug(environment)}",
        f"OpenEnv environment at {address}",
        solver="openenv",
        requires="newskills[openenv]",
        prompt="agents/openenv",
        options={
            "seeds": Option(
                meaning="number of tasks; each starts the environment with a seed of its own",
                apply=with_seeds,
                usual=str(SEEDS),
            )
        },
    )
    return made(SEEDS)


def _gym_benchmark(environment: str) -> Benchmark:
    environment = environment.rstrip("/")

    def usual_rows(split: str) -> Iterator[Row]:
        if "://" in environment:
            raise ConfigError(
                "A server of NeMo Gym has no rows of its own.",
                hint=f"Name the file of its tasks: ns prepare_data gym:{environment} --rows=FILE.jsonl",
            )
        from newskills.solve.interactive.gym_program import gym_tasks

        return gym_rows(gym_tasks(environment, os.environ), environment)

    def with_rows(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        if len(values) != 1:
            raise ConfigError("--rows needs one file of tasks, in NeMo Gym's form.")
        file = Path(values[0]).expanduser().absolute()
        made = replace(usual, generate_rows=lambda split: gym_rows(file, environment), reads=str(file))
        return replace(made, options=benchmark.options)

    usual = _benchmark(
        f"gym-{_environment_slug(environment)}",
        f"resources server of NeMo Gym: {environment}",
        solver="nemo_gym",
        prompt="",
        defaults={"prompt_format": "openai"},
        generate_rows=usual_rows,
        options={"rows": Option(meaning="file of tasks, in NeMo Gym's form (JSON lines)", apply=with_rows)},
    )
    return usual


def _benchmark(name: str, title: str, **fields: Any) -> Benchmark:
    return Benchmark(
        **{
            "name": name,
            "category": "external",
            "title": title,
            "prompt": "generic/default",
            "grader": "environment_reward",
            "metric": "generic",
            **fields,
        }
    )


def _environment_slug(environment: str) -> str:
    return _UNSAFE.sub("-", environment.partition("://")[2] or environment).strip("-").lower()


def _parse_settings(values: tuple[str, ...]) -> Row:
    """Parse `a.b=1` as {"a": {"b": 1}}. Raises ConfigError."""
    settings: Row = {}
    for word in values:
        path, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"--taskset={word}: expected name=value.")
        *parents, last = path.split(".")
        place = settings
        for parent in parents:
            place = place.setdefault(parent, {})
        try:
            place[last] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            place[last] = text
    return settings


_KINDS: Mapping[str, Callable[[str], Benchmark]] = {
    "verifiers": _verifiers_benchmark,
    "openenv": _openenv_benchmark,
    "gym": _gym_benchmark,
}
_EXAMPLES = {
    "verifiers": "verifiers:reverse-text",
    "openenv": "openenv:http://127.0.0.1:8000",
    "gym": "gym:mcqa or gym:http://127.0.0.1:8000",
}
