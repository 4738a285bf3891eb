# SPDX-License-Identifier: Apache-2.0
"""Input files → a training set: two passes over chunks and partitions in worker processes, then one that writes.

The result depends on inputs and settings alone, not on the number of workers. Memory holds one chunk or partition
for each worker. Killed at any moment it leaves the output as it was, and a folder that the next run removes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base import errors
from newskills.base.errors import ConfigError, DataError, NewskillsError
from newskills.base.pool.loop import PoolOptions
from newskills.base.pool.workers import WorkerPool
from newskills.base.ray_data import ray_tasks
from newskills.base.records import Failure, Row
from newskills.base.store import atomic_write, hold_lock, write_rows
from newskills.train.data.card import Card, steps_of, write_card
from newskills.train.data.chain import active_filters
from newskills.train.data.chunks import ChunkCounts, ChunkWorker, decode_records
from newskills.train.data.job import BuildJob, InputFile, partitions_for
from newskills.train.data.overlap import NGRAM, SHARE, Overlap
from newskills.train.data.partitions import merge_counts
from newskills.train.data.reading import Chunk, offset_after
from newskills.train.data.sampling import LineBatch, sampled_batches
from newskills.train.data.segments import read_bucket
from newskills.train.data.settings import RecipeName, TrainingDataConfig
from newskills.train.data.worker import RayWorker, Worker, WorkerReply, WorkerTask

CHUNK_BYTES, MOST_CHUNKS = 4 << 20, 2000
_FACTORY = "newskills.train.data.worker:make"
_CPU_SECONDS = 3600.0
_PREVIEWED = 200


class InputSource(Struct, frozen=True, kw_only=True):
    """An input file as the user has it: does it need verdicts, which published set is it, where did it come from.

    `rows` reads a file that is no JSONL; it is called once, when the build begins.
    """

    path: Path
    graded: bool = False
    schema: str = ""
    origin: Row = {}
    rows: Callable[[], Iterable[Row]] | None = None


class ComparedProblems(Struct, frozen=True, kw_only=True):
    """Problems to keep away from, and what they are called."""

    name: str
    texts: Callable[[], Iterable[str]]


class BuildRequest(Struct, frozen=True, kw_only=True):
    """Checked settings. `ngram`, `share`: as in `Overlap`; `workers`: 0 = as many as CPUs; `on_ray`: by Ray Data.

    `examples`: few-shot sets by their folded names, for prompts whose rows name one.
    """

    config: TrainingDataConfig
    recipe: RecipeName
    inputs: tuple[InputSource, ...]
    compared: tuple[ComparedProblems, ...] = ()
    ngram: int = NGRAM
    share: float = SHARE
    workers: int = 0
    on_ray: bool = False
    examples: dict[str, list[Row]] = {}


Progress = Callable[[str, float], None]
"""(what is done, share 0–1 of it)."""


def work_folder(output: Path) -> Path:
    """Return the folder where a build keeps what is on the way to `output`."""
    return output.with_name(f".{output.name}.work")


def build_training_set(request: BuildRequest, progress: Progress) -> Card:
    """Write the training set and its card, which is returned.

    Raises DataError naming file and line of a row that does not fit, and what took the rows where none is left;
    ConfigError, StorageError; LockedError where another process builds the same.
    """
    output = Path(request.config.output_path)
    work = work_folder(output)
    if any(source.path.resolve() == output.resolve() for source in request.inputs):
        raise ConfigError(
            f"{output} is both an input and the output.", hint="Write to another file, or name inputs."
        )
    with hold_lock(work / "lock", str(output)):
        _clear_folder(work)
        try:
            job = make_job(request, work)
            card = _build_locked(job, request, progress)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return card


def make_job(request: BuildRequest, work: Path) -> BuildJob:
    """Make the job, and write to `work` the inputs that workers cannot read otherwise. Raises DataError for a file
    that cannot be read."""
    files: list[InputFile] = []
    base = 0
    for number, source in enumerate(request.inputs):
        path = source.path
        if source.rows is not None:
            path = work / f"input-{number}"
            write_rows(path, source.rows())
        files.append(_input_file(path, source, base, request.config.skip_first))
        base += files[-1].size
    overlap = Overlap(ngram=request.ngram, share=request.share)
    if request.compared:
        write_rows(
            work / "compared", ({"text": text} for problems in request.compared for text in problems.texts())
        )
        overlap = msgspec.structs.replace(overlap, files=(str(work / "compared"),))
    return BuildJob(
        config=request.config,
        recipe_name=request.recipe,
        inputs=tuple(files),
        work=str(work),
        partitions=partitions_for(base),
        overlap=overlap,
        examples=request.examples,
    )


def _input_file(path: Path, source: InputSource, base: int, skipped: int) -> InputFile:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    return InputFile(
        path=str(path),
        shown=str(source.path),
        size=size,
        base=base,
        first=offset_after(path, skipped),
        graded=source.graded,
        schema=source.schema,
    )


def chunks_of(job: BuildJob) -> list[Chunk]:
    """Cut the files into chunks, in order."""
    size = max(CHUNK_BYTES, 1 + job.total // MOST_CHUNKS)
    chunk_list: list[Chunk] = []
    for number, file in enumerate(job.inputs):
        for start in range(file.first, file.size, size):
            chunk_list.append(
                Chunk(number=len(chunk_list), file=number, start=start, end=min(file.size, start + size))
            )
    return chunk_list


def _build_locked(job: BuildJob, request: BuildRequest, progress: Progress) -> Card:
    chunks = chunks_of(job)
    read = ChunkCounts()
    left_out: Counter[str] = Counter()
    with _on_ray(job, len(chunks)) if request.on_ray else _start_workers(job, len(chunks), request.workers) as do:
        for number, done in enumerate(do(WorkerTask(chunk=chunk) for chunk in chunks), 1):
            assert done.chunk is not None, "asked for"
            read.seen += done.chunk.seen
            left_out.update(done.chunk.left_out)
            progress("filtered", number / len(chunks))
        parts = []
        for number, done in enumerate(do(WorkerTask(partition=at) for at in range(job.partitions)), 1):
            assert done.partition is not None, "asked for"
            parts.append(done.partition)
            progress("sorted", number / job.partitions)
    read.left_out = dict(left_out)
    for chunk in chunks:
        job.chunk_file(chunk.number).unlink()
    counts = merge_counts(parts)
    card = Card.of(
        job, read, counts, names=active_filters(job), compared=[problems.name for problems in request.compared]
    )
    card.inputs = [_source_row(source) for source in request.inputs]
    if not counts.kept:
        raise DataError(_nothing_left(card), hint=_what_to_change(card, request))
    _write_lines(job, card, sampled_batches(job, counts.ranks), progress)
    write_card(Path(job.config.output_path), card)
    return card


def _source_row(source: InputSource) -> Row:
    row: Row = {"path": str(source.path), "bytes": source.path.stat().st_size}
    row |= {"dataset": source.schema} if source.schema else {}
    return row | source.origin


def _nothing_left(card: Card) -> str:
    if not card.rows_read:
        return "The input files have no rows."
    took = ", ".join(f"{step.name} {step.removed}" for step in steps_of(card) if step.removed)
    return f"No rows are left of {card.rows_read} rows. Removed by: {took}."


CONTAMINATED = "remove_contaminated"
"""The step that compares with benchmarks."""


def _what_to_change(card: Card, request: BuildRequest) -> str:
    """Suggest what to change where most rows were taken for those of a benchmark; empty elsewhere."""
    taken = sum(step.removed for step in steps_of(card) if step.name == CONTAMINATED)
    if 2 * taken < card.rows_read or not request.compared:
        return ""
    names = ", ".join(problems.name for problems in request.compared)
    return (
        f"Problems made from one template share most of their words with those of {names}: raise the share "
        f"that must match, --decontaminate_share=0.9 or 1 (now {request.share:g}), or use longer n-grams, "
        f"--decontaminate_ngram={2 * request.ngram} (now {request.ngram})."
    )


def _write_lines(job: BuildJob, card: Card, batches: Iterable[LineBatch], progress: Progress) -> None:
    """Write the lines to the output; count them in the card, with the file's size and hash. Raises StorageError."""
    sha256 = hashlib.sha256()
    expected = min(card.rows_kept, job.config.num_output_samples or card.rows_kept)
    with atomic_write(Path(job.config.output_path)) as file:
        for batch in batches:
            data = b"".join(batch.lines)
            sha256.update(data)
            file.write(data)
            card.bytes += len(data)
            card.rows_written += len(batch.lines)
            card.input_chars.add(batch.input_chars)
            card.output_chars.add(batch.output_chars)
            progress("written", card.rows_written / expected)
    card.sha256 = sha256.hexdigest()


