# SPDX-License-Identifier: Apache-2.0
"""What `ns prepare_data` does, here and as a job. Apart from its options, so that help and completion load little."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Source
from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.benchmarks import BenchmarkPlaces, expand_benchmarks, get_benchmark, list_benchmarks
from newskills.benchmarks.data import (
    NOT_VERIFIED,
    PreparedData,
    chosen_splits,
    prepare_many,
    read_provenance,
    split_folder,
)
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.official import PROMPTS, Alternatives, lay_out, prompts_of, shared_prompts
from newskills.benchmarks.downloads.sources import in_mirror
from newskills.benchmarks.files.names import is_file_name
from newskills.benchmarks.folders import data_dir
from newskills.benchmarks.options import check_options, help_lines, values_of, with_options
from newskills.config.command_line import Parsed
from newskills.config.fields import leaves
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.clusters.variables import job_variables
from newskills.launch.experiments import Experiment
from newskills.launch.scripts.clients import PrepareDataScript
from newskills.pipelines.data.downloads import DownloadProgress
from newskills.pipelines.data.prepare_options import PrepareDataOptions
from newskills.pipelines.data.training_sets import lay_out_all, training_sets, training_steps
from newskills.pipelines.dry_run import Step, show_dry_run
from newskills.pipelines.notices import print_note
from newskills.pipelines.placement.cluster import ClusterPaths, paths_of, target_cluster
from newskills.pipelines.placement.mounted_benchmarks import check_names
from newskills.pipelines.submission.groups import MAIN, job_group, main_container
from newskills.pipelines.submission.job_command import planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.submission.submit import run_prepared, submit_and_wait
from newskills.prompts.official.table import FOLDER
from newskills.run.validation.live import check_live_sources, needs_check, outcome_lines
from newskills.train.data.published import is_published

ALL = "all"
DATA_VARIABLES = ("NEWSKILLS_DATA_DIR", "NEMO_SKILLS_DATA_DIR")


def run(parsed: Parsed[PrepareDataOptions]) -> int:
    if (cluster := target_cluster(parsed.options, parsed.given)) is not None:
        return run_prepared(prepare(parsed, cluster), show=(MAIN,))
    return _prepare_here(parsed).code


def prepare_data(parsed: Parsed[PrepareDataOptions]) -> list[PreparedData] | Experiment | None:
    """Prepare for Python, and return the prepared benchmarks, the submitted experiment, or None for a dry run.
    Raises NewskillsError where any has failed."""
    if (cluster := target_cluster(parsed.options, parsed.given)) is not None:
        return submit_and_wait(prepare(parsed, cluster))
    done = _prepare_here(parsed)
    if done.code:
        raise NewskillsError(f"prepare_data ended with exit code {done.code}.")
    if parsed.options.dry_run:
        return None
    return done.made


class _Preparation(NamedTuple):
    """The exit code, and the benchmarks that are prepared."""

    code: int
    made: list[PreparedData]


def _prepare_here(parsed: Parsed[PrepareDataOptions]) -> _Preparation:
    options = parsed.options
    fetch = FetchOptions(
        mirror=options.mirror or "",
        offline=options.offline,
        retries=options.retries,
        parallelism=options.parallelism,
    )
    all_names = _benchmark_names(options)
    if PROMPTS in all_names:
        _prepare_prompts(options, fetch)
    names = [name for name in all_names if name != PROMPTS]
    if names:
        return _prepare_named(names, parsed, fetch)
    return _Preparation(0, [])


def _prepare_named(
    all_names: Sequence[str], parsed: Parsed[PrepareDataOptions], fetch: FetchOptions
) -> _Preparation:
    options, more = parsed.options, parsed.more
    trained, names = training_sets(all_names)
    if names == [ALL]:
        benchmarks = _fetchable_benchmarks(fetch)
    else:
        places = BenchmarkPlaces(options.extra_benchmark_map, data_dir(options.data_dir), objects=parsed.objects)
        expanded = [benchmark for name in names for benchmark in expand_benchmarks(name, places)]
        benchmarks = list({benchmark.name: benchmark for benchmark in expanded}.values())
        if twice := sorted(
            name for name, count in Counter(benchmark.name for benchmark in expanded).items() if count > 1
        ):
            print_note(f"named more than once, prepared once: {', '.join(twice)}")
    check_options(benchmarks, more, tuple(leaves(PrepareDataOptions)))
    chosen = [(benchmark.name, with_options(benchmark, more)) for benchmark in benchmarks]
    benchmarks = [made for _, made in chosen if made is not None]
    if left := [name for name, made in chosen if made is None]:
        print_note(f"skipped because of the given options: {', '.join(left)}")
    progress = _PrepareProgress(len(benchmarks) + len(trained))
    fetch = replace(fetch, progress=progress)
    if options.dry_run:
        steps = [step for benchmark in benchmarks for step in _dry_run_steps(benchmark, options, fetch)]
        show_dry_run([*steps, *training_steps(trained, options.split, options.data_dir)])
        return _Preparation(0, [])
    code, failed, prepared_data = 0, dict[str, NewskillsError](), list[PreparedData]()
    for schema in trained:
        try:
            for line in lay_out_all([schema], options.split, options.data_dir, fetch):
                progress.line(line)
        except NewskillsError as error:
            failed[schema.name], code = error, code or error.exit_code
            progress.line(f"error: {schema.name}: {error}", sys.stderr)
        progress.count_one()
    built = [benchmark for benchmark in benchmarks if benchmark.build is not None and "setup" in benchmark.chosen]
    for benchmark in built:
        try:
            prepared_data += _build_benchmark(benchmark, options, fetch)
        except NewskillsError as error:
            failed[benchmark.name], code = error, code or error.exit_code
            progress.line(f"error: {benchmark.name}: {error}", sys.stderr)
        progress.count_one()
    fetched = [benchmark for benchmark in benchmarks if benchmark not in built]
    if fetched:
        results = prepare_many(
            fetched,
            data_dir=options.data_dir,
            splits=options.split,
            options=fetch,
            report=progress.report,
            force=options.force,
        )
        failed |= {b.name: e for b, e in zip(fetched, results, strict=True) if isinstance(e, NewskillsError)}
        done = [(b, made) for b, made in zip(fetched, results, strict=True) if isinstance(made, PreparedData)]
        prepared_data += [made for _, made in done]
        _print_missing_prompts([made for _, made in done])
        for check in check_live_sources(done, data_dir(options.data_dir)):
            kind = "difference" if check.differences else "note"
            for line in outcome_lines(check):
                progress.line(f"{kind}: {line}", sys.stderr)
    total = len(trained) + len(benchmarks)
    sys.stdout.write(f"{total - len(failed)} of {total} prepared in {data_dir(options.data_dir)}\n")
    if failed and total > 1:
        sys.stderr.write(f"error: not prepared, as said above: {', '.join(failed)}.\n")
    return _Preparation(code or int(bool(failed)), prepared_data)


def _prepare_prompts(options: PrepareDataOptions, fetch: FetchOptions) -> None:
    """Prepare all published prompts. Raises DataError where one cannot be had."""
    prompts, folder = shared_prompts(), data_dir(options.data_dir)
    if options.dry_run:
        show_dry_run([_prompt_step(alternatives) for alternatives in prompts])
        return
    missing = lay_out(prompts, folder / FOLDER, Fetcher(folder / ".downloads", fetch))
    sys.stdout.write(
        f"{len(prompts) - len(missing)} of {len(prompts)} official prompts are in {folder / FOLDER}\n"
    )
    if missing:
        raise DataError(f"{len(missing)} official prompts cannot be downloaded. {next(iter(missing.values()))}")


def _print_missing_prompts(made: Sequence[PreparedData]) -> None:
    """Print one note for all benchmarks whose prompts are in newskills' own words, and why."""
    lacking = {data.benchmark: data.missing_prompts for data in made if data.missing_prompts}
    if lacking:
        why = next(iter(next(iter(lacking.values())).values()))
        print_note(
            f"official prompts cannot be downloaded, so newskills' own are used: {', '.join(lacking)}. {why}"
        )


