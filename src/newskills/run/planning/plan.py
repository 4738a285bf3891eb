# SPDX-License-Identifier: Apache-2.0
"""What was asked for (benchmarks, seeds, chunks, layers of options) → units of work, each with its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark, Group
from newskills.base.errors import ConfigError
from newskills.base.lm_eval.building import HarnessWishes
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_group, place_of
from newskills.benchmarks.data import NotPreparedError, ready_rows, split_folder
from newskills.benchmarks.files.names import is_file_name
from newskills.benchmarks.files.words import TableWords
from newskills.benchmarks.folders import data_dir as root
from newskills.benchmarks.interactive.environments import split_samples
from newskills.config.layers import Layer, Resolved, resolve
from newskills.graders import GRADERS
from newskills.models.kinds import MODELS
from newskills.prompts.official.table import FOLDER as OFFICIAL
from newskills.run.planning.config import ALIASES, DEPRECATED, SC_TIR, GenerationConfig
from newskills.run.planning.spec import Unit
from newskills.run.records.paths import output_name

RESULTS_FOLDER = "eval-results"
"""Folder of an evaluation's records, below its output folder."""

SEED_DEFAULTS: dict[str, Any] = {"temperature": 0.7, "top_k": -1, "top_p": 0.95}
"""What a run with a seed samples with, unless something later says otherwise."""

MAX_OFFERED_REQUESTS = 4096
"""Requests in flight that a server with a queue is offered at most, where nobody says how many."""
_LIMITS = {"max_concurrent_requests", "most_concurrent_requests"}

VOTED_SETTING = "use_predicted_answer_key"
"""Setting of graders that makes them grade what was voted for, not what stands in the winner's text."""


class BenchmarkRun(Struct, frozen=True, kw_only=True):
    """A benchmark as the user named it, and how often: `samples` 0 = one greedy run.

    group     that brought it
    group_at  where that is defined, if it is one of the user's own
    """

    name: str
    benchmark: Benchmark
    samples: int
    split: str
    input_file: Path
    group: Group | None = None
    group_at: str = ""


class WorkPieces(Struct, frozen=True, kw_only=True):
    """Seeds (None = greedy) and chunks (None = whole) that the work is cut into."""

    seeds: tuple[int, ...] | None = None
    num_chunks: int | None = None
    chunk_ids: tuple[int, ...] = ()

    def chunks(self) -> list[int | None]:
        """Return the ids of the chunks, or [None] without `num_chunks`. Raises ConfigError for chunk ids without
        `num_chunks` or beyond it."""
        if self.num_chunks is None:
            if self.chunk_ids:
                raise ConfigError("--chunk_ids needs --num_chunks.")
            return [None]
        beyond = [k for k in self.chunk_ids if k >= self.num_chunks]
        if beyond:
            raise ConfigError(f"--chunk_ids: {beyond[0]} must be smaller than --num_chunks {self.num_chunks}.")
        return list(self.chunk_ids or range(self.num_chunks))


class PlannedUnit(Struct, frozen=True, kw_only=True):
    """A unit and where each of its settings came from."""

    unit: Unit
    resolved: Resolved[GenerationConfig]


