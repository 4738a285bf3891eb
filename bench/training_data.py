# SPDX-License-Identifier: Apache-2.0
"""`ns prepare_training_data`: rows a second through the cheap filters, two workers; memory with twice the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.measure import NS, Done, Line, Options, clean_env, run, scratch
from bench.rows import problems, write_records, write_rows

ROWS, CORES, BENCHMARK = 400_000, 2, 2_000
RATE, GROWTH = 50_000.0, 1.25
CHEAP = (
    "drop_multi_boxed",
    "remove_code_errors",
    "remove_matplotlib",
    "remove_verification_code",
    "majority_filter",
    "trim_prefix",
    "trim_solutions",
)
OFF = ("remove_contaminated", "remove_len_outlier_problems")


def bench(options: Options) -> Iterator[Line]:
    rows = options.rows(ROWS)
    with scratch() as folder:
        files = [folder / f"part-{seed}.jsonl" for seed in range(4)]
        for seed, file in enumerate(files):
            write_records(file, rows // 4, seed)
        write_rows(folder / "asked.jsonl", problems(BENCHMARK, seed=99))
        half, whole = _build(folder, files[:2]), _build(folder, files)
        alone = _build(folder, files[:2], workers=1)
        chains = _build(folder, files[:2], "split_arithmetic=true", "drop_incorrect_arithmetic=true")
        compared = _build(folder, files[:2], "remove_contaminated=true", against="asked.jsonl")
    name = f"{rows:,} generations of 1 kB, {len(CHEAP)} cheap filters, {CORES} workers"
    rate = Line(bench="training_data", what=name, ours=rows / whole.wall, unit="rows/s")
    rate.target, rate.met = f"≥ {RATE:,.0f} rows/s", rows / whole.wall >= RATE
    rate.note = f"{alone.cpu / (rows / 2) * 1e6:.0f} µs of CPU per row"
    yield rate
    for what, done in (
        ("with filters of arithmetic", chains),
        (f"compared with {BENCHMARK:,} problems", compared),
    ):
        yield Line(bench="training_data", what=f"the same, {what}", ours=rows / 2 / done.wall, unit="rows/s")
    memory = Line(
        bench="training_data", what="memory for twice as many rows", ours=whole.peak_rss / 1e6, unit="MB"
    )
    memory.better, memory.beside, memory.theirs = "less", "half the rows", half.peak_rss / 1e6
    memory.target, memory.met = f"≤ {GROWTH:g} ×", whole.peak_rss <= GROWTH * half.peak_rss
    yield memory


def _build(folder: Path, files: list[Path], *more: str, against: str = "", workers: int = CORES) -> Done:
    switches = [*(f"{name}=true" for name in CHEAP), *(f"{name}=false" for name in OFF), *more]
    names = ",".join(map(str, files))
    argv = [NS, "prepare_training_data", f"++input_files={names}", f"++output_path={folder / 'out.jsonl'}"]
    argv += [f"++filters.{switch}" for switch in switches]
    argv += [f"--workers={workers}", *([f"--decontaminate={against}"] if against else [])]
    return run(argv, env=clean_env(folder), cwd=folder)