def _prompt_step(alternatives: Alternatives) -> Step:
    entry = alternatives[0]
    return "fetches", entry.page, f"the official wording of {entry.prompt}"


def _build_benchmark(benchmark: Benchmark, options: PrepareDataOptions, fetch: FetchOptions) -> list[PreparedData]:
    """Build the data of a benchmark, print where it is, and return it. Raises ConfigError, DataError."""
    assert benchmark.build is not None, "called for benchmarks that are built"
    home = data_dir(options.data_dir)
    chosen = {name: ",".join(values) for name, values in benchmark.chosen.items() if values}
    built = []
    for name in benchmark.build(home / benchmark.name, chosen, fetch):
        folder = home / Path(*name.split("."))
        sys.stdout.write(f"{name} is in {folder}\n")
        built.append(PreparedData(benchmark=name, folder=folder, splits=[]))
    return built


def _fetchable_benchmarks(fetch: FetchOptions) -> list[Benchmark]:
    """Return the benchmarks that have data to fetch; without a network, those that the mirror has. Reports what is left
    out."""
    listed = [get_benchmark(entry.name) for entry in list_benchmarks()]
    kept = [benchmark for benchmark in listed if benchmark.sources]
    if left := sorted({benchmark.name.partition(".")[0] for benchmark in listed if not benchmark.sources}):
        print_note(f"skipped, because they download nothing: {', '.join(left)}")
    if fetch.is_offline():
        fetcher = Fetcher(data_dir(), fetch)
        there = [
            benchmark
            for benchmark in kept
            if any(s.split == benchmark.split and in_mirror(s, fetcher) for s in benchmark.sources)
        ]
        if len(there) < len(kept):
            print_note(f"skipped, because the mirror has no data for them: {len(kept) - len(there)} benchmarks")
        kept = there
    return kept