def parse_benchmarks(
    text: str,
    *,
    data_dir: Path | None,
    split: str | None,
    extra: str | None = None,
    elsewhere: bool = False,
    mounted: Mapping[Path, Path | None] = MappingProxyType({}),
    objects: Mapping[str, Benchmark | Group] = MappingProxyType({}),
    words: TableWords | None = None,
    wishes: HarnessWishes | None = None,
) -> list[BenchmarkRun]:
    """Parse `gsm8k:4,math-500` into runs; a group gives those of its members. `:0` or nothing means the
    benchmark's own default.

    `elsewhere`: the data lies in `data_dir` of another machine, and is not looked for here. `mounted`: more folders of
    benchmarks → the same as jobs see them, where their data lies and is not looked for here, either; None: it is here.
    `objects`: benchmarks of this process by their names. `words`: what is said of files of questions. `wishes`: how
    tasks of lm_eval make requests.

    Raises ConfigError (bad count, a benchmark twice), UnknownNameError, DataError (not prepared).
    """
    runs: list[BenchmarkRun] = []
    missing: list[tuple[str, str, Path]] = []
    places = BenchmarkPlaces(extra, root(data_dir), tuple(mounted), objects, words, wishes)
    for part in (p.strip() for p in text.split(",")):
        name, count = split_samples(part)
        if not name:
            raise ConfigError(f"--benchmarks '{text}': expected name[:samples], for example gsm8k:4,math-500.")
        group = get_group(name, places)
        for benchmark in expand_benchmarks(name, places):
            if any(run.benchmark.name == benchmark.name for run in runs):
                raise ConfigError(
                    f"--benchmarks names {benchmark.name} twice; name it once, with the number of samples."
                )
            chosen = split or benchmark.split
            try:
                if (there := _job_folder(benchmark.folder, mounted)) is not None:
                    file = there / f"{chosen}.jsonl"
                elif elsewhere:
                    file = split_folder(benchmark, data_dir) / f"{chosen}.jsonl"
                else:
                    file = ready_rows(benchmark, chosen, data_dir, asked_name=name)
            except NotPreparedError as error:
                missing += error.missing
                continue
            group_at = ""
            if group and (at := place_of(name, places)):
                group_at = str(_job_folder(at, mounted) or at)
            runs.append(
                BenchmarkRun(
                    name=benchmark.name if group else _name_of_results(name, benchmark.name),
                    benchmark=benchmark,
                    samples=int(count or 0) or benchmark.samples,
                    split=chosen,
                    input_file=file,
                    group=group,
                    group_at=group_at,
                )
            )
    if missing:
        not_prepared = NotPreparedError(missing, data_dir)
        if objects:
            not_prepared.hint = "Prepare them first: newskills.prepare_data(benchmarks=[…])"
        raise not_prepared
    return runs


def _name_of_results(typed: str, own: str) -> str:
    """Return what the results of a benchmark are called: an alias as it was typed, so that scripts find them; its own
    name where that is only spelt otherwise, or where a path was typed."""
    is_path = "/" in typed or ":" in typed or is_file_name(typed)
    if is_path or fold(typed) == fold(own):
        return own
    return typed


def _job_folder(folder: str, mounted: Mapping[Path, Path | None]) -> Path | None:
    """Return a benchmark's folder below one of `mounted` as jobs see it; None where it is an ordinary one."""
    for copy, there in mounted.items():
        if there is not None and folder and Path(folder).is_relative_to(copy):
            return there / Path(folder).relative_to(copy)
    return None


def benchmark_units(
    run: BenchmarkRun, *, results: Path, pieces: WorkPieces, layers: Sequence[Layer]
) -> list[PlannedUnit]:
    """Plan all (seed, chunk) units of one benchmark, below the folder `results`; `layers` win over the
    benchmark's."""
    task = task_layer(run.benchmark, run.input_file.parent, run.name)
    folder = results / Path(*run.name.split("."))
    return _plan_units(run.name, run.input_file, folder, pieces, [task, *layers])


def task_layer(benchmark: Benchmark, folder: Path, name: str = "") -> Layer:
    """Return the layer that says how a benchmark, whose prepared file is in `folder`, is asked, solved and
    graded."""
    return Layer(
        f"benchmark {name or benchmark.name}",
        {
            "prompt_config": benchmark.prompt or None,
            "official_prompts": str(folder / OFFICIAL),
            "solver": benchmark.solver,
            "eval_type": benchmark.grader or None,
            "eval_config": in_folder(benchmark.grader_config, folder),
            **in_folder(benchmark.defaults, folder),
        },
    )


