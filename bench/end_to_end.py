# SPDX-License-Identifier: Apache-2.0
"""A whole generation: read rows, fill prompts, ask, write records that survive a crash. Rows per second.

Ours is always the whole command. A peer gets two lines: its whole command, and its steady rate, where start-up is
taken off (a long run less a short one) so that the comparison leans to the peer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from bench.endpoint import Endpoint
from bench.measure import NS, BenchError, Line, Options, clean_env, run, scratch
from bench.peers import INSPECT, LM_EVAL, Peer, venv
from bench.rows import write_problems

ROWS, IN_FLIGHT, LATENCY = 5000, 512, 0.2
RATE, PEER_RATIO, IDEAL = 3000, 10, 1.3
LONG, LONG_IDEAL = 25_000, 1.1
MANY, PROCESSES, SHARED_RATE = 100_000, 2, 20_000
PROMPT = "Solve the problem and end with the answer in a box.\n\n{problem}"
WITH_AIOHTTP = Path(__file__).parent / "with_aiohttp.py"
TASK = """task: bench_rows
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
output_type: generate_until
doc_to_text: "Solve the problem and end with the answer in a box.\\n\\n{{{{problem}}}}"
doc_to_target: "{{{{expected_answer}}}}"
generation_kwargs: {{until: [], max_gen_toks: 512}}
metric_list: [{{metric: exact_match}}]
"""
INSPECT_TASK = """from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate

@task
def rows():
    data = json_dataset({rows!r}, FieldSpec(input="problem", target="expected_answer"))
    return Task(dataset=data, solver=generate(), scorer=match(numeric=True))