def more_help(words: Mapping[str, list[str]]) -> str:
    """Return the help text of the options of the benchmarks among `words`. Raises UnknownNameError."""
    text = ""
    for name in words["benchmarks"]:
        if name == PROMPTS or is_published(name):
            continue
        lines = dict.fromkeys(line for benchmark in expand_benchmarks(name) for line in help_lines(benchmark))
        lines_of_options = lines or ("  (none beyond those above)",)
        text += "\n".join(("", f"options of {name}:", *lines_of_options, ""))
    return text


def prepare(parsed: Parsed[PrepareDataOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare one job that prepares the data where it is to lie. Raises NewskillsError."""
    options = planned_options(parsed)
    check_names(parsed.objects)
    paths = paths_of(cluster, main_container(options), options)
    place, mirror = _data_dir_in_job(options, paths), _mirror_in_job(options, paths)
    extra = options.extra_benchmark_map
    names = _benchmark_names(options)
    if not any(
        "/" in name or is_file_name(name) or name in (ALL, PROMPTS) or is_published(name) for name in names
    ):
        benchmarks = [benchmark for name in names for benchmark in expand_benchmarks(name, extra)]
        check_options(benchmarks, parsed.more, tuple(leaves(PrepareDataOptions)))
    settings = {
        "data_dir": place,
        "mirror": mirror,
        "extra_benchmark_map": paths.path_in_job(extra, "--extra_benchmark_map") if extra else None,
        "offline": options.offline,
        "parallelism": options.parallelism,
        "retries": options.retries,
    }
    for name, words in parsed.more.items():
        settings[name] = ",".join(values_of(words)) if words else True
    script = PrepareDataScript(
        [_name_in_job(name, options, paths) for name in names],
        splits=options.split,
        settings=settings,
        installation_command=options.installation_command,
    )
    plan = Plan()
    group = job_group(script, options, gpus=options.num_gpus or 0, nodes=options.num_nodes)
    outputs, made = [], []
    if place:
        outputs, made = [place], [f"{place}/{name}" for name in names]
    plan.add("prepare_data", [group], copies=options.dependent_jobs, outputs=tuple(outputs), makes=tuple(made))
    shown = {
        "benchmarks": " ".join(names),
        "writes": place or f"the folder that {' or '.join(DATA_VARIABLES)} names there",
    }
    if mirror:
        shown["mirror"] = mirror
    return prepare_submission(options.expname or "prepare_data", plan, cluster, options, shown)


def _benchmark_names(options: PrepareDataOptions) -> list[str]:
    names = list(options.benchmarks)
    if options.dataset:
        names.append(options.dataset)
    if not names:
        raise ConfigError("No benchmark is named. Give names, or all.", hint="See: ns list benchmarks")
    return names


def _data_dir_in_job(options: PrepareDataOptions, paths: ClusterPaths) -> str | None:
    """Return `--data_dir` as the job sees it; None where variables of the cluster name it. Raises ConfigError."""
    if options.data_dir:
        return paths.path_in_job(options.data_dir, "--data_dir")
    variables = job_variables(paths.cluster, os.environ)
    if any(name in variables.plain or name in variables.secrets for name in DATA_VARIABLES):
        return None
    if paths.cluster.ssh_tunnel is None:
        return paths.client_path(str(data_dir()), "--data_dir")
    raise ConfigError(
        f"Which folder of cluster '{paths.cluster.name}' holds the data? Give --data_dir.",
        hint=f"Or add {DATA_VARIABLES[0]}=/FOLDER to env_vars in its config.",
    )


def _mirror_in_job(options: PrepareDataOptions, paths: ClusterPaths) -> str | None:
    mirror = options.mirror
    if mirror is None and paths.cluster.ssh_tunnel is None and not paths.contained:
        mirror = os.environ.get("NEWSKILLS_MIRROR")
    if mirror:
        return paths.path_in_job(mirror, "--mirror")
    return None


def _name_in_job(name: str, options: PrepareDataOptions, paths: ClusterPaths) -> str:
    """Check a name, and return it as the job sees it; files with benchmarks may be on the cluster only. Raises
    UnknownNameError."""
    if "/" in name or is_file_name(name):
        return paths.path_in_job(name, "benchmark")
    if name not in (ALL, PROMPTS) and not is_published(name):
        expand_benchmarks(name, options.extra_benchmark_map)
    return name


def _dry_run_steps(benchmark: Benchmark, options: PrepareDataOptions, fetch: FetchOptions) -> Iterator[Step]:
    """Yield, for each split, what exists or where it would come from. Nothing is fetched and no sum is checked."""
    if benchmark.folder:
        yield "reads", benchmark.folder, f"{benchmark.name} ships with its data"
        return
    fetcher = Fetcher(data_dir(options.data_dir) / ".downloads", fetch)
    for split in chosen_splits(benchmark, options.split) or benchmark.splits():
        path = split_folder(benchmark, options.data_dir) / f"{split}.jsonl"
        if path.is_file() and (made := read_provenance(path)) is not None:
            yield "checks", path, f"{made.rows} rows, rebuilt if the source or the mapping has changed"
            continue
        if benchmark.generate_rows is not None:
            yield "generates", benchmark.name, split
        sources = [source for source in benchmark.sources if source.split == split]
        sources.sort(key=lambda source: not in_mirror(source, fetcher))
        for number, source in enumerate(sources):
            verb = "or downloads" if number else "fetches"
            yield verb, _source_address(source), _describe_origin(source, fetcher)
        yield "writes", path, ""
    yield from map(_prompt_step, prompts_of(benchmark))


def _source_address(source: Source) -> str:
    if source.path or source.url:
        return source.path or source.url
    if source.hf:
        return f"huggingface.co/datasets/{source.hf}"
    return f"github.com/{source.github}"


def _describe_origin(source: Source, fetcher: Fetcher) -> str:
    if in_mirror(source, fetcher):
        if source.path:
            return "on this machine"
        return "from the mirror"
    if fetcher.options.is_offline():
        return "is not in the mirror, and downloads are off (--offline)"
    return "from the network"


class _PrepareProgress(DownloadProgress):
    def report(self, benchmark: Benchmark, result: PreparedData | NewskillsError) -> None:
        """Print one line per split, and its notes."""
        self.count_one()
        if isinstance(result, NewskillsError):
            self.line(f"error: {benchmark.name}: {result}", sys.stderr)
            return
        for split in result.splits:
            note = "" if split.fresh else " (already there)"
            self.line(f"{benchmark.name:<24} {split.split:<8} {split.provenance.rows:>7} rows{note}")
            checked = needs_check(benchmark, split)
            for text in (text for text in split.notices if not checked or text != NOT_VERIFIED):
                self.line(f"note: {benchmark.name}: {text}", sys.stderr)
        for name, reason in result.missing.items():
            self.line(f"note: {benchmark.name}: split {name} is left out: {reason}", sys.stderr)