@contextlib.contextmanager
def _start_workers(
    job: BuildJob, chunks: int, workers: int
) -> Iterator[Callable[[Iterable[WorkerTask]], Iterator[WorkerReply]]]:
    """Yield a function that does tasks and gives the answers in order; small work is done in this process."""
    workers = workers or len(os.sched_getaffinity(0))
    if workers == 1 or chunks <= 1:
        yield _local_worker(job, chunks)
        return
    options = PoolOptions(
        processes=workers, cpu_seconds=_CPU_SECONDS, wall_seconds=10 * _CPU_SECONDS, memory=64 << 30, max_batch=1
    )
    config = {"job": msgspec.to_builtins(job), "chunks": chunks}
    with WorkerPool(_FACTORY, config, result_type=WorkerReply, options=options) as pool:

        def do(tasks: Iterable[WorkerTask]) -> Iterator[WorkerReply]:
            for done in pool.map(msgspec.to_builtins(task) for task in tasks):
                if isinstance(done, Failure):
                    raise _as_error(done.kind, done.message)
                yield done

        yield do


@contextlib.contextmanager
def _on_ray(job: BuildJob, chunks: int) -> Iterator[Callable[[Iterable[WorkerTask]], Iterator[WorkerReply]]]:
    """Yield a function that does tasks on Ray Data, whose nodes must see inputs and output, and gives the answers in
    order."""
    worker = RayWorker(msgspec.json.encode(job), chunks)
    with ray_tasks() as do_all:

        def do(tasks: Iterable[WorkerTask]) -> Iterator[WorkerReply]:
            for done in do_all(worker.__call__, ({"task": msgspec.json.encode(task)} for task in tasks)):
                if done["error"]:
                    raise _as_error(done["kind"], done["error"])
                yield msgspec.json.decode(done["reply"], type=WorkerReply)

        yield do


