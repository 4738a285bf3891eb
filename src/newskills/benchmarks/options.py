# SPDX-License-Identifier: Apache-2.0
"""Options that benchmarks have for `ns prepare_data`: how they are made, and how they change what is prepared."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Option, RowMapper, Source
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.records import Row

Given = Mapping[str, Sequence[str]]
"""Name → values; a flag has none."""
_SET = re.compile(r"\{[^{}]*\}")


def with_options(benchmark: Benchmark, options_given: Given) -> Benchmark | None:
    """Change `benchmark` by those of its options that are given; None where they leave it out.

    Raises UnknownNameError for a value that there is not, ConfigError for a missing one.
    """
    made: Benchmark | None = benchmark
    effective: dict[str, tuple[str, ...]] = {}
    for name in options_given:
        if name not in benchmark.options:
            continue
        values = values_of(options_given[name])
        option = benchmark.options[name]
        for value in values:
            if option.known and value not in option.known:
                raise UnknownNameError(f"value of --{name}", value, option.known)
        if option.known and not values:
            raise ConfigError(f"--{name} needs a value: {', '.join(option.known)}.")
        before = made
        if made is not None and option.apply is not None:
            made = option.apply(made, values)
        if option.apply is None or made is not before:
            effective[name] = values
    if made is not None and effective:
        return replace(made, chosen=effective)
    return made


def values_of(words: Sequence[str]) -> tuple[str, ...]:
    """Split values: `a,b` is two; the text None is none."""
    return tuple(part for word in words for part in word.split(",") if part and part != "None")


def check_options(benchmarks: Sequence[Benchmark], options_given: Given, command: Sequence[str]) -> None:
    """Raise UnknownNameError for an option that neither the `command` nor any of these benchmarks has."""
    option_names = {name for benchmark in benchmarks for name in benchmark.options}
    for name in options_given:
        if name not in option_names:
            raise UnknownNameError(
                "option",
                f"--{name}",
                [f"--{name}" for name in (*command, *option_names)],
                hint="See: ns prepare_data NAME --help",
            )


def option_words(options_given: Given) -> Iterator[tuple[str, ...]]:
    """Yield the options as words of the command line."""
    for name, values in options_given.items():
        if values:
            yield (f"--{name}={','.join(values)}",)
        else:
            yield (f"--{name}",)


def rows_with(field: str, meaning: str, *choices: str, usual: str = "all") -> Option:
    """Return an option that keeps only prepared rows whose `field` is one of the values."""

    def apply(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        return replace(benchmark, keep={**benchmark.keep, field: values}, items={})

    return Option(meaning=meaning, apply=apply, known=choices, usual=usual)


def sources_with(part: str, meaning: str, *choices: str, form: str = "{}", usual: str = "") -> Option:
    """Return an option that sets the braces of `part` (config, hf_split, url) of all sources; `form`: how a value
    stands there."""

    def apply(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        chosen = f"{{{','.join(map(form.format, values))}}}"

        def changed(source: Source) -> Source:
            return replace(source, **{part: _SET.sub(lambda _: chosen, getattr(source, part))}, sha256="")

        return replace(benchmark, sources=tuple(map(changed, benchmark.sources)), items={})

    return Option(meaning=meaning, apply=apply, known=choices, usual=usual)


Change = Callable[[Row, tuple[str, ...]], Row | Drop]
"""(prepared row, values of the option) → what becomes of it."""


def rows_changed(meaning: str, change: Change, choices: tuple[str, ...] = (), usual: str = "") -> Option:
    """Return an option that maps each prepared row by `change`."""

    def apply(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        row = partial(_changed_row, change, values, benchmark.row) if benchmark.row else None
        variants: dict[str, RowMapper] = {
            name: partial(_changed_row, change, values, mapper) for name, mapper in benchmark.variants.items()
        }
        return replace(benchmark, row=row, variants=variants, items={})

    return Option(meaning=meaning, apply=apply, known=choices, usual=usual)


def _changed_row(change: Change, values: tuple[str, ...], mapper: RowMapper, raw: Row, index: int) -> Row | Drop:
    made = mapper(raw, index)
    assert isinstance(made, dict | Drop), "only for mappings that give one row"
    if isinstance(made, Drop):
        return made
    return change(made, values)


def field_set(field: str, meaning: str) -> Option:
    """Return an option that sets `field` in all prepared rows."""
    return rows_changed(meaning, lambda row, values: {**row, field: single_value(field, values)})


def kept_if(meaning: str, test: Callable[[Row, tuple[str, ...]], bool]) -> Option:
    """Return an option that keeps only prepared rows that pass the test."""
    return rows_changed(meaning, lambda row, values: row if test(row, values) else OTHER_SPLIT)


def first_rows() -> Option:
    """Return an option that keeps only so many rows of each source."""

    def apply(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
        span = (0, whole_number("--max_samples", values))
        return replace(
            benchmark, sources=tuple(replace(source, span=span) for source in benchmark.sources), items={}
        )

    return Option(meaning="only the first rows of the source", apply=apply)


def single_value(name: str, values: tuple[str, ...]) -> str:
    """Return the value of an option that takes a single one. Raises ConfigError."""
    if len(values) != 1:
        raise ConfigError(f"{name}: expected one value, not {len(values)}.")
    return values[0]


def whole_number(name: str, values: tuple[str, ...]) -> int:
    """Return the whole number that an option is given. Raises ConfigError."""
    text = single_value(name, values)
    if not text.isdecimal():
        raise ConfigError(f"{name}: {text!r} is not a whole number.")
    return int(text)


def help_lines(benchmark: Benchmark) -> list[str]:
    """Return the lines of help, one or two for each option."""
    lines = []
    for name, option in benchmark.options.items():
        line = f"  --{name:<32}{option.meaning}"
        if option.usual:
            line += f" (default: {option.usual})"
        lines.append(line)
        if 0 < len(option.known) <= 30:
            lines += textwrap.wrap(
                ", ".join(option.known), 100, initial_indent=" " * 36, subsequent_indent=" " * 36
            )
    return lines
