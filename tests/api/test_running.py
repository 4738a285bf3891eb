# SPDX-License-Identifier: Apache-2.0
"""Calls within a running event loop: awaited, and as the cell of a notebook makes them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.commands.running import write
from tests.commands.trainers import QUESTIONS, adding
from tests.conftest import FakeServerFactory
from tests.server import Fault

from newskills import Benchmark, Evaluation, Generation, Model, agenerate, evaluate, generate
from newskills.base.errors import ModelError

CELL = """
import asyncio, sys
from newskills import Benchmark, Generation, Model, evaluate

async def cell():
    evaluate(
        benchmarks=Benchmark(name="sums", category="math", title="Sums", prompt="generic/math", folder=sys.argv[1]),
        model=Model("policy", server="openai", address=sys.argv[2], settings={"api_key": "EMPTY"}),
        settings=Generation(max_concurrent_requests=2),
        output_dir=sys.argv[3],
    )

try:
    asyncio.new_event_loop().run_until_complete(cell())
except KeyboardInterrupt:
    print("interrupted")
"""


def benchmark(folder: Path) -> Benchmark:
    rows = write(folder / "sums" / "test.jsonl", QUESTIONS).parent
    return Benchmark(name="sums", category="math", title="Sums", prompt="generic/math", folder=str(rows))


def test_a_cell_of_a_notebook_evaluates_and_generates(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding())
    model = Model("policy", server="openai", address=server.url, settings={"api_key": "EMPTY"})

    async def cell() -> tuple[Evaluation, int]:
        evaluation = evaluate(benchmarks=benchmark(tmp_path), model=model, output_dir=tmp_path / "out")
        done = generate(
            model=model,
            settings=Generation(prompt_config="generic/math"),
            input_file=tmp_path / "sums" / "test.jsonl",
            output_dir=tmp_path / "generated",
        )
        return evaluation, len(list(done.rows()))

    evaluation, rows = asyncio.run(cell())
    assert evaluation.scores["sums"].value == 100.0
    assert rows == len(QUESTIONS)


def test_a_generation_is_awaited_beside_others(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding(latency=0.05))
    model = Model("policy", server="openai", address=server.url, settings={"api_key": "EMPTY"})
    source = write(tmp_path / "in.jsonl", QUESTIONS)

    async def main() -> list[int]:
        calls = (
            agenerate(
                model=model,
                settings=Generation(prompt_config="generic/math"),
                input_file=source,
                output_dir=tmp_path / str(number),
            )
            for number in range(3)
        )
        return [len(list(done.rows())) for done in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [10, 10, 10]


def test_an_address_where_nobody_listens_is_told_of_in_a_cell(tmp_path: Path) -> None:
    model = Model("policy", server="openai", address="http://127.0.0.1:9", settings={"api_key": "EMPTY"})

    async def cell() -> None:
        evaluate(
            benchmarks=benchmark(tmp_path),
            model=model,
            settings=Generation(endpoint_patience=0.5),
            output_dir=tmp_path / "out",
        )

    with pytest.raises(Exception, match=r"127\.0\.0\.1:9") as raised:
        asyncio.run(cell())
    assert not isinstance(raised.value, RuntimeError | ModelError | KeyboardInterrupt)


def test_an_interrupted_cell_keeps_what_is_done(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(adding(Fault(kind="delay", seconds=1.0)))
    rows = benchmark(tmp_path).folder
    words = [sys.executable, "-c", CELL, rows, server.url, str(tmp_path / "out")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        while len(server.records) < 2 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert output == "interrupted\n"
    asked = len(server.records)
    assert 2 <= asked <= 4
    server.script = adding()
    model = Model("policy", server="openai", address=server.url, settings={"api_key": "EMPTY"})
    evaluation = evaluate(
        benchmarks=benchmark(tmp_path),
        model=model,
        settings=Generation(max_concurrent_requests=2),
        output_dir=tmp_path / "out",
    )
    assert evaluation.scores["sums"].value == 100.0
    assert len(server.records) == 10