def _local_worker(job: BuildJob, chunks: int) -> Callable[[Iterable[WorkerTask]], Iterator[WorkerReply]]:
    worker = Worker(job, chunks)
    return lambda tasks: map(worker, tasks)


def _as_error(name: str, message: str) -> NewskillsError:
    """Return the error that a worker has met, of the kind that it was."""
    kind = getattr(errors, name, NewskillsError)
    if isinstance(kind, type) and issubclass(kind, DataError | ConfigError | errors.StorageError):
        return kind(message)
    return NewskillsError(f"A worker failed: {message}")


def _clear_folder(work: Path) -> None:
    """Remove what a killed run has left."""
    for path in work.iterdir():
        if path.name != "lock":
            path.unlink()


def preview_lines(request: BuildRequest, count: int) -> Sequence[bytes]:
    """Return the first lines that the chain lets through, in order of reading. Raises as `build_training_set`."""
    with tempfile.TemporaryDirectory(prefix="newskills-") as folder:
        short = msgspec.structs.replace(request, inputs=tuple(map(_begin_of, request.inputs)))
        job = msgspec.structs.replace(make_job(short, Path(folder)), partitions=1)
        lines: list[bytes] = []
        worker = ChunkWorker(job)
        for chunk in chunks_of(job):
            small = msgspec.structs.replace(chunk, end=min(chunk.end, chunk.start + (64 << 10)))
            worker(small)
            data = read_bucket([job.chunk_file(chunk.number)], 0)
            lines += [bytes(record.line) for record in decode_records(data) if record.line]
            if len(lines) >= count:
                break
        return lines[:count]


def _begin_of(source: InputSource) -> InputSource:
    """Limit a source that is not JSONL to its first rows."""
    if (rows := source.rows) is None:
        return source
    return msgspec.structs.replace(source, rows=lambda: islice(rows(), _PREVIEWED))
