# SPDX-License-Identifier: Apache-2.0
"""`lm-eval:NAME` → a benchmark, a group with the score that lm_eval gives it, or several (tags, patterns)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.lm_eval.building import HarnessTask, HarnessWishes, describe_task
from newskills.base.lm_eval.package import PACKAGE, at_work, full_task_path, package_folder, require_package
from newskills.base.records import Row
from newskills.benchmarks.lm_eval.benchmark import HarnessBenchmark, HarnessGroup
from newskills.benchmarks.lm_eval.names import PREFIX, task_slug
from newskills.benchmarks.lm_eval.rows import rows_of
from newskills.benchmarks.lm_eval.scores import group_score
from newskills.prompts.official.table import NEWSKILLS

CATEGORY = "external"
MOST_TOKENS = 256
"""Tokens of a generation where a task says nothing, as the models of lm_eval take it."""
_SENT = ("top_p", "top_k", "min_p", "repetition_penalty")


def load_harness(name: str, wishes: HarnessWishes | None = None) -> list[HarnessBenchmark] | HarnessGroup:
    """Return what `lm-eval:NAME` stands for. Raises ConfigError, UnknownNameError; nothing is downloaded."""
    task = name.removeprefix(PREFIX)
    if not task:
        raise ConfigError(f"'{name}' names no task.", hint="For example: lm-eval:arc_easy, lm-eval:./task.yaml")
    require_package()
    if "/" in task:
        task = str(Path(task).expanduser().absolute())
    return _load_task(task, wishes or HarnessWishes())


@cache
def _expand_task(task: str) -> Any:
    from newskills.benchmarks.lm_eval.index import expand_task  # reads what takes seconds

    return expand_task(task)


def _load_task(task: str, wishes: HarnessWishes) -> list[HarnessBenchmark] | HarnessGroup:
    made = _expand_task(task)
    if isinstance(made, HarnessTask):
        return [_benchmark(made, wishes)]
    if isinstance(made, list):
        return [_benchmark(origin, wishes) for origin in made]
    origins: Mapping[str, HarnessTask] = {leaf.origin.task: leaf.origin for leaf in made.get_all_tasks()}
    if not origins:
        raise ConfigError(f"{PREFIX}{task} is a group without tasks.")
    benchmarks = {name: _benchmark(origin, wishes) for name, origin in origins.items()}
    return HarnessGroup(
        name=f"lm-eval-{task_slug(made.name)}",
        category=CATEGORY,
        title=f"group {made.name} of lm_eval",
        members={name: {} for name in origins},
        tasks=benchmarks,
        score=partial(group_score, made),
        columns=("num_entries",),
    )


def _benchmark(origin: HarnessTask, wishes: HarnessWishes) -> HarnessBenchmark:
    with at_work():
        config = describe_task(origin)
    generates = config.get("output_type", "generate_until") == "generate_until"
    if generates:
        settings = _request_settings({**(config.get("generation_kwargs") or {}), **wishes.gen_kwargs})
    else:
        settings = {**_request_settings({}), "solver_config.likelihoods": True}
    how: list[Any] = [origin, wishes, version(PACKAGE)]
    stamp = blake2b(msgspec.json.encode(how, order="deterministic"), digest_size=4).hexdigest()
    name = task_slug(origin.task)
    return HarnessBenchmark(
        name=f"lm-eval-{name}",
        category=CATEGORY,
        title=f"task {origin.task} of lm_eval",
        generate_rows=rows_of(origin, wishes, offline=False),
        generator=PACKAGE,
        solver="lm_eval",
        grader="lm_eval",
        metric="lm_eval",
        prompt="generic/default",
        requires="newskills[lm-eval]",
        defaults={
            "prompt_source": NEWSKILLS,
            **settings,
            "inference.endpoint_type": "chat" if generates and wishes.apply_chat_template else "text",
        },
        origin=origin,
        wishes=wishes,
        place=f"lm-eval.{name}-{stamp}",
        inputs=_input_files(origin, config),
    )


def _request_settings(settings: Mapping[str, Any]) -> Row:
    """Return the settings of requests as ours: what lm_eval does not send is not sent."""
    rest = {name: value for name, value in settings.items() if name not in ("until", "do_sample")}
    tokens = rest.pop("max_gen_toks", MOST_TOKENS)
    sent: Row = {
        "inference.tokens_to_generate": rest.pop("max_tokens", tokens),
        "inference.temperature": rest.pop("temperature", 0.0),
        **{f"inference.{name}": rest.pop(name, None) for name in _SENT},
    }
    if rest:
        sent["inference.extra_body"] = rest
    return sent


def _input_files(origin: HarnessTask, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files of this machine that rows are made of: the task's own file with those that it includes, code
    beside it, local data."""
    files = list(_local_data(config))
    if origin.file:
        path = full_task_path(origin.file)
        if not path.is_relative_to(package_folder()):
            files += [*_with_includes(path, []), *sorted(path.parent.glob("*.py"))]
    return tuple(dict.fromkeys(str(file) for file in files if file.is_file()))


def _with_includes(path: Path, seen: list[Path]) -> Sequence[Path]:
    from lm_eval.tasks._yaml_loader import load_yaml

    if path in seen or not path.is_file():
        return seen
    seen.append(path)
    includes = load_yaml(path, resolve_func=False, recursive=False).get("include") or ()
    if isinstance(includes, str):
        includes = [includes]
    for include in includes:
        _with_includes((path.parent / include).resolve(), seen)
    return seen


def _local_data(config: Mapping[str, Any]) -> list[Path]:
    settings = config.get("dataset_kwargs")
    if not isinstance(settings, dict):
        return []
    files = settings.get("data_files")
    names: list[Any] = []
    for part in files.values() if isinstance(files, dict) else [files]:
        names += part if isinstance(part, list) else [part]
    return [Path(name) for name in names if isinstance(name, str)]


def without_downloads(benchmark: HarnessBenchmark) -> HarnessBenchmark:
    """Return the benchmark whose rows are made without downloading anything."""
    rows: Callable[[str], Any] = rows_of(benchmark.origin, benchmark.wishes, offline=True)
    return msgspec.structs.replace(benchmark, generate_rows=rows)
