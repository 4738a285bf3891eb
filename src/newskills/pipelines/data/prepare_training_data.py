# SPDX-License-Identifier: Apache-2.0
"""What `ns prepare_training_data` does. Apart from its options, so that help and completion load little."""

from __future__ import annotations

import glob
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, DataError, suggest
from newskills.base.reading.row_files import ROW_FILE_SUFFIXES, is_plain
from newskills.base.store import open_for_reading, read_rows
from newskills.base.tables import print_table
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_benchmark
from newskills.benchmarks.data import load_rows, prepare, split_folder
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.few_shot import example_sets
from newskills.benchmarks.folders import data_dir
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, Resolved, explain, resolve
from newskills.launch.registry import EXECUTORS
from newskills.pipelines.arguments import user_layer
from newskills.pipelines.data.downloads import DownloadProgress, ProgressBar
from newskills.pipelines.data.prepare_training_data_options import PrepareTrainingDataOptions
from newskills.pipelines.data.training_sets import lay_out, rows_of_file, split_file, split_of
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.notices import print_note
from newskills.run.planning.plan import task_layer
from newskills.run.training.leakage import FIELDS, question_of
from newskills.train.data.build import (
    BuildRequest,
    ComparedProblems,
    InputSource,
    build_training_set,
    preview_lines,
)
from newskills.train.data.card import Card, card_files
from newskills.train.data.filters.contamination import read_contaminated
from newskills.train.data.published import Schema, schema_of
from newskills.train.data.reading import UNLABELED
from newskills.train.data.settings import (
    RECIPES,
    DataRecipe,
    Files,
    TrainingDataConfig,
    check_keys,
    check_settings,
)

ALIASES = {"hf_model_name": "tokenizer"}
REMOVED = {
    "chat_format": ("older conversation formats are no longer supported; use --config-name=stem_sft for messages")
}
ASKING = (
    "prompt_config",
    "official_prompts",
    "prompt_format",
    "system_message",
    "user_message",
    "examples_type",
    "few_shot_examples",
    "prompt_suffix",
    "start_assistant_response_key",
    "code_tags",
    "chat_template_kwargs",
)
"""Settings of an evaluation that decide what a model reads; training data has them under the same names."""


def run(parsed: Parsed[PrepareTrainingDataOptions]) -> int:
    prepare_training_data(parsed)
    return 0


def prepare_training_data(parsed: Parsed[PrepareTrainingDataOptions]) -> Card | None:
    """Build the data and return its card; None where nothing was to be done. Raises NewskillsError."""
    options = parsed.options
    recipe = RECIPES[options.config_name]
    schema = schema_of(options.dataset) if options.dataset else None
    resolved = resolve_settings(recipe, parsed.overrides, schema, options.benchmark)
    if parsed.explain:
        print_table([(f"++{key}", value, of) for key, value, of in explain(resolved)], ("key", "value", "from"))
        return None
    config = resolved.value
    check_settings(config, recipe, decontaminated=bool(options.decontaminate))
    compared = _compared_problems(options)
    if options.dry_run:
        _dry_run(options, recipe, config, schema, compared)
        return None
    bar = ProgressBar()
    request = _build_request(options, recipe, config, schema, compared)
    _print_contamination_notes(config)
    card = build_training_set(request, lambda what, share: bar.draw(share, f"{share:.0%} {what}"))
    _print_card_summary(card, Path(config.output_path), bar)
    return card


def resolve_settings(
    recipe: DataRecipe, overrides: Mapping[str, Any], schema: Schema | None, benchmark: str | None = None
) -> Resolved[TrainingDataConfig]:
    """Resolve the settings: defaults of the recipe, then the published set's fields, then the benchmark's prompt,
    then the user.

    Raises ConfigError, UnknownNameError.
    """
    user = user_layer(overrides)
    layers = [Layer(f"--config-name={recipe.name}", recipe.defaults)]
    if schema is not None and recipe.output != "rl":
        layers.append(Layer(f"--dataset={schema.name}", {"input_key": "problem", "output_key": "generation"}))
    if benchmark is not None:
        layers.append(_prompt_layer(benchmark))
    resolved = resolve(TrainingDataConfig, [*layers, user], aliases=ALIASES, removed=REMOVED)
    check_keys(recipe, [key for key, of in resolved.origin.items() if of == user.source])
    return resolved