"""

Asking = Callable[[Endpoint, Path, Path, int], float]


def bench(options: Options) -> Iterator[Line]:
    with scratch() as folder:
        rows = options.rows(ROWS)
        ours = rows / wall(ours_seconds, 0, rows, folder)
        line = Line(bench="end to end", what=f"{rows} rows at 0 ms", ours=ours, unit="rows/s")
        line.target, line.met = f"≥ {RATE:,}", ours >= RATE
        yield line
        bare = rows / wall(without_uvloop, 0, rows, folder)
        line = Line(
            bench="end to end", what=f"{rows} rows at 0 ms, uvloop not installed", ours=bare, unit="rows/s"
        )
        line.target, line.met = f"≥ {RATE:,}", bare >= RATE
        yield line
        yield several_processes(options, folder)
        if find_spec("aiohttp") is not None:
            theirs = rows / wall(aiohttp_seconds, 0, rows, folder)
            name = f"ns with aiohttp {version('aiohttp')}"
            yield Line(
                bench="end to end",
                what=f"{rows} rows at 0 ms",
                ours=ours,
                unit="rows/s",
                beside=name,
                theirs=theirs,
            )
        if options.peers:
            whole, steady = peer_lines(ours, LM_EVAL, lm_eval_seconds, (rows // 10, rows), folder)
            whole.target, whole.met = f"≥ {PEER_RATIO} ×", (whole.ratio or 0) >= PEER_RATIO
            yield from (whole, steady)
            yield from peer_lines(ours, INSPECT, inspect_seconds, (rows // 50, rows // 10), folder)
        yield from slow_endpoint(options, folder)


def several_processes(options: Options, folder: Path) -> Line:
    """One command whose processes take chunks of the input from a queue; start-up of all of them included."""
    rows = options.rows(MANY)
    alone, together = (rows / wall(asking, 0, rows, folder) for asking in (ours_seconds, shared_seconds))
    line = Line(
        bench="end to end",
        what=f"{rows:,} rows at 0 ms, {PROCESSES} processes",
        ours=together,
        unit="rows/s",
        beside="one process",
        theirs=alone,
    )
    line.target, line.met = f"≥ {SHARED_RATE:,}", together >= SHARED_RATE
    return line


def slow_endpoint(options: Options, folder: Path) -> Iterator[Line]:
    """At 200 ms a request, the ideal is all slots busy all the time; start-up is a part of what is measured."""
    yield beside_ideal(options.rows(LONG), LONG_IDEAL, folder)
    rows = options.rows(ROWS)
    line = beside_ideal(rows, IDEAL, folder)
    yield line
    if options.peers:
        theirs = wall(lm_eval_seconds, int(LATENCY * 1000), rows, folder)
        yield Line(
            bench="end to end",
            what=line.what,
            ours=line.ours,
            unit="s",
            better="less",
            beside=LM_EVAL.shown,
            theirs=theirs,
            note="whole commands",
        )


def beside_ideal(rows: int, most: float, folder: Path) -> Line:
    ideal = -(-rows // IN_FLIGHT) * LATENCY
    seconds = wall(ours_seconds, int(LATENCY * 1000), rows, folder)
    line = Line(bench="end to end", what=f"{rows} rows at 200 ms, {IN_FLIGHT} in flight", ours=seconds, unit="s")
    line.better, line.beside, line.theirs = "less", "ideal", ideal
    line.target, line.met = f"≤ {most} × ideal", seconds <= most * ideal
    return line


def peer_lines(ours: float, peer: Peer, asking: Asking, sizes: tuple[int, int], folder: Path) -> tuple[Line, Line]:
    short, long = (wall(asking, 0, size, folder) for size in sizes)
    whole = Line(bench="end to end", what=f"at 0 ms; peer: {sizes[1]} rows", ours=ours, unit="rows/s")
    whole.beside, whole.theirs = peer.shown, sizes[1] / long
    steady = Line(bench="end to end", what="at 0 ms; peer without its start-up", ours=ours, unit="rows/s")
    steady.beside, steady.theirs = peer.shown, (sizes[1] - sizes[0]) / max(long - short, 1e-3)
    return whole, steady


def wall(asking: Asking, latency_ms: int, rows: int, folder: Path) -> float:
    """Seconds of the better of two runs. Raises BenchError unless each row was asked for."""
    seconds = []
    for turn in range(2):
        place = folder / f"{asking.__name__}-{latency_ms}-{rows}-{turn}"
        place.mkdir()
        write_problems(place / "rows.jsonl", rows)
        with Endpoint(latency_ms) as endpoint:
            seconds.append(asking(endpoint, place / "rows.jsonl", place, rows))
            if endpoint.served < rows:
                raise BenchError(f"{asking.__name__}: only {endpoint.served} of {rows} requests came")
    return min(seconds)


def generate_command(
    endpoint: Endpoint, input_file: Path, folder: Path, in_flight: int = IN_FLIGHT
) -> list[str | Path]:
    """`ns generate` over `input_file` into `folder / "out"`."""
    prompt = folder / "prompt.yaml"
    prompt.write_text(f"user: {json.dumps(PROMPT)}\n")
    argv = [NS, "generate", f"--output_dir={folder / 'out'}", f"--input_file={input_file}", "--server_type=openai"]
    argv += ["--model=fake", f"--server_address={endpoint.base_url}", f"++prompt_config={prompt}"]
    return [*argv, f"++max_concurrent_requests={in_flight}"]


def without_uvloop(endpoint: Endpoint, input_file: Path, folder: Path, rows: int) -> float:
    """As a bare installation would: a module of that name that cannot be imported stands in its way."""
    (folder / "uvloop.py").write_text("raise ImportError\n")
    return ours_seconds(endpoint, input_file, folder, rows, PYTHONPATH=str(folder))


def aiohttp_seconds(endpoint: Endpoint, input_file: Path, folder: Path, rows: int) -> float:
    words = generate_command(endpoint, input_file, folder)[1:]
    return seconds_of([sys.executable, WITH_AIOHTTP, *words], folder, rows)


def shared_seconds(endpoint: Endpoint, input_file: Path, folder: Path, rows: int) -> float:
    queue = [f"--num_jobs={PROCESSES}", "--work_queue", "--expname=shared"]
    return seconds_of([*generate_command(endpoint, input_file, folder), *queue], folder, rows)


def ours_seconds(endpoint: Endpoint, input_file: Path, folder: Path, rows: int, **env: str) -> float:
    return seconds_of(generate_command(endpoint, input_file, folder), folder, rows, **env)


def seconds_of(argv: list[str | Path], folder: Path, rows: int, **env: str) -> float:
    """Raises BenchError unless each row has its record."""
    done = run(argv, env=clean_env(folder, **env), cwd=folder)
    with (folder / "out" / "output.jsonl").open("rb") as file:
        written = sum(1 for _ in file)
    if written != rows:
        raise BenchError(f"{written} records for {rows} rows:\n{done.output[-2000:]}")
    return done.wall


def lm_eval_seconds(endpoint: Endpoint, input_file: Path, folder: Path, rows: int) -> float:
    (folder / "bench_rows.yaml").write_text(TASK.format(rows=input_file))
    address = f"{endpoint.base_url}/chat/completions"
    model = f"model=fake,base_url={address},num_concurrent={IN_FLIGHT},max_retries=1,tokenized_requests=False"
    argv = [venv(LM_EVAL) / "lm_eval", "--model", "local-chat-completions", "--model_args", model]
    argv += ["--tasks", "bench_rows", "--include_path", folder, "--apply_chat_template", "--log_samples"]
    env = clean_env(folder, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(folder / "hf"))
    return run([*argv, "--output_path", folder / "out"], env=env, cwd=folder).wall


def inspect_seconds(endpoint: Endpoint, input_file: Path, folder: Path, rows: int) -> float:
    (folder / "rows_task.py").write_text(INSPECT_TASK.format(rows=str(input_file)))
    argv = [venv(INSPECT) / "inspect", "eval", "rows_task.py", "--model", "openai-api/bench/fake"]
    argv += ["--max-connections", str(IN_FLIGHT), "--max-samples", str(IN_FLIGHT), "--display", "none"]
    env = clean_env(folder, BENCH_API_KEY="none", BENCH_BASE_URL=endpoint.base_url, PATH=os.environ["PATH"])
    return run([*argv, "--log-dir", folder / "logs"], env=env, cwd=folder).wall
