# SPDX-License-Identifier: Apache-2.0
"""Published prompts of a benchmark → files beside its rows, downloaded like these: mirror, cache, network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.benchmark import Benchmark, Source
from newskills.base.errors import DataError, storage_error
from newskills.base.store import atomic_write, read_rows
from newskills.benchmarks import list_benchmarks
from newskills.benchmarks.downloads.fetch import Fetcher
from newskills.benchmarks.downloads.mirror import ChangedFileError
from newskills.benchmarks.downloads.sources import PublishedFile
from newskills.prompts.names import find_prompt, prompt_files
from newskills.prompts.official.reading import find_official, needed_fields, official_source
from newskills.prompts.official.table import FOLDER, OfficialPrompt, entries_for, entries_of, official_prompts
from newskills.prompts.schema import PromptConfig, read_source
from newskills.prompts.template import Template, TextPosition

PROMPTS = "prompts"
"""Stands for all published prompts where names of benchmarks are given."""
_PATIENCE = 10.0
"""Seconds without a byte, for files that work goes on without."""
_OF_JUDGES = frozenset({"generation", "predicted_answer", "problem", "question"})
"""Fields that judges are shown whatever the rows call them."""
_OF_KINDS = {"turns": {"question_1", "answer_1"}, "rubric": {"points"}}
"""Kind of a judge → fields that its solver fills beside those that the library's prompt shows."""
EXAMPLE_ORIGINS = {"mmlu_few_shot_": ("mmlu", "dev"), "mmlu_pro_few_shot_": ("mmlu-pro", "validation")}
"""Beginning of the names of few-shot sets → benchmark and split that holds their rows."""


Alternatives = Sequence[OfficialPrompt]
"""What is published for one prompt, the best first."""


def prompts_of(benchmark: Benchmark) -> list[list[OfficialPrompt]]:
    """Return what is published for a benchmark that comes with newskills: its prompt, and those of its judge."""
    if benchmark.name not in {entry.name for entry in list_benchmarks()}:
        return []
    names = [benchmark.prompt, *_nested_texts(benchmark.defaults)]
    if benchmark.judge is not None:
        names += [benchmark.judge.prompt, *_nested_texts(benchmark.judge.defaults)]
    return entries_for(benchmark.name, names)


def shared_prompts() -> list[list[OfficialPrompt]]:
    """Return what is published for prompts whatever the benchmark."""
    return [[entry] for entry in official_prompts() if not entry.benchmarks]


def lay_out(prompts: Sequence[Alternatives], folder: Path, fetcher: Fetcher) -> dict[str, str]:
    """Bring the files of `prompts` into `folder`. Return prompt → why it cannot be had.

    Raises ChangedFileError for a file that is not the published one, StorageError.
    """
    missing = {}
    for alternatives in prompts:
        best = alternatives[0]
        if _is_here(best, folder):
            continue
        try:
            entry, files = first_published(alternatives, fetcher)
        except ChangedFileError:
            raise
        except DataError as error:
            if not best.same:
                missing[best.prompt] = error.message
            continue
        for file, place in zip(files, entry.places(folder).values(), strict=True):
            _copy_prompt_file(file.path, place)
    return missing


def first_published(alternatives: Alternatives, fetcher: Fetcher) -> tuple[OfficialPrompt, list[PublishedFile]]:
    """Return the first of `alternatives` that can be had, with its files.

    Raises ChangedFileError; DataError of the best one where none can be had.
    """
    problems: list[DataError] = []
    for entry in alternatives:
        try:
            return entry, published_files(entry, fetcher)
        except ChangedFileError:
            raise
        except DataError as error:
            problems.append(error)
    raise problems[0]


