# SPDX-License-Identifier: Apache-2.0
"""A task of lm_eval by `ns eval --benchmarks=lm-eval:…`, beside lm_eval itself on the same endpoint: whole commands."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench.end_to_end import IN_FLIGHT, NS, TASK, write_problems
from bench.endpoint import Endpoint
from bench.measure import BenchError, Done, Line, Options, clean_env, run
from bench.peers import LM_EVAL, venv

ROWS, ALONE, FEW = 5000, 500, 100
LATENCIES_MS = (0, 50, 200)
RATIO = 10


def bench(options: Options) -> Iterator[Line]:
    if find_spec("lm_eval") is None:
        raise BenchError("lm_eval is not installed here: pip install -e '.[lm-eval]'")
    with tempfile.TemporaryDirectory() as name:
        rows, alone, few = (options.rows(count) for count in (ROWS, ALONE, FEW))
        for latency in LATENCIES_MS:
            pair = both(options, Path(name), latency, rows)
            yield pair.line(f"{rows} rows at {latency} ms, peer with num_concurrent={IN_FLIGHT}", rows)
            yield pair.cpu_line(f"{rows} rows at {latency} ms, CPU")
        yield both(options, Path(name), 0, few).cpu_line(f"{few} rows at 0 ms, CPU: mostly the start")
        usual = LATENCIES_MS[1]
        line = both(options, Path(name), usual, alone, in_flight=1).line(
            f"{alone} rows at {usual} ms, peer as it starts by default (one at a time)", alone
        )
        if options.peers:
            line.target, line.met = f"≥ {RATIO} ×", (line.ratio or 0) >= RATIO
        yield line


def both(options: Options, place: Path, latency_ms: int, rows: int, *, in_flight: int = IN_FLIGHT) -> Pair:
    """Run both commands on `rows` rows. Raises BenchError."""
    folder = place / str(rows)
    if not folder.exists():
        folder.mkdir()
        prepare(folder, rows)
    return Pair(
        ours(folder, latency_ms, rows), lm_eval(folder, latency_ms, rows, in_flight) if options.peers else None
    )


class Pair(NamedTuple):
    """The same rows by both commands."""

    ours: Done
    theirs: Done | None

    def line(self, what: str, rows: int) -> Line:
        """Rows per second of the whole commands."""
        line = Line(bench="lm_eval tasks", what=what, ours=rows / self.ours.wall, unit="rows/s")
        if self.theirs is not None:
            line.beside, line.theirs = LM_EVAL.shown, rows / self.theirs.wall
        return line

    def cpu_line(self, what: str) -> Line:
        """CPU seconds, which other work on the machine hardly changes."""
        line = Line(bench="lm_eval tasks", what=what, ours=self.ours.cpu, unit="s", better="less")
        if self.theirs is not None:
            line.beside, line.theirs = LM_EVAL.shown, self.theirs.cpu
        return line


def prepare(folder: Path, rows: int) -> None:
    """Write the rows and the task that reads them."""
    write_problems(folder / "rows.jsonl", rows)
    (folder / "bench_rows.yaml").write_text(TASK.format(rows=folder / "rows.jsonl"))


def ours(folder: Path, latency_ms: int, rows: int) -> Done:
    """Raises BenchError unless each row has its record; rows are made anew."""
    place = Path(tempfile.mkdtemp(dir=folder))
    with Endpoint(latency_ms) as endpoint:
        argv = [NS, "eval", f"--benchmarks=lm-eval:{folder / 'bench_rows.yaml'}", "--server_type=generic"]
        argv += [f"--server_address={endpoint.base_url}", "--model=fake", f"--output_dir={place / 'out'}"]
        argv += ["++apply_chat_template=true", f"++max_concurrent_requests={IN_FLIGHT}"]
        env = clean_env(place, NEWSKILLS_DATA_DIR=str(place / "data"), HF_HOME=str(folder / "hf-ours"))
        done = run(argv, env=env, cwd=place)
        if endpoint.served < rows:
            raise BenchError(f"only {endpoint.served} of {rows} requests came:\n{done.output[-2000:]}")
    figures = json.loads((place / "out" / "metrics.json").read_text())["lm-eval-bench_rows"]["pass@1"]
    if figures["num_entries"] != rows:
        raise BenchError(f"{figures['num_entries']} records for {rows} rows")
    return done


def lm_eval(folder: Path, latency_ms: int, rows: int, in_flight: int) -> Done:
    """Raises BenchError unless each row was asked for."""
    place = Path(tempfile.mkdtemp(dir=folder))
    with Endpoint(latency_ms) as endpoint:
        address = f"{endpoint.base_url}/chat/completions"
        model = f"model=fake,base_url={address},num_concurrent={in_flight},max_retries=1,tokenized_requests=False"
        argv = [venv(LM_EVAL) / "lm_eval", "--model", "local-chat-completions", "--model_args", model]
        argv += ["--tasks", "bench_rows", "--include_path", folder, "--apply_chat_template", "--log_samples"]
        argv += ["--limit", str(rows), "--output_path", place / "out"]
        env = clean_env(place, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(folder / "hf"))
        done = run(argv, env=env, cwd=place)
        if endpoint.served < rows:
            raise BenchError(f"only {endpoint.served} of {rows} requests came:\n{done.output[-2000:]}")
    return done