def _prompt_layer(name: str) -> Layer:
    """Return the settings of a benchmark that decide what a model reads."""
    benchmark = get_benchmark(name)
    task_values = task_layer(benchmark, split_folder(benchmark)).values
    return Layer(f"--benchmark={name}", {key: value for key, value in task_values.items() if key in ASKING})


def _build_request(
    options: PrepareTrainingDataOptions,
    recipe: DataRecipe,
    config: TrainingDataConfig,
    schema: Schema | None,
    compared: tuple[ComparedProblems, ...],
) -> BuildRequest:
    return BuildRequest(
        config=config,
        recipe=recipe.name,
        inputs=tuple(_input_sources(options, config, schema)),
        compared=compared,
        ngram=options.decontaminate_ngram,
        share=options.decontaminate_share,
        workers=options.workers,
        examples=example_sets(get_benchmark(options.benchmark)) if options.benchmark else {},
        on_ray=EXECUTORS.properties(options.executor).uses_ray,
    )


def _input_sources(
    options: PrepareTrainingDataOptions, config: TrainingDataConfig, schema: Schema | None
) -> Iterator[InputSource]:
    """Yield the files to read. Raises ConfigError where nothing is named, DataError for a pattern without files."""
    raw, ready = config.input_files, config.preprocessed_dataset_files
    if raw is None and ready is None:
        if schema is None:
            raise ConfigError(
                "No input is given. Give ++input_files=FILES, ++preprocessed_dataset_files=FILES, or "
                "--dataset=NAME."
            )
        split = split_of(schema, options.split)
        fetch = _fetch_options(options)
        path, laid = lay_out(schema, split, options.data_dir, fetch)
        revision = next((source.get("revision") for source in laid.sources if source.get("revision")), "")
        origin = {"dataset": schema.name, "split": split, "licence": schema.licence, "revision": revision}
        yield InputSource(path=path, origin=origin)
    name, origin = "", {}
    if schema is not None:
        name, origin = schema.name, {"licence": schema.licence}
    for files, graded in ((raw, schema is None), (ready, False)):
        for path in _expand_patterns(files):
            rows = None if _is_plain(path) else partial(rows_of_file, path)
            yield InputSource(path=path, graded=graded, schema=name, origin=origin, rows=rows)


def _is_plain(path: Path) -> bool:
    """Return whether workers can read pieces of the file. Raises DataError."""
    if path.suffix != ".jsonl":
        return False
    with open_for_reading(path) as file:
        return is_plain(file, path)


def _fetch_options(options: PrepareTrainingDataOptions) -> FetchOptions:
    return FetchOptions(mirror=options.mirror or "", offline=options.offline, progress=DownloadProgress(1))


def _expand_patterns(files: Files | None) -> Iterator[Path]:
    """Yield the files of all patterns, in order. Raises DataError where a pattern has none."""
    for pattern in _split_patterns(files):
        wide = str(Path(pattern).expanduser())
        matches = sorted(glob.glob(wide, recursive=True))
        if not matches:
            folder = Path(wide).parent
            names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
            raise DataError(f"There is no file {pattern}{suggest(Path(wide).name, names)}")
        yield from map(Path, matches)


def _split_patterns(files: Files | None) -> list[str]:
    if files is None:
        return []
    texts = [files] if isinstance(files, str) else files
    return [part for text in texts for part in re.split(r",|\s", text) if part]