def in_folder(settings: Row, folder: Path) -> Row:
    """Return a benchmark's settings, with `folder`, that of its prepared file, in place of `{folder}` in texts."""
    return {key: _placed_value(value, str(folder)) for key, value in settings.items()}


def _placed_value(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {key: _placed_value(item, folder) for key, item in value.items()}
    if isinstance(value, str):
        return value.replace("{folder}", folder)
    return value


def file_units(
    input_file: Path, *, output_dir: Path, pieces: WorkPieces, layers: Sequence[Layer]
) -> list[PlannedUnit]:
    """Plan all (seed, chunk) units of a generation over one file."""
    return _plan_units("generate", input_file, output_dir, pieces, layers)


def folder_units(
    input_dir: Path, *, output_dir: Path, pieces: WorkPieces, layers: Sequence[Layer]
) -> list[PlannedUnit]:
    """Plan a generation over `output-rs{seed}.jsonl` of a folder, each seed from its own file (greedy by default)."""
    planned: list[PlannedUnit] = []
    for seed in pieces.seeds or (None,):
        config = {
            "input_file": str(input_dir / output_name(seed)),
            "output_file": str(output_dir / output_name(seed)),
        }
        planned += _plan_chunks(
            "generate", seed, pieces, [Layer("--input_dir", {**config, "skip_filled": True}), *layers]
        )
    return planned


def resolve_config(layers: Sequence[Layer]) -> Resolved[GenerationConfig]:
    """Resolve the configuration of `layers`. Raises ConfigError, UnknownNameError for what does not fit the schema."""
    resolved = resolve(GenerationConfig, layers, aliases=ALIASES, removed=DEPRECATED)
    if MODELS.properties(resolved.value.server.server_type).queues and not _LIMITS & resolved.origin.keys():
        resolved.value = msgspec.structs.replace(resolved.value, most_concurrent_requests=MAX_OFFERED_REQUESTS)
    config = resolved.value
    if config.max_samples == 0:
        raise ConfigError(
            f"max_samples is 0 ({resolved.origin.get('max_samples', 'by default')}): no rows would be used.",
            hint="Give the number of rows, or -1 for all of them.",
        )
    if (
        config.solved_by == SC_TIR
        and config.eval_type is not None
        and _takes_setting(config.eval_type, VOTED_SETTING)
    ):
        resolved.value = msgspec.structs.replace(config, eval_config={VOTED_SETTING: True, **config.eval_config})
        resolved.origin.setdefault(f"eval_config.{VOTED_SETTING}", f"solver {SC_TIR}")
    return resolved


def _takes_setting(grader: str, setting: str) -> bool:
    """Return whether the grader has that setting. Raises UnknownNameError."""
    settings = getattr(GRADERS.get(grader), "Config", None)
    return setting in getattr(settings, "__struct_fields__", ())


def _plan_units(
    name: str, input_file: Path, folder: Path, pieces: WorkPieces, layers: Sequence[Layer]
) -> list[PlannedUnit]:
    planned: list[PlannedUnit] = []
    for seed in pieces.seeds or (None,):
        fixed = {
            "input_file": str(input_file),
            "output_file": str(folder / output_name(seed)),
            "skip_filled": True,
        }
        base = [Layer("this run", fixed)]
        if seed is not None:
            base.append(Layer(f"seed {seed}", {"random_seed": seed, **SEED_DEFAULTS}))
        planned += _plan_chunks(name, seed, pieces, [*base, *layers])
    return planned


def _plan_chunks(name: str, seed: int | None, pieces: WorkPieces, layers: Sequence[Layer]) -> list[PlannedUnit]:
    planned = []
    for chunk in pieces.chunks():
        if chunk is not None:
            cut = {"num_chunks": pieces.num_chunks, "chunk_id": chunk}
        else:
            cut = {}
        resolved = resolve_config([Layer("this run", cut), *layers])
        planned.append(PlannedUnit(unit=Unit(name=name, seed=seed, config=resolved.value), resolved=resolved))
    return planned