def published_files(entry: OfficialPrompt, fetcher: Fetcher) -> list[PublishedFile]:
    """Return the files of one published prompt, in order. Raises DataError.

    A mirror is meant to be whole: what it lacks is not looked for on the network.
    """
    options = msgspec.structs.replace(fetcher.options, retries=0, timeout=_PATIENCE, progress=None)
    hurried = Fetcher(fetcher.cache, options)
    files = []
    for path, sha256 in entry.files.items():
        url = entry.url(path)
        if fetcher.mirror is not None and not fetcher.has_mirrored(url):
            raise DataError(f"{url} is not in the mirror {fetcher.mirror.folder}.")
        fetched = hurried.fetch(url, Source(url=url, sha256=sha256))
        files.append(PublishedFile(url, fetched.path, sha256, entry.revision))
    return files


def splits_with_examples(benchmark: Benchmark, prompts: Sequence[Alternatives], folder: Path) -> dict[str, str]:
    """Return prompt → split of the benchmark that holds the examples which its published wording shows."""
    split = dict(EXAMPLE_ORIGINS.values()).get(benchmark.name)
    officials = [find_official(alternatives[0].prompt, [str(folder)]) for alternatives in prompts]
    entries = [official[0] for official in officials if official is not None]
    return {entry.prompt: split for entry in entries if entry.examples_type is not None and split is not None}


def take_away(prompt: str, folder: Path) -> None:
    """Remove the files of what is published for `prompt` from `folder`: it cannot be asked. Raises StorageError."""
    for entry in entries_of(prompt):
        for place in entry.places(folder).values():
            try:
                place.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(error, place) from error


def check_fields(benchmark: Benchmark, prompts: Sequence[Alternatives], rows: Path) -> None:
    """Refuse a published prompt that asks for a field that the rows lack. Raises DataError."""
    row = next(islice(read_rows(rows), 1), None) if rows.is_file() else None
    if row is None:
        return
    folder = rows.parent / FOLDER
    for alternatives in prompts:
        official = find_official(alternatives[0].prompt, [str(folder)])
        if official is None:
            continue
        entry, _ = official
        config = official_source(entry, folder).config
        _check_examples(benchmark, config, rows)
        fields = {*row, *_known_fields(entry.prompt)}
        if benchmark.judge is not None and entry.prompt != benchmark.prompt:
            fields |= _OF_JUDGES | _OF_KINDS.get(benchmark.judge.kind, set())
        lacking = sorted(needed_fields(config) - fields)
        if lacking:
            raise DataError(
                f"{benchmark.name}: the official wording of {entry.prompt} needs the field '{lacking[0]}', "
                f"which the rows in {rows} do not have."
            )


def _check_examples(benchmark: Benchmark, config: PromptConfig, rows: Path) -> None:
    """Refuse examples with a field that no other split has. Raises DataError."""
    others = [path for path in rows.parent.glob("*.jsonl") if path != rows]
    if config.few_shot_examples.examples_type is None or not others:
        return
    fields = set(Template(config.few_shot_examples.template, TextPosition("an official prompt")).fields)
    lacking = [fields - set(row) for path in others for row in islice(read_rows(path), 1)]
    if all(lacking):
        raise DataError(
            f"{benchmark.name}: the official examples need the field '{min(lacking[0])}', which the rows of no "
            f"split in {rows.parent} have."
        )


def _known_fields(prompt: str) -> set[str]:
    """Return the fields that the library's prompt of the same name is filled with, by rows or by the solver."""
    if prompt in prompt_files():
        return needed_fields(read_source(*find_prompt(prompt)).config)
    return set()


def _is_here(entry: OfficialPrompt, folder: Path) -> bool:
    try:
        official = find_official(entry.prompt, [str(folder)])
    except DataError:  # changed: it is downloaded again
        return False
    return official is not None and official[0] == entry


def _nested_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _nested_texts(item)


def _copy_prompt_file(source: Path, place: Path) -> None:
    try:
        with source.open("rb") as file, atomic_write(place) as copy:
            shutil.copyfileobj(file, copy)
    except OSError as error:
        raise storage_error(error, place) from error
