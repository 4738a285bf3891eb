# SPDX-License-Identifier: Apache-2.0
"""One command with many benchmarks, many seeds or many chunks: how its cost grows, over three sizes of each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.launch import BENCHMARK, NS_WORDS, environment
from bench.measure import Line, Options, at_most, least_cpu, run, scratch
from bench.rows import write_records
from bench.summarize import summarized
from newskills.run.records.chunks import merge_chunks
from newskills.run.records.paths import chunk_path

BENCHMARKS, PLAN_SECONDS = (1, 10, 100), 2.0
SEEDS, ROWS, SUMMARY_SECONDS = (4, 16, 64), 5000, 3.0
CHUNKS, CHUNK_ROWS = (100, 1_000, 8_000), 50


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        yield from planned(folder)
    with scratch() as folder:
        yield from counted(folder, options.rows(ROWS))
    for count in CHUNKS:
        with scratch() as folder:
            yield joined(folder, options.rows(count))


def planned(folder: Path) -> Iterator[Line]:
    """`ns eval --cluster=slurm --dry_run`. Needs no cluster."""
    files = [folder / f"sums{number}.py" for number in range(BENCHMARKS[-1])]
    for file in files:
        file.write_text(BENCHMARK.replace('"sums"', f'"{file.stem}"'))
    env = environment(folder)
    run([*NS_WORDS, "prepare_data", *files], env=env)
    words = [*NS_WORDS, "eval", "--cluster=slurm", f"--config_dir={folder}", "--model=m", "--server_type=vllm"]
    words += ["--server_gpus=8", f"--output_dir={folder}/out", "--dry_run"]
    for count in BENCHMARKS:
        cpu = least_cpu([*words, f"--benchmarks={','.join(map(str, files[:count]))}"], 3, env=env)
        yield at_most("many", f"plan of {count} benchmarks in one command", cpu, "CPU s", PLAN_SECONDS)


def counted(folder: Path, rows: int) -> Iterator[Line]:
    """`ns summarize_results`: the files of more seeds are added to those of fewer."""
    place = folder / "out" / "eval-results" / "gsm8k"
    place.mkdir(parents=True)
    written = 0
    for seeds in SEEDS:
        for seed in range(written, seeds):
            write_records(place / f"output-rs{seed}.jsonl", rows, seed)
        written = seeds
        wall, peak = min(summarized(folder, folder / "out", f"pass@{seeds}") for _ in range(3))
        yield at_most(
            "many", f"summary of {seeds} × {rows} rows", wall, "s", SUMMARY_SECONDS, note=f"{peak:.0f} MB"
        )


def joined(folder: Path, count: int) -> Line:
    """The last step of a run in chunks: all of them into one file."""
    merged = folder / "output.jsonl"
    chunks = [chunk_path(merged, number) for number in range(count)]
    write_records(chunks[0], CHUNK_ROWS, 0)
    text = chunks[0].read_bytes()
    for chunk in chunks[1:]:
        chunk.write_bytes(text)
    begun = time.process_time()
    merge_chunks(merged, chunks, expected=count * CHUNK_ROWS)
    cpu = 1000 * (time.process_time() - begun) / count
    what = f"join {count:,} chunks of {CHUNK_ROWS} rows"
    return Line(bench="many", what=what, ours=cpu, unit="CPU ms a chunk", better="less")
