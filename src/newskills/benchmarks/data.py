# SPDX-License-Identifier: Apache-2.0
"""Benchmarks → prepared files `<data dir>/<name>/<split>.jsonl`, each with a record of where its rows come from.

A prepared file appears whole or not at all, every raw row is either in it or counted as left out, and a second
call does nothing while the source, the mapping and the file are unchanged.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.benchmark import OTHER_SPLIT, Benchmark
from newskills.base.errors import DataError, NewskillsError
from newskills.base.reading.row_files import ROW_FILE_SUFFIXES
from newskills.base.records import Row
from newskills.base.store import read_rows, waiting_lock, write_json, write_rows
from newskills.benchmarks.assets import AssetFolder
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.mapping import RowMapping, made_by
from newskills.benchmarks.downloads.mirror import file_sha256
from newskills.benchmarks.downloads.official import (
    check_fields,
    lay_out,
    prompts_of,
    splits_with_examples,
    take_away,
)
from newskills.benchmarks.downloads.readers import RawRow
from newskills.benchmarks.downloads.sources import in_mirror, open_source
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.benchmarks.folders import data_dir, folder_of
from newskills.benchmarks.lm_eval.benchmark import HarnessBenchmark
from newskills.benchmarks.options import option_words
from newskills.benchmarks.recipe import generator_of, home_of, inputs_of, recipe_of
from newskills.prompts.official.table import FOLDER

NOT_VERIFIED = "not verified against the live source"


class Provenance(Struct, kw_only=True):
    """`<split>.jsonl.meta.json`: what a prepared file was made from; `source_rows` = rows used + all `dropped`.

    `bytes`: size of the prepared file; `assets`: number of images and sounds beside it; `options`: those of the
    benchmark that it was made with; `inputs`: a hash of the files of this machine that were read, empty for none.
    """

    benchmark: str
    split: str
    version: str
    rows: int
    source_rows: int
    dropped: dict[str, int]
    sources: list[Row]
    licence: str
    homepage: str
    sha256: str
    recipe: str
    newskills: str
    prepared: str
    bytes: int = -1
    assets: int = 0
    options: dict[str, tuple[str, ...]] = {}
    inputs: str = ""


class PreparedSplit(Struct, kw_only=True):
    """One prepared file. `fresh`: written by this call. `notices`: what a person should know about it."""

    split: str
    path: Path
    provenance: Provenance
    fresh: bool
    notices: list[str] = []


class PreparedData(Struct, kw_only=True):
    """What `prepare` did for one benchmark; `missing` names the splits without which it can be evaluated.

    `missing_prompts`: published prompts that could not be had, and why; it is asked in newskills' own words instead.
    """

    benchmark: str
    folder: Path
    splits: list[PreparedSplit]
    missing: dict[str, str] = {}
    missing_prompts: dict[str, str] = {}
    seconds: float = 0.0


_root = data_dir  # where a parameter `data_dir` hides the function


def prepare(
    benchmark: Benchmark,
    *,
    data_dir: str | Path | None = None,
    splits: Sequence[str] = (),
    options: FetchOptions | None = None,
    force: bool = False,
) -> PreparedData:
    """Fetch and lay out `splits`, or all there are; then only the default one has to succeed.

    What is there and unchanged is left alone, unless `force`.

    A benchmark that comes with its data, or whose data users bring, is only looked at; if they are not there yet, its
    `prepare.py` makes them.

    Raises DataError: unknown split, no network, refused or changed source, a row that does not fit.
    """
    started = time.monotonic()
    if benchmark.folder:
        return PreparedData(
            benchmark=benchmark.name, folder=_own_data(benchmark, splits, data_dir).parent, splits=[]
        )
    folder = split_folder(benchmark, data_dir)
    fetcher = Fetcher(_root(data_dir) / ".downloads", options or FetchOptions())
    if not benchmark.sources and benchmark.generate_rows is None:
        for split in splits or (benchmark.split,):
            _check_users_own(benchmark, split, folder)
        missing_prompts = _prepare_prompts(benchmark, folder, fetcher, [])
        return PreparedData(benchmark=benchmark.name, folder=folder, splits=[], missing_prompts=missing_prompts)
    done: list[PreparedSplit] = []
    missing: dict[str, str] = {}
    splits = chosen_splits(benchmark, splits)
    for split in splits or benchmark.splits():
        try:
            done.append(_prepare_split(benchmark, split, folder, fetcher, force=force))
        except DataError as error:
            if splits or split == benchmark.split:
                raise
            missing[split] = str(error)
    missing_prompts = _prepare_prompts(benchmark, folder, fetcher, done)
    return PreparedData(
        benchmark=benchmark.name,
        folder=folder,
        splits=done,
        missing=missing,
        missing_prompts=missing_prompts,
        seconds=time.monotonic() - started,
    )


def _prepare_prompts(
    benchmark: Benchmark, folder: Path, fetcher: Fetcher, done: list[PreparedSplit]
) -> dict[str, str]:
    """Lay published prompts beside the rows, and the splits with their examples, which are added to `done`.

    Return prompt → why it cannot be had; one whose examples cannot be had is taken away. Raises DataError.
    """
    if isinstance(benchmark, DescribedBenchmark | HarnessBenchmark):
        return {}  # the user says how it is asked, or the task
    prompts = prompts_of(benchmark)
    missing = lay_out(prompts, folder / FOLDER, fetcher)
    for prompt, split in splits_with_examples(benchmark, prompts, folder / FOLDER).items():
        if split in {prepared.split for prepared in done}:
            continue
        try:
            done.append(_prepare_split(benchmark, split, folder, fetcher, force=False))
        except DataError as error:
            take_away(prompt, folder / FOLDER)
            missing[prompt] = f"its examples, the split {split}, cannot be had: {error.message}"
    check_fields(benchmark, prompts, folder / f"{benchmark.split}.jsonl")
    return missing


def prepare_many(
    benchmarks: Sequence[Benchmark],
    *,
    data_dir: str | Path | None = None,
    splits: Sequence[str] = (),
    options: FetchOptions | None = None,
    report: Callable[[Benchmark, PreparedData | NewskillsError], None] | None = None,
    force: bool = False,
) -> list[PreparedData | NewskillsError]:
    """Prepare several benchmarks, `options.parallelism` at a time; one that fails gives its error in its place.

    `report` is called from worker threads as soon as each is done.
    """
    options = options or FetchOptions()

    def prepare_or_error(benchmark: Benchmark) -> PreparedData | NewskillsError:
        try:
            result: PreparedData | NewskillsError = prepare(
                benchmark, data_dir=data_dir, splits=splits, options=options, force=force
            )
        except NewskillsError as error:
            result = error
        if report:
            report(benchmark, result)
        return result

    with ThreadPoolExecutor(max(1, min(options.parallelism, len(benchmarks)))) as pool:
        return list(pool.map(prepare_or_error, benchmarks))


def _own_data(benchmark: Benchmark, splits: Sequence[str], data_dir: str | Path | None) -> Path:
    wanted = [f"{split}.jsonl" for split in splits or (benchmark.split,)]
    maker = Path(benchmark.folder) / "prepare.py"
    if maker.is_file() and not all((maker.parent / name).is_file() for name in wanted):
        made = subprocess.run(
            [sys.executable, str(maker)], cwd=maker.parent, check=False, stderr=subprocess.PIPE, text=True
        )
        if made.returncode:
            last = made.stderr.strip().rpartition("\n")[2]
            raise DataError(f"{maker} ended with exit code {made.returncode}: {last}")
    first, *_ = [load_rows(benchmark, split, data_dir) for split in splits or ("",)]
    return first


def _check_users_own(benchmark: Benchmark, split: str, folder: Path) -> None:
    _check_split(benchmark, split)
    path = folder / f"{split}.jsonl"
    if not path.is_file():
        raise DataError(
            f"{benchmark.name}: its problems are yours to bring, and there is no file {path}.",
            hint="Lay them there, one JSON object per line; its page in the documentation says which fields.",
        )
    for row in read_rows(path):
        if not row.get("id"):
            raise DataError(f"{path}: a row has no id.")


class NotPreparedError(DataError):
    """`missing`: of each benchmark what it was asked for as, its name, and the file that is not there."""

    def __init__(self, missing: Sequence[tuple[str, str, Path]], data_dir: str | Path | None) -> None:
        self.missing, self.data_dir = tuple(missing), data_dir
        verb, no_file = "are", "are no files"
        if len(self.missing) == 1:
            verb, no_file = "is", "is no file"
        benchmarks = ", ".join(name for _, name, _ in self.missing)
        paths = ", ".join(str(path) for _, _, path in self.missing)
        hint = f"Run: ns prepare_data {' '.join(dict.fromkeys(name for name, _, _ in self.missing))}"
        if data_dir:
            hint += f" --data_dir={data_dir}"
        super().__init__(f"{benchmarks} {verb} not prepared: there {no_file} {paths}.", hint=hint)


def load_rows(
    benchmark: Benchmark, split: str = "", data_dir: str | Path | None = None, *, asked_name: str = ""
) -> Path:
    """Return the prepared file of `split` (default: the benchmark's own).

    Raises NotPreparedError with the command to type, in which the benchmark is called as it was `asked` for, and
    DataError for a file that is damaged or that nothing makes.
    """
    split = split or benchmark.split
    if benchmark.folder and (own := own_rows(Path(benchmark.folder), split)) is not None:
        return own
    path = split_folder(benchmark, data_dir) / f"{split}.jsonl"
    if path.is_file():
        return _checked_path(path, benchmark, split, asked_name or benchmark.name)
    _check_split(benchmark, split)
    if not benchmark.sources and benchmark.generate_rows is None:
        place = Path(benchmark.folder or path.parent) / f"{split}.jsonl"
        maker = place.with_name("prepare.py")
        hint = f"Its own script makes them: ns prepare_data {maker.parent}" if maker.is_file() else ""
        raise DataError(f"{benchmark.name} comes without data for '{split}': there is no file {place}.", hint=hint)
    raise NotPreparedError([(asked_name or benchmark.name, benchmark.name, path)], data_dir)


def ready_rows(
    benchmark: Benchmark, split: str = "", data_dir: str | Path | None = None, *, asked_name: str = ""
) -> Path:
    """Return the prepared file of `split`, as `load_rows` does; what a file of this machine describes and needs no
    network is prepared first, where it is not there or was made of other rows; tasks of lm_eval, too."""
    if isinstance(benchmark, HarnessBenchmark):
        from newskills.benchmarks.lm_eval.load import without_downloads

        try:
            return load_rows(benchmark, split, data_dir, asked_name=asked_name)
        except DataError:
            prepare(without_downloads(benchmark), data_dir=data_dir, splits=(split or benchmark.split,))
    if isinstance(benchmark, DescribedBenchmark):
        for needed in benchmark.splits():
            try:
                load_rows(benchmark, needed, data_dir, asked_name=asked_name)
            except DataError:
                if not benchmark.is_local:
                    raise
                prepare(benchmark, data_dir=data_dir, splits=(needed,))
    return load_rows(benchmark, split, data_dir, asked_name=asked_name)


def own_rows(folder: Path, split: str) -> Path | None:
    """Return the file of rows of `split` in a folder of the user's, in the first form that is there."""
    paths = (folder / f"{split}{suffix}" for suffix in ROW_FILE_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _checked_path(path: Path, benchmark: Benchmark, split: str, asked_name: str) -> Path:
    """Return `path`, once its size is checked. Raises DataError where it has another size than it was made with,
    or was made from files of this machine that have changed; `prepare` looks closer."""
    made, size = read_provenance(path), path.stat().st_size
    if made is None:
        return path
    if made.bytes not in (-1, size):
        raise DataError(
            f"{path} has {size} bytes, {made.bytes} were prepared: it was changed, or only partly copied.",
            hint=f"Make it again with ns prepare_data {asked_name}, or copy it again.",
        )
    if made.inputs and (inputs := inputs_of(benchmark, split)) and inputs != made.inputs:
        raise DataError(
            f"{path} was prepared before the files from which it is made were changed.",
            hint=f"Run: ns prepare_data {asked_name}",
        )
    return path


def split_folder(benchmark: Benchmark, data_dir: str | Path | None = None) -> Path:
    """Return the folder `<data dir>/<name>`; dots in the name become sub-folders."""
    if isinstance(benchmark, DescribedBenchmark | HarnessBenchmark):
        place = benchmark.place
    else:
        place = benchmark.data or benchmark.name
    return folder_of(place, _root(data_dir))


def chosen_splits(benchmark: Benchmark, splits: Sequence[str]) -> Sequence[str]:
    """Return `splits`; or none, which stands for all there are, where only `all` is asked for and no split is called
    so.

    Raises DataError: unknown split.
    """
    if list(splits) == ["all"] and "all" not in benchmark.splits():
        return ()
    for split in splits:
        _check_split(benchmark, split)
    return splits


def _check_split(benchmark: Benchmark, split: str) -> None:
    split_names = benchmark.splits()
    if split not in split_names:
        raise DataError(f"{benchmark.name} has no split '{split}'; the choices are {', '.join(split_names)}.")


def _prepare_split(
    benchmark: Benchmark, split: str, folder: Path, fetcher: Fetcher, *, force: bool
) -> PreparedSplit:
    path = folder / f"{split}.jsonl"
    recipe = recipe_of(benchmark, split)
    if (current := _current_provenance(path, recipe)) is None or force:
        with waiting_lock(folder / f".{split}.lock", f"{benchmark.name} {split}"):
            if (current := _current_provenance(path, recipe)) is None or force:
                return _write_split(benchmark, split, path, fetcher)
    return PreparedSplit(
        split=split, path=path, provenance=current, fresh=False, notices=_provenance_notices(benchmark, current)
    )


def _write_split(benchmark: Benchmark, split: str, path: Path, fetcher: Fetcher) -> PreparedSplit:
    for outdated in path.parent.glob(f"{path.name}*.check.json"):
        outdated.unlink(missing_ok=True)
    for abandoned in path.parent.glob(f".{path.name}.*.tmp"):
        abandoned.unlink(missing_ok=True)
    with _raw_rows(benchmark, split, fetcher) as (raw, origin, files):
        assets = AssetFolder(path.parent, split, files)
        tally = RowMapping(benchmark, split, assets)
        rows = write_rows(path, tally.rows(raw))
    if not rows:
        path.unlink()
        raise DataError(f"{benchmark.name}: the source of '{split}' has no rows.")
    provenance = Provenance(
        benchmark=benchmark.name,
        split=split,
        version=benchmark.version,
        rows=rows,
        source_rows=tally.seen,
        dropped=dict(tally.dropped),
        sources=origin,
        licence=benchmark.licence,
        homepage=benchmark.homepage,
        sha256=file_sha256(path),
        recipe=recipe_of(benchmark, split),
        newskills=__version__,
        prepared=datetime.now(UTC).isoformat(timespec="seconds"),
        bytes=path.stat().st_size,
        assets=assets.count,
        options=benchmark.chosen,
        inputs=inputs_of(benchmark, split),
    )
    write_json(_provenance_file(path), provenance)
    notices = _provenance_notices(benchmark, provenance)
    if fetcher.mirror:
        notices += [f"not in the mirror, fetched from {o['url']}" for o in origin if o.get("from") == "network"]
    return PreparedSplit(split=split, path=path, provenance=provenance, fresh=True, notices=notices)


def _provenance_notices(benchmark: Benchmark, made: Provenance) -> list[str]:
    notices = [NOT_VERIFIED] if benchmark.unverified else []
    expected = benchmark.items.get(made.split)
    if expected is not None and expected != made.rows:
        notices.append(f"{made.rows} rows, but {expected} are known: scores may not be comparable")
    if made.options:
        notices.append(
            f"made with {' '.join(map(' '.join, option_words(made.options)))}: scores are of these rows only"
        )
    left_out = {reason: count for reason, count in made.dropped.items() if reason != OTHER_SPLIT.reason}
    notices += [f"{count} rows left out: {reason}" for reason, count in left_out.items()]
    return notices


def read_provenance(path: Path) -> Provenance | None:
    """Return the record beside the prepared file `path`; None where there is none that can be read."""
    try:
        return msgspec.json.decode(_provenance_file(path).read_bytes(), type=Provenance)
    except (OSError, msgspec.DecodeError):
        return None


def _provenance_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.meta.json")


def _current_provenance(path: Path, recipe: str) -> Provenance | None:
    """Return the record of a prepared file that need not be made again; None for any other file."""
    made = read_provenance(path)
    if made is None or made.recipe != recipe or not path.is_file() or file_sha256(path) != made.sha256:
        return None
    if made.assets and AssetFolder(path.parent, made.split, {}).count_files() < made.assets:
        return None
    return made


@contextlib.contextmanager
def _raw_rows(
    benchmark: Benchmark, split: str, fetcher: Fetcher
) -> Iterator[tuple[Iterator[RawRow], list[Row], dict[str, Path]]]:
    """Yield the raw rows of the first source that can be had, what to record about it, and its assets."""
    if benchmark.generate_rows is not None:
        made = made_by(
            benchmark.generate_rows, split, lambda why: f"{benchmark.name}: its rows cannot be made: {why}"
        )
        yield (RawRow(row, f"item {number}") for number, row in enumerate(made, 1)), [generator_of(benchmark)], {}
        return
    problems: list[DataError] = []
    candidates = [source for source in benchmark.sources if source.split == split]
    candidates.sort(key=lambda source: not in_mirror(source, fetcher))
    with contextlib.ExitStack() as stack:
        for source in candidates:
            try:
                files = stack.enter_context(open_source(source, fetcher, home_of(benchmark)))
            except DataError as error:
                problems.append(error)
                continue
            rows: Iterator[RawRow] = stack.enter_context(contextlib.closing(files.rows()))
            if benchmark.join is not None:
                rows = _join_raw_rows(benchmark, rows)
            yield rows, files.origin, files.assets
            return
    if not problems:
        raise DataError(f"{benchmark.name}: there is no source for the split '{split}'.")
    hints = dict.fromkeys(problem.hint for problem in problems)
    raise DataError(" ".join(problem.message for problem in problems), hint=" ".join(hints)) from problems[0]


def _join_raw_rows(benchmark: Benchmark, raw: Iterable[RawRow]) -> Iterator[RawRow]:
    assert benchmark.join is not None, "called for benchmarks that join"
    rows = made_by(
        benchmark.join,
        (row for row, _ in raw),
        lambda why: f"{benchmark.name}: its files do not fit together: {why}",
    )
    for number, row in enumerate(rows, 1):
        where = f"{benchmark.name}, joined row {number}"
        if file := row.get("_file"):
            where += f" ({file})"
        yield RawRow(row, where)