def _compared_problems(options: PrepareTrainingDataOptions) -> tuple[ComparedProblems, ...]:
    """Return the problems to compare with. Raises UnknownNameError, DataError."""
    comparisons = []
    for name in (part for text in options.decontaminate for part in text.split(",") if part):
        path = Path(name).expanduser()
        if path.name.endswith(ROW_FILE_SUFFIXES):
            if not path.is_file():
                raise DataError(f"There is no file {path}.")
            comparisons.append(ComparedProblems(name=name, texts=partial(_read_questions, path)))
            continue
        for benchmark in expand_benchmarks(name, BenchmarkPlaces(None, data_dir(options.data_dir))):
            comparisons.append(
                ComparedProblems(name=benchmark.name, texts=partial(_benchmark_questions, benchmark, options))
            )
    return tuple(comparisons)


def _benchmark_questions(benchmark: Benchmark, options: PrepareTrainingDataOptions) -> Iterator[str]:
    """Return the questions of the benchmark's own split, which is prepared where it is not yet."""
    prepare(benchmark, data_dir=options.data_dir, splits=(benchmark.split,), options=_fetch_options(options))
    return _read_questions(load_rows(benchmark, data_dir=options.data_dir))


def _read_questions(path: Path) -> Iterator[str]:
    """Yield the question of each row. Raises DataError for a row without any of the fields."""
    for row in read_rows(path):
        text = question_of(row)
        if text is None:
            raise DataError(
                f"{path}: a row has none of the fields {', '.join(FIELDS)}, so nothing can be compared with it."
            )
        yield text


def _print_contamination_notes(config: TrainingDataConfig) -> None:
    if config.filters.remove_contaminated and config.contamination_file:
        contaminated, unknown = read_contaminated(Path(config.contamination_file))
        print_note(f"{config.contamination_file}: {len(contaminated)} contaminated problems")
        if unknown:
            print_note(f"{config.contamination_file}: {unknown} problems have no verdict and are kept")


def _dry_run(
    options: PrepareTrainingDataOptions,
    recipe: DataRecipe,
    config: TrainingDataConfig,
    schema: Schema | None,
    compared: tuple[ComparedProblems, ...],
) -> None:
    """Show what would be read and written, and the first row that would come out, where all files are here."""
    steps: list[Step] = []
    if schema is not None and config.input_files is None and config.preprocessed_dataset_files is None:
        split = split_of(schema, options.split)
        place = split_file(schema, split, options.data_dir)
        steps.append(("reads" if place.is_file() else "fetches", place, f"{schema.name}, {schema.licence}"))
    else:
        inputs = list(_input_sources(options, config, schema))
        steps += [("reads", source.path, schema.name if schema else _describe_input(source)) for source in inputs]
        request = _build_request(options, recipe, config, schema, ())
        for line in preview_lines(request, 1):
            sys.stdout.write(f"{line.decode(errors='replace')}")
    steps += [("compares", benchmark.name, "by shared words (n-grams)") for benchmark in compared]
    page = card_files(Path(config.output_path))[1]
    show_dry_run([*steps, ("writes", config.output_path, recipe.output), ("writes", page, "its data card")])


def _describe_input(source: InputSource) -> str:
    if source.graded:
        return "generations with verdicts"
    return "ready-made rows"


def _print_card_summary(card: Card, output: Path, bar: ProgressBar) -> None:
    bar.line(f"{card.rows_read} rows read", sys.stderr)
    for step in card.steps:
        if step.removed or step.changed:
            changed = f", {step.changed} changed" if step.changed else ""
            bar.line(f"  {step.name}: {step.removed} removed{changed}", sys.stderr)
    for step in card.steps:
        if step.name == UNLABELED and step.removed:
            print_note(f"{step.removed} rows have no verdict and were left out; ++add_unlabeled=true keeps them")
    sys.stdout.write(
        f"{output}: {card.rows_written} rows ({card_files(output)[1].name} says how they were made)\n"
    )
