# SPDX-License-Identifier: Apache-2.0
"""Files of questions as benchmarks: what `++` keys say of them, and what was seen instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, suggest
from newskills.benchmarks.files.describe import columns_from
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.benchmarks.files.format import AnswerAs, Kind
from newskills.benchmarks.files.names import SETTINGS, is_table
from newskills.benchmarks.files.words import TableWords
from newskills.benchmarks.interactive.environments import split_samples
from newskills.config.values import Text, parse_value, strip_quotes
from newskills.pipelines.notices import print_note


def table_words(overrides: Mapping[str, Text], benchmarks: str) -> TableWords | None:
    """Return what `++columns`, `++kind` and `++answer_as` say; None where none is given. Raises ConfigError for words
    that mean nothing, and where no file of questions is named."""
    words = {key: overrides[key] for key in SETTINGS if key in overrides}
    if not words:
        return None
    if not any(is_table(split_samples(part.strip())[0]) for part in benchmarks.split(",")):
        raise ConfigError(
            f"++{min(words)} describes a file of questions, and --benchmarks names none (questions.csv).",
            hint="In a YAML file that describes a benchmark, it is a key.",
        )
    columns = columns_from(parse_value(words["columns"]), "++columns") if "columns" in words else {}
    for key, choices in (("kind", get_args(Kind)), ("answer_as", get_args(AnswerAs))):
        if key in words and strip_quotes(words[key]) not in choices:
            raise ConfigError(f"++{key}: '{words[key]}' is not one of the choices{suggest(words[key], choices)}")
    chosen = {key: strip_quotes(words[key]) for key in words if key != "columns"}
    return TableWords(columns=columns, **chosen)  # type: ignore[arg-type]


def print_guesses(benchmarks: Iterable[Benchmark]) -> None:
    """Print what was seen from files of questions, instead of said."""
    for benchmark in benchmarks:
        if isinstance(benchmark, DescribedBenchmark):
            for line in benchmark.guesses:
                print_note(line)
