# SPDX-License-Identifier: Apache-2.0
"""What `ns validate` does. Apart from its options, so that help and completion load little."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from msgspec.structs import replace

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.store import atomic_write
from newskills.base.tables import print_table
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_benchmark, list_benchmarks
from newskills.benchmarks.data import split_folder
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.sources import in_mirror
from newskills.benchmarks.folders import data_dir
from newskills.config.command_line import Parsed
from newskills.pipelines.data.downloads import ProgressBar
from newskills.pipelines.data.validate_options import ValidateOptions
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.notices import print_note
from newskills.run.validation.checks import KINDS, ReplyShare, Validation, ValidationSampling, check_benchmarks

ALL = "all"


def run(parsed: Parsed[ValidateOptions]) -> int:
    """Run the command; return 1 where a benchmark has a problem; one that lacks a package is left out. Raises
    NewskillsError."""
    return int(any(validation.problems for validation in validate_benchmarks(parsed) or ()))


def validate_benchmarks(parsed: Parsed[ValidateOptions]) -> list[Validation] | None:
    """Validate for Python, and return what is wrong with each benchmark, in its `problems`; None for a dry run.
    Raises NewskillsError."""
    options = parsed.options
    fetch = FetchOptions(mirror=options.mirror or "", offline=options.offline)
    root = data_dir(options.data_dir)
    benchmarks = _chosen_benchmarks(parsed, fetch, root)
    if options.dry_run:
        show_dry_run(("checks", benchmark.name, str(split_folder(benchmark, root))) for benchmark in benchmarks)
        return None
    bar = ProgressBar()
    validations: list[Validation] = []
    sampling = ValidationSampling(data_dir=root, fetch=fetch, settings=parsed.overrides)
    most = options.max_samples
    if most is not None:
        sampling = replace(sampling, graded=most, executed=most)
    for validation in check_benchmarks(benchmarks, sampling):
        validations.append(validation)
        bar.draw(len(validations) / len(benchmarks), validation.benchmark)
    bar.line("")
    print_table(list(map(_validation_cells, validations)), ("benchmark", "rows", "tried", *KINDS, ""))
    for text, names in _group_notes(validations).items():
        sys.stderr.write(f"note: {names}: {text}\n")
    for validation in validations:
        for problem in validation.problems:
            sys.stderr.write(f"error: {validation.benchmark}: {problem}\n")
    if options.json:
        with atomic_write(Path(options.json)) as file:
            file.write(msgspec.json.format(msgspec.json.encode(validations), indent=1) + b"\n")
    wrong = sum(bool(validation.problems) for validation in validations)
    left = sum(bool(validation.left_out) for validation in validations if not validation.problems)
    more = ""
    if left:
        more = f", {left} left out for want of packages"
    sys.stdout.write(f"\n{len(validations) - wrong - left} of {len(validations)} benchmarks pass{more}\n")
    return validations


def _chosen_benchmarks(parsed: Parsed[ValidateOptions], fetch: FetchOptions, root: Path) -> list[Benchmark]:
    """Return the benchmarks that the options choose. Raises ConfigError, UnknownNameError."""
    options = parsed.options
    if options.benchmarks == [ALL] or (options.category and not options.benchmarks):
        return _available_benchmarks(options.category, fetch, root)
    if options.category:
        raise ConfigError("--category selects among all benchmarks: do not give names with it.")
    if not options.benchmarks:
        raise ConfigError("No benchmark is named. Give names, or all.", hint="See: ns list benchmarks")
    places = BenchmarkPlaces(options.extra_benchmark_map, root, objects=parsed.objects)
    return list(
        {
            benchmark.name: benchmark
            for name in options.benchmarks
            for benchmark in expand_benchmarks(name, places)
        }.values()
    )


def _available_benchmarks(category: str | None, fetch: FetchOptions, root: Path) -> list[Benchmark]:
    """Return the benchmarks whose rows are here or in the mirror. Says how many are left out."""
    fetcher = Fetcher(root / ".downloads", fetch)

    def there(benchmark: Benchmark) -> bool:
        default = [source for source in benchmark.sources if source.split == benchmark.split and not source.path]
        here = (split_folder(benchmark, root) / f"{benchmark.split}.jsonl").is_file()
        return here or any(in_mirror(source, fetcher) for source in default)

    categories = category.split(",") if category else [None]
    listed = [get_benchmark(entry.name) for name in categories for entry in list_benchmarks(name)]
    prepared = [benchmark for benchmark in listed if there(benchmark)]
    if left := len(listed) - len(prepared):
        print_note(f"skipped, because their rows are neither on this machine nor in a mirror: {left} benchmarks")
    return prepared


def _validation_cells(validation: Validation) -> tuple[str, ...]:
    return (
        validation.benchmark,
        str(validation.rows),
        str(validation.sampled),
        *(_format_share(validation.shares.get(kind)) for kind in KINDS),
        _outcome_text(validation),
    )


def _format_share(share: ReplyShare | None) -> str:
    if share is None or not share.of:
        return "-"
    return f"{100 * share.right / share.of:.4g}"


def _outcome_text(validation: Validation) -> str:
    if validation.problems:
        return "wrong"
    if validation.left_out:
        return f"left out: needs {validation.left_out}"
    return "ok"


def _group_notes(validations: list[Validation]) -> dict[str, str]:
    """Group notes: text → the benchmarks to which it applies, in one line."""
    names: dict[str, list[str]] = {}
    for validation in validations:
        for text in validation.notes:
            names.setdefault(text, []).append(validation.benchmark)
    return {text: ", ".join(several) for text, several in names.items()}
